"""Pictures of preference pairs: outcomes, basis of labels, and reliability of judges.

The figures are those of `edgen pairs --report` (`preferences.bias`), whose full text is on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgen.core.text import NONE, format_interval, format_signed, number, percent, quantity, readable_name
from edgen.evaluation.drawings import (
    Axis,
    Block,
    HistogramBars,
    Interval,
    Picture,
    Stack,
    Stacks,
    Table,
    draw_histograms,
    draw_intervals,
    interval_of,
    label_with_arm,
    series_colour,
    share_of,
)
from edgen.preferences.labels import UNLABELLED
from edgen.report.model import PairsReport
from edgen.stats.intervals import Estimate

_REASONS = ("grey", "purple", "vermillion", "orange", "sky")  # colours of unlabelled pairs
_MARGINS = Axis("margin", lambda value: f"{round(value, 2):g}", low=0, high=1)

Values = Mapping[str, Any]
Get = Callable[[Values], Values | None]


def describe_pairs(pairs: PairsReport) -> str:
    """Return the number of pairs and of labelled pairs, in words."""
    simulated = " A simulator took part in making them." if pairs.simulated else ""
    return (
        f"{number(pairs.labelled)} of {quantity(pairs.count, 'pair')} of "
        f"{quantity(pairs.bias['scenarios'], 'scenario')} "
        f"have a label: {number(pairs.train)} for train, {number(pairs.test)} for test." + simulated
    )


def render_blocks(pairs: PairsReport) -> Iterator[Block]:
    """Yield the pictures and tables of the section."""
    yield _draw_outcomes(pairs)
    yield from draw_histograms(
        "pairs-margins", "How clear the labels are", [HistogramBars("margin", pairs.margins)], _MARGINS,
        "A margin of 1: the source has no doubt. Near 0: the other side could have won. Look for many near 0.",
    )  # fmt: skip
    judges = pairs.bias["judges"]
    yield from draw_intervals(
        "pairs-order", "Does the judge keep its verdict?", list(_list_estimates(_RELIABILITY, judges)),
        "Flips: the other order favours the other side. Ties: no side is favoured in both orders, so there "
        "is no label. Abstentions: too few verdicts could be read. A reliable judge has few of each.",
    )  # fmt: skip
    yield from draw_intervals(
        "pairs-bias", "What else sways the judge?", list(_list_estimates(_BIASES, judges)),
        "Wins of the side that is shown first, and of the longer side; a judge that ignores order or length "
        "has 50% (dashed). Look for an interval that excludes 50%. A longer text may also be better: the "
        "share alone does not prove a bias.",
        reference=0.5,
    )  # fmt: skip
    directed = pairs.bias["judge_directed"]
    if directed["n"]:
        said = "; ".join(f"“{text}”" for text in directed["found"])
        yield f"{quantity(directed['n'], 'pair')} have a text that speaks to a judge: {said}."
    if not judges:
        yield "No judge has been asked about these pairs, so position and length bias are unknown."
    for matrix in pairs.bias.get("policies", ()):
        yield from render_policies(matrix)
    if pairs.rests:
        rests = tuple((words, number(count)) for words, count in pairs.rests.items())
        yield Table(("labels rest on", "pairs"), rests, style="words")
    if judges:
        yield _tabulate_judges(judges)
    agreement = _tabulate_agreement(pairs.bias["agreement"], judges)
    if agreement.rows:
        yield agreement


def render_policies(matrix: Values) -> Iterator[Block]:
    """Yield the matrix of policies by one judge."""
    cells = {(cell["row"], cell["column"]): _format_policy_cell(cell) for cell in matrix["cells"]}
    rows = tuple(
        (row, *(cells.get((row, column), NONE) for column in matrix["arms"])) for row in matrix["arms"]
    )
    what = "whole conversations" if matrix["compare"] == "conversation" else "responses"
    yield (
        f"How often {matrix['model']} prefers the row to the column, comparing {what} in both orders, with "
        "a 95% interval; 50% is no preference."
    )
    yield Table(("row over column", *matrix["arms"]), rows, style="wide")


def _format_policy_cell(cell: Values) -> str:
    sd = "" if cell["sd"] is None else f", sd {cell['sd']:.3f} over {cell['replicates']} replicates"
    preference = msgspec.convert(cell["preference"], Estimate)
    return f"{share_of(preference)}{sd}, {quantity(preference.n, 'pair')}"


def _draw_outcomes(pairs: PairsReport) -> Picture:
    share = percent(pairs.labelled / pairs.count if pairs.count else None)
    words = [("labelled, train", "green", pairs.train), ("labelled, test", "blue", pairs.test)]
    words += [
        (readable_name(reason), _REASONS[place % len(_REASONS)], count)
        for place, (reason, count) in enumerate(pairs.left_out.items())
    ]
    why = "; ".join(
        f"{readable_name(reason)} ({UNLABELLED.get(reason, reason)})" for reason in pairs.left_out
    )
    pieces = [(shade, count) for _, shade, count in words]
    return Picture(
        name="pairs-outcomes",
        title="Outcome of the pairs",
        chart=Stacks([Stack(quantity(pairs.count, "pair"), f"{share} labelled", pieces)]),
        caption=f"Pairs without a label: {why}." if why else "Every pair has a label.",
        alternative="Stacked bar of pairs. "
        f"{'; '.join(f'{name}: {number(count)}' for name, _, count in words)}.",
        tables=(Table(("", "pairs"), tuple((name, number(count)) for name, _, count in words)),),
        legend=tuple((shade, name) for name, shade, count in words if count),
    )


_RELIABILITY: dict[str, Get] = {
    "flips": lambda judge: judge["position"]["flips"],
    "ties": lambda judge: judge["ties"]["share"],
    "abstentions": lambda judge: judge["abstentions"]["share"],
}
_BIASES: dict[str, Get] = {
    "shown first": lambda judge: judge["position"]["first_slot"],
    "longer": lambda judge: judge["length"]["longer"],
    "speaks to the judge": lambda judge: judge["judge_directed"],
}


def _list_estimates(figures: Mapping[str, Get], judges: Sequence[Values]) -> Iterator[Interval]:
    """Yield each figure, for each judge that has it."""
    for words, get in figures.items():
        for place, judge in enumerate(judges):
            if (estimate := get(judge)) is not None:
                share = msgspec.convert(estimate, Estimate)
                label = label_with_arm(words, _name(judge, judges))
                yield interval_of(label, share, share_of(share), series_colour(place))


def _name(judge: Values, judges: Sequence[Values]) -> str:
    """Return the judge's name if there are several judges, else ""."""
    return f"{judge['model']} {judge['judge'][:6]}" if len(judges) > 1 else ""


