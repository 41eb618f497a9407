"""The facts of a space: sizes, cells and weights, the counts of N conversations, and the needs of a
design."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from edgen.core.errors import UsageError
from edgen.planning.allowed_files import allow_all_files
from edgen.planning.sizes import compute_needed_conversations, count_values, list_strata
from edgen.space import Dimension, Entry, Space, digest_content, load_space
from edgen.space.cells import AllowedCells
from edgen.space.conditions import list_parents
from edgen.space.model import find_section, iterate_sections, list_section_names
from edgen.space.sampling import Design

_PER_CELL = (1, 2, 5)
_DESIGNS: tuple[Design, ...] = ("even", "balanced", "random")
_EXTREMES = 2  # values shown as the most and the least probable ones


def describe_space(
    name: str, per_cell: int | None = None, examples: int = 3, conversations: int = 200
) -> dict[str, Any]:
    """Return the facts of a space, a shipped name or a file, in the form of `edgen space show --json`.

    `conversations`: the number of scenarios for `gives`, which states by design and dimension how often the
    rarest and the most frequent value occur (`least`, `most`), and the largest difference of a count from the
    value's share by weight (`off`). `per_cell`: conversations of each cell. `cells`: the number of allowed
    cells, None if they cannot be counted. `balanced`: the number of conversations that a balanced design
    needs; with exclusions, only whole cells. `cells_by_value`: the number of allowed cells of the rarest and
    of the most frequent value of each dimension, which is how often a value occurs in a pass of a balanced
    design. `examples`: the number of examples of each section.

    Raises SpaceError.
    """
    path = allow_all_files().require("preference_space", name, "space")
    space = load_space(path)
    cells, each = AllowedCells(space), _PER_CELL if per_cell is None else (per_cell,)
    counts = zip(space.names, cells.counts_by_entry(), strict=True) if cells.linked and cells.count else None
    return {
        "space": space.name,
        "file": str(path),
        "description": space.description,
        "source": space.source,
        "duplicates": space.duplicates,
        "content_sha256": digest_content(space),
        "knowledge": None if space.knowledge is None else space.knowledge.file,
        "dimensions": {one.name: _describe(one) for one in space.dimensions},
        "roles": {role.name: list(role.sees) for role in space.roles},
        "exclude": [{name: list(values) for name, values in one.items()} for one in space.exclude],
        "product": space.product,
        "cells": cells.count,
        "balanced": [
            {"by": list(names), "cells": many, "needed": _count_needed(many, cells.count, each)}
            for names, many in ([(space.names, cells.count)] if cells.linked else list_strata(space))
            if many is not None and cells.count is not None
        ],
        "gives": {
            "conversations": conversations,
            "designs": {design: _describe_counts(space, design, conversations) for design in _DESIGNS},
        },
        "cells_by_value": None
        if counts is None
        else {name: {"least": min(of), "most": max(of)} for name, of in counts},
        **{
            key: find_section(key).describe(space, examples) if key in space.sections else None
            for key in list_section_names()
        },
    }


def draw_examples(name: str, folder: Path, examples: int) -> tuple[int, Path]:
    """Draw examples of a space's sections into a new folder. Return the number of pictures, and the page that
    shows them. Raises SpaceError, UsageError."""
    space = load_space(allow_all_files().require("preference_space", name, "space"))
    for one, _ in iterate_sections(space):
        if one.drawn:
            return one.draw(space, folder, examples)
    drawn = (
        " and ".join(name for name in list_section_names() if find_section(name).drawn)
        or "sections that a domain adds"
    )
    raise UsageError(
        f"{space.name}: nothing in it can be drawn; pictures belong to {drawn} (docs/spaces.md)."
    )


def _describe_counts(space: Space, design: Design, conversations: int) -> dict[str, dict[str, float]]:
    """Return how evenly the values of each dimension occur among the first scenarios with seed 0."""
    found = {}
    for name, counts in count_values(space, design, conversations).items():
        entries = space[name].entries
        weights: Counter[str] = Counter()
        for entry in entries:  # a value may be listed more than once
            weights[entry.value] += entry.weight  # type: ignore[assignment]
        total = sum(weights.values())
        off = max(abs(counts[value] - conversations * weight / total) for value, weight in weights.items())
        found[name] = {"least": min(counts.values()), "most": max(counts.values()), "off": round(off, 3)}
    return found


def _describe(dimension: Dimension) -> dict[str, Any]:
    return {
        "values": len(dimension.entries),
        "label": dimension.label,
        **_describe_weights(dimension.entries),
        "fields": {name: sum(name in one.fields for one in dimension.entries) for name in dimension.fields},
        "conditional": sum(bool(entry.when) for entry in dimension.entries),
        "depends_on": list(list_parents(dimension)),
    }


def _count_needed(strata: int, cells: int, per_cell: tuple[int, ...]) -> list[dict[str, int]]:
    return [
        {"per_cell": k, "on_average": k * strata, "in_each": compute_needed_conversations(strata, cells, k)}
        for k in per_cell
    ]


def _describe_weights(entries: tuple[Entry, ...]) -> dict[str, Any]:
    """Return whether all entries have equal weights; if not, the most and the least probable values with
    their probabilities."""
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
