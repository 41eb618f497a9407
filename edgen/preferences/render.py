"""The bias report as text: each figure with its interval, its basis and its meaning. Takes the result of
`bias.make_bias_report`, also after a round trip through JSON, and returns lines without line ends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from edgen.core.text import format_interval, quantity
from edgen.preferences.labels import UNLABELLED
from edgen.preferences.policies import describe_policies

Report = Mapping[str, Any]
_FEW_SCENARIOS = 30
_WIDE = 79  # columns of the longest line
_EXPLAINED = 17  # columns before the explanation of a figure
_PERCENT, _POINTS, _LOGITS, _NUMBER = "{:.1%}", "{:+.1f} points", "{:+.3f}", "{:.3f}"


def render(report: Report, probability_of: str = "") -> Iterator[str]:
    """Yield the report's lines, each at most 80 columns wide. `probability_of`: the family's words after
    "probability" (`ReportWords`)."""
    for line in _render_lines(report, f"probability {probability_of}".rstrip()):
        yield from wrap_line(line)


def wrap_line(line: str, width: int = _WIDE) -> list[str]:
    """Split a line into pieces of at most `width` columns. Further pieces are indented, or aligned with a
    figure's explanation."""
    indent = len(line) - len(line.lstrip())
    rest = indent if indent >= _EXPLAINED else indent + 2
    return textwrap.wrap(
        line, width, subsequent_indent=" " * rest, break_long_words=False, break_on_hyphens=False
    ) or [""]


def _render_lines(report: Report, probability: str) -> Iterator[str]:
    yield f"{quantity(report['pairs'], 'pair')} of {quantity(report['scenarios'], 'scenario')}"
    labelled, left_out = report["labelled"], report["left_out"]
    if labelled or left_out:
        sources = ", ".join(f"{n:,} by {source}" for source, n in labelled.items()) or "none"
        yield f"labelled: {sources}; left out: {sum(left_out.values()):,}"
        for judge in report["judges"]:
            if n := judge.get("labelled"):
                yield f"  {n:,} by judge {_name_judge(judge)} ({judge['model']})"
        for reason, n in left_out.items():
            yield f"  {n:,} {reason}: {UNLABELLED.get(reason, reason)}"
    if report["pairs"]:
        yield "Intervals are 95% intervals over scenarios, since pairs of one scenario are alike."
        if report["scenarios"] < _FEW_SCENARIOS:
            yield (
                f"With fewer than {_FEW_SCENARIOS} scenarios the intervals of agreement are somewhat too "
                "narrow; one scenario gives no interval."
            )
    if report["pairs"]:
        yield from _list_directed_texts(report["judge_directed"])
    yield from describe_policies(report.get("policies", ()))
    for judge in report["judges"]:
        yield ""
        yield from _judge(judge, probability)
    if not report["judges"]:
        yield ""
        yield "No judge has been asked about these pairs, so position and length bias are unknown."
    yield ""
    yield from _render_agreement(report["agreement"])


def _list_directed_texts(directed: Report) -> Iterator[str]:
    share = _format_estimate(directed["share"], _PERCENT, counted=False)
    yield f"judge_directed: {directed['n']:,} = {share} of the pairs have a text that speaks to a judge"
    for found in directed["found"]:
        yield f'  "{found}"'


def _name_judge(judge: Report) -> str:
    """Return a judge's id, after the name of its asker if that is known."""
    return f"{judge['asker']} {judge['judge']}" if "asker" in judge else str(judge["judge"])


def _judge(judge: Report, probability: str) -> Iterator[str]:
    yield f"Judge {_name_judge(judge)} ({judge['model']}, comparing by {judge['compare']})"
    verdicts, ties, none = judge["verdicts"], judge["ties"], judge["abstentions"]
    yield (
        f"  {quantity(judge['pairs'], 'pair')}, {judge['judged']:,} with read verdicts in both orders;"
        f" {quantity(verdicts['n'], 'verdict')}, {verdicts['unread']:,} of them could not be read"
    )
    yield f"  abstentions  {none['n']:,} = {_format_estimate(none['share'], _PERCENT)}"
    yield f"  ties         {ties['n']:,} = {_format_estimate(ties['share'], _PERCENT)} judged in both orders"
    yield from _render_position(judge["position"])
    yield from _render_length(judge["length"], probability)
    if judge["judge_directed"] is not None:
        yield "  Texts that speak to a judge"
        yield from _explain_figure(
            "their wins", judge["judge_directed"], _PERCENT,
            "of pairs in which only one side has such a text, as the mean of both orders; the text should "
            "not win anything",
        )  # fmt: skip
    yield from _render_calibration(judge["calibration"], probability)
    if "logprobs" in judge:
        yield from _render_logprobs(judge["logprobs"], probability)


