"""The layout of MSDialog-ResponseRank (Yang et al., SIGIR 2018): a context and ten replies, one of them true,
a line for each reply.

A context ends with a user's turn that an agent answers directly and that is not the conversation's first. The
nine other replies are drawn from the thousand agents' utterances that BM25 ranks highest for the true one,
without those of the test side. Both rules are those of the authors' MultiTurnARSelectionDataCreation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from edgen.domains.retrieval.candidates import CandidatePool, Key, RightAnswers, make_key
from edgen.domains.retrieval.export import REASONS
from edgen.domains.retrieval.export.msdialog import (
    WHO,
    AgentOptions,
    find_actor,
    find_agent,
    join_lines,
    list_context,
)
from edgen.domains.retrieval.export.sides import DevShare, Side, Sides
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.families import Role
from edgen.plugin.formats import AcceptedConversation, Patterns, RowFiles, Staging, Tried

NEGATIVES = 9
FEWEST_TURNS, MOST_TURNS = 3, 99
LENGTHS = range(3, 401)  # words of a wrong reply
NAMES: dict[Side, str] = {"train": "train", "dev": "valid", "test": "test"}  # names of the files


class RankOptions(AgentOptions, frozen=True, kw_only=True):
    """The options of the format."""

    dev: DevShare = 0.1


class ResponseContext(NamedTuple):
    """A context, its digest, the true reply, and other right replies."""

    context: list[str]
    key: Key
    reply: str
    others: list[str]
    turn: int


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield ten rows for each context. The run is read twice: the first pass collects candidate texts and the
    right answers of each context."""
    from edgen.domains.retrieval.bm25 import Bm25
    from edgen.domains.retrieval.negatives import WrongAnswers

    options, agent = chat.options.of(RankOptions), find_agent(run, chat.options)
    sides = Sides(run, options.dev)
    candidates, answers = _collect(run, agent)
    index = Bm25((number, candidates.texts[number]) for number in candidates.list_group("train"))
    seen: set[Key] = set()
    for conversation in run.conversations():
        if not FEWEST_TURNS <= len(conversation.candidate.turns) <= MOST_TURNS:
            yield LeftOut("turns")
            continue
        cuts = list(_list_cuts(conversation, agent))
        if not cuts:
            yield LeftOut("no_cut")
        for cut in cuts:
            if cut.key in seen:
                yield LeftOut("same_context")
                continue
            seen.add(cut.key)
            among = index.find_best(cut.reply)
            if among is None:
                yield LeftOut("stop_words")
                continue
            right = [candidates.texts[number] for number in answers.of(cut.key)]
            seed = f"{run.job.seed}/negatives/{conversation.candidate.id}/{cut.turn}"
            wrong = WrongAnswers(candidates, right, NEGATIVES, seed, LENGTHS)
            wrong.draw(among)
            if not wrong.enough:
                yield LeftOut("small_pool")
                continue
            whole = {"side": sides.of(conversation), "context": "\t".join(cut.context)}
            yield Row(conversation.split, {**whole, "label": 1, "reply": cut.reply})
            for text in wrong.texts:
                yield Row(conversation.split, {**whole, "label": 0, "reply": text})


def _collect(run: RunReader, agent: Role) -> tuple[CandidatePool, RightAnswers]:
    candidates, answers = CandidatePool(), RightAnswers()
    for conversation in run.conversations():
        groups = [conversation.split] if conversation.split == "train" else []
        for turn in conversation.candidate.turns:
            if find_actor(turn, agent) == "Agent":
                candidates.add(join_lines(turn.text), *groups)
        for cut in _list_cuts(conversation, agent):
            said = (cut.reply, *cut.others)
            answers.add(cut.key, [candidates.add(text) for text in said])
    return candidates, answers


