"""The CPU of reading one reply, for every layout of `bench.replies` and of `bench.*_layouts`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from bench.asked_layouts import ASKED
from bench.fresh_layouts import FRESH
from bench.replies import LAYOUTS
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


def microseconds(readers: Sequence[Callable[[str], object]], texts: Sequence[Sequence[str]]) -> list[float]:
    """Return the mean CPU of each reader for one of its texts.

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
    return [sum(times) / REPLIES / 1000 for times in least]


def measure_layouts() -> tuple[dict[str, tuple[float, float]], list[float]]:
    """Return the yardsticks that a reply of 16 turns takes in each layout, learned and not, and the time of
    the yardstick in the rounds of each, in µs."""
    published = [LAYOUTS["published"](number) for number in range(REPLIES)]
    units = []
    took: dict[str, tuple[float, float]] = {}
    find_layouts.cache_clear()
    for name, layout in EVERY.items():
        texts = [layout(number) for number in range(REPLIES)]
        for text in texts[:3]:
            read(text)
        unit, known, unknown = microseconds(
            (yardstick, read, lambda text: read_unknown(text, TEACHER_STUDENT)), (published, texts, texts)
        )
        units.append(unit)
        took[name] = (known / unit, unknown / unit)
    return took, units


def reading(folder: Path) -> None:  # noqa: ARG001 - nothing is written
    """Measure the reading of 16 turns in each layout, in units of the yardstick of the same rounds.

    Measured for the first replies to a prompt, before a layout is learned, and for later ones. All layouts
    are read in one process.
    """
    took, units = measure_layouts()
    for name, (known, unknown) in sorted(took.items(), key=lambda item: item[1]):
        invented = " (invented)" if name in INVENTED else ""
        print(f"  {name}{invented}: {known:.2f} yardsticks; before it is learned {unknown:.2f}")
    print(
        f"  the yardstick: {min(units):.1f} µs here, {median(units):.1f} in the median; {QUIET} on a quiet core"
    )
    for what, times in zip(("learned", "not learned yet"), zip(*took.values(), strict=True), strict=True):
        within = sum(time_ * QUIET <= MOST for time_ in times)
        print(
            f"  {what}: median {median(times):.2f} yardsticks, worst {max(times):.2f}; {within} of {len(times)} layouts"
            f" take at most {MOST} µs on a quiet core"
        )
