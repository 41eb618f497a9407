"""Caveats of a comparison, and facts needed to read it, as sentences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from edgen.core.text import join_list, quantity
from edgen.evaluation.comparison.arms import Arm, ArmSums
from edgen.evaluation.comparison.metrics import BLOCK, MetricSpec
from edgen.evaluation.comparison.result import DataFacts, Difference, Metric, NotCompared
from edgen.stats.resampling import FEWEST

FEW_CHANGED = 10  # with fewer scenarios or events, the percentile interval of a rare event is too short
_MANY_EQUAL = 0.5
_WHOLE = ("conversation", "dialog")  # units of data sets that are whole conversations


def find_not_compared(
    tables: Sequence[ArmSums], kept: Sequence[MetricSpec], blocks: Mapping[str, Mapping[str, object]]
) -> tuple[set[tuple[str, str]], list[NotCompared]]:
    """Return the metrics that are not compared: as (metric, arm's label) if an arm's numbers are not
    comparable with the first arm's, and as sentences."""
    first = tables[0].arm
    stated = any(spec.about == "probability" for spec in kept)
    labels = [table.arm.label for table in tables]
    other = [table.arm.label for table in tables[1:] if table.arm.asking != first.asking]
    # `select_applicable` names what does not apply to data sets
    runs = [table for table in tables if table.arm.data is None] if first.data is None else []
    unpriced = [table.arm.label for table in runs if not table.priced]
    nothing = [table.arm.label for table in tables if not table.find_total("accepted")]
    without = [label for label in labels if label not in blocks and label not in nothing]
    probability = (
        (other, f"the job asks for it differently than that of {first.label} (another protocol or closing)")
        if stated
        else (labels, "no conversation has a probability")
    )
    if not stated and any(table.find_total("with_probability") for table in tables):
        probability = ([], "")
    found = (
        ("cost", unpriced, "the job had no price for every answer (backends.<role>.price)"),
        ("probability", *probability),
        ("all metrics of accepted conversations", nothing, "no conversation was accepted"),
        (
            "distinct-n, self-BLEU",
            without,
            "too few conversations were accepted, or too few of the scenarios that the others accepted",
        ),
    )
    senseless = {"cost": unpriced, "probability": other}
    refused = {(spec.name, label) for spec in kept for label in senseless.get(spec.about, ())}
    return refused, [NotCompared(what=what, arms=tuple(arms), why=why) for what, arms, why in found if arms]


def list_caveats(
    tables: Sequence[ArmSums], metrics: Sequence[Metric], shared: int, tests: int
) -> Iterator[str]:
    """Yield sentences about this comparison, the most general last. `tests`: the number of tests that
    p-values are adjusted for."""
    yield from _list_data_set_caveats(tables)
    yield from _list_scenario_caveats(tables, shared)
    yield from _list_answer_caveats(tables)
    for table in tables:
        for what, count in table.arm.stale_labels.items():
            yield f"{table.arm.label}: {quantity(count, 'unit')} left out of the layer {what}."
    yield from _list_cost_caveats(tables)
    yield from _list_interval_caveats(metrics, tests)


def _list_data_set_caveats(tables: Sequence[ArmSums]) -> Iterator[str]:
    """Yield sentences on the data sets among the arms; sentences on a single one come first."""
    arms = [table.arm for table in tables]
    facts = {arm.label: arm.data() for arm in arms if arm.data is not None}
    if not facts:
        return
    for label, one in facts.items():
        yield from _describe_data_set(label, one)
    yield from _list_role_caveats(tables)
    yield from _list_unit_caveats(arms)
    names = join_list(facts)
    yield (
        f"{names} {'shares' if len(facts) == 1 else 'share'} no scenario with the others, so arms are "
        "compared as independent samples: a difference can come from the topics, instructions, people or "
        "time of collection as well as from the authors, and the comparison cannot separate these."
    )
    yield (
        "Without a significant difference, arms are not proven alike: the interval shows how large a "
        "difference can still be. These metrics measure form and wording; judges and readers decide whether a text is "
        "right, helpful or natural."
    )
    if any(arm.data is None for arm in arms):
        yield (
            f"A model may have read {names} in training, and edgen cannot detect that. Similarity may then be "
            "memorisation."
        )


def _describe_data_set(label: str, facts: DataFacts) -> Iterator[str]:
    if facts.clusters < facts.records:
        why = f" {facts.depends}" if facts.depends else " share a scenario"
        yield (
            f"{label}: {quantity(facts.records, facts.unit)} in {quantity(facts.clusters, 'cluster')}: the "
            f"{facts.unit}s of one cluster{why}. Intervals and tests use clusters."
        )
    if facts.groups < facts.clusters:
        yield (
            f"{label}: its {quantity(facts.clusters, 'cluster')} are assigned to "
            f"{quantity(facts.groups, 'group')} at random, and intervals and tests use these groups (Wolter "
            "2007). Variety and near-duplicates use one conversation of each group, drawn at random."
        )
    if facts.unread:
        reasons = ", ".join(f"{count:,} × {reason}" for reason, count in facts.unread.items())
        yield f"{label}: records that cannot be read are left out: {reasons}."
    for note in facts.notes:
        yield f"{label}: {note}"


def _list_role_caveats(tables: Sequence[ArmSums]) -> Iterator[str]:
    """Yield sentences on roles that are not compared for their names."""
    first = tables[0]
    for other in tables[1:]:
        if first.arm.data is None and other.arm.data is None:
            continue
        ours, theirs = (
            [role for role in one.roles if role not in two.roles]
            for one, two in ((first, other), (other, first))
        )
        if not (ours and theirs):
            continue
        real, made = (theirs, ours) if first.arm.data is None else (ours, theirs)
        yield (
            f"{join_list(ours)} of {first.arm.label} and {join_list(theirs)} of {other.arm.label} are not "
            f"compared; if they are the same, --role {made[-1]}={real[-1]} says so."
        )


def _list_unit_caveats(arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a sentence on data sets whose records are parts of conversations."""
    parts = {
        arm.label: facts.unit
        for arm in arms
        if arm.data is not None and (facts := arm.data()).unit not in _WHOLE
    }
    if parts and len({*parts.values()}) + (len(parts) < len(arms)) > 1:
        each = join_list([f"{label} ({unit})" for label, unit in parts.items()])
        yield (
            f"A record of {each} is a part of a conversation, up to the turn that it asks for; the number "
            "of turns is that of the part."
        )


def _list_scenario_caveats(tables: Sequence[ArmSums], shared: int) -> Iterator[str]:
    first = tables[0].arm
    for table in tables:
        if table.arm.pending:
            pending = quantity(table.arm.pending, "planned conversation")
            yield f"{table.arm.label}: {pending} left out, not settled yet."
    same = [table.arm for table in tables if table.arm.draws == first.draws]
    if len({(arm.first, arm.scenarios, arm.replicates) for arm in same}) > 1:
        each = ", ".join(f"{arm.label}: {_describe_number(arm)} x {arm.replicates}" for arm in same)
        yield (
            f"The arms have different plans ({each}). Differences cover the {shared:,} scenarios that all of "
            "these arms share. An arm's own values cover all its scenarios (in blocks: as many words as the "
            "other arms have)."
        )
    for table in tables:
        if table.arm.draws != first.draws and (table.arm.data or first.data) is None:
            yield (
                f"{table.arm.label} draws its scenarios with other weights than {first.label} and shares "
                "none with it. The two are compared as independent samples, so a difference includes the "
                "difference in the mix of scenarios."
            )
    paired = [table for table in tables if table.arm.draws == first.draws]
    if len({round(table.find_total("accepted") / table.find_total("settled"), 6) for table in paired}) > 1:
        yield (
            "An arm's own values cover all its conversations (in blocks: as many words as the other arms "
            "have). Differences cover the scenarios that have a value in both arms: metrics of conversations "
            "compare the scenarios that both arms accepted. Where arms accept different conversations, that "
            "selection is part of the difference."
        )


def _describe_number(arm: Arm) -> str:
    """Return an arm's number of scenarios; their range if it does not begin with the first."""
    return f"{arm.first:,} to {arm.scenarios - 1:,}" if arm.first else f"{arm.scenarios:,}"


def _list_answer_caveats(tables: Sequence[ArmSums]) -> Iterator[str]:
    simulated = [table.arm.label for table in tables if table.arm.simulated]
    if 0 < len(simulated) < len(tables):
        yield (
            f"This compares simulated with real answers: a simulator took part in {', '.join(simulated)}. "
            "Such a difference says nothing about models."
        )
    elif simulated:
        yield "All arms are simulated: differences are the simulator's, not a model's."
    yield from _find_identical_answers(tables)


def _find_identical_answers(tables: Sequence[ArmSums]) -> Iterator[str]:
    """Yield a sentence on the arms with exactly the first arm's texts in most scenarios."""
    first, found = tables[0], []
    for table in tables[1:]:
        if table.arm.draws != first.arm.draws:
            continue
        one, other = first.digests, table.digests
        both = int(np.sum((one != 0) & (other != 0)))
        alike = int(np.sum((one != 0) & (one == other)))
        if both and alike > _MANY_EQUAL * both:
            found.append((table.arm.label, alike, both))
    if found:
        (label, alike, both), *more = found
        others = join_list([f"{label} ({alike:,} of {both:,})" for label, alike, both in more])
        yield (
            f"{label} and {first.arm.label} say exactly the same in {alike:,} of {both:,} scenarios accepted "
            f"in both{f'; so do {others}' if more else ''}: a simulator, or a model with a fixed seed, gives "
            "identical answers to identical requests, so these scenarios cannot show a difference."
        )


def _list_cost_caveats(tables: Sequence[ArmSums]) -> Iterator[str]:
    if earlier := ", ".join(table.arm.label for table in tables if table.arm.earlier):
        yield (
            f"The ledger of {earlier} holds answers of an earlier form of the job (previous/); calls, "
            "tokens and cost count these too."
        )
    if branching := ", ".join(table.arm.label for table in tables if table.arm.branching):
        yield (
            f"Conversations branch in {branching}: the first conversation of each scenario pays for the "
            "shared turns."
        )


def _list_interval_caveats(metrics: Sequence[Metric], tests: int) -> Iterator[str]:
    shares = [value for metric in metrics if metric.kind == "share" for value in metric.arms.values()]
    if any(value.value in (0, 1) for value in shares):
        yield (
            "A share of 0% or 100% has an interval of zero width. An event that did not occur in n "
            "independent conversations may still have a share of up to 3/n (Hanley and Lippman-Hand 1983)."
        )
    if any(has_too_little_data(difference) for metric in metrics for difference in metric.differences):
        yield (
            f"Where fewer than {FEW_CHANGED} scenarios or blocks differ, or a share has a smaller "
            "denominator, the interval may be too short; rely on p there."
        )
    yield from _list_cluster_caveats(metrics)
    if tests:
        yield (
            f"{tests} {'difference is' if tests == 1 else 'differences are'} tested: if nothing differed at "
            "all, about "
            f"{tests / 20:.2g} of their 95% intervals would exclude zero by chance. A * marks p_holm < "
            "0.05, adjusted for all of them (Holm 1979)."
        )


def _list_cluster_caveats(metrics: Sequence[Metric]) -> Iterator[str]:
    blocks = [value.n for metric in metrics if metric.over == "blocks" for value in metric.arms.values()]
    most = max(blocks, default=0)
    if 0 < most < FEWEST:
        yield (
            f"distinct-n and self-BLEU have no interval: {quantity(most, 'block')} of {BLOCK} conversations "
            f"{'is' if most == 1 else 'are'} too few (at least {FEWEST} are needed)."
        )
    near = [metric.differences for metric in metrics if metric.name == "near_duplicates"]
    for difference in itertools.chain.from_iterable(near):
        if difference.value and difference.n < FEWEST:
            yield (
                f"Near-duplicates in {difference.arm} have no interval: they link the scenarios into "
                f"{difference.n} of the {FEWEST} groups that it needs at least."
            )


def has_too_little_data(difference: Difference) -> bool:
    """Return whether a difference has too little data for its interval."""
    return difference.p is not None and difference.changed > 0 and difference.evidence < FEW_CHANGED
