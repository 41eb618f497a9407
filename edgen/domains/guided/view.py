"""Views for people who play in a guided conversation."""

from __future__ import annotations

from typing import Any

from edgen.plugin.protocols import Offer, View, list_utterances


class GuidedViews:
    """The views of a guided conversation: the guided role's offer, and each role's knowledge."""

    def view(self: Any, use: str, backend: str, role: str | None) -> View | None:
        """Return the view for a person who answers with the template of this use."""
        session = self
        prepared, course = session._prepared, session.course
        seat = next((one for one in (prepared.wizard, prepared.partner) if one.name.lower() == backend), None)
        if seat is None:
            return None
        known = session._list_known_variables(seat)
        facts = tuple(line.partition(": ")[::2] for line in (*known["about"], *known["world"]))
        view = View(seat.name, facts, list_utterances(course.turns))
        if use == "questionnaire" and prepared.questionnaire is not None:
            asked = tuple((item.name, item.text + item.ends) for item in prepared.questionnaire.items)
            return view.with_(text="The conversation is over. Some questions about it:", questions=asked)
        if use != "wizard":
            return view
        offer = course.offer()
        states = {option.utterance: option.state for option in offer.options}
        utterances = [*(option.utterance for option in offer.options), *offer.fixed.values()]
        offers = (
            Offer("choice", number, words, offer.hint is not None and states.get(words) == offer.hint)
            for number, words in enumerate(utterances, 1)
        )
        return view.with_(offers=tuple(offers))
