"""Turns served to a student in one session: a response of an earlier round, or a template; no text twice.

The choice depends on (seed, scenario, replicate, turn) and on the session so far. The `data` of served turns
names their source.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from edgen.domains.tutoring.exercises.model import Exercise
from edgen.domains.tutoring.pool_config import SOLVED, read_template
from edgen.domains.tutoring.response_pool import PoolQuery, Response, ResponsePool
from edgen.plugin import Turn
from edgen.plugin.answers import ActedTurn

DRY = "pool_dry"  # a flag of a conversation


class SessionServing:
    """One session's served texts and their sources. They come from `pool`, and are said by the role `tutor`,
    which has these actions."""

    def __init__(self, pool: ResponsePool, tutor: str, actions: Mapping[str, str]) -> None:
        self._pool, self._tutor, self._actions = pool, tutor, actions
        self._shown: set[str] = set()
        self._counts: Counter[str] = Counter()

    @property
    def was_exhausted(self) -> bool:
        """True if, in a round after the first, the pool had no response for some turn."""
        return self._pool.number > 0 and bool(self._counts["dry"] + self._counts["new"])

    def choose_turn(self, turn: Turn, exercise: Exercise, rng: random.Random) -> Turn | None:
        """Return the turn to serve after a student's turn about an exercise; None if the pool has no response
        and every template was shown."""
        shares = self._pool.settings.fallback
        by_template = rng.random() < max([shares.get(action, 0.0) for action in turn.labels], default=0.0)
        template = self._fill_template(turn, exercise, rng) if by_template else None
        if template is not None:
            return self._serve(template.text, template.actions, "template", {})
        found = self._pool.find(PoolQuery.of(turn, exercise.concepts), self._shown, rng)
        if found is not None:
            return self._serve(found.text, found.actions, "pool", self._describe_origin(found))
        template = self._fill_template(turn, exercise, rng)
        return None if template is None else self._serve(template.text, template.actions, "dry", {})

    def take(self, turn: Turn) -> Turn:
        """Return a response to the current turn as served, since nothing else is left."""
        return self._serve(turn.text, turn.labels, "new", turn.data)

    def is_closed(self, turns: Sequence[Turn]) -> bool:
        """Return whether the exercise has too many turns to be shown to a tutor."""
        longest = self._pool.settings.longest
        begun = next(place for place, turn in enumerate(reversed(turns), 1) if "exercise" in turn.data)
        return longest is not None and begun > longest

    def as_outcome(self) -> dict[str, Any]:
        """Return the data for the record's outcome: the round, from 1, and the number of turns from each
        source."""
        return {"round": self._pool.number + 1, "served": dict(sorted(self._counts.items()))}

    def _serve(self, text: str, actions: tuple[str, ...], source: str, known: Mapping[str, Any]) -> Turn:
        self._shown.add(text)
        self._counts[source] += 1
        return Turn(self._tutor, text, actions, {"served": source, **known})

    def _describe_origin(self, response: Response) -> dict[str, Any]:
        name, turn, place = response.origin
        return {
            "from": name,
            "turn": turn,
            "response": place,
            "exposure": self._pool.count_exposure(response),
        }

    def _fill_template(self, said: Turn, exercise: Exercise, rng: random.Random) -> ActedTurn | None:
        """Return a template for the turn, filled so that its text was not shown yet; None if there is
        none."""
        templates = self._pool.settings.named_templates
        names = (SOLVED,) if said.data.get("solved") else said.labels
        read = [read_template(text, self._actions) for name in names for text in templates.get(name, ())]
        filled = [
            msgspec.structs.replace(one, text=text)
            for one in read
            if isinstance(one, ActedTurn)
            for text in _fill(one.text, exercise)
            if text not in self._shown
        ]
        return rng.choice(filled) if filled else None


def _fill(text: str, exercise: Exercise) -> list[str]:
    """Return the texts of a template with the exercise's answer and each of its points."""
    points = exercise.points if "{point}" in text else ("",)
    return [text.replace("{answer}", exercise.answer).replace("{point}", point) for point in points]
