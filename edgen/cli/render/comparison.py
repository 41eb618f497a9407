"""A comparison of arms, with where it is stored."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from edgen.api.comparing import StoredComparison
from edgen.evaluation.comparison.render import render_comparison as render_lines


def render_comparison(found: StoredComparison, *, prompts: bool) -> Iterator[str]:
    yield from render_lines(found.comparison, max(80, min(120, shutil.get_terminal_size().columns)))
    if prompts and not found.comparison.prompts:
        yield "prompts    those of the first scenario are the same in all arms"
    yield f"stored     {found.file}"
