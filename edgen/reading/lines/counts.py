"""Numbers that count the turns and stand before or after their texts: `(1) Good morning!`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from edgen.core.text import compile_later
from edgen.reading.lines.line import RoleLine

# Before or after a text: `(1) `, `#1: `, ` [1]`.
_COUNT = compile_later(r"\s*(?:[(\[](\d{1,3})[)\]]|\#(\d{1,3}))[:.]?[ ]+(?=\S)")
_LAST_COUNT = compile_later(r"[ ][(\[](\d{1,3})[)\]](?=[^\S\n]*(?:\n|\Z))")
_MOST_COUNT = 8  # characters


def drop_counts(lines: Sequence[RoleLine]) -> None:
    """Remove the numbers that count the texts, at the beginning of each: `(1) `."""
    counts = [_COUNT.match(line.body) for line in lines]
    if _count_up(counts):
        for line, count in zip(lines, counts, strict=True):
            line.body = line.body[count.end() :] if count else line.body


def drop_last_counts(lines: Sequence[RoleLine]) -> None:
    """Remove the numbers that count the texts, at the end of each: ` [1]`."""
    *bodies, last = [line.body.rstrip() for line in lines]
    counts = [_LAST_COUNT.search(body, max(0, len(body) - _MOST_COUNT)) for body in bodies]
    counts.append(_LAST_COUNT.search(last))
    if _count_up(counts):
        for line, count in zip(lines, counts, strict=True):
            line.body = line.body[: count.start()] + line.body[count.end() :] if count else line.body


def _count_up(counts: Sequence[re.Match[str] | None]) -> bool:
    """Return whether numbers count turns or pairs of turns, one by one."""
    numbers = [int(count[count.lastindex or 1]) for count in counts if count]
    if len(numbers) < len(counts):
        return False
    steps = [after - before for before, after in itertools.pairwise(numbers)]
    return {*steps} == {1} or ({*steps[::2]}, {*steps[1::2]}) in (({0}, {1}), ({1}, {0}))
