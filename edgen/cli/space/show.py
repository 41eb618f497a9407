"""`edgen space show`: sizes, cells, weights, and how many conversations a balanced design needs."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import print_json, print_line
from edgen.space import DIMENSIONS, Entry, Space, content_sha256, load_space

_PER_CELL = (1, 2, 5)
_EXTREMES = 2  # values shown as the most and the least probable ones
_WIDE = 40  # characters of a value that are shown


def command(
    space: Annotated[
        str, typer.Argument(metavar="SPACE", help="A shipped space's name, or a file.", show_default=False)
    ],
    per_cell: Annotated[
        int | None,
        typer.Option(
            "--per-cell",
            metavar="K",
            min=1,
            max=10_000,
            help="Conversations per cell.  [default: 1, 2 and 5]",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print a space's sizes, cells and weights, and what a balanced design needs for K conversations a cell.

    Example: edgen space show broad --per-cell 3
    """
    from edgen.engine.load import find_space
    from edgen.engine.reach import typed

    path = find_space(space, typed())
    facts = facts_of(load_space(path), path, _PER_CELL if per_cell is None else (per_cell,))
    if json:
        print_json(facts)
        return
    for line in _lines(facts):
        print_line(line)


def facts_of(space: Space, path: Path, per_cell: tuple[int, ...]) -> dict[str, Any]:
    """What `--json` prints."""
    from edgen.engine.sizing import needed, strata

    return {
        "space": space.name,
        "file": str(path),
        "description": space.description,
        "source": space.source,
        "duplicates": space.duplicates,
        "content_sha256": content_sha256(space),
        "dimensions": {
            name: {"values": len(entries), **_weights(entries)}
            for name, entries in zip(DIMENSIONS, space.dimensions, strict=True)
        },
        "topics_with_subject": sum(topic.subject is not None for topic in space.topics),
        "topics_with_level": sum(topic.level is not None for topic in space.topics),
        "cells": space.cells,
        "balanced": [
            {
                "by": list(names),
                "cells": cells,
                "needed": [
                    {"per_cell": k, "on_average": k * cells, "in_each": needed(cells, space.cells, k)}
                    for k in per_cell
                ],
            }
            for names, cells in strata(space)
        ],
    }


def _weights(entries: tuple[Entry, ...]) -> dict[str, Any]:
    """Whether all weigh the same, else the most and the least probable values with their probabilities."""
    if len({entry.weight for entry in entries}) == 1:
        return {"weighted": False}
    total = sum(entry.weight for entry in entries)
    ranked = sorted(((entry.weight / total, entry.value) for entry in entries), key=lambda pair: -pair[0])
    shown = [{"value": value, "probability": share} for share, value in ranked]
    return {
        "weighted": True,
        "most_probable": shown[:_EXTREMES],
        "least_probable": shown[-min(_EXTREMES, len(shown) - _EXTREMES) :] if len(shown) > _EXTREMES else [],
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    """The same for a person, within 80 columns where values are short."""
    sizes = {name: about["values"] for name, about in facts["dimensions"].items()}
    lines = [f"{'space':11} {facts['space']} ({facts['file']})"]
    for key in ("description", "source"):
        lines += wrap(
            facts[key] or "",
            80,
            initial_indent=f"{key:11} ",
            subsequent_indent=" " * 12,
            break_on_hyphens=False,
        )
    lines += [f"{'content':11} sha256 {facts['content_sha256'][:16]}…", ""]
    for name, about in facts["dimensions"].items():
        lines.append(f"{name:20} {sizes[name]:>7,} values, {_weighted(about)}")
        for key in ("most_probable", "least_probable"):
            lines += [
                f"{'':28} {one['probability']:6.2%}  {_short(one['value'])}" for one in about.get(key, ())
            ]
    with_subject, with_level = facts["topics_with_subject"], facts["topics_with_level"]
    lines.append(f"{'':28} {with_subject:,} topics have a subject, {with_level:,} a level")
    lines.append(f"{'cells':20} {facts['cells']:>7,} = {' x '.join(f'{size:,}' for size in sizes.values())}")
    return [*lines, "", *_table(facts)]


def _weighted(about: dict[str, Any]) -> str:
    if not about["weighted"]:
        return "all weigh the same"
    return "weighted (in the random design only):"


def _short(value: str) -> str:
    return value if len(value) <= _WIDE else f"{value[: _WIDE - 1]}…"


def _table(facts: dict[str, Any]) -> list[str]:
    """How many conversations, by what is to be covered and how often."""
    columns = [need["per_cell"] for need in facts["balanced"][0]["needed"]]
    head = f"{'conversations for k of each':30} {'of them':>10}" + "".join(
        f"{f'k = {k:,}':>13}" for k in columns
    )
    rows = []
    for stratum in facts["balanced"]:
        counts = "".join(f"{need['in_each']:>13,}" for need in stratum["needed"])
        rows.append(f"{_titled(stratum['by']):30} {stratum['cells']:>10,}{counts}")
    return [
        head,
        *rows,
        "",
        "So many conversations of a balanced design (`design: balanced`) have each of",
        "them k times or more: cells for certain, what spans many cells with 19 of 20",
        "seeds or more.",
    ]


def _titled(names: list[str]) -> str:
    """`student x teacher preference` for the preferences of both."""
    if len(names) == len(DIMENSIONS):
        return "cell (all five lists)"
    *before, last = [name.removesuffix("s").replace("_", " ") for name in names]
    return " x ".join([*(name.rpartition(" ")[0] for name in before), last])
