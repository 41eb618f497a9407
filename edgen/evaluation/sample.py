"""Data sets to measure, their conversations as samples, and the outcome of each planned conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import msgspec

from edgen.config.label_set import LabelSet
from edgen.core.values import Event, Role, Scenario, Turn
from edgen.expressions.conversation import Facts
from edgen.families.base import FiledRecord
from edgen.families.reader import DataSetReader
from edgen.reading.detect import join_words, words_of_turns
from edgen.space import Space, SpaceRole
from edgen.store.layers import LabelsByLayer
from edgen.validation.speech import Marker

Split = Literal["train", "test"]
SCENARIOS_A_PATH = 1 << 40  # keeps the scenarios of several paths apart where they are one data set


class Words(list[list[str]]):
    """The words of each turn of a conversation."""

    @cached_property
    def spoken(self) -> list[str]:
        """Each turn's as one text, as `reading.detect.words_of_turns` has it."""
        return [*map(join_words, self)]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation, from a run or from anybody's file.

    `scenario.index` is the run's, else the conversation's place in what was read: conversations that share it
    are one cluster. `turns` are without debris, end marker and empty turns; `entries` counts the turns as the
    file has them. `defects` are the kinds of debris found (`validation.KINDS`), each once. `marker` says
    where the end marker stands. `split` is None where it is not known. `outcome` is what the conversation
    came to, `events` what happened besides turns, where that is known. `labels` is what each layer of the run
    says of it.
    """

    id: str
    source: str
    split: Split | None
    scenario: Scenario
    turns: tuple[Turn, ...]
    entries: int
    defects: tuple[str, ...] = ()
    marker: Marker = "absent"
    ended_by: Role | None = None
    probability: float | None = None
    simulated: bool = False
    repairs: tuple[str, ...] = ()
    outcome: dict[str, Any] | None = None
    events: tuple[Event, ...] = ()
    labels: LabelsByLayer = {}


def cut(turns: Iterable[Turn]) -> Words:
    """Return the words of each turn, for every measure."""
    return Words(words_of_turns([turn.text for turn in turns]))


def sample_of(
    record: FiledRecord,
    identifier: str,
    scenario: Scenario,
    source: str,
    split: Split | None,
    labels: LabelsByLayer | None = None,
) -> Sample:
    """Return the sample of a record, with its id and scenario in the data set."""
    return Sample(
        id=identifier,
        source=source,
        split=split,
        scenario=scenario,
        turns=record.speech.turns,
        entries=record.entries,
        defects=record.speech.defects,
        marker=record.speech.marker,
        ended_by=record.ended_by,
        probability=record.probability,
        simulated=record.simulated,
        repairs=record.repairs,
        outcome=record.outcome,
        events=record.events,
        labels=labels or {},
    )


def sample_of_facts(facts: Facts) -> Sample:
    """Return the sample of a conversation in an expression: without a side of a split."""
    said = facts.conversation
    return Sample(
        id=facts.id,
        source="",
        split=None,
        scenario=facts.scenario,
        turns=said.turns,
        entries=len(said.turns),
        ended_by=said.ended_by,
        probability=said.probability,
        repairs=said.repairs,
        outcome=said.outcome,
        events=said.events,
    )


class PlannedOutcome(msgspec.Struct, frozen=True):
    """The outcome of one planned conversation. `reason` is None if it was accepted or is pending."""

    scenario: Scenario
    replicate: int
    status: Literal["accepted", "rejected", "failed", "pending"]
    reason: str | None = None


class RepeatedIds(Protocol):
    """Repeated ids, complete once all samples were read."""

    def describe(self) -> str | None:
        """Return a sentence on repeated ids, None without any."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set to measure.

    `name` is for people, `sources` are the paths it was read from. `family` is the kind of conversations,
    None for several kinds; `roles` are those that may speak, with the dimensions that each sees, () if
    unknown; `find_guide`: see `ConversationProtocol.guide`. `arm` is the arm of a run that it is, "" without
    arms.
    `samples()` yields every accepted conversation. A run also has `divide(size)`, ranges of scenarios with
    about so many conversations, and `turns(range)`, the conversations of one in the order of `samples`, for
    several processes; both are None for other data sets. `plan()` the outcome of everything planned (None for
    files, which have no plan). `calibration` is the agreement of the conversations' own probabilities with
    judges, `{"judges": [{"judge", "model", "compare", "calibration", "logprobs"}]}` as in `edgen pairs
    --report`, if there are pairs. `count` is the number of samples, None if still unknown. `unread` counts
    unreadable records, by reason, and is complete at the end of `samples()`, as is `stale_labels`, which
    counts units left out of layers, by layer and reason. `label_sets` are those of the layers, by the layer's
    name, if known; `identical` are the groups of a layer's annotators that send identical requests. `notes`
    are sentences about limits of the data set.
    """

    name: str
    sources: tuple[str, ...] = ()
    samples: Callable[[], Iterator[Sample]]
    divide: Callable[[int], Iterator[range]] | None = None
    turns: Callable[[range], Iterator[Sequence[Turn]]] | None = None
    plan: Callable[[], Iterator[PlannedOutcome] | None] = lambda: None
    family: DataSetReader | None
    roles: tuple[SpaceRole, ...]
    space: Space | None = None
    find_guide: Callable[[], Any] = lambda: None
    arm: str = ""
    count: int | None = None
    calibration: dict[str, Any] | None = None
    unread: Counter[str] = field(default_factory=Counter)
    stale_labels: Counter[str] = field(default_factory=Counter)
    repeated: RepeatedIds | None = None
    label_sets: Mapping[str, LabelSet] = field(default_factory=dict)
    identical: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def guide(self) -> Any:
        """The guide of the conversations, which the protocol's own measures and formats know; None without
        one."""
        return self.find_guide()
