"""Calibration of the stated probabilities against a judge's verdicts, from `edgen pairs`, and of a judge's
soft preferences by log probabilities against its verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from edgen.plugin import Measure, OwnCount, OwnTexts, ReportWords, Sample, Words, part_of
from edgen.plugin.measures import (
    LABEL,
    ArmResult,
    Block,
    Curve,
    Curves,
    Picture,
    Shared,
    Table,
    label_with_arm,
    rows,
    series_colour,
    shorten_line,
)  # fmt: skip
from edgen.plugin.texts import number, percent, quantity
from edgen.preferences.render import FORECASTS, name_truth

Calibration = dict[str, Any] | None  # {"judges": [{"judge", "model", "compare", "calibration", "logprobs"?}]}
Told = Mapping[str, Any]  # a judge's "logprobs" of a bias report


def _list_judges(value: Calibration) -> Sequence[dict[str, Any]]:
    return value["judges"] if value else ()


def _draw_picture(place: int, arm: str, judge: dict[str, Any]) -> Picture:
    found = judge["calibration"]
    said = (
        f"{number(found['n'])} pairs judged by {judge['model'] or judge['judge']}; expected calibration "
        f"error {number(found['expected_calibration_error'])}"
    )
    return Picture(
        name=f"calibration-{place}",
        title=label_with_arm("Calibration", arm),
        chart=_draw_reliability([(found, "blue")]),
        caption=f"On the dashed line, forecasts of probability p come true in a share p of the cases. {said}.",
        alternative=f"Reliability curve. {said}.",
        tables=(_tabulate_curve(found, "pairs"),),
    )


def _draw_judges(found: Sequence[ArmResult[Calibration]]) -> Iterator[Block]:
    judges = [(one, judge) for one in found for judge in _list_judges(one.value)]
    for place, (one, judge) in enumerate(judges):
        if judge["calibration"]:
            yield _draw_picture(place, one.arm, judge)
        if "logprobs" in judge:
            named = f"probability {part_of(one.family, ReportWords).probability_of}".rstrip()
            yield from _render_logprobs(place, one.arm, judge, named)


def _describe_logprobs(told: Told) -> str:
    """Return one line: the errors against the first other source, or the number of pairs without any."""
    if not told["against"]:
        return (
            f"{told['known']:,} of {quantity(told['pairs'], 'pair')} with soft preferences by log "
            "probabilities"
        )
    held = told["against"][0]
    errors = ", ".join(
        f"{words} {held[name]['brier']['value']:.3f}" for name, words in FORECASTS.items() if name in held
    )
    return f"Brier scores of {quantity(held['n'], 'case')}: {errors}"


def _render_logprobs(place: int, arm: str, judge: Mapping[str, Any], probability: str) -> Iterator[Block]:
    """Yield the pictures and the table of one judge. `probability`: the name of a conversation's
    probability."""
    told = judge["logprobs"]
    for number_of, held in enumerate(told["against"]):
        yield _draw_logprobs(f"soft-preferences-{place}-{number_of}", arm, judge, held, probability)
    yield _tabulate_summary(arm, judge)


def _tabulate_summary(arm: str, judge: Mapping[str, Any]) -> Table:
    told = judge["logprobs"]
    ties, agreement = told["ties"], told["agreement"]
    rows = [
        ("pairs with a soft preference", f"{told['known']:,} of {told['pairs']:,}"),
        ("verdicts without one", f"{sum(told['gaps'].values()):,} of {told['verdicts']:,}"),
        ("the same side as the verdicts", _format_share(agreement)),
        ("ties that verdicts leave", f"{ties['verdicts']:,}"),
        ("ties that log probabilities leave", f"{ties['logprobs']:,}"),
        ("probability of the side shown first", _format_share(told["first_slot"])),
    ]
    title = f"Soft preferences of {judge['model'] or judge['judge']}"
    return Table(("", ""), tuple(rows), title=label_with_arm(title, arm), style="plain")


def _format_share(estimate: Mapping[str, Any] | None) -> str:
    return "no data" if estimate is None else percent(estimate["value"])


def _draw_logprobs(name: str, arm: str, judge: Mapping[str, Any], held: Told, probability: str) -> Picture:
    shown = [(key, words) for key, words in FORECASTS.items() if key in held]
    said = (
        f"{quantity(held['n'], 'case')}, judged by {judge['model'] or judge['judge']}, against "
        f"{name_truth(held['truth'], probability)}"
    )
    return Picture(
        name=name,
        title=label_with_arm("Calibration of the judge's preferences", arm),
        chart=_draw_reliability([(held[key], series_colour(place)) for place, (key, _) in enumerate(shown)]),
        caption="On the dashed line, forecasts of probability p come true in a share p of the cases; a "
        f"Brier score of 0.25 is a coin's. {said}.",
        alternative=f"Reliability curves of {', '.join(words for _, words in shown)}. {said}.",
        tables=(
            _tabulate_errors(held, shown),
            *(_tabulate_curve(held[key], "cases", words.capitalize()) for key, words in shown),
        ),
        legend=tuple((series_colour(place), words) for place, (_, words) in enumerate(shown)),
    )


def _draw_reliability(curves: Iterable[tuple[Told, str]]) -> Curves:
    """Return curves of observed frequency against forecast, one per (calibration, colour); the dashed line is
    perfect calibration."""
    drawn = [Curve((0, 1), (0, 1), "muted", dashed=True)]
    for found, colour in curves:
        bins = _list_bins(found)
        means, shares = [one["mean"] for one in bins], [one["share"]["value"] for one in bins]
        drawn.append(Curve(means, shares, colour))
    return Curves(drawn, "probability said", "share that came true", log=False)


def _list_bins(found: Told) -> list[dict[str, Any]]:
    return [one for one in found["bins"] if one.get("n") and one.get("share")]


def _tabulate_errors(held: Told, shown: Sequence[tuple[str, str]]) -> Table:
    rows = [
        (words, number(held[key]["brier"]["value"]), number(held[key]["expected_calibration_error"]))
        for key, words in shown
    ]
    return Table(("forecast", "Brier score", "calibration error"), tuple(rows))


def _tabulate_curve(found: Told, cases: str, title: str = "") -> Table:
    """Return a table with the numbers of a curve; `cases`: the name of its units."""
    rows = (
        (f"{b['from']:g} to {b['to']:g}", number(b["n"]), number(b["mean"]), number(b["share"]["value"]))
        for b in _list_bins(found)
    )
    return Table(("said", cases, "mean said", "came true"), tuple(rows), title=title)


class CalibrationMeasure(OwnCount, OwnTexts, Measure[Calibration]):
    name = "calibration"
    definition = (
        "Of pairs that the probabilities favour with p, the share that judges favour too: ten bins, expected "
        "calibration error (Naeini et al. 2015) and Brier score (1950), as in `edgen pairs --report`. The "
        "same for a judge's preference by log probabilities, if it has any."
    )
    order = 12
    section = "understanding"
    nothing = (
        "There are no judged pairs to compare the conversations' probabilities with. `edgen pairs` asks a "
        "judge about a run's conversations."
    )

    panels = (_draw_judges,)

    def start(self, shared: Shared) -> KnownCalibration:
        return KnownCalibration(shared)

    def lines(self, value: Calibration) -> Iterator[str]:
        for judge in _list_judges(value):
            name = shorten_line(judge["model"], LABEL - 2)
            if "logprobs" in judge:
                yield from rows(name, _describe_logprobs(judge["logprobs"]))
            if found := judge["calibration"]:
                error, brier = found["expected_calibration_error"], found["brier"]["value"]
                pairs = quantity(found["n"], "pair")
                said = f"{pairs}, calibration error {error:.3f}, Brier score {brier:.3f} (a coin: 0.250)"
                yield from rows(name, said)


class KnownCalibration:
    """The calibration that the data set already has; conversations do not change it."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def see(self, sample: Sample, words: Words) -> None:
        pass

    def result(self) -> Calibration:
        return self._shared.data.calibration


MEASURE = CalibrationMeasure()
