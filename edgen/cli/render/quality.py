"""The qualities of a data set, an arm after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from edgen.evaluation.measuring import Quality
from edgen.evaluation.render import render

Qualities = Mapping[str, Quality]


def quality_as_json(found: Qualities) -> dict[str, Any]:
    """One quality, or those of the arms by name."""
    plain = {arm: quality.as_json() for arm, quality in found.items()}
    return plain.get("", {"arms": plain})


def render_qualities(found: Qualities, only: Collection[str] | None) -> Iterator[str]:
    for number, quality in enumerate(found.values()):
        if number:
            yield from ("", "═" * 78, "")
        yield from render(quality, only)
