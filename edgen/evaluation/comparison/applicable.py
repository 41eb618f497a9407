"""Metrics that apply to an arm. A data set has no plan, calls or prices, and may lack roles, ends,
probabilities and labels. Metrics that need these are left out, and the comparison names them."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.text import join_list
from edgen.evaluation.comparison.arms import ArmSums
from edgen.evaluation.comparison.metrics import MetricSpec
from edgen.evaluation.comparison.result import NotCompared

_OF_RUNS = ("outcomes", "effort")
_NOTHING = "the data contain nothing for this metric"


def applies(spec: MetricSpec, table: ArmSums) -> bool:
    """Return whether a metric applies to an arm. Every metric applies to a run."""
    return table.arm.data is None or _explain_inapplicable(spec, table) is None


def _explain_inapplicable(spec: MetricSpec, table: ArmSums) -> str | None:
    """Return the reason why a metric does not apply to a data set; None if it does."""
    if spec.group in _OF_RUNS:
        return "a data set does not record how it was made"
    if spec.about == "end":
        return None if table.arm.marks_ends else "its layout does not mark who ends a conversation"
    if spec.about == "probability":
        return None if table.find_total("with_probability") else "it holds no probabilities"
    if (role := _find_silent_role(spec, table)) is not None:
        return f"no {role} speaks in it"
    if spec.group == "measures" and not table.find_total(spec.bottom):
        return _NOTHING
    return None


def _find_silent_role(spec: MetricSpec, table: ArmSums) -> str | None:
    """Return the role that a metric is about, if it never speaks in this arm."""
    for column in (spec.top, spec.bottom):
        role = column.removeprefix("words of ").removeprefix("turns of ")
        if role != column and not table.find_total(f"turns of {role}"):
            return role
    return None


def select_applicable(
    tables: Sequence[ArmSums], specs: Sequence[MetricSpec]
) -> tuple[list[MetricSpec], list[NotCompared]]:
    """Return the metrics that apply to the first arm and at least one other, and the metrics left out, with
    reasons."""
    if all(table.arm.data is None for table in tables):
        return list(specs), []
    kept: list[MetricSpec] = []
    left_out: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for spec in specs:
        lacking = {one.arm.label: why for one in tables if (why := _explain_lack(spec, one)) is not None}
        if tables[0].arm.label in lacking or len(lacking) > len(tables) - 2:
            key = tuple(lacking), join_list(dict.fromkeys(lacking.values()))
            left_out.setdefault(key, []).append(spec.title)
        else:
            kept.append(spec)
    return kept, [
        NotCompared(what=", ".join(titles), arms=arms, why=why) for (arms, why), titles in left_out.items()
    ]


def _explain_lack(spec: MetricSpec, table: ArmSums) -> str | None:
    """Return the reason why a metric does not apply to an arm, or has no data there; None if it has."""
    why, role = _explain_inapplicable(spec, table), _find_silent_role(spec, table)
    has_any = spec.in_blocks or bool(table.find_total(spec.bottom))
    if has_any and role is None and (why is None or table.arm.data is None):
        return None
    return why or (_NOTHING if role is None else f"no {role} speaks in it")