def _list_cuts(conversation: AcceptedConversation, agent: Role) -> Iterator[ResponseContext]:
    """Yield the user's turns, without the conversation's first, that an agent answers directly."""
    turns = conversation.candidate.turns
    actors = [find_actor(turn, agent) for turn in turns]
    for place in range(1, len(turns) - 1):
        if actors[place : place + 2] == ["User", "Agent"]:
            reply, context = turns[place + 1], list_context(turns, place)
            others = [join_lines(other.text) for other in reply.alternatives]
            yield ResponseContext(context, make_key(context), join_lines(reply.text), others, place + 1)


class RankFiles(RowFiles):
    """A writer of train.txt, valid.txt and test.txt, even if they stay empty. A line per candidate has label,
    utterances and reply, separated by tabs."""

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self.counts: Counter[Side] = Counter()
        self._lines = {side: self.open(self.folder / f"{name}.txt") for side, name in NAMES.items()}

    def add(self, row: Row) -> None:
        """Write a candidate's line."""
        value = row.value
        self.counts[value["side"]] += value["label"]
        line = f"{value['label']}\t{value['context']}\t <<<AGENT>>>: {value['reply']}\n"
        self._lines[value["side"]].write(line.encode())

    def finish(self) -> Patterns:
        """Finish the files. `datasets` cannot load them: the number of columns varies with the context."""
        self._open.close()
        empty = [f"{name}.txt" for side, name in NAMES.items() if not self.counts[side]]
        if empty:
            what = f"There is no context for {' and '.join(empty)}."
            self.remarks = (
                f"{what} Generate more conversations, or raise `split.test` of the job or --dev.",
            )
        return {}

    def notes(self) -> Iterator[str]:
        """Yield a sentence with the number of contexts in each file."""
        counts = ", ".join(f"{self.counts[side]:,} {name}" for side, name in NAMES.items())
        yield f"Contexts: {counts}; those of valid are a part of the run's train side and counted there."


FORMAT = Format(
    name="msdialog-responserank",
    summary="Contexts with ten candidate replies, one of them true, as MSDialog-ResponseRank has them.",
    rows=rows,
    card=FormatCard(
        reasons={
            **REASONS,
            "turns": "the conversation has fewer or more turns than this format holds",
            "no_cut": "no turn of a user after the first turn is answered by an agent at once",
            "stop_words": "the true reply has only stop words, so BM25 cannot look up others by it",
        },
        notes=(
            WHO,
            (
                "The ten lines of a context stand together, the true reply first: shuffle them before you rank "
                "with a model that breaks ties by place."
            ),
            (
                "The nine are drawn without replacement from the 1,000 replies of agents on the train side "
                "that BM25 (k1 1.2, b 0.75) finds for the true one, of 3 to 400 words; equal replies are "
                "indexed once. None is nearly equal to a text that follows the context anywhere in the run. "
                "A context has no lines if its reply has only stop words, or if BM25 finds fewer than nine "
                "others."
            ),
            "Conversations of 3 to 99 turns have contexts. A repeated context is left out.",
            (
                "valid.txt is a share of the train side (--dev), in whole groups of the run's split; its replies "
                "may be drawn, those of test are not."
            ),
        ),
        tags=("response-ranking", "retrieval"),
        tasks=("text-ranking",),
        tried=(
            Tried(
                library="NeuralResponseRanking",
                version="d1a4b33",
                day="2026-11-27",
                what="the preparation of its preprocess_dmn.py, under Python 2.7.18, took every line of train, "
                "valid and test, found every context of 2 to 11 turns with ten candidates and filtered none.",
            ),
        ),
    ),
    tables={
        "label": "1 for the true reply, 0 for the nine others",
        "context": "2 to 11 utterances, a column each: the conversation's first one, up to nine before the "
        "user's turn, and that turn",
        "reply": "the candidate, after a space and `<<<AGENT>>>: `",
    },
    use="""\
for line in open("THIS_FOLDER/train.txt", encoding="utf-8"):
    label, *context, reply = line.rstrip("\\n").split("\\t")""",
    needs=("bm25s",),
    layout=FormatLayout(files=RankFiles),
    chat=False,
    Options=RankOptions,
)
