"""python -m bench.released FILE: `bench.reading` with the words of released conversations.

FILE is a file of Education Dialogue, as its authors released it. Its exchanges of a teacher and a student,
drawn by number, take the place of the sentences of `bench.replies` in every layout. They hold quotations,
colons and the other speaker's name more often.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench import replies
from bench.reading import MOST, measure_layouts

_DEBRIS = re.compile(
    r"\s*\[?end of conversation\W*\Z|[\"\s,\\]+\Z", re.IGNORECASE
)  # of the reader that made the file


def list_exchanges(file: Path) -> list[replies.Exchange]:
    """Return the turns of a teacher with the student's next turn, without debris."""
    found = []
    for one in json.loads(file.read_text("utf-8")):
        turns = [(turn["role"], _DEBRIS.sub("", turn["text"]).strip()) for turn in one["conversation"]]
        for first, second in pairwise(turns):
            if (first[0], second[0]) == ("Teacher", "Student") and first[1] and second[1]:
                found.append((first, second))
    return found


def main(file: Path) -> None:
    replies.exchanges[:] = list_exchanges(file)
    took, units = measure_layouts()
    print(f"{len(replies.exchanges)} exchanges; the yardstick: {median(units):.1f} µs in the median")
    for what, times in zip(("learned", "not learned yet"), zip(*took.values(), strict=True), strict=True):
        each = [time_ * unit for time_, unit in zip(times, units, strict=True)]
        within = sum(one <= MOST for one in each)
        print(
            f"  {what}: median {median(times):.2f} yardsticks, {median(each):.0f} µs here; worst {max(times):.2f}; "
            f"{within} of {len(each)} layouts took at most {MOST} µs here"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
