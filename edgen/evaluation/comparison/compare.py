"""Comparison of arms: every metric of each arm, and its difference from the first arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import UNSET

from edgen.core.errors import ShortError
from edgen.core.text import round_usd
from edgen.evaluation.comparison.arms import Arm, ArmSums, Array, align, count_near_duplicates, number_groups
from edgen.evaluation.comparison.blocks import compute_block_metrics
from edgen.evaluation.comparison.caveats import find_not_compared, list_caveats
from edgen.evaluation.comparison.metrics import (
    BLOCK_METRICS,
    MetricSpec,
    applies,
    list_metric_specs,
    select_applicable,
)
from edgen.evaluation.comparison.result import (
    ArmFacts,
    ComparisonResult,
    Difference,
    Metric,
    NotCompared,
    PromptDifference,
)
from edgen.evaluation.shared import Faults
from edgen.stats.ratios import (
    Columns,
    RatioDifference,
    RatioEstimate,
    compare_paired,
    compare_unpaired,
    estimate_ratios,
)
from edgen.stats.resampling import round_number
from edgen.stats.significance import holm

RESAMPLES = 9_999
METHOD = (
    "A metric is a ratio of sums over scenarios. Intervals are 95% bootstrap intervals, the expanded "
    "percentiles of Hesterberg (2015), over {resamples} resamples of scenarios (of blocks, where blocks are "
    "measured; of groups of scenarios that near-duplicates link, where these are counted); a paired scenario "
    "is drawn with its conversations from both arms (Efron and Tibshirani 1993). p-values draw the sign of "
    "each scenario's contribution to the difference, linearised around the ratio of both arms together "
    "(Cochran 1977), {flips} times: exact where the arms could change places in every scenario and have the "
    "same denominators, approximate where they have more conversations in one arm than in the other. For "
    "arms with other scenarios, data sets among them, they reassign the scenarios to the two arms at random; "
    "the statistic is the difference over its standard error (Janssen 1997; Chung and Romano 2013). p_holm "
    "is adjusted for all differences of all arms that are tested (Holm 1979); a metric that mirrors another "
    "one is tested with it."
)


def compare_arms(
    name: str,
    arms: Sequence[Arm],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    prompts: Iterable[PromptDifference] = (),
    on_stage: Callable[[str], None] = lambda _stage: None,
) -> ComparisonResult:
    """Compare arms, at least two, with the first arm. The same arms and seed give the same comparison.
    `on_stage` gets the name of each stage.

    Raises ShortError if an arm has no settled conversation, or no scenario is settled in all paired arms.
    """
    tables = []
    for arm in arms:
        on_stage(f"reading {arm.label}")
        tables.append(ArmSums(arm))
    align(tables)
    shared = _count_shared(tables)
    most, copies = min(table.end for table in tables), min(arm.replicates for arm in arms)
    for table in tables:
        on_stage(f"looking for near-duplicates in {table.arm.label}")
        count_near_duplicates(table, most, copies)
    on_stage("measuring blocks")
    blocks = compute_block_metrics(tables, np.random.default_rng((seed, 0)))
    on_stage("resampling")
    faults: Faults = {name: fault for table in tables for name, fault in table.faults.items()}
    every = list(list_metric_specs(tables, faults))
    kept, left_out = select_applicable(tables, every)
    refused, not_compared = find_not_compared(tables, kept, blocks)
    refused |= {(spec.name, table.arm.label) for table in tables for spec in kept if not applies(spec, table)}
    work = _Resampling(kept, blocks, refused, seed=seed, resamples=resamples)
    own = {table.arm.label: work.estimate_values(table) for table in tables}
    flips = max(resamples, 40 * len(kept) * (len(tables) - 1) - 1)
    found = {
        table.arm.label: work.estimate_differences(tables[0], table, place, flips)
        for place, table in enumerate(tables[1:])
    }
    adjusted, tests = _adjust(found, _find_mirrors(tables, kept))
    metrics = tuple(_make_metric(spec, own, found, adjusted) for spec in kept)
    return ComparisonResult(
        name=name,
        baseline=arms[0].label,
        arms=tuple(_collect_facts(table, arms[0]) for table in tables),
        shared=shared,
        metrics=metrics,
        not_compared=(*left_out, *not_compared, *_list_faulty(tables, faults)),
        caveats=tuple(list_caveats(tables, metrics, shared, tests)),
        method=METHOD.format(resamples=f"{resamples:,}", flips=f"{flips:,}"),
        resamples=resamples,
        seed=seed,
        prompts=tuple(prompts),
        faults=tuple(map(str, faults.values())) or UNSET,
    )


def _list_faulty(tables: Sequence[ArmSums], faults: Faults) -> Iterator[NotCompared]:
    """Yield the measures of plugins that raised, with their errors. They are compared in no arm."""
    arms = tuple(table.arm.label for table in tables)
    for name, fault in faults.items():
        yield NotCompared(what=name, arms=arms, why=str(fault).removesuffix("."))


def _count_shared(tables: Sequence[ArmSums]) -> int:
    """Count the scenarios that are settled in every arm with the first arm's draws. Raises ShortError."""
    first = tables[0].arm
    for table in tables:
        if not table.find_total("settled"):
            raise ShortError(
                f"{table.arm.run or table.arm.label}: nothing is settled in it, so there is nothing to "
                "compare. Generate it first, or name other arms with --arms."
            )
    same = [table for table in tables if table.arm.draws == first.draws]
    count = int(np.all([table.find_column("settled") > 0 for table in same], axis=0).sum())
    if not count:
        raise ShortError(
            f"{', '.join(table.arm.label for table in same)}: no scenario is settled in all of these, so "
            "nothing can be compared. Generate them to their end."
        )
    return count


