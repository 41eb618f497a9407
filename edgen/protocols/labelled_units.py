"""What of a conversation is labelled, and what annotators say of it: afterwards, in a layer, or while it is
made.

`Layer.label` labels a conversation that is just made, within the generator that made it. Its calls have steps
from `ABOUT` on: they ask about the conversation and make nothing of it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from edgen.config import ANNOTATOR, MOST_ANNOTATORS
from edgen.config.label_set import LabelSet, majority
from edgen.core.digest import sha256
from edgen.core.values import Address, Rejection, RejectionReason, Reply, Request, Turn
from edgen.protocols.base import Prompting, Rules, transcript_of
from edgen.protocols.labelling import Unit, label_units
from edgen.reading.answers.unit_labels import Labels

UnitKind = Literal["turn", "conversation"]

ABOUT = 10_000  # calls from this step on ask about what a conversation came to; below 100,000, as names of requests have room
_TURNS = 1_000  # steps that an annotator has; turns beyond them share the last


class LabelledUnit(msgspec.Struct, frozen=True, array_like=True):
    """A unit's labels by one annotator: the turn, counted from 0, or None for the conversation; the digest of
    what was said up to it."""

    turn: int | None
    said: str
    labels: Labels


Said = dict[str, tuple[LabelledUnit, ...]]
"""What each annotator of a layer says of one conversation, by the annotators' names."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What annotators are asked: labels of which set, for what, and whether for all turns of a conversation
    at once."""

    labels: LabelSet
    unit: UnitKind = "turn"
    together: bool = False

    def units(self, turns: Sequence[Turn]) -> list[int | None]:
        """What of a conversation is labelled: its turns by their places, or None for all of it."""
        if self.unit == "conversation":
            return [None]
        return [place for place, turn in enumerate(turns) if self.labels.asks_for(turn.role)]

    def requests(self, turns: Sequence[Turn]) -> list[list[int | None]]:
        """The units of each request about a conversation."""
        units = self.units(turns)
        return [units] if units and (self.unit == "conversation" or self.together) else [[u] for u in units]

    def shown(self, turns: Sequence[Turn], units: Sequence[int | None]) -> list[Turn | Unit]:
        """What an annotator sees who labels these units in one request: a turn with those before it, several
        with all."""
        if units == [None]:
            return [*turns, Unit(self.labels)]
        wanted = {*units}
        last = len(turns) if self.together else max(place for place in units if place is not None) + 1
        return [
            Unit(self.labels, turn) if place in wanted else turn for place, turn in enumerate(turns[:last])
        ]


class Layer(NamedTuple):
    """Labels that a job puts on its conversations while they are made; `place` is its own among the job's
    layers."""

    name: str
    place: int
    asking: Asking
    annotators: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The annotators. None who is asked afterwards can be called so."""
        numbers = range(2, self.annotators + 1)
        return tuple(f"job:{ANNOTATOR}{end}" for end in ("", *(f"-{number}" for number in numbers)))

    def label(
        self, turns: Sequence[Turn], address: Address, prompt: Prompting, rules: Rules
    ) -> Generator[Request, Reply, Said | Rejection]:
        """What the annotators say of a conversation; why not, where none of them labels any of its units."""
        said: Said = {}
        last: Rejection | None = None
        for number, name in enumerate(self.names):
            found: list[LabelledUnit] = []
            for units in self.asking.requests(turns):
                shown = self.asking.shown(turns, units)
                where = msgspec.structs.replace(address, step=self._step(number, units))
                labels = yield from label_units(shown, where, prompt, rules, ANNOTATOR)
                if isinstance(labels, Rejection):
                    last = labels
                    continue
                pairs = zip(units, labels, strict=True)
                found += [LabelledUnit(unit, said_digest(turns, unit), given) for unit, given in pairs]
            if found:
                said[name] = tuple(found)
        if not said and last is not None:
            return Rejection(RejectionReason.NO_LABELS, f"{self.name}: {last.detail}")
        return said

    def _step(self, annotator: int, units: Sequence[int | None]) -> int:
        """The step of a request: the same whichever other layers, gates and turns there are."""
        turn = 0 if units[0] is None else min(units[0], _TURNS - 1)
        return ABOUT + (self.place * MOST_ANNOTATORS + annotator) * _TURNS + turn

    def most(self, turns: Sequence[Turn], said: Said) -> list[tuple[int | None, Labels]]:
        """What most annotators say of each unit that is labelled: its turn, None for the conversation, and
        the labels."""
        given: dict[int | None, list[Labels]] = {}
        for units in said.values():
            for unit in units:
                given.setdefault(unit.turn, []).append(unit.labels)
        labels = self.asking.labels
        return [
            (unit, majority(given[unit], labels)[0]) for unit in self.asking.units(turns) if unit in given
        ]


def said_digest(turns: Sequence[Turn], place: int | None) -> str:
    """The sha256 of what was said up to a turn, and by it: a label holds for no other."""
    return sha256(transcript_of(turns if place is None else turns[: place + 1]).encode())


def layers_said(data: Mapping[str, bytes]) -> dict[str, Said]:
    """What is kept of labels beside a conversation, by layer. Raises ValueError for what is none."""
    return {name: _said(one) for name, one in data.items()}


_said = msgspec.json.Decoder(Said).decode
encode_said = msgspec.json.Encoder(order="deterministic").encode
