"""Compare two folders byte for byte, after a short list of replacements."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Values that differ from run to run, replaced in every file: (pattern, replacement).
VOLATILE: tuple[tuple[re.Pattern[bytes], bytes], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC|[+-]\d\d:\d\d)?", b"<time>"),
        # progress, which a command prints as often as time allows
        (rb"^[^\n:]+: [\d,]+/[\d,]+ \xc2\xb7 [\d,.]+/s \xc2\xb7 .*\n", b""),
        # estimates from a run, which depend on the time of its calls
        (rb"(time: a call took )[\d.e-]+ s", rb"\1<seconds>"),
        # a report: how long sessions and answers took
        (rb">[\d.,]+ (?:ms|s|min) in (\d+ session)", rb"><seconds> in \1"),
        (rb"(<tr><td><time></td>(?:<td>[^<]*</td>)?)<td>[\d.,]+ (?:ms|s|min)</td>", rb"\1<seconds>"),
        (rb'aria-label="Latency of answers(?s:.*?)</details>', b"<latencies>"),
    )
)
# Files of a run that are not compared: ledgers, locks, digests (of files that name paths; `validate` checks
# them), and this tool's own.
LEFT_OUT = re.compile(r"\.db(-[a-z]+)?$|\.lock$|(^|/)digests\.json$|(^|/)places\.json$|^cpu\.tsv$")
_SHOWN = 12  # lines of a difference
_WIDTH = 240  # characters of a line of it


class Difference(NamedTuple):
    """A file that is not the same, and how."""

    path: str
    lines: list[str]


def find_files(folder: Path) -> set[str]:
    """Return the paths of the compared files below a folder, relative to it."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {path for path in paths if not LEFT_OUT.search(path)}


def normalise(content: bytes, places: list[bytes]) -> bytes:
    """Replace the values that differ from run to run: `places` are paths, the longest first."""
    for place in places:
        content = content.replace(place, b"<place>")
    for pattern, replacement in VOLATILE:
        content = pattern.sub(replacement, content)
    return content


def compare_folders(
    before: Path, now: Path, places: tuple[list[bytes], list[bytes]], under: str = ""
) -> Iterator[Difference]:
    """Yield each file that only one of two folders has, or that differs."""
    theirs, ours = find_files(before), find_files(now)
    for path in sorted(theirs | ours):
        if path not in ours or path not in theirs:
            yield Difference(under + path, ["only before" if path in theirs else "only now"])
            continue
        old, new = (before / path).read_bytes(), (now / path).read_bytes()
        if old != new:
            old, new = normalise(old, places[0]), normalise(new, places[1])
        if old != new:
            yield Difference(under + path, show_difference(old, new))


def show_difference(old: bytes, new: bytes) -> list[str]:
    """Return the first differing lines as a unified diff, long lines cut where they begin to differ."""
    a, b = (content.decode("utf-8", "replace").splitlines() for content in (old, new))
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start, end = max(first - 1, 0), first + 60
    lines = difflib.unified_diff(a[start:end], b[start:end], "before", "now", n=1, lineterm="")
    changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    cut = 0
    if first < min(len(a), len(b)):
        pairs = zip(a[first], b[first], strict=False)
        same = next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a[first]), len(b[first])))
        cut = max(same - 60, 0) if max(len(a[first]), len(b[first])) > _WIDTH else 0
    shown = [f"line {first + 1}{f', from character {cut + 1}' if cut else ''}:"]
    for line in changed[:_SHOWN]:
        text = line[1:][cut:] if line[0] in "+-" else line[1:]
        shown.append(f"{line[0]}{text[:_WIDTH]}")
    if len(changed) > _SHOWN:
        shown.append(f"({len(changed) - _SHOWN} lines more)")
    return shown
