"""What was measured, for a terminal of 80 columns: a section a measure, with how to read it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from edgen.core.text import quantity
from edgen.evaluation.measuring import Quality, measures
from edgen.evaluation.terminal import join_counts, wrap


def render(quality: Quality, only: Collection[str] | None = None) -> Iterator[str]:
    """The sections of what was measured, and the notes, in lines without line ends."""
    yield f"{quality.name}: {quantity(quality.overview.records, 'conversation')}"
    if not quality.overview.records:
        yield from _explain_nothing(quality)
    for measure in measures(quality.values):
        if not (quality.overview.records or measure.tells_of_plan):
            continue
        lines = list(measure.lines(quality.values[measure.name]))
        if not lines and only is not None:
            lines = wrap(measure.nothing)
        if lines:
            yield ""
            yield measure.name
            yield from (f"  {line}" for line in lines)
    if quality.notes:
        yield ""
    for note in quality.notes:
        yield from wrap(f"Note: {note}")


def _explain_nothing(quality: Quality) -> Iterator[str]:
    """What there is to say where no conversation was accepted."""
    found = quality.values.get("coverage")
    planned, reasons = (found.planned, found.reasons) if found is not None else (0, {})
    why = f" of {planned:,} planned ({join_counts(reasons)})" if planned else ""
    left = "Only what became of the plan can be told." if planned else "There is nothing to measure."
    yield ""
    yield from wrap(f"Nothing was accepted{why}. {left}")
