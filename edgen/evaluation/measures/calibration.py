"""Calibration of the stated probabilities against a judge's verdicts, from `edgen pairs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from edgen.evaluation.measures import calibration_logprobs
from edgen.plugin import Measure, OwnCount, OwnTexts, ReportWords, Sample, Words, part_of
from edgen.plugin.measures import LABEL, ArmResult, Block, Picture, Shared, label_with_arm, rows, shorten_line
from edgen.plugin.texts import number, quantity

Calibration = dict[str, Any] | None  # {"judges": [{"judge", "model", "compare", "calibration", "logprobs"?}]}


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
        chart=calibration_logprobs.draw_reliability([(found, "blue")]),
        caption=f"On the dashed line, forecasts of probability p come true in a share p of the cases. {said}.",
        alternative=f"Reliability curve. {said}.",
        tables=(calibration_logprobs.tabulate_curve(found, "pairs"),),
    )


def _draw_judges(found: Sequence[ArmResult[Calibration]]) -> Iterator[Block]:
    judges = [(one, judge) for one in found for judge in _list_judges(one.value)]
    for place, (one, judge) in enumerate(judges):
        if judge["calibration"]:
            yield _draw_picture(place, one.arm, judge)
        if "logprobs" in judge:
            named = f"probability {part_of(one.family, ReportWords).probability_of}".rstrip()
            yield from calibration_logprobs.render_judge(place, one.arm, judge, named)


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
            if "logprobs" in judge:
                yield from rows(
                    shorten_line(judge["model"], LABEL - 2), calibration_logprobs.describe(judge["logprobs"])
                )
            if (found := judge["calibration"]) is None:
                continue
            yield from rows(
                shorten_line(judge["model"], LABEL - 2),
                f"{quantity(found['n'], 'pair')}, calibration error "
                f"{found['expected_calibration_error']:.3f}, "
                f"Brier score {found['brier']['value']:.3f} (a coin: 0.250)",
            )


class KnownCalibration:
    """The calibration that the data set already has; conversations do not change it."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def see(self, sample: Sample, words: Words) -> None:
        pass

    def result(self) -> Calibration:
        return self._shared.data.calibration


MEASURE = CalibrationMeasure()
