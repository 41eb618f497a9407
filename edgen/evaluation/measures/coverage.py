"""Coverage of the space: values and cells with conversations, and lost ones; see `coverage_count`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgen.evaluation.measures.coverage_count import (
    Coverage,
    CoverageCount,
    CrossTable,
    ValueCount,
)
from edgen.plugin import Measure, OwnCount, OwnTexts
from edgen.plugin.measures import (
    LABEL,
    ArmResult,
    Axis,
    Block,
    Cells,
    Intervals,
    Picture,
    Shared,
    Table,
    describe_rows,
    interval_of,
    join_counts,
    label_with_arm,
    row,
    rows,
    sentence_of_arm,
    shade_of,
    share_of,
    shorten_line,
)
from edgen.plugin.statistics import SIGNIFICANT
from edgen.plugin.texts import NONE, number, percent, quantity, readable_name

_FEW = 5  # maximum values that a list names
_MOST_ARMS = 6  # maximum arms that are drawn; tables have all
_MOST_VALUES = 12  # maximum values in a picture
_MOST_ROWS = 60  # maximum rows of a table
_MOST_DIMENSIONS = 8  # a table with more rows is folded away
_MOST_LOST = 10

Found = Sequence[ArmResult[Coverage]]


def _draw_cells(found: Found) -> Iterator[Block]:
    if len(found) > _MOST_ARMS:
        yield f"The pictures show the first {_MOST_ARMS} of {len(found)} arms; the tables have all."
    for place, one in enumerate(found[:_MOST_ARMS]):
        # the first arm shows the plan, so the other arms' pictures are folded away
        folded = f"The same pictures of {one.arm if len(found) == 2 else 'the other arms'}" if place else ""
        for number_, table in enumerate(one.value.heat):
            if table.rows and table.columns and one.value.accepted:
                yield _draw_heat_map(f"heat-{place}-{number_}", one.arm, table, folded)
        yield from _draw_survival(f"survival-{place}", one.arm, one.value, folded)
    yield from (sentence_of_arm(_describe_cells(one.value), one.arm) for one in found)
    yield _tabulate_dimensions(found)
    yield from _list_lost_cells(found)
    for one in found:
        ordered = sorted(
            _iterate_values(one.value), key=lambda item: (-item[1].planned, item[0], item[1].value)
        )
        title = label_with_arm("Outcome of each value", one.arm)
        yield _tabulate_values(ordered[:_MOST_ROWS], title)


class CoverageMeasure(OwnCount, OwnTexts, Measure[Coverage]):
    name = "coverage"
    definition = (
        "Cells (one value of each dimension) of the space against the plan. Survivors: accepted of "
        "settled, with Wilson's interval (1927) for the effective number of scenarios (Franco et al. "
        "2019) and Student's t for its quantile (Korn and Graubard 1998); p by Fisher's exact test (1935) "
        "over scenarios that lost a conversation, Holm-adjusted (1979) for all values. Evenness: entropy "
        "over its maximum (Pielou 1966)."
    )
    order = 7
    section = "space"
    panels = (_draw_cells,)
    describes_plan = True

    def start(self, shared: Shared) -> CoverageCount:
        return CoverageCount(shared.data.space, shared.data.roles, planned=shared.planned)

    def lines(self, value: Coverage) -> Iterator[str]:
        plan = any(each.survived is not None for _, each in _iterate_values(value))
        of = "" if value.cells is None else f" of {value.cells:,}"
        cells = f"{value.planned:,} in {value.planned_cells:,}{of} cells"
        yield row("planned" if plan else "present (no plan is known)", cells)
        if plan:
            yield row("accepted", f"{value.accepted:,} in {value.accepted_cells:,} cells")
            yield row("lost", f"{quantity(value.lost_cells, 'cell')} without an accepted conversation")
            for lost in value.lost[:2]:
                name, text = next(iter(lost.cell.items()))
                cell = f"a cell with the {readable_name(name)} {shorten_line(text, 24)}"
                yield from rows("  for example", f"{cell}: {join_counts(lost.reasons)}")
        head = f"{'planned':>9}{'accepted':>10}" if plan else f"{'there':>9}"
        yield f"{'evenness: 1 if all as often':<{LABEL}}{'values':>8}{head}{'evenness':>10}"
        for each in value.dimensions:
            evenness = "–" if each.evenness is None else f"{each.evenness:.3f}"
            came = f"{each.planned:>9,}{each.seen:>10,}" if plan else f"{each.seen:>9,}"
            yield f"{readable_name(each.name):<{LABEL}}{each.size:>8,}{came}{evenness:>10}"
        for each in value.dimensions:
            if value.accepted and each.unseen:
                unseen = ", ".join(shorten_line(text, 40) for text in each.unseen[:3])
                more = ", …" if len(each.unseen) > 3 else ""
                yield from rows("planned, never accepted", f"{readable_name(each.name)}: {unseen}{more}")
        yield from _describe_lowest_shares(value)


def _iterate_values(value: Coverage) -> Iterator[tuple[str, ValueCount]]:
    """Yield (dimension, value) of every dimension."""
    for dimension in value.dimensions:
        for each in dimension.values:
            yield dimension.name, each


def _read_p(value: ValueCount) -> float:
    return 1.0 if value.p_holm is None else value.p_holm


def _describe_lowest_shares(value: Coverage) -> Iterator[str]:
    """Yield lines on the values that lose the most, significant ones first."""
    if value.accepted in (0, value.planned):
        return
    losing = [
        (_read_p(each), each.survived, f"{readable_name(dimension)}: {each.value}", each.p_holm)
        for dimension, each in _iterate_values(value)
        if each.survived is not None and each.survived.value < 1
    ]
    losing.sort(key=lambda item: (item[0], item[1].value))
    if not losing:
        return
    yield f"{'the lowest shares':<47}{'accepted':>9}{'95%':>11}{'p (Holm)':>10}"
    for _, share, label, p_holm in losing[:_FEW]:
        span = "" if share.low is None or share.high is None else f"{share.low:.0%}–{share.high:.0%}"
        p = "" if p_holm is None else f"{p_holm:.3f}"
        yield f"{shorten_line(label, 46):<47}{share.value:>9.1%}{span:>11}{p:>10}"
    if losing[0][0] >= SIGNIFICANT:
        yield "No value stands out: among so many values, some lose more by chance."


def _draw_heat_map(name: str, arm: str, table: CrossTable, folded: str) -> Picture:
    most = max((count for counts in table.accepted for count in counts), default=0)
    pairs = [
        (planned, accepted)
        for both in zip(table.planned, table.accepted, strict=True)
        for planned, accepted in zip(*both, strict=True)
    ]
    planned = [accepted for planned, accepted in pairs if planned]
    lost = planned.count(0)
    title = f"{readable_name(table.row_dimension).capitalize()} by {readable_name(table.column_dimension)}"
    said = (
        f"{number(len(planned))} of {number(len(table.rows) * len(table.columns))} cells were planned; they "
        f"have {number(min(planned, default=0))} to {quantity(most, 'conversation')} "
        f"each{f', {number(lost)} of them none' if lost else ''}"
    )
    empty = any(not accepted for _, accepted in pairs)
    fewest = min((accepted for _, accepted in pairs if accepted), default=0)
    counts = dict.fromkeys([0] * empty + [count for count in (fewest, most) if count])
    cells = tuple(
        (words, *(f"{number(a)} / {number(p)}" for a, p in zip(accepted, planned_, strict=True)))
        for words, accepted, planned_ in zip(table.rows, table.accepted, table.planned, strict=True)
    )
    return Picture(
        name=name,
        title=label_with_arm(title, arm),
        chart=Cells(table.rows, len(table.columns), table.planned, table.accepted),
        caption="Accepted conversations. Look for cells with few, and for a cross: a cell that lost all its "
        f"planned conversations. {said}.",
        alternative=f"Heat map of {title}. {said}.",
        tables=(Table(("accepted / planned", *table.columns), cells),),
        legend=tuple((f"level-{shade_of(count, most)}", quantity(count, "conversation")) for count in counts),
        folded=folded,
        key=(
            (f"{readable_name(table.row_dimension).capitalize()}, rows", table.rows),
            (f"{readable_name(table.column_dimension).capitalize()}, columns", table.columns),
        ),
    )


def _draw_survival(name: str, arm: str, value: Coverage, folded: str) -> Iterator[Picture]:
    """Yield a picture of the values whose share of accepted conversations is furthest from the overall share;
    nothing if all or none were accepted."""
    known = [
        (name, each, each.survived) for name, each in _iterate_values(value) if each.survived is not None
    ]
    settled = value.accepted + sum(value.reasons.values())
    if not known or value.accepted in (0, settled):
        return
    overall = value.accepted / settled
    known.sort(key=lambda item: (_read_p(item[1]), -abs(item[2].value - overall), item[0], item[1].value))
    drawn = [(dimension, each) for dimension, each, _ in known[:_MOST_VALUES]]
    intervals = [
        interval_of(
            f"{each.value} ({readable_name(dimension)})",
            survived,
            percent(survived.value),
            "vermillion" if _read_p(each) < SIGNIFICANT else "blue",
        )._replace(hollow=_read_p(each) >= SIGNIFICANT)
        for dimension, each, survived in known[:_MOST_VALUES]
    ]
    low = min((each.low for each in intervals if each.low is not None), default=0.0)
    axis = Axis("share accepted", lambda v: percent(v, 0), low=min(low, overall), high=1.0)
    standing_out = sum(not each.hollow for each in intervals)
    title = "Values that lose conversations"
    yield Picture(
        name=name,
        title=label_with_arm(title, arm),
        chart=Intervals(intervals, axis, overall),
        caption="The values whose share of accepted conversations is furthest from that of all (dashed), "
        "with 95% intervals. Filled: differs from the other values when all are tested together (Holm, 5%); "
        "such a value no longer has its planned share. "
        f"{f'{standing_out} filled here.' if standing_out else 'None is filled here.'}",
        alternative=describe_rows(
            f"Dots with 95% intervals, overall {percent(overall)}",
            "accepted share of settled conversations",
            intervals,
        ),
        tables=(_tabulate_values(drawn),),
        folded=folded,
    )


def _tabulate_values(found: Sequence[tuple[str, ValueCount]], title: str = "") -> Table:
    """Return a table of the outcomes of the conversations planned with each value."""
    head = ("value", "dimension", "planned", "accepted", "rejected", "failed", "pending", ("share accepted "
    "(95%)"), "p (Holm)")  # fmt: skip
    cells = (
        (
            each.value, readable_name(dimension), number(each.planned), number(each.accepted),
                number(each.rejected),
            number(each.failed), number(each.pending), share_of(each.survived), number(each.p_holm),
        )
        for dimension, each in found
    )  # fmt: skip
    return Table(head, tuple(cells), title=title, style="wide" if title else "")


def _describe_cells(value: Coverage) -> str:
    space = "" if value.cells is None else f"{quantity(value.cells, 'cell')} in the space, "
    return (
        f"{space}{number(value.planned_cells)} of them planned, {number(value.accepted_cells)} with a "
        f"conversation, {number(value.lost_cells)} lost."
    )


def _tabulate_dimensions(found: Found) -> Table:
    """Return a table of the coverage of each dimension."""
    arms = len(found) > 1
    head = ("dimension", *["arm"] * arms, "values", "planned", "accepted", "evenness", ("planned, never "
    "accepted"), "never planned")  # fmt: skip
    cells = (
        (
            readable_name(each.name), *[one.arm] * arms, number(each.size), number(each.planned),
            number(each.seen),
            number(each.evenness, 3), _join_first(each.unseen, each.planned - each.seen),
                _join_first(each.unplanned, each.size - each.planned),
        )
        for one in found
        for each in one.value.dimensions
    )  # fmt: skip
    rows = tuple(cells)
    title = "Coverage of each dimension" if len(rows) > _MOST_DIMENSIONS else ""
    return Table(head, rows, title, style="plain")


def _join_first(values: Sequence[str], count: int) -> str:
    """Return the first few of `count` values as text."""
    more = count - len(values[:_FEW])
    return (", ".join(values[:_FEW]) + (f" and {number(more)} more" if more > 0 else "")) or NONE


def _list_lost_cells(found: Found) -> Iterator[Table]:
    cells = tuple(
        (
            " × ".join(cell.cell.values()),
            one.arm,
            number(cell.planned),
            ", ".join(f"{readable_name(reason)} {number(count)}" for reason, count in cell.reasons.items()),
        )
        for one in found
        for cell in one.value.lost[:_MOST_LOST]
    )
    if cells:
        title = "Planned cells without conversations"
        yield Table(("cell", "arm", "planned", "reasons"), cells, title=title, style="plain")


MEASURE = CoverageMeasure()
