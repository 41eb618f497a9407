"""The CPU of reading one reply, for every layout of `bench.replies` and `bench.reply_layouts`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from bench.replies import LAYOUTS
from bench.reply_layouts import LISTED, OWN
from edgen.reading import read
from edgen.reading.conversation import read_unknown
from edgen.reading.learned import layouts_of
from edgen.reading.roles import TEACHER_STUDENT

REPLIES = 20  # of a layout
ROUNDS = 25
MOST = 60  # µs


def microseconds(read: Callable[[str], object], texts: Sequence[str]) -> float:
    """Return the mean CPU of reading one of the texts: of each the least of many rounds, which other work disturbs
    least."""
    least = [float("inf")] * len(texts)
    for _ in range(ROUNDS):
        for number, text in enumerate(texts):
            started = time.thread_time_ns()
            read(text)
            least[number] = min(least[number], time.thread_time_ns() - started)
    return sum(least) / len(least) / 1000


def reading(folder: Path) -> None:  # noqa: ARG001 - nothing is written
    """Print what a reading of 16 turns takes in each layout once it is learned, and what the general reader takes."""
    layouts = {**LAYOUTS, **LISTED, **OWN}
    took = {}
    for name, layout in layouts.items():
        layouts_of.cache_clear()
        texts = [layout(number) for number in range(REPLIES)]
        took[name] = (
            microseconds(read, texts),
            microseconds(lambda text: read_unknown(text, TEACHER_STUDENT), texts),
        )
    for name, (known, unknown) in sorted(took.items(), key=lambda item: item[1]):
        print(f"  {name}: {known:.0f} µs; by the general reader {unknown:.0f} µs")
    for what, times in zip(
        ("read", "read by the general reader"), zip(*took.values(), strict=True), strict=True
    ):
        within = sum(time_ <= MOST for time_ in times)
        print(
            f"  {what}: median {median(times):.0f} µs, {within} of {len(times)} layouts take at most {MOST} µs"
        )