def _render_position(position: Report) -> Iterator[str]:
    yield "  Position bias"
    if position["first_slot"] is None:
        yield "    no data: no pair has read verdicts in both orders"
        return
    flips = "pairs whose favoured side changes when the order does; 0% for a judge that ignores it"
    yield from _explain_figure("flips", position["flips"], _PERCENT, flips)
    first = "verdicts for the side shown first, which is each side equally often; 50% without bias"
    yield from _explain_figure("first slot", position["first_slot"], _PERCENT, first)
    bias = f"wins of the first slot less those of the second; {_describe_zero(position['points'])}"
    yield from _explain_figure("bias", position["points"], _POINTS, bias)


def _render_length(length: Report, probability: str) -> Iterator[str]:
    yield "  Length bias"
    if length["longer"] is None:
        yield "    no data: no judged pair has sides of different, known length"
        return
    longer = "wins of the side with more words, as the mean of both orders; 50% without bias"
    yield from _explain_figure("longer side", length["longer"], _PERCENT, longer)
    bias = f"wins of the longer less those of the shorter side; {_describe_zero(length['points'])}"
    yield from _explain_figure("bias", length["points"], _POINTS, bias)
    yield from _explain_figure(
        "slope", length["slope"], _LOGITS,
        f"logits for each {length['slope_words']} words more; 0 without bias. A longer text may also be "
        "better: the slope alone does not prove a bias.",
    )  # fmt: skip
    if length["slope_adjusted"] is not None:
        yield from _explain_figure(
            "adjusted", length["slope_adjusted"], _LOGITS,
            f"the same slope between sides of equal {probability}: the effect of length apart from quality, "
            "as far as that probability measures quality",
        )  # fmt: skip


def _render_calibration(table: Report | None, probability: str) -> Iterator[str]:
    yield f"  {probability.capitalize()} as a forecast of this judge"
    if table is None:
        yield "    no data: no pair has both a favoured side and two probabilities"
        return
    brier = "mean squared error of the forecast; 0 is perfect, 0.25 is a constant 0.5"
    yield from _explain_figure("Brier score", table["brier"], _NUMBER, brier)
    yield (
        f"    calibration  {table['expected_calibration_error']:.3f} expected calibration error, "
        f"{quantity(table['n'], 'pair')}"
    )
    yield "                 mean distance of forecasts from outcomes over the table; 0 is perfect"
    yield "    forecast       pairs   mean   judge favours a"
    for row in table["bins"]:
        if row["n"]:
            share = _format_estimate(row["share"], _PERCENT, counted=False)
            yield f"    {row['from']:.1f} to {row['to']:.1f} {row['n']:>9,}  {row['mean']:.3f}   {share}"


# Reasons why a verdict has no soft preference.
GAPS = {
    "not_told": "the service returned no log probabilities",
    "not_spelt": "the tokens do not spell the answer",
    "not_found": "no single place decides the verdict",
    "not_listed": "the token there begins neither side",
    "unknown_side": "one side is not listed, and the remaining probability could favour either",
    "unread": "the verdict could not be read",
}
TRUTHS = {
    "probability": "the side with the higher {probability}",
    "human": "the side that people favour",
    "votes": "the judge's next vote on the same pair in the same order",
}
FORECASTS = {
    "logprobs": "log probabilities",
    "verdicts": "share of verdicts",
    "strengths": "strengths",
}


