"""Data sets to measure, their conversations as samples, and the outcome of each planned conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import msgspec

from edgen.config.label_set import LabelSet
from edgen.core.values import Event, Role, Scenario, Turn
from edgen.expressions.conversation import Facts
from edgen.families.base import FiledRecord
from edgen.families.reader import DataSetReader
from edgen.reading.detect import join_words, split_words_of_turns
from edgen.space import Space, SpaceRole
from edgen.store.layers import LabelsByLayer
from edgen.validation.speech import Marker

Split = Literal["train", "test"]
SCENARIOS_A_PATH = 1 << 40  # offset that keeps scenarios of several paths in one data set apart


class Words(list[list[str]]):
    """The words of each turn of a conversation."""

    @cached_property
    def spoken(self) -> list[str]:
        """Each turn's words as one text, by `join_words`."""
        return [*map(join_words, self)]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation, from a run or from any file."""

    id: str  # id in its source
    source: str  # the path it was read from
    split: Split | None  # train or test; None if unknown
    scenario: Scenario
    """Its `index` is the run's, or else the place in the source; conversations with the same index are a
    cluster."""
    turns: tuple[Turn, ...]  # without debris, end marker and empty turns
    entries: int  # number of turns in the file
    defects: tuple[str, ...] = ()  # kinds of debris found (`validation.KINDS`), each once
    marker: Marker = "absent"  # place of the end marker
    ended_by: Role | None = None  # the speaker of the end marker; None without one
    probability: float | None = None  # of the family's event; None if unknown
    simulated: bool = False  # no model wrote it
    repairs: tuple[str, ...] = ()  # the reader's fixes
    outcome: dict[str, Any] | None = None  # its result, if known
    events: tuple[Event, ...] = ()  # events other than turns, if known
    labels: LabelsByLayer = {}  # labels of each layer of the run


def cut(turns: Iterable[Turn]) -> Words:
    """Split each turn into words, once for all measures."""
    return Words(split_words_of_turns([turn.text for turn in turns]))


def make_sample(
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


def copy_for_plugin(sample: Sample, words: Words) -> tuple[Sample, Words]:
    """Return copies of a sample and its words, since a plugin's measure may change them."""
    turns = tuple(
        msgspec.structs.replace(turn, data=deepcopy(turn.data), alternatives=deepcopy(turn.alternatives))
        for turn in sample.turns
    )
    own = {name: deepcopy(getattr(sample, name)) for name in ("scenario", "outcome", "events", "labels")}
    return msgspec.structs.replace(sample, turns=turns, **own), Words(map(list, words))


def make_sample_of_facts(facts: Facts) -> Sample:
    """Return the sample of a conversation in an expression; it has no split."""
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


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set to measure."""

    name: str  # display name
    sources: tuple[str, ...] = ()  # paths it was read from
    samples: Callable[[], Iterator[Sample]]  # yields every accepted conversation
    divide: Callable[[int], Iterator[range]] | None = None
    """For a run: yields ranges of scenarios with about this many conversations each, for several processes;
    None for other data sets."""
    turns: Callable[[range], Iterator[Sequence[Turn]]] | None = None
    """For a run: yields the turns of a range's conversations, in the order of `samples`; None for other data
    sets."""
    plan: Callable[[], Iterator[PlannedOutcome] | None] = lambda: None
    """Returns the outcomes of all planned conversations; None for files, which have no plan."""
    family: DataSetReader | None  # the kind of conversations; None for several kinds
    roles: tuple[SpaceRole, ...]  # roles that may speak, with the dimensions that each sees; empty if unknown
    find_space: Callable[[], Space | None] = lambda: None  # reads the space; None if unknown
    find_guide: Callable[[], Any] = lambda: None  # see `RolesAndSettings.guide`
    arm: str = ""  # name of the run's arm; empty without arms
    count: int | None = None  # number of samples; None if unknown
    calibration: dict[str, Any] | None = None
    """The agreement of the conversations' own probabilities with judges, `{"judges": [{"judge", "model",
    "compare", "calibration", "logprobs"}]}` as in `edgen pairs --report`; None without pairs."""
    unread: Counter[str] = field(default_factory=Counter)
    """Unreadable records by reason, complete at the end of `samples()`."""
    stale_labels: Counter[str] = field(default_factory=Counter)
    """Units left out of layers, by layer and reason, complete at the end of `samples()`."""
    describe_repeats: Callable[[], str | None] = lambda: None
    """Returns a sentence on ids that occur more than once, at the end of `samples()`; None without any."""
    label_sets: Mapping[str, LabelSet] = field(default_factory=dict)
    """Known label sets of the layers, by layer's name."""
    identical: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Groups of annotators that send identical requests, by layer."""
    notes: tuple[str, ...] = ()  # sentences on limitations of the data set
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Explanations of the protocol's own reasons for rejections, by reason."""

    @cached_property
    def space(self) -> Space | None:
        """The space of the conversations; None if it is unknown."""
        return self.find_space()

    @cached_property
    def guide(self) -> Any:
        """The guide of the conversations, for the protocol's own measures and formats; None without one."""
        return self.find_guide()
