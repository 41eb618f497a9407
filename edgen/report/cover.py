"""Pictures of the space: which of its cells came, and whose conversations were lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgen.quality.results import Coverage, Heat, Value
from edgen.quality.significance import SIGNIFICANT
from edgen.report import charts
from edgen.report.charts import Axis, Span
from edgen.report.model import Part, Picture, Table
from edgen.report.text import NONE, counted, named, number, percent, share_of

_MOST_ARMS = 6  # that are drawn; tables have all
_MOST_VALUES = 12
_NAMED = 5  # values that a cell of a table names


def maps(parts: Sequence[Part]) -> Iterator[Picture]:
    """The heat maps of each arm that has conversations."""
    for place, part in enumerate(parts[:_MOST_ARMS]):
        for number_, heat in enumerate(part.quality.coverage.heat):
            if heat.rows and heat.columns and part.accepted:
                yield _map(f"heat-{place}-{number_}", part.label, heat)


def _map(name: str, label: str, heat: Heat) -> Picture:
    most = max((count for row in heat.accepted for count in row), default=0)
    pairs = [
        (p, a)
        for ps, accepted in zip(heat.planned, heat.accepted, strict=True)
        for p, a in zip(ps, accepted, strict=True)
    ]
    planned = [a for p, a in pairs if p]
    lost = sum(1 for a in planned if not a)
    title = f"{named(heat.row_dimension).capitalize()} by {named(heat.column_dimension)}"
    said = (
        f"{number(len(planned))} of {number(len(heat.rows) * len(heat.columns))} cells were planned; they have "
        f"{number(min(planned, default=0))} to {counted(most, 'conversation')} each{f', {number(lost)} of them none' if lost else ''}"
    )
    alternative = f"Heat map of {title}. {said}."
    return Picture(
        name=name,
        title=f"{title} · {label}" if label else title,
        svg=charts.cells(name, alternative, heat.rows, len(heat.columns), heat.planned, heat.accepted),
        caption=f"Conversations accepted; the numbers of rows and columns stand for the values below. Look for pale cells, and for a cross: planned, and all lost. {said}.",
        label=alternative,
        tables=(
            Table(
                head=("accepted / planned", *heat.columns),
                rows=tuple(
                    (row, *(f"{number(a)} / {number(p)}" for a, p in zip(accepted, planned_, strict=True)))
                    for row, accepted, planned_ in zip(heat.rows, heat.accepted, heat.planned, strict=True)
                ),
            ),
        ),
        legend=_scale(most, any(not a for _, a in pairs)),
        key=tuple(
            (named(dimension).capitalize(), values)
            for dimension, values in (
                (f"{heat.row_dimension}, rows", heat.rows),
                (f"{heat.column_dimension}, columns", heat.columns),
            )
        ),
    )


def _scale(most: int, empty: bool) -> tuple[tuple[str, str], ...]:
    """What the shades stand for: none, half of the most, the most."""
    counts = [0] * empty + [count for count in (most // 2, most) if count]
    return tuple(
        (f"level-{charts.level_of(count, most)}", counted(count, "conversation"))
        for count in dict.fromkeys(counts)
    )


def survivors(parts: Sequence[Part]) -> Iterator[Picture]:
    """The values whose share of accepted conversations is furthest from the whole's, where some were accepted and some not."""
    for place, part in enumerate(parts[:_MOST_ARMS]):
        coverage = part.quality.coverage
        settled = sum(part.rejected.values()) + sum(part.failed.values()) + part.accepted
        if part.accepted in (0, settled):
            continue
        overall = part.accepted / settled
        found = sorted(
            (
                (abs(value.survived.value - overall), name, value)
                for name, value in _values(coverage)
                if value.survived is not None
            ),
            key=lambda row: (
                row[2].p_holm if row[2].p_holm is not None else 1.0,
                -row[0],
                row[1],
                row[2].value,
            ),
        )[:_MOST_VALUES]
        if found:
            yield _survival(
                f"survival-{place}", part.label, overall, [(name, value) for _, name, value in found]
            )


def _values(coverage: Coverage) -> Iterator[tuple[str, Value]]:
    for dimension in coverage.dimensions:
        for value in dimension.values:
            yield dimension.name, value


