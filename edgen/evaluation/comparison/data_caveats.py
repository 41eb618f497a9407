"""Caveats of comparisons with data sets: their scope, and the meaning of a difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgen.core.text import join_list, quantity
from edgen.evaluation.comparison.arms import Arm, ArmSums
from edgen.evaluation.comparison.result import DataFacts


def list_data_set_caveats(tables: Sequence[ArmSums]) -> Iterator[str]:
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


_WHOLE = ("conversation", "dialog")
