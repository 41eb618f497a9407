"""Arms compared: every metric of each, and its difference to the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from edgen.comparison.arms import Arm, Array, Table, count_near_duplicates
from edgen.comparison.blocks import in_blocks
from edgen.comparison.caveats import caveats, not_compared
from edgen.comparison.differences import Columns, Found, paired, unpaired, values
from edgen.comparison.metrics import BLOCK_METRICS, Spec, specs
from edgen.comparison.model import (
    ArmFacts,
    ArmValue,
    Comparison,
    Difference,
    Metric,
    PromptDifference,
)
from edgen.comparison.resampling import rounded
from edgen.errors import ShortError
from edgen.quality.significance import holm

RESAMPLES = 9_999
METHOD = (
    "A metric is a ratio of sums over scenarios. Intervals are 95% percentile bootstrap intervals over "
    "{resamples} resamples of "
    "scenarios (of blocks, where blocks are measured); a paired scenario is drawn with what both arms made "
    "of it "
    "(Efron and Tibshirani 1993). p-values draw the sign of each scenario's difference, linearised around "
    "the "
    "ratio of both arms together (Cochran 1977), {flips} times; for arms with other scenarios they deal the "
    "scenarios anew. "
    "p_holm is adjusted for all differences of all arms (Holm 1979)."
)

# Which metrics of which arms there is no sense in: (metric, arm's label).
Refused = set[tuple[str, str]]


def compared(
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
        tables.append(Table(arm))
    shared = _shared(tables)
    most, copies = min(arm.scenarios for arm in arms), min(arm.replicates for arm in arms)
    for table in tables:
        tell(f"looking for near-duplicates in {table.arm.label}")
        count_near_duplicates(table, most, copies)
    tell("measuring blocks")
    blocks = in_blocks(tables, _rng(seed, 0))
    tell("resampling")
    groups = specs(tables)
    kept = _kept([spec for group in groups.values() for spec in group], tables)
    group_of = {spec.name: group for group, members in groups.items() for spec in members}
    missing, left_out = not_compared(tables, kept, blocks)
    own = {table.arm.label: _own(table, kept, blocks, missing, _rng(seed, 1), resamples) for table in tables}
    flips = max(resamples, 40 * len(kept) * (len(tables) - 1) - 1)
    found = {
        table.arm.label: _against(
            tables[0], table, kept, blocks, missing, _rng(seed, 2, i), (resamples, flips)
        )
        for i, table in enumerate(tables[1:])
    }
    metrics = _metrics(kept, group_of, own, found)
    return Comparison(
        name=name,
        baseline=arms[0].label,
        arms=tuple(_facts(table, arms[0]) for table in tables),
        shared=shared,
        metrics=metrics,
        not_compared=tuple(left_out),
        caveats=tuple(caveats(tables, metrics, shared)),
        method=METHOD.format(resamples=f"{resamples:,}", flips=f"{flips:,}"),
        resamples=resamples,
        seed=seed,
        prompts=tuple(prompts),
    )


def _rng(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def _shared(tables: Sequence[Table]) -> int:
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


def _kept(every: Sequence[Spec], tables: Sequence[Table]) -> list[Spec]:
    """Without what no arm has."""
    without = set()
    if not any(_priced(table) for table in tables):
        without.add("cost")
    if not any(table.total("with_probability") for table in tables):
        without |= {"probability", "no_probability"}
    return [spec for spec in every if spec.name not in without]


def _priced(table: Table) -> bool:
    return not table.unpriced and bool(table.total("calls"))


def _families(
    table: Table, kept: Sequence[Spec], blocks: dict[str, dict[str, Array]]
) -> list[tuple[list[Spec], Columns | None]]:
    """The metrics over scenarios and those over blocks, each with where its columns are."""
    mine = blocks.get(table.arm.label)

    def of_blocks(column: str) -> Array:
        assert mine is not None
        return np.ones(len(mine["self_bleu"])) if column == "blocks" else mine[column]

    over_blocks = [spec for spec in kept if spec.name in BLOCK_METRICS]
    over_scenarios = [spec for spec in kept if spec.name not in BLOCK_METRICS]
    return [(over_scenarios, table.column), (over_blocks, of_blocks if mine is not None else None)]


def _own(
    table: Table,
    kept: Sequence[Spec],
    blocks: dict[str, dict[str, Array]],
    missing: Refused,
    rng: np.random.Generator,
    resamples: int,
) -> dict[str, ArmValue]:
    found = {spec.name: ArmValue(value=None, low=None, high=None, n=0) for spec in kept}
    for members, columns in _families(table, kept, blocks):
        if columns is not None:
            names = [spec.name for spec in members]
            found |= zip(names, values(columns, members, rng, resamples), strict=True)
    if ("cost", table.arm.label) in missing:
        found["cost"] = ArmValue(value=None, low=None, high=None, n=0)
    return found


def _against(
    first: Table,
    other: Table,
    kept: Sequence[Spec],
    blocks: dict[str, dict[str, Array]],
    missing: Refused,
    rng: np.random.Generator,
    draws: tuple[int, int],
) -> dict[str, Found]:
    """The differences of one arm to the first."""
    measure = paired if other.arm.draws == first.arm.draws else unpaired
    found = {spec.name: Found() for spec in kept}
    both = zip(_families(first, kept, blocks), _families(other, kept, blocks), strict=True)
    for (members, a), (_, b) in both:
        if a is not None and b is not None:
            names = [spec.name for spec in members]
            found |= zip(names, measure(a, b, members, rng, *draws), strict=True)
    refused = {name for name, label in missing if label in (first.arm.label, other.arm.label)}
    return {name: Found() if name in refused else one for name, one in found.items()}


def _metrics(
    kept: Sequence[Spec],
    group_of: dict[str, str],
    own: dict[str, dict[str, ArmValue]],
    found: dict[str, dict[str, Found]],
) -> tuple[Metric, ...]:
    known = {
        (spec.name, label): p
        for spec in kept
        for label, of in found.items()
        if (p := of[spec.name].p) is not None
    }
    adjusted = dict(zip(known, map(rounded, holm(list(known.values()))), strict=True))
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


def _facts(table: Table, first: Arm) -> ArmFacts:
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
        cost_usd=float(table.total("cost")) if _priced(table) else None,
        simulated=arm.simulated,
        changes=arm.changes,
    )
