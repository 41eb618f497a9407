"""The CPU of reading one reply, for every layout of `bench.replies` and `bench.reply_layouts`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from bench.replies import LAYOUTS
from bench.reply_layouts import LISTED, OWN
from edgen.reading import read

REPLIES = 20  # of a layout
ROUNDS = 25
MOST = 60  # µs


def microseconds(texts: Sequence[str]) -> float:
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
    """Print what a reading of 16 turns takes in each layout, the slowest last."""
    layouts = {**LAYOUTS, **LISTED, **OWN}
    took = {name: microseconds([layouts[name](n) for n in range(REPLIES)]) for name in layouts}
    for name, time_ in sorted(took.items(), key=lambda item: item[1]):
        print(f"  {name}: {time_:.0f} µs")
    within = sum(time_ <= MOST for time_ in took.values())
    print(f"  {within} of {len(took)} layouts take at most {MOST} µs")