def _render_logprobs(told: Report, probability: str) -> Iterator[str]:
    yield "  Soft preferences by log probabilities"
    gaps, ties = told["gaps"], told["ties"]
    yield (
        f"    {quantity(told['pairs'], 'pair')} asked for, {told['known']:,} have one in both orders; "
        f"{sum(gaps.values()):,} of {quantity(told['verdicts'], 'verdict')} have none"
    )
    for gap, count in gaps.items():
        yield f"      {count:,} {gap}: {GAPS.get(gap, gap)}"
    if told["bounded"]:
        yield (
            f"    {quantity(told['bounded'], 'verdict')} with bounds: the service lists one side alone; p "
            "is the bound nearer to even"
        )
    if not told["known"]:
        return
    first = "mean probability of the side shown first; 50% without bias"
    yield from _explain_figure("first slot", told["first_slot"], _PERCENT, first)
    same = "the same side as the verdicts, where both favour one"
    yield from _explain_figure("agreement", told["agreement"], _PERCENT, same)
    yield f"    ties left    {ties['logprobs']:,} by log probabilities, {ties['verdicts']:,} by verdicts"
    for truth, right in ties["decided"].items():
        if right is not None:
            favoured = name_truth(truth, probability)
            yield f"      {_format_estimate(right, _PERCENT)} of the verdicts' ties go to {favoured}"
    for held in told["against"]:
        yield from _list_forecasts(held, probability)


def name_truth(truth: str, probability: str) -> str:
    """Return words for the source with which forecasts are compared. `probability`: the name of a
    conversation's probability."""
    return TRUTHS[truth].format(probability=probability)


def _list_forecasts(held: Report, probability: str) -> Iterator[str]:
    yield f"    As a forecast of {name_truth(held['truth'], probability)}, {quantity(held['n'], 'case')}"
    for name, words in FORECASTS.items():
        if (found := held.get(name)) is not None:
            error = f"{found['expected_calibration_error']:.3f}"
            yield (
                f"      {words:<18} Brier {_format_estimate(found['brier'], _NUMBER, counted=False)}, calibration "
                f"error {error}"
            )
    if (slope := held["slope"]) is not None:
        yield (
            f"      slope              {_format_estimate(slope, _NUMBER, counted=False)}; 1 is calibrated, "
            "below 1 is overconfident"
        )


def _render_agreement(agreement: Report) -> Iterator[str]:
    yield "Agreement on the favoured side, where both sources favour one"
    some = False
    for row in agreement["between"]:
        if row["n"]:
            some = True
            yield f"  {row['sources'][0]} and {row['sources'][1]}, {quantity(row['n'], 'pair')}"
            yield f"    the same side         {row['observed']:.1%}"
            yield f"    Cohen's kappa         {_format_coefficient(row['kappa'], row['kappa_interval'])}"
            yield f"    Krippendorff's alpha  {_format_coefficient(row['alpha'], row['alpha_interval'])}"
    if not some:
        yield "  no data: no pair has a favoured side by two sources"
        return
    yield (
        f"  all sources together, {quantity(agreement['n'], 'pair')}: Krippendorff's alpha "
        f"{_format_coefficient(agreement['alpha'])}"
    )
    yield "  1 is full agreement, 0 is what chance gives, below 0 is less than chance."


def _explain_figure(label: str, estimate: Report | None, form: str, explanation: str) -> Iterator[str]:
    yield f"    {label:<12} {_format_estimate(estimate, form)}"
    yield f"{'':{_EXPLAINED}}{explanation}"


def _format_estimate(estimate: Report | None, form: str, *, counted: bool = True) -> str:
    if estimate is None:
        return "no data"
    text = form.format(estimate["value"])
    if estimate["low"] is None or estimate["high"] is None:
        text += " (no interval from one scenario)"
    else:
        text += format_interval(estimate["low"], estimate["high"], form.format)
    return f"{text}, {quantity(estimate['n'], 'pair')}" if counted else text


def _describe_zero(estimate: Report | None) -> str:
    if estimate is None or estimate["low"] is None or estimate["high"] is None:
        return "there is no interval for it"
    inside = estimate["low"] <= 0 <= estimate["high"]
    return "0 is within the interval" if inside else "0 is outside the interval"


def _format_coefficient(value: float | None, interval: list[float] | None = None) -> str:
    if value is None:
        return "undefined (all labels are alike)"
    low, high = interval or (None, None)
    return f"{value:.3f}" + format_interval(low, high, "{:.3f}".format)
