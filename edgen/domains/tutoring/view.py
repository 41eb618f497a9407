"""Views for people who play in a session of exercises."""

from __future__ import annotations

from typing import Any

from edgen.domains.tutoring.exercises.model import SHOWN
from edgen.plugin.protocols import Offer, View, list_utterances


class TutoringViews:
    """The views of a session: the exercise as the role knows it, the turns so far, and the possible
    actions."""

    def view(self: Any, use: str, backend: str, role: str | None) -> View | None:
        """Return the view for a person who answers with the template of this use."""
        session = self
        prepared = session._prepared
        if use == prepared.student.name.lower():
            seat, side = prepared.student, "student"
        elif use in prepared.uses.values():
            seat, side = prepared.tutor, "tutor"
        else:
            return None
        known = session._list_variables(seat, side, None)
        facts = [line.partition(": ")[::2] for line in known["about"]]
        facts.append(("exercise", f"{known['exercise_number']}"))
        values = {name: known.get(name) for name in SHOWN}
        facts += [
            (name, value if isinstance(value, str) else "; ".join(value))
            for name, value in values.items()
            if value
        ]
        actions = session._settings.named_actions[side] if session._settings.speaker_names else {}
        offers = tuple(Offer("actions", name, f"{name}: {what}") for name, what in actions.items())
        asked = (("actions", "What does your turn do?"),) if actions else ()
        return View(seat.name, tuple(facts), list_utterances(session._turns), offers=offers, questions=asked)
