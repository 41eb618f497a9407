"""What the measures are given: conversations as samples, and what became of each that was planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from edgen.model import Role, Scenario, Turn

Marker = Literal["suffix", "own_turn", "inside", "absent"]
Words = Sequence[Sequence[str]]  # of each turn, as `words` has them


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation, from a run or from anybody's file.

    `scenario.index` is that of the run, else the conversation's place in what was read: conversations that
    share it are one cluster. `turns` are what was said, without debris, end marker and empty turns;
    `entries` counts the turns as the file has them, an end marker that stands by itself among them.
    `defects` are the kinds of debris found (`validation.KINDS`), each once. `marker` is where the end marker
    stands. `split` is None where nothing tells it.
    """

    id: str
    source: str
    split: Literal["train", "test"] | None
    scenario: Scenario
    turns: tuple[Turn, ...]
    entries: int
    defects: tuple[str, ...] = ()
    marker: Marker = "absent"
    ended_by: Role | None = None
    probability: float | None = None
    simulated: bool = False
    repairs: tuple[str, ...] = ()


class Fate(msgspec.Struct, frozen=True):
    """What became of one planned conversation. `reason` is None where it was accepted or is pending."""

    scenario: Scenario
    replicate: int
    status: Literal["accepted", "rejected", "failed", "pending"]
    reason: str | None = None


class Listener(Protocol):
    """Is told of every sample of a stream once.

    `words` are those of `sample.turns`, turn by turn: cut once for all.
    """

    def add(self, sample: Sample, words: Words) -> None: ...
