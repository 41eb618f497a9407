"""What a space is like: its sizes, cells and weights, and how many conversations a balanced design needs."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from edgen.planning.allowed_files import unlimited
from edgen.planning.sizes import conversations_needed, strata
from edgen.space import Dimension, Entry, content_sha256, load_space
from edgen.space.cells import AllowedCells
from edgen.space.conditions import parents
from edgen.space.exercises.check import all_values, check_exercises
from edgen.space.exercises.grammar import Grammar
from edgen.space.exercises.model import Exercise

_PER_CELL = (1, 2, 5)
_EXTREMES = 2  # values shown as the most and the least probable ones


def describe_space(name: str, per_cell: int | None = None, exercises: int = 3) -> dict[str, Any]:
    """The facts of the space that a shipped name or a file means, as `edgen space show --json` prints them.

    `per_cell`: conversations of each cell. `cells` are those that are allowed, None where they cannot be counted;
    `balanced`: how many conversations a balanced design needs; where something is ruled out, of whole cells only.
    `cells_by_value`: how many allowed cells the rarest and the most frequent value of each dimension has, which is how
    often a value comes in a pass of a balanced design. `exercises`: how many of each tier are shown, spread over all of
    them. Raises SpaceError.
    """
    path = unlimited().require("preference_space", name, "space")
    space = load_space(path)
    cells, each = AllowedCells(space), _PER_CELL if per_cell is None else (per_cell,)
    counts = zip(space.names, cells.counts_by_entry(), strict=True) if cells.linked and cells.count else None
    return {
        "space": space.name,
        "file": str(path),
        "description": space.description,
        "source": space.source,
        "duplicates": space.duplicates,
        "content_sha256": content_sha256(space),
        "knowledge": None if space.knowledge is None else space.knowledge.file,
        "dimensions": {one.name: _describe(one) for one in space.dimensions},
        "roles": {role.name: list(role.sees) for role in space.roles},
        "exclude": [{name: list(values) for name, values in one.items()} for one in space.exclude],
        "product": space.product,
        "cells": cells.count,
        "balanced": [
            {"by": list(names), "cells": many, "needed": _needed(many, cells.count, each)}
            for names, many in ([(space.names, cells.count)] if cells.linked else strata(space))
            if many is not None and cells.count is not None
        ],
        "cells_by_value": None
        if counts is None
        else {name: {"least": min(of), "most": max(of)} for name, of in counts},
        "exercises": None if space.exercises is None else _describe_exercises(Grammar(space), exercises),
    }


def _describe_exercises(grammar: Grammar, shown: int) -> dict[str, Any]:
    """Each tier's number of exercises, what they are made of, and some of them."""
    return {
        name: {
            "exercises": count,
            "concepts": list(grammar.tiers[name].tier.concepts),
            "shown": [msgspec.to_builtins(one) for one in example_exercises(grammar, name, shown)],
        }
        for name, count in check_exercises(grammar).items()
    }


def example_exercises(grammar: Grammar, tier: str, count: int) -> list[Exercise]:
    """So many exercises of a tier, the same ones at each call, spread over all of them."""
    every = list(all_values(grammar, tier))
    places = sorted(random.Random(0).sample(range(len(every)), min(count, len(every))))  # noqa: S311 - an example
    return [grammar.tiers[tier].make(every[place]) for place in places]


def _describe(dimension: Dimension) -> dict[str, Any]:
    return {
        "values": len(dimension.entries),
        "label": dimension.label,
        **_weights(dimension.entries),
        "fields": {name: sum(name in one.fields for one in dimension.entries) for name in dimension.fields},
        "conditional": sum(bool(entry.when) for entry in dimension.entries),
        "depends_on": list(parents(dimension)),
    }


def _needed(strata: int, cells: int, per_cell: tuple[int, ...]) -> list[dict[str, int]]:
    return [
        {"per_cell": k, "on_average": k * strata, "in_each": conversations_needed(strata, cells, k)}
        for k in per_cell
    ]


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
