"""The result of a comparison: printed by `edgen compare --json`, kept by the run, drawn by the report."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgen.stats.ratios import RatioEstimate


class DataFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a data set as an arm. Its intervals are over groups of clusters."""

    layout: str  # name of the layout
    unit: str  # the word for one record
    depends: str = ""  # why records of one cluster depend on each other
    records: int = 0  # records that were read
    clusters: int = 0  # sets of records that depend on each other
    groups: int = 0  # groups of clusters, which intervals are over
    unread: dict[str, int] = {}  # records that could not be read, by reason
    notes: tuple[str, ...] = ()  # sentences


class ArmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One arm: a run or a data set. A data set has no plan; all its records are `accepted`."""

    label: str  # its name in the comparison
    run: str  # path of the run or the data set
    fingerprint: str  # fingerprint of everything that shapes the run's answers
    scenarios: int  # compared scenarios; groups of a data set
    paired: bool  # whether it has the baseline's scenarios
    planned: int  # conversations
    accepted: int  # conversations
    rejected: dict[str, int]  # conversations by reason
    failed: dict[str, int]  # conversations by reason
    pending: int  # conversations without an outcome
    tokens: int  # of prompts and answers
    cost_usd: float | None  # US dollars; None without a price
    simulated: bool  # no model wrote it
    changes: dict[str, str] = {}  # keys of the job that differ from the baseline's, with values here
    data: DataFacts | UnsetType = UNSET  # facts about a data set


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """An arm's value minus the baseline's, over the scenarios that have a value in both. Value, interval and
    p-values are None with too little data."""

    arm: str  # label of the arm
    value: float | None  # in the metric's unit
    low: float | None  # end of the 95% bootstrap interval
    high: float | None  # end of the 95% bootstrap interval
    p: float | None  # two-sided p-value of no difference
    p_holm: float | None
    """The p-value adjusted by Holm for all tested differences; None also if no scenario differs, since
    nothing is tested."""
    n: int  # scenarios with a value in both arms
    changed: int  # scenarios that differ
    events: int | None = None
    """For a share: occurrences of its event in both arms, or of the opposite if that is rarer."""

    @property
    def evidence(self) -> int:
        """The amount of evidence: the scenarios that differ, or the events if these are fewer."""
        return self.changed if self.events is None else min(self.changed, self.events)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric in every arm."""

    name: str  # stable name
    title: str  # for people
    kind: str  # share, number, usd
    over: str  # units of the average: planned conversations, accepted conversations, blocks
    definition: str  # for people
    arms: dict[str, RatioEstimate]  # values by arm's label
    differences: tuple[Difference, ...]  # from the baseline, one for each other arm
    group: str = ""  # outcomes, effort, conversations, measures, diversity


class NotCompared(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics that could not be compared in some arms, and the reason."""

    what: str
    arms: tuple[str, ...]
    why: str


class PromptDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between the baseline's and an arm's rendered prompt of one scenario, as a unified
    diff."""

    arm: str
    use: str
    scenario: int
    diff: str


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="edgen comparison"):
    """The result of a comparison."""

    name: str  # name of the comparison, from the runs' names
    baseline: str  # label of the arm that others are compared with
    arms: tuple[ArmFacts, ...]  # the baseline among them
    shared: int  # scenarios that every paired arm has
    metrics: tuple[Metric, ...]  # in the order of their display
    not_compared: tuple[NotCompared, ...]  # metrics left out, with the reason
    caveats: tuple[str, ...]  # sentences
    method: str  # sentences on intervals and p-values
    resamples: int  # resamples of the bootstrap
    seed: int  # seed of the resampling
    prompts: tuple[PromptDifference, ...] = ()  # differences of templates from the baseline's
    policies: tuple[dict[str, Any], ...] | UnsetType = UNSET
    """Policy matrices by judges, as in `edgen pairs --report`, if there are pairs of the arms."""
    faults: tuple[str, ...] | UnsetType = UNSET
    """Errors of measures of other packages, which are left out, if there were any."""
