"""The policy matrices of a comparison: from the pairs that `edgen pairs` made of the compared arms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgen.core.errors import EdgenError
from edgen.preferences.policies import PolicyCounts
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from edgen.store.several_runs import AgainstFolder, SeveralRuns


def find_policies(
    paths: Sequence[Path], labels: Sequence[str], chosen: Sequence[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the matrices of the chosen arms, none without pairs; and caveats. `labels`: of all arms of these
    runs, in their order. The runs are held."""
    folder = RunFolder(paths[0]) if len(paths) == 1 else AgainstFolder(paths)
    if not folder.pairs.exists():
        return [], []
    try:
        with RunReader(paths[0]) if len(paths) == 1 else SeveralRuns(paths) as reader:
            counts = PolicyCounts()
            for one in reader.compared():
                counts.add(one.pair)
            named = dict(zip(reader.arms, labels, strict=True)) if len(paths) > 1 else {}
            found = counts.report(reader.arms)
    except EdgenError as problem:
        return [], [f"There is no policy matrix, since the pairs cannot be read: {problem}"]
    matrices = [_of_chosen(one, named, chosen) for one in found]
    return [one for one in matrices if one["cells"]], []


def _of_chosen(matrix: dict[str, Any], named: dict[str, str], chosen: Sequence[str]) -> dict[str, Any]:
    """Return a matrix of the chosen arms, by the names that they have in the comparison."""
    cells = [
        {
            **cell,
            "row": named.get(cell["row"], cell["row"]),
            "column": named.get(cell["column"], cell["column"]),
        }
        for cell in matrix["cells"]
    ]
    kept = [cell for cell in cells if cell["row"] in chosen and cell["column"] in chosen]
    return {**matrix, "arms": list(chosen), "cells": kept}
