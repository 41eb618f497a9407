"""Intent prediction (Qu et al., CHIIR 2019): one line per turn with its intents as one label, a blank line
after each dialog.

Of several labels the uninformative ones are dropped: greetings and gratitude, others, junk, in this order and
while others remain. The 32 most frequent combinations are kept; a turn with another one keeps one of its
labels, at random.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from edgen.core.digest import hash64
from edgen.domains.retrieval.export.msdialog import LABELS, WHO, actor_of, one_line, tags_of
from edgen.plugin import Chat, Format, Item, LeftOut, Row, RunReader
from edgen.plugin.formats import SplitFiles, WriteRow

DROPPED = ("GG", "O", "JK")
KEPT = 32

Combination = tuple[str, ...]


def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
    """Yield a row for each turn with labels. The run is read twice, first to count combinations."""
    counts = Counter(
        combination(tags)
        for conversation in run.conversations()
        for turn in conversation.candidate.turns
        if (tags := tags_of(turn))
    )
    kept = frequent(counts)
    for conversation in run.conversations():
        one = conversation.candidate
        for place, turn in enumerate(one.turns):
            tags = tags_of(turn)
            if not tags:
                yield LeftOut("no_labels")
                continue
            labels = combination(tags)
            if labels not in kept:
                rng = random.Random(hash64(f"{run.job.seed}/intent/{one.id}/{place}"))  # noqa: S311 - can be made again
                labels = (rng.choice(labels),)
            value = {
                "labels": "_".join(labels),
                "utterance": one_line(turn.text),
                "actor": actor_of(turn, chat),
            }
            yield Row(conversation.split, {"dialog": one.id, **value})


def combination(tags: Iterable[str]) -> Combination:
    """Return the remaining labels, sorted."""
    left = {*tags}
    for tag in DROPPED:
        if len(left) > 1:
            left.discard(tag)
    return tuple(sorted(left))


def frequent(counts: Counter[Combination]) -> frozenset[Combination]:
    """Return the KEPT most frequent; equally frequent ones in alphabetical order."""
    ordered = sorted(counts, key=lambda labels: (-counts[labels], labels))
    return frozenset(ordered[:KEPT])


class IntentFiles(SplitFiles):
    """Files with one line per turn and a blank line between dialogs; `datasets` cannot load them."""

    suffix = "tsv"
    is_table = False

    def begin(self, path: Path) -> WriteRow:
        """Begin the lines of a split."""
        write, last = self.open(path).write, None

        def line(value: dict[str, Any]) -> None:
            nonlocal last
            if last not in (None, value["dialog"]):
                write(b"\n")
            last = value["dialog"]
            write(f"{value['labels']}\t{value['utterance']}\t{value['actor']}\n".encode())

        return line


FORMAT = Format(
    name="intent-prediction",
    summary="A line for each turn with its intents as one label, dialog by dialog, as UserIntentPrediction reads them.",
    rows=rows,
    tables={
        "labels": "the turn's labels, sorted and joined by `_`",
        "utterance": "what is said, on one line",
        "actor": "User or Agent",
    },
    use="""\
text = open("THIS_FOLDER/train.tsv", encoding="utf-8").read()
dialogs = [[line.split("\\t") for line in one.splitlines()] for one in text.split("\\n\\n")]
# edgen score THIS_FOLDER/test.tsv PREDICTED.tsv""",
    needs=("labels",),
    files=IntentFiles,
    chat=False,
    options=("agent",),
    notes=(
        WHO,
        LABELS,
        (
            "GG, O and JK are dropped, in this order, while another label remains; the 32 most frequent combinations of the run "
            "stay as they are, and a turn with another one keeps one of its labels, drawn by the run's seed."
        ),
        "Turns without labels are left out.",
    ),
    tags=("intent-classification",),
    tasks=("text-classification",),
)