class _Resampling:
    """Estimates of metrics and their differences, by resampling. `refused`: metrics that are meaningless in
    an arm, as (metric, arm's label)."""

    def __init__(
        self,
        kept: Sequence[MetricSpec],
        blocks: Mapping[str, Mapping[str, Array]],
        refused: set[tuple[str, str]],
        *,
        seed: int,
        resamples: int,
    ) -> None:
        self._kept, self._blocks, self._refused = kept, blocks, refused
        self._seed, self._resamples = seed, resamples
        self._over_blocks = [spec for spec in kept if spec.name in BLOCK_METRICS]
        self._over_groups = [spec for spec in kept if spec.bottom == "compared"]
        others = (*self._over_blocks, *self._over_groups)
        self._over_scenarios = [spec for spec in kept if spec not in others]

    def estimate_values(self, table: ArmSums) -> dict[str, RatioEstimate]:
        """Return the estimate of each metric in one arm."""
        rng = np.random.default_rng((self._seed, 1))
        found = {spec.name: RatioEstimate() for spec in self._kept}
        for members, columns in self._split_parts(table, None):
            if columns is not None:
                names = [spec.name for spec in members]
                found |= zip(names, estimate_ratios(columns, members, rng, self._resamples), strict=True)
        if ("cost", table.arm.label) in self._refused:
            found["cost"] = RatioEstimate()
        nothing = [spec.name for spec in self._kept if not applies(spec, table)]
        return found | {name: RatioEstimate() for name in nothing}

    def estimate_differences(
        self, first: ArmSums, other: ArmSums, place: int, flips: int
    ) -> dict[str, RatioDifference]:
        """Return the difference of each metric between an arm and the first. `place`: the arm's place after
        the first, from 0; `flips`: number of sign flips."""
        rng = np.random.default_rng((self._seed, 2, place))
        same = other.arm.draws == first.arm.draws
        measure = compare_paired if same else compare_unpaired
        found = {spec.name: RatioDifference() for spec in self._kept}
        ours = self._split_parts(first, other if same else None)
        theirs = self._split_parts(other, first if same else None)
        for (members, a), (_, b) in zip(ours, theirs, strict=True):
            if a is not None and b is not None:
                names = [spec.name for spec in members]
                found |= zip(names, measure(a, b, members, rng, self._resamples, flips), strict=True)
        labels = (first.arm.label, other.arm.label)
        return found | {name: RatioDifference() for name, label in self._refused if label in labels}

    def _split_parts(
        self, table: ArmSums, paired: ArmSums | None
    ) -> list[tuple[list[MetricSpec], Columns | None]]:
        """Return the metrics with the source of their columns: over scenarios, over groups of scenarios that
        near-duplicates link, and over blocks. `paired`: a paired arm; then groups follow the links of both
        arms, and only common scenarios count."""
        mine = self._blocks.get(table.arm.label)
        both = [table] if paired is None else [table, paired]
        links = np.array([link for one in both for link in one.linked], dtype=np.int64).reshape(-1, 2)
        group = number_groups(len(table.scenarios), np.searchsorted(table.scenarios, links).tolist())
        there = np.all([one.find_column("compared") > 0 for one in both], axis=0)

        def of_groups(column: str) -> Array:
            sums = np.bincount(group, weights=np.where(there, table.find_column(column), 0.0))
            return sums.astype(np.float64)

        def of_blocks(column: str) -> Array:
            assert mine is not None
            return np.ones(len(mine["self_bleu"])) if column == "blocks" else mine[column]

        return [
            (self._over_scenarios, table.find_column),
            (self._over_groups, of_groups),
            (self._over_blocks, None if mine is None else of_blocks),
        ]