def _survival(name: str, label: str, overall: float, found: Sequence[tuple[str, Value]]) -> Picture:
    rows = []
    for dimension, value in found:
        sure = value.p_holm is not None and value.p_holm < SIGNIFICANT
        estimate = value.survived
        rows.append(
            Span(
                f"{value.value} ({named(dimension)})",
                estimate.value if estimate else None,
                estimate.low if estimate else None,
                estimate.high if estimate else None,
                percent(estimate.value if estimate else None),
                "vermillion" if sure else "blue",
                hollow=not sure,
            )
        )
    low = min((row.low for row in rows if row.low is not None), default=0.0)
    title = "Who survives rejection"
    sure_ones = [row.label for row in rows if not row.hollow]
    alternative = (
        f"Dots with 95% intervals: share accepted of what was settled, overall {percent(overall)}. "
        f"{'; '.join(f'{row.label}: {row.said}' for row in rows)}."
    )
    return Picture(
        name=name,
        title=f"{title} · {label}" if label else title,
        svg=charts.spans(
            name,
            alternative,
            rows,
            Axis("share accepted", lambda v: percent(v, 0), low=min(low, overall), high=1.0),
            overall,
        ),
        caption="The values of the space that are furthest from the whole (dashed). Filled: differs from the other values "
        "when all are tested (Holm, 5%). Look for these: the data no longer are what was planned. "
        + (f"{len(sure_ones)} here." if sure_ones else "There is none here."),
        label=alternative,
        tables=(survival_table([(dimension, value) for dimension, value in found]),),
    )


def survival_table(found: Sequence[tuple[str, Value]]) -> Table:
    """What became of the conversations planned with each value."""
    return Table(
        head=("value", "dimension", "planned", "accepted", "rejected", "failed", "pending", "share accepted (95%)", "p (Holm)"),
        rows=tuple(
            (
                value.value, named(dimension), number(value.planned), number(value.accepted), number(value.rejected),
                number(value.failed), number(value.pending), share_of(value.survived), number(value.p_holm),
            )
            for dimension, value in found
        ),
    )  # fmt: skip


def all_values(part: Part, most: int = 60) -> Table:
    """The table of survivorship of one arm: the `most` values most often planned."""
    found = sorted(_values(part.quality.coverage), key=lambda row: (-row[1].planned, row[0], row[1].value))
    return survival_table(found[:most])


def dimensions(parts: Sequence[Part]) -> Table:
    """How much of each dimension came."""
    several = len(parts) > 1
    return Table(
        head=(
            "dimension", *(["arm"] if several else []), "values", "planned", "accepted", "evenness",
            "planned, never accepted", "never planned",
        ),
        rows=tuple(
            (
                named(found.name),
                *([part.label] if several else []),
                number(found.size),
                number(found.planned),
                number(found.seen),
                number(found.evenness),
                _some(found.unseen, found.planned - found.seen),
                _some(found.unplanned, found.size - found.planned),
            )
            for part in parts
            for found in part.quality.coverage.dimensions
        ),
    )  # fmt: skip


def _some(values: Sequence[str], count: int) -> str:
    """The first few of `count` values."""
    more = count - len(values[:_NAMED])
    return (", ".join(values[:_NAMED]) + (f" and {number(more)} more" if more > 0 else "")) or NONE


def drawn(parts: Sequence[Part]) -> str:
    """Which arms the pictures leave out, in a sentence; "" where none."""
    left = len(parts) - _MOST_ARMS
    return (
        f" The pictures show the first {_MOST_ARMS} of {len(parts)} arms; the tables have all."
        if left > 0
        else ""
    )


def lost(parts: Sequence[Part], most: int = 10) -> Table | None:
    """Cells that were planned and have nothing."""
    rows = tuple(
        (
            " × ".join(cell.cell.values()),
            part.label or "",
            number(cell.planned),
            ", ".join(f"{named(reason)} {number(count)}" for reason, count in cell.reasons.items()),
        )
        for part in parts
        for cell in part.quality.coverage.lost[:most]
    )
    return Table(head=("cell", "arm", "planned", "reasons"), rows=rows) if rows else None