def _tabulate_judges(judges: Sequence[Values]) -> Table:
    """Return the single figures of all judges."""
    rows = []
    for judge in judges:
        length, calibration = judge["length"], judge["calibration"]
        brier = None if calibration is None else calibration["brier"]
        error = None if calibration is None else calibration["expected_calibration_error"]
        rows.append(
            (
                f"{judge['model']} ({judge['judge']})", judge["compare"], number(judge["pairs"]),
                f"{number(judge['verdicts']['n'])}, {number(judge['verdicts']['unread'])} unread",
                *(_format_interval(length[key], format_signed) for key in ("slope", "slope_adjusted")),
                _format_interval(brier),
                    number(error),
            )
        )  # fmt: skip
    per = judges[0]["length"]["slope_words"]
    head = (
        "judge", "compares", "pairs", "verdicts", f"logits per {per} words more", "at equal probability",
        "Brier score of the probabilities", "their calibration error",
    )  # fmt: skip
    return Table(head, tuple(rows), "The judges in numbers", style="wide")


def _tabulate_agreement(agreement: Values, judges: Sequence[Values]) -> Table:
    rows = tuple(
        (
            " and ".join(_name_source(name, judges) for name in row["sources"]), number(row["n"]),
            percent(row["observed"]),
            _format_coefficient(row["kappa"], row["kappa_interval"]),
                _format_coefficient(row["alpha"], row["alpha_interval"]),
        )
        for row in agreement["between"]
        if row["n"]
    )  # fmt: skip
    head = ("agreement of sources", "pairs", "same side", "Cohen's kappa", "Krippendorff's alpha")
    return Table(head, rows)


def _name_source(name: str, judges: Sequence[Values]) -> str:
    """Return the name of a source of labels, with enough of a judge's fingerprint to distinguish it."""
    kind, _, judge = name.partition(" ")
    if judge not in {one["judge"] for one in judges}:
        return name
    return f"{kind} {judge[:6]}" if len(judges) > 1 else kind


def _format_interval(estimate: Values | None, form: Callable[[float], str] = number) -> str:
    if estimate is None:
        return NONE
    return form(estimate["value"]) + format_interval(estimate["low"], estimate["high"], form)


def _format_coefficient(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "undefined: all labels are alike"
    low, high = interval or (None, None)
    return number(value) + format_interval(low, high, number)
