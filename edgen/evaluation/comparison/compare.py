"""Arms compared: every metric of each, and its difference to the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from edgen.core.errors import ShortError
from edgen.evaluation.comparison.arms import Arm, ArmSums, Array, count_near_duplicates, groups
from edgen.evaluation.comparison.blocks import in_blocks
from edgen.evaluation.comparison.caveats import caveats, find_not_compared
from edgen.evaluation.comparison.metrics import BLOCK_METRICS, MetricSpec, metric_specs
from edgen.evaluation.comparison.result import (
    ArmFacts,
    Comparison,
    Difference,
    Metric,
    PromptDifference,
)
from edgen.stats.ratios import (
    Columns,
    RatioDifference,
    RatioEstimate,
    paired_differences,
    ratio_values,
    unpaired_differences,
)
from edgen.stats.resampling import round_number
from edgen.stats.significance import holm

RESAMPLES = 9_999
METHOD = (
    "A metric is a ratio of sums over scenarios. Intervals are 95% bootstrap intervals, the expanded "
    "percentiles of Hesterberg (2015), over {resamples} resamples of scenarios (of blocks, where blocks are "
    "measured; of groups of scenarios that near-duplicates link, where these are counted); a paired scenario is "
    "drawn with what both arms made of it (Efron and Tibshirani 1993). p-values draw the sign of what each "
    "scenario adds to the difference, linearised around the ratio of both arms together (Cochran 1977), {flips} "
    "times: exact where the arms could change places in every scenario and have the same denominators, "
    "approximate where they have more conversations in one arm than in the other. For arms with other scenarios "
    "they deal the scenarios anew. p_holm is adjusted for all differences of all arms that are tested (Holm "
    "1979); what is another one's mirror image is tested with it."
)

# Which metrics of which arms there is no sense in: (metric, arm's label).
Refused = set[tuple[str, str]]


def compare_arms(
    name: str,
    arms: Sequence[Arm],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    prompts: Iterable[PromptDifference] = (),
    tell: Callable[[str], None] = lambda _stage: None,
) -> Comparison:
    """Compare arms, at least two, with the first; the same arms and seed give the same comparison. `tell`
    hears what is being done.

    Raises ShortError if an arm has nothing that is settled, or shares nothing settled with the first.
    """
    tables = []
    for arm in arms:
        tell(f"reading {arm.label}")
        tables.append(ArmSums(arm))
    shared = _count_shared(tables)
    most, copies = min(arm.scenarios for arm in arms), min(arm.replicates for arm in arms)
    for table in tables:
        tell(f"looking for near-duplicates in {table.arm.label}")
        count_near_duplicates(table, most, copies)
    tell("measuring blocks")
    blocks = in_blocks(tables, _rng(seed, 0))
    tell("resampling")
    grouped = metric_specs(tables)
    kept = _drop_absent([spec for group in grouped.values() for spec in group], tables)
    group_of = {spec.name: group for group, members in grouped.items() for spec in members}
    missing, left_out = find_not_compared(tables, kept, blocks)
    own = {
        table.arm.label: _own(table, most, kept, blocks, missing, _rng(seed, 1), resamples)
        for table in tables
    }
    flips = max(resamples, 40 * len(kept) * (len(tables) - 1) - 1)
    found = {
        table.arm.label: _against(
            tables[0], table, most, kept, blocks, missing, _rng(seed, 2, i), (resamples, flips)
        )
        for i, table in enumerate(tables[1:])
    }
    adjusted, tests = _adjust(found, _mirrors(tables, kept))
    metrics = _metrics(kept, group_of, own, found, adjusted)
    return Comparison(
        name=name,
        baseline=arms[0].label,
        arms=tuple(_facts(table, arms[0]) for table in tables),
        shared=shared,
        metrics=metrics,
        not_compared=tuple(left_out),
        caveats=tuple(caveats(tables, metrics, shared, tests)),
        method=METHOD.format(resamples=f"{resamples:,}", flips=f"{flips:,}"),
        resamples=resamples,
        seed=seed,
        prompts=tuple(prompts),
    )


def _rng(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def _count_shared(tables: Sequence[ArmSums]) -> int:
    """Scenarios that are settled in every arm with the first one's scenarios."""
    first = tables[0].arm
    for table in tables:
        if not table.total("settled"):
            raise ShortError(
                f"{table.arm.run or table.arm.label}: nothing is settled in it, so there is nothing to "
                "compare. "
                "Generate it first, or name other arms with --arms."
            )
    same = [table for table in tables if table.arm.draws == first.draws]
    size = min(table.arm.scenarios for table in same)
    everywhere = np.ones(size, dtype=bool)
    for table in same:
        everywhere &= table.column("settled")[:size] > 0
    count = int(everywhere.sum())
    if not count:
        raise ShortError(
            f"{', '.join(table.arm.label for table in same)}: no scenario is settled in all of these, so "
            "nothing can be compared. "
            "Generate them to their end."
        )
    return count


def _drop_absent(every: Sequence[MetricSpec], tables: Sequence[ArmSums]) -> list[MetricSpec]:
    """Without what no arm has."""
    without = set()
    if not any(_has_price(table) for table in tables):
        without.add("cost")
    if not any(table.total("with_probability") for table in tables):
        without |= {"probability", "no_probability"}
    return [spec for spec in every if spec.name not in without]


def _has_price(table: ArmSums) -> bool:
    return not table.unpriced and bool(table.total("calls"))


