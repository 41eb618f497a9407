"""Labelled units of a conversation, and the labels by annotators: in a layer of a finished run, or during
generation.

`Layer.label` labels a new conversation within the generator that made it. Its calls have steps from `ABOUT`
on: they are about the conversation and do not change it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from edgen.config import ANNOTATOR, MOST_ANNOTATORS
from edgen.config.label_set import LabelSet, find_majority
from edgen.core.digest import compute_sha256
from edgen.core.values import Address, Rejection, RejectionReason, Reply, Request, Turn
from edgen.protocols.base import Prompting, Rules, transcript_of
from edgen.protocols.labelling import Unit, label_units
from edgen.reading.answers.unit_labels import Labels

UnitKind = Literal["turn", "conversation"]

# Steps of calls about a finished conversation start here and stay below 100,000, for request names.
ABOUT = 10_000
_TURNS = 1_000  # steps of an annotator; turns beyond them share the last


class LabelledUnit(msgspec.Struct, frozen=True, array_like=True):
    """A unit's labels by one annotator. `turn` is counted from 0; None is the whole conversation. `said` is
    the digest of the conversation up to the turn."""

    turn: int | None
    said: str
    labels: Labels


Said = dict[str, tuple[LabelledUnit, ...]]
"""The labels of one conversation by each annotator of a layer, by the annotators' names."""


class LabellingTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of annotators: the label set, the units, and whether one request labels all turns of a
    conversation."""

    labels: LabelSet
    unit: UnitKind = "turn"
    together: bool = False

    def list_units(self, turns: Sequence[Turn]) -> list[int | None]:
        """Return the units of a conversation: the places of its turns, or None for all of it."""
        if self.unit == "conversation":
            return [None]
        return [place for place, turn in enumerate(turns) if self.labels.asks_for(turn.role)]

    def group_units(self, turns: Sequence[Turn]) -> list[list[int | None]]:
        """Group the units of a conversation by request."""
        units = self.list_units(turns)
        return [units] if units and (self.unit == "conversation" or self.together) else [[u] for u in units]

    def select_content(self, turns: Sequence[Turn], units: Sequence[int | None]) -> list[Turn | Unit]:
        """Return the content shown to an annotator of these units in one request: a turn with those before
        it; several turns with the whole conversation."""
        if units == [None]:
            return [*turns, Unit(self.labels)]
        wanted = {*units}
        last = len(turns) if self.together else max(place for place in units if place is not None) + 1
        return [
            Unit(self.labels, turn) if place in wanted else turn for place, turn in enumerate(turns[:last])
        ]


def list_job_annotators(count: int) -> tuple[str, ...]:
    """Return the names of a job's annotators of a layer."""
    return tuple(f"job:{ANNOTATOR}{end}" for end in ("", *(f"-{number}" for number in range(2, count + 1))))


class JobLayer(NamedTuple):
    """Labels that a job puts on its conversations while they are made. `place` is the layer's place among the
    job's layers."""

    name: str
    place: int
    asking: LabellingTask
    annotators: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the annotators, which no annotator of a finished run can have."""
        return list_job_annotators(self.annotators)

    def label(
        self, turns: Sequence[Turn], address: Address, prompt: Prompting, rules: Rules
    ) -> Generator[Request, Reply, Said | Rejection]:
        """Return the labels of a conversation by its annotators; a rejection if no annotator labels any
        unit."""
        said: Said = {}
        last: Rejection | None = None
        rules = msgspec.structs.replace(rules, several=rules.several or self.annotators > 1)
        for number, name in enumerate(self.names):
            found: list[LabelledUnit] = []
            for units in self.asking.group_units(turns):
                shown = self.asking.select_content(turns, units)
                where = msgspec.structs.replace(address, step=self._number_step(number, units))
                labels = yield from label_units(shown, where, prompt, rules, ANNOTATOR)
                if isinstance(labels, Rejection):
                    last = labels
                    continue
                pairs = zip(units, labels, strict=True)
                found += [LabelledUnit(unit, digest_said(turns, unit), given) for unit, given in pairs]
            if found:
                said[name] = tuple(found)
        if not said and last is not None:
            return Rejection(RejectionReason.NO_LABELS, f"{self.name}: {last.detail}")
        return said

    def _number_step(self, annotator: int, units: Sequence[int | None]) -> int:
        """Return the step of a request, which does not depend on other layers, gates or turns."""
        turn = 0 if units[0] is None else min(units[0], _TURNS - 1)
        return ABOUT + (self.place * MOST_ANNOTATORS + annotator) * _TURNS + turn

    def find_majority_labels(self, turns: Sequence[Turn], said: Said) -> list[tuple[int | None, Labels]]:
        """Return each labelled unit with the labels by the majority of its annotators. A unit is the place of
        a turn, or None for the conversation."""
        given: dict[int | None, list[Labels]] = {}
        for units in said.values():
            for unit in units:
                given.setdefault(unit.turn, []).append(unit.labels)
        labels = self.asking.labels
        return [
            (unit, find_majority(given[unit], labels)[0])
            for unit in self.asking.list_units(turns)
            if unit in given
        ]


def digest_said(turns: Sequence[Turn], place: int | None) -> str:
    """Return the sha256 of a conversation up to a turn, which identifies what was labelled. `place` None: all
    turns."""
    return compute_sha256(transcript_of(turns if place is None else turns[: place + 1]).encode())


def read_said_layers(data: Mapping[str, bytes]) -> dict[str, Said]:
    """Return the stored labels of a conversation, by layer. Raises ValueError for invalid ones."""
    return {name: _decode_said(one) for name, one in data.items()}


_decode_said = msgspec.json.Decoder(Said).decode
encode_said = msgspec.json.Encoder(order="deterministic").encode
