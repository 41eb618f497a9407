"""The formats of `edgen export`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def render_formats(run: Path, formats: Sequence[dict[str, Any]], *, paired: bool) -> Iterator[str]:
    """Every format in a line, with what it needs, and whether the run has it."""
    width = max(len(one["format"]) for one in formats)
    for one in formats:
        needs = "".join(f" Needs {need}." for need in one["needs"])
        yield f"{one['format']:<{width}}  {one['summary']}{needs}"
    if not paired:
        yield f"This run has no pairs yet: edgen pairs {run} --by oracle"
    yield f"Next: edgen export {run} --to hf -o exports/hf"
