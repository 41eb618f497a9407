"""python -m bench.released FILE: `bench.reading` with the words of released conversations.

FILE is a file of Education Dialogue, as its authors released it. Its exchanges of a teacher and a student,
drawn by number, take the place of the sentences of `bench.replies` in every layout. They hold quotations,
colons and the other speaker's name more often. The yardstick reads the benchmark's own words.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path

from bench import replies
from bench.reading import measure_layouts, summarise

_DEBRIS = re.compile(
    r"\s*\[?end of conversation\W*\Z|[\"\s,\\]+\Z", re.IGNORECASE
)  # of the reader that made the file
_ENDED = re.compile(r"end of conversation", re.IGNORECASE)


def list_exchanges(file: Path) -> list[replies.Exchange]:
    """Return the turns of a teacher with the student's next turn, without debris.

    An exchange that still holds an end marker ends its lesson, so it stands in the middle of none.
    """
    found = []
    for one in json.loads(file.read_text("utf-8")):
        turns = [(turn["role"], _DEBRIS.sub("", turn["text"]).strip()) for turn in one["conversation"]]
        for first, second in pairwise(turns):
            ended = _ENDED.search(first[1] + second[1]) is not None
            if (first[0], second[0]) == ("Teacher", "Student") and first[1] and second[1] and not ended:
                found.append((first, second))
    return found


def main(file: Path) -> None:
    words = list_exchanges(file)
    print(f"{len(words)} exchanges")
    summarise(*measure_layouts(words))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
