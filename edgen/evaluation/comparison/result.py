"""Result of a comparison of runs: printed by `edgen compare --json`, kept by the run, drawn by the report."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgen.stats.ratios import RatioEstimate


class DataFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A data set that is an arm. `layout` is its name, and a record one `unit` of it. `records` were read, of
    `clusters` that do not depend on each other; `depends` says why records of one cluster do. Intervals are
    over `groups` of clusters. `unread` counts what could not be read, by reason; `notes` are sentences."""

    layout: str
    unit: str
    depends: str = ""
    records: int = 0
    clusters: int = 0
    groups: int = 0
    unread: dict[str, int] = {}
    notes: tuple[str, ...] = ()


class ArmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One arm, that is one run or one data set. `scenarios` are those compared, of a data set its groups;
    `paired`: whether they are the baseline's. A data set has no plan: its records are all `accepted`."""

    label: str
    run: str
    fingerprint: str
    scenarios: int
    paired: bool
    planned: int
    accepted: int
    rejected: dict[str, int]
    failed: dict[str, int]
    pending: int
    tokens: int
    cost_usd: float | None
    simulated: bool
    changes: dict[str, str] = {}  # what of the job differs from the baseline's: key -> value here
    data: DataFacts | UnsetType = UNSET


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`arm` minus the baseline, over the scenarios that have a value in both.

    There are `n` of them, of which `changed` add to the difference. `events`, of a share: how often its event
    occurred in both arms together, or did not, whichever is rarer. `low` and `high` are the 95% bootstrap
    interval, `p` the two-sided p-value, `p_holm` the same adjusted by Holm for all metrics of all arms (None
    if no scenario differs, so that nothing is tested); all None with too little data.
    """

    arm: str
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    n: int
    changed: int
    events: int | None = None

    @property
    def evidence(self) -> int:
        """The evidence for the difference: the scenarios that differ, or the events if these are fewer."""
        return self.changed if self.events is None else min(self.changed, self.events)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric. `name` is stable, `title` for people; `over` names the units of the average (planned
    conversations, accepted conversations, blocks). `kind` determines the format."""

    name: str
    title: str
    kind: str  # share, number, usd
    over: str
    definition: str
    arms: dict[str, RatioEstimate]
    differences: tuple[Difference, ...]
    group: str = ""  # outcomes, effort, conversations, measures, diversity


class NotCompared(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that could not be compared, and the reason."""

    what: str
    arms: tuple[str, ...]
    why: str


class PromptDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The rendered prompts of one scenario that differ between the baseline and an arm, as a unified diff."""

    arm: str
    use: str
    scenario: int
    diff: str


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="edgen comparison"):
    """All of it. `shared`: scenarios that every paired arm has. `caveats` are sentences. `policies`: the
    policy matrices by judges, as in `edgen pairs --report`, if there are pairs of the arms."""

    name: str
    baseline: str
    arms: tuple[ArmFacts, ...]
    shared: int
    metrics: tuple[Metric, ...]
    not_compared: tuple[NotCompared, ...]
    caveats: tuple[str, ...]
    method: str
    resamples: int
    seed: int
    prompts: tuple[PromptDifference, ...] = ()
    policies: tuple[dict[str, Any], ...] | UnsetType = UNSET
