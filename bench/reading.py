"""The CPU of reading one reply, for every layout of `bench.replies` and of `bench.*_layouts`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from bench.asked_layouts import ASKED
from bench.fresh_layouts import FRESH
from bench.replies import LAYOUTS, Exchange, exchanges
from bench.reply_layouts import FURTHER, INVENTED, LISTED, OWN
from bench.unseen_layouts import UNSEEN
from bench.written_layouts import WRITTEN
from edgen.core.values import Conversation, Turn
from edgen.reading import read
from edgen.reading.conversation import read_unknown
from edgen.reading.learned.layouts import find_layouts
from edgen.reading.roles import TEACHER_STUDENT

EVERY = {**LAYOUTS, **LISTED, **OWN, **INVENTED, **FURTHER, **UNSEEN, **FRESH, **WRITTEN, **ASKED}
REPLIES = 20  # of a layout
ROUNDS = 25
MOST = 60  # µs on a quiet core
QUIET = 41  # µs that the yardstick takes on a quiet core: 1.47 times the strict form of commit 758fc9a, 28 µs

_LINE = re.compile(r'   (Teacher|Student):  "((?:[^"\\\n]|\\.)*)",?\n')
_PROBABILITY = re.compile(r'Probability:  "([0-9.]+)"')


def yardstick(text: str) -> Conversation:
    """Return the conversation in a reply in the published layout, read by one regular expression.

    Its time is the unit of the others, so that figures of a busy machine can be compared. Do not change it.
    """
    turns = []
    for role, said in _LINE.findall(text):
        said = said.replace('\\"', '"').strip()
        if not said or said.lower().startswith(("probability", "conversation")):
            raise ValueError(said)
        turns.append(Turn(role, said.removesuffix("[end of conversation]").strip()))
    found = _PROBABILITY.search(text)
    return Conversation(tuple(turns), None if found is None else float(found[1]), turns[-1].role)


def microseconds(
    readers: Sequence[Callable[[str], object]], texts: Sequence[Sequence[str]]
) -> list[list[float]]:
    """Return the CPU of each reader for each of its texts.

    It is the least of many rounds, since other work only adds time. The readers take turns, so that a busy
    machine slows all of them.
    """
    least = [[float("inf")] * REPLIES for _ in readers]
    for _ in range(ROUNDS):
        for number in range(REPLIES):
            for times, read_one, some in zip(least, readers, texts, strict=True):
                started = time.perf_counter_ns()
                read_one(some[number])
                times[number] = min(times[number], time.perf_counter_ns() - started)
    return [[time_ / 1000 for time_ in times] for times in least]


class Cost(NamedTuple):
    """The time that the replies of one layout take to read, in yardsticks."""

    known: list[float]  # of each reply, once the layout is learned
    unknown: list[float]  # before


def measure_layouts(words: Sequence[Exchange] = ()) -> tuple[dict[str, Cost], list[float]]:
    """Return the cost of replies of 16 turns in each layout, and the time of the yardstick in the rounds of
    each, in µs. `words`: exchanges in place of the benchmark's own, which the yardstick always reads."""
    published = [LAYOUTS["published"](number) for number in range(REPLIES)]
    exchanges[:] = words
    units = []
    took: dict[str, Cost] = {}
    find_layouts.cache_clear()
    for name, layout in EVERY.items():
        texts = [layout(number) for number in range(REPLIES)]
        for text in texts[:3]:
            read(text)
        one, *others = microseconds(
            (yardstick, read, lambda text: read_unknown(text, TEACHER_STUDENT)), (published, texts, texts)
        )
        units.append(unit := mean(one))
        took[name] = Cost(*[[time_ / unit for time_ in times] for times in others])
    return took, units


def summarise(took: Mapping[str, Cost], units: Sequence[float]) -> None:
    """Print the cost of layouts: the mean of a layout's replies, and the share of single replies."""
    print(
        f"  the yardstick: {min(units):.1f} µs here, {median(units):.1f} in the median; {QUIET} on a quiet core"
    )
    for what, costs in zip(("learned", "not learned yet"), zip(*took.values(), strict=True), strict=True):
        means = [*map(mean, costs)]
        every = [cost for some in costs for cost in some]
        within, single = (sum(cost * QUIET <= MOST for cost in some) for some in (means, every))
        print(
            f"  {what}: median {median(means):.2f} yardsticks, worst {max(means):.2f}; {within} of {len(means)} layouts"
            f" and {single / len(every):.1%} of replies take at most {MOST} µs on a quiet core"
        )


def reading(folder: Path) -> None:  # noqa: ARG001 - nothing is written
    """Measure the reading of 16 turns in each layout, in units of the yardstick of the same rounds.

    Measured for the first replies to a prompt, before a layout is learned, and for later ones. All layouts
    are read in one process.
    """
    took, units = measure_layouts()
    for name, cost in sorted(took.items(), key=lambda item: mean(item[1].known)):
        invented = " (invented)" if name in INVENTED else ""
        known, unknown = map(mean, cost)
        print(f"  {name}{invented}: {known:.2f} yardsticks; before it is learned {unknown:.2f}")
    summarise(took, units)