def _families(
    table: ArmSums,
    size: int,
    kept: Sequence[MetricSpec],
    blocks: dict[str, dict[str, Array]],
    beside: ArmSums | None,
) -> list[tuple[list[MetricSpec], Columns | None]]:
    """The metrics over scenarios, over groups of the first `size` of them that near-duplicates link (in the
    arm `beside` as well, of which only what both have counts), and over blocks; each with where its columns
    are."""
    mine = blocks.get(table.arm.label)
    both = [table] if beside is None else [table, beside]
    group = groups(size, [link for one in both for link in one.linked])
    there = np.all([one.column("compared")[:size] > 0 for one in both], axis=0)

    def of_groups(column: str) -> Array:
        sums = np.bincount(group, weights=np.where(there, table.column(column)[:size], 0.0))
        return sums.astype(np.float64)

    def of_blocks(column: str) -> Array:
        assert mine is not None
        return np.ones(len(mine["self_bleu"])) if column == "blocks" else mine[column]

    over_blocks = [spec for spec in kept if spec.name in BLOCK_METRICS]
    over_groups = [spec for spec in kept if spec.bottom == "compared"]
    over_scenarios = [spec for spec in kept if spec not in over_blocks and spec not in over_groups]
    return [
        (over_scenarios, table.column),
        (over_groups, of_groups),
        (over_blocks, of_blocks if mine is not None else None),
    ]


def _own(
    table: ArmSums,
    size: int,
    kept: Sequence[MetricSpec],
    blocks: dict[str, dict[str, Array]],
    missing: Refused,
    rng: np.random.Generator,
    resamples: int,
) -> dict[str, RatioEstimate]:
    found = {spec.name: RatioEstimate() for spec in kept}
    for members, columns in _families(table, size, kept, blocks, None):
        if columns is not None:
            names = [spec.name for spec in members]
            found |= zip(names, ratio_values(columns, members, rng, resamples), strict=True)
    if ("cost", table.arm.label) in missing:
        found["cost"] = RatioEstimate()
    return found


def _against(
    first: ArmSums,
    other: ArmSums,
    size: int,
    kept: Sequence[MetricSpec],
    blocks: dict[str, dict[str, Array]],
    missing: Refused,
    rng: np.random.Generator,
    draws: tuple[int, int],
) -> dict[str, RatioDifference]:
    """The differences of one arm to the first."""
    same = other.arm.draws == first.arm.draws
    measure = paired_differences if same else unpaired_differences
    found = {spec.name: RatioDifference() for spec in kept}
    both = zip(
        _families(first, size, kept, blocks, other if same else None),
        _families(other, size, kept, blocks, first if same else None),
        strict=True,
    )
    for (members, a), (_, b) in both:
        if a is not None and b is not None:
            names = [spec.name for spec in members]
            found |= zip(names, measure(a, b, members, rng, *draws), strict=True)
    refused = {name for name, label in missing if label in (first.arm.label, other.arm.label)}
    return {name: RatioDifference() if name in refused else one for name, one in found.items()}


def _metrics(
    kept: Sequence[MetricSpec],
    group_of: dict[str, str],
    own: dict[str, dict[str, RatioEstimate]],
    found: dict[str, dict[str, RatioDifference]],
    adjusted: dict[tuple[str, str], float],
) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            name=spec.name,
            title=spec.title,
            kind=spec.kind,
            group=group_of[spec.name],
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
        for spec in kept
    )


def _adjust(
    found: dict[str, dict[str, RatioDifference]], mirrors: dict[str, str]
) -> tuple[dict[tuple[str, str], float], int]:
    """The p-values adjusted for one another, by (metric, arm), and how many they are: of what differs at all,
    and without mirror images, which have that of the other one."""
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


def _mirrors(tables: Sequence[ArmSums], kept: Sequence[MetricSpec]) -> dict[str, str]:
    """What is another metric or its complement in every arm, as the one reason of rejection is the complement
    of what is accepted: by name, the name of that other one."""
    found: dict[str, str] = {}
    for place, spec in enumerate(kept):
        if spec.kind != "share" or spec.name in BLOCK_METRICS:
            continue
        for other in kept[:place]:
            alike = (other.kind, other.bottom, other.counts) == ("share", spec.bottom, spec.counts)
            if alike and other.name not in found and all(_mirror(table, spec, other) for table in tables):
                found[spec.name] = other.name
                break
    return found


def _mirror(table: ArmSums, one: MetricSpec, other: MetricSpec) -> bool:
    top, theirs, bottom = (table.column(name) for name in (one.top, other.top, one.bottom))
    return np.array_equal(top, theirs) or np.array_equal(top, bottom - theirs)


def _facts(table: ArmSums, first: Arm) -> ArmFacts:
    arm = table.arm
    rejected, failed = (
        {name.removeprefix(prefix): int(table.total(name)) for name in table.names(prefix)}
        for prefix in ("rejected_", "failed_")
    )
    settled = int(table.total("settled"))
    return ArmFacts(
        label=arm.label,
        run=arm.run,
        fingerprint=arm.fingerprint,
        scenarios=int((table.column("settled") > 0).sum()),
        paired=arm.draws == first.draws,
        planned=settled + arm.pending,
        accepted=int(table.total("accepted")),
        rejected=rejected,
        failed=failed,
        pending=arm.pending,
        tokens=int(table.total("tokens")),
        cost_usd=float(table.total("cost")) if _has_price(table) else None,
        simulated=arm.simulated,
        changes=arm.changes,
    )