def _make_metric(
    spec: MetricSpec,
    own: Mapping[str, Mapping[str, RatioEstimate]],
    found: Mapping[str, Mapping[str, RatioDifference]],
    adjusted: Mapping[tuple[str, str], float],
) -> Metric:
    return Metric(
        name=spec.name,
        title=spec.title,
        kind=spec.kind,
        group=spec.group,
        over=spec.over,
        definition=spec.definition,
        arms={label: numbers[spec.name] for label, numbers in own.items()},
        differences=tuple(
            Difference(
                arm=label,
                p_holm=adjusted.get((spec.name, label)),
                **msgspec.structs.asdict(differences[spec.name]),
            )
            for label, differences in found.items()
        ),
    )


def _adjust(
    found: dict[str, dict[str, RatioDifference]], mirrors: dict[str, str]
) -> tuple[dict[tuple[str, str], float], int]:
    """Return the adjusted p-values by (metric, arm), and the number of tests. Metrics without a difference
    are not tested; mirror images share one test."""
    known = {
        (name, label): one.p
        for label, of in found.items()
        for name, one in of.items()
        if one.p is not None and one.changed and name not in mirrors
    }
    adjusted = dict(zip(known, map(round_number, holm(list(known.values()))), strict=True))
    for name, other in mirrors.items():
        adjusted |= {
            (name, label): p
            for (of, label), p in adjusted.items()
            if of == other and found[label][name].p is not None
        }
    return adjusted, len(known)


def _find_mirrors(tables: Sequence[ArmSums], kept: Sequence[MetricSpec]) -> dict[str, str]:
    """Map each share metric to an earlier one that equals it or its complement in every arm, so the pair is
    tested once. For example, the only reason for rejection is the complement of acceptance."""
    found: dict[str, str] = {}
    for place, spec in enumerate(kept):
        if spec.kind != "share" or spec.name in BLOCK_METRICS:
            continue
        for other in kept[:place]:
            alike = (other.kind, other.bottom, other.counts) == ("share", spec.bottom, spec.counts)
            if alike and other.name not in found and all(_is_mirror(table, spec, other) for table in tables):
                found[spec.name] = other.name
                break
    return found


def _is_mirror(table: ArmSums, one: MetricSpec, other: MetricSpec) -> bool:
    top, theirs, bottom = (table.find_column(name) for name in (one.top, other.top, one.bottom))
    return np.array_equal(top, theirs) or np.array_equal(top, bottom - theirs)


def _collect_facts(table: ArmSums, first: Arm) -> ArmFacts:
    arm = table.arm
    rejected, failed = (
        {name.removeprefix(prefix): int(table.find_total(name)) for name in table.list_names(prefix)}
        for prefix in ("rejected_", "failed_")
    )
    settled = int(table.find_total("settled"))
    return ArmFacts(
        label=arm.label,
        run=arm.run,
        fingerprint=arm.fingerprint,
        scenarios=int((table.find_column("settled") > 0).sum()),
        paired=arm.draws == first.draws,
        planned=settled + arm.pending,
        accepted=int(table.find_total("accepted")),
        rejected=rejected,
        failed=failed,
        pending=arm.pending,
        tokens=int(table.find_total("tokens")),
        cost_usd=round_usd(float(table.find_total("cost"))) if table.priced else None,
        simulated=arm.simulated,
        changes=arm.changes,
        data=arm.data() if arm.data is not None else UNSET,
    )
