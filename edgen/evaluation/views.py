"""Views of a measure's value: lines of the terminal, blocks of the report, conversations to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec

from edgen.core.plugins.faults import refuse_value, require_type
from edgen.core.registry import part_of
from edgen.evaluation.aggregates import Examples, find_figure, has_data
from edgen.evaluation.drawings import Block
from edgen.evaluation.measure import Measure, OwnTexts
from edgen.evaluation.panels import ArmResult, draw_panels, list_usual_panels
from edgen.evaluation.rows import render_rows
from edgen.evaluation.shared import Faults, leave_out

V = TypeVar("V")
_MOST_SHOWN = 100_000  # maximum lines, tiles or other parts of a measure


def list_lines(measure: Measure[V], value: V) -> Iterator[str]:
    """Yield the terminal's lines of a measure's value: its own lines, or the rows of its aggregates; JSON
    without either."""
    if (own := part_of(measure, OwnTexts).lines(value)) is not None:
        if isinstance(own, str):
            refuse_value("measure", measure.name, "returned a str from `lines`, not a list of them")
        yield from own
    elif measure.aggregates:
        yield from render_rows(measure.aggregates, value)
    else:
        yield msgspec.json.encode(value).decode()


def list_blocks(measure: Measure[V], found: Sequence[ArmResult[V]]) -> Iterator[Block]:
    """Yield a measure's part of the report, arms side by side: its panels, or the usual panels of its
    aggregates; its lines without either. Arms without data are left out."""
    if measure.aggregates or measure.panels is not None:
        usual = list_usual_panels(measure.name, measure.aggregates)
        panels = [*usual] if measure.panels is None else measure.panels
        told = [one for one in found if has_data(measure.aggregates, one.value)]
        yield from draw_panels(panels, measure.aggregates, told)
        return
    for one in found:
        yield "\n".join([*([one.arm] if one.arm else []), *list_lines(measure, one.value)])


def list_tiles(measure: Measure[V], value: V) -> Iterator[tuple[str, str, str]]:
    """Yield (figure, its meaning, a remark) for the top of the report."""
    for tile in part_of(measure, OwnTexts).tiles(value):
        if not (isinstance(tile, tuple) and [*map(type, tile)] == [str, str, str]):
            said = f"gave the tile {tile!r}, not (figure, what it is, a remark), three texts"
            refuse_value("measure", measure.name, said)
        yield tile


def list_examples(measure: Measure[V], value: V) -> Iterator[tuple[str, str]]:
    """Yield (id, reason) of conversations to read: from aggregates, then the measure's own."""
    for one in measure.aggregates:
        if isinstance(one, Examples):
            yield from ((identifier, one.why) for identifier in find_figure(value, one.name))
    yield from part_of(measure, OwnTexts).examples(value)


def show(
    measure: Measure[Any],
    given: Callable[[], Iterable[V]],
    type_: Any,
    faults: Faults,
    what: str,
) -> list[V]:
    """Return what `given` yields, after a check that each item has the type `type_`. If a plugin's measure
    raises or yields anything else, add its fault to `faults` and return an empty list. `what`: the name of
    the items in the fault."""
    try:
        shown = [*islice(given(), _MOST_SHOWN + 1)]
        if len(shown) > _MOST_SHOWN:
            refuse_value("measure", measure.name, f"gave more than {_MOST_SHOWN:,} parts")
        for one in shown:
            kind = f"a {getattr(type_, '__name__', 'part of a page')}"
            require_type("measure", measure.name, one, type_, f"{kind}, in {what}")
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        leave_out(measure.name, error, faults, f"in {what}")
        return []
    return shown
