"""Intent prediction (Qu et al., CHIIR 2019): one line per turn with its intents as one label, a blank line
after each dialog.

Of several labels, the uninformative ones are dropped while others remain: first greetings and gratitude, then
others, then junk. The 32 most frequent combinations are kept. A turn with a rarer combination keeps one of
its labels, at random.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from edgen.domains.retrieval.export.intent_features import FEATURES, Features
from edgen.domains.retrieval.export.msdialog import (
    LABELS,
    TIES,
    WHO,
    AgentOptions,
    find_actor,
    find_agent,
    find_tied_turns,
    join_lines,
    list_tags,
)
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.families import Role
from edgen.plugin.formats import AcceptedConversation, SplitFiles, Staging, Tried, WriteRow
from edgen.plugin.texts import hash64

DROPPED = ("GG", "O", "JK")
KEPT = 32

Combination = tuple[str, ...]


class IntentOptions(AgentOptions, frozen=True, kw_only=True):
    """Options of the format."""

    features: Annotated[
        Literal["none", "all", "content", "structural", "sentiment"],
        Meta(
            description="Write features of the utterances next to them: all 24 of the intent paper (Qu et "
            "al., CHIIR 2019), or those of one group."
        ),
    ] = "none"

    @property
    def columns(self) -> list[int]:
        """The places of the chosen features in FEATURES."""
        chosen = self.features
        return [n for n, group in enumerate(FEATURES.values()) if chosen in ("all", group)]


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row for each turn with labels. The run is read twice, first to count combinations and words."""
    options, agent = chat.options.of(IntentOptions), find_agent(run, chat.options)
    features = Features() if options.columns else None
    counts: Counter[Combination] = Counter()
    for turn in (turn for conversation in run.conversations() for turn in conversation.candidate.turns):
        if tags := list_tags(turn):
            counts[make_combination(tags)] += 1
        if features is not None:
            features.add(turn.text)
    kept = select_frequent(counts)
    for conversation in run.conversations():
        found = [*_list_turns(conversation, run, agent, kept)]
        labelled = [one for one in found if isinstance(one, dict)]
        if features is not None:
            told = features.of([one["utterance"] for one in labelled], [one["actor"] for one in labelled])
            for one, values in zip(labelled, told, strict=True):
                one["features"] = [values[place] for place in options.columns]
        yield from (one if isinstance(one, LeftOut) else Row(conversation.split, one) for one in found)


def _list_turns(
    conversation: AcceptedConversation, run: RunReader, agent: Role, kept: frozenset[Combination]
) -> Iterator[dict[str, Any] | LeftOut]:
    """Yield the columns of each turn of a conversation."""
    one, tied = conversation.candidate, find_tied_turns(conversation, run.labels_of)
    for place, turn in enumerate(one.turns):
        tags = list_tags(turn)
        if not tags:
            yield LeftOut("ties" if place in tied else "no_labels")
            continue
        labels = make_combination(tags)
        if labels not in kept:
            rng = random.Random(hash64(f"{run.job.seed}/intent/{one.id}/{place}"))  # noqa: S311 - can be made again
            labels = (rng.choice(labels),)
        yield {
            "dialog": one.id,
            "labels": "_".join(labels),
            "utterance": join_lines(turn.text),
            "actor": find_actor(turn, agent),
        }


def make_combination(tags: Iterable[str]) -> Combination:
    """Return the labels that remain, sorted."""
    left = {*tags}
    for tag in DROPPED:
        if len(left) > 1:
            left.discard(tag)
    return tuple(sorted(left))


def select_frequent(counts: Counter[Combination]) -> frozenset[Combination]:
    """Return the KEPT most frequent combinations; ties are in alphabetical order."""
    ordered = sorted(counts, key=lambda labels: (-counts[labels], labels))
    return frozenset(ordered[:KEPT])


class IntentFiles(SplitFiles):
    """A writer of files with one line per turn and a blank line between dialogs. On request, it writes a
    second file for each with the same labels and features in the same lines. `datasets` cannot load them."""

    suffix = "tsv"
    is_table = False

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self.columns = staging.options.of(IntentOptions).columns

    def begin(self, path: Path) -> WriteRow:
        """Open a split's file; return the function that writes a row."""
        write, last = self.open(path).write, None
        write_features = self.open(path.with_stem(f"{path.stem}_features")).write if self.columns else None

        def write_line(value: dict[str, Any]) -> None:
            nonlocal last
            between = b"" if last in (None, value["dialog"]) else b"\n"
            last = value["dialog"]
            write(between + f"{value['labels']}\t{value['utterance']}\t{value['actor']}\n".encode())
            if write_features is not None:
                write_features(between + f"{value['labels']}\t{' '.join(value['features'])}\n".encode())

        return write_line

    def notes(self) -> Iterator[str]:
        """Yield a sentence with the columns of features."""
        if self.columns:
            names = [*FEATURES]
            yield (
                "The files `*_features.tsv` have a line for each line of the others: its labels, a tab, and "
                f"with blanks between: {', '.join(names[place] for place in self.columns)}."
            )
            yield FROM_OWN


FROM_OWN = (
    "Features follow the program of the intent paper (Qu et al., CHIIR 2019). Sentiment, function words and "
    "opinion words go "
    "by edgen's own lists of English words, where the paper has VADER, NLTK's stop words and Hu and Liu's "
    "lexicon."
)
FORMAT = Format(
    name="intent-prediction",
    summary="A line for each turn with its intents as one label, dialog by dialog, as UserIntentPrediction "
    "reads them.",
    rows=rows,
    tables={
        "labels": "the turn's labels, sorted and joined by `_`",
        "utterance": "the text, on one line",
        "actor": "User or Agent",
    },
    use="""\
text = open("THIS_FOLDER/train.tsv", encoding="utf-8").read()
dialogs = [[line.split("\\t") for line in one.splitlines()] for one in text.split("\\n\\n")]
# edgen score THIS_FOLDER/test.tsv PREDICTED.tsv""",
    needs=("labels",),
    layout=FormatLayout(files=IntentFiles),
    chat=False,
    Options=IntentOptions,
    card=FormatCard(
        notes=(
            WHO,
            LABELS,
            (
                "GG, O and JK are dropped, in this order, while another label remains; the 32 most frequent "
                "combinations of the run "
                "stay as they are, and a turn with another one keeps one of its labels, drawn by the run's seed."
            ),
            "Turns without labels are left out.",
        ),
        reasons=TIES,
        tags=("intent-classification",),
        tasks=("text-classification",),
        tried=(
            Tried(
                library="UserIntentPrediction",
                version="19cff54",
                day="2026-11-27",
                what="its programs for features, with edgen's word lists in the place of theirs, found the same "
                "content, structural and lexicon features in every line; VADER's three scores were not compared.",
            ),
        ),
    ),
)
