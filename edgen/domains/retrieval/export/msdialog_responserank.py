"""The layout of MSDialog-ResponseRank (Yang et al., SIGIR 2018): a context and ten replies, one of them true,
one per line.

Contexts end with a user's turn, not the user's first, that an agent answers directly. The nine others are
drawn from the thousand replies that BM25 finds for the true one among agents' utterances on the train side.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from edgen.domains.retrieval.candidates import Candidates, Key, RightAnswers, key_of
from edgen.domains.retrieval.export import REASONS
from edgen.domains.retrieval.export.msdialog import WHO, actor_of, context_of, one_line
from edgen.export.format import Tried
from edgen.plugin import AcceptedConversation, Chat, Format, Item, LeftOut, Row, RunReader
from edgen.plugin.formats import SplitFiles, WriteRow

NEGATIVES = 9
FEWEST_TURNS, MOST_TURNS = 3, 99
LENGTHS = range(3, 401)  # words of a wrong reply


class Cut(NamedTuple):
    """A context, its digest, the true reply, and other right replies."""

    context: list[str]
    key: Key
    reply: str
    others: list[str]
    turn: int


def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
    """Ten rows for each context. The run is read twice: what may be drawn, and what is right where, comes
    first."""
    from edgen.domains.retrieval.bm25 import Bm25
    from edgen.domains.retrieval.negatives import WrongAnswers

    candidates, answers = _collect(run, chat)
    index = Bm25((number, candidates.texts[number]) for number in candidates.among("train"))
    seen: set[Key] = set()
    for conversation in run.conversations():
        if not FEWEST_TURNS <= len(conversation.candidate.turns) <= MOST_TURNS:
            yield LeftOut("turns")
            continue
        cuts = list(_cuts(conversation, chat))
        if not cuts:
            yield LeftOut("no_cut")
        for cut in cuts:
            if cut.key in seen:
                yield LeftOut("same_context")
                continue
            seen.add(cut.key)
            among = index.best(cut.reply)
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
            context = "\t".join(cut.context)
            yield Row(conversation.split, {"label": 1, "context": context, "reply": cut.reply})
            for text in wrong.texts:
                yield Row(conversation.split, {"label": 0, "context": context, "reply": text})


def _collect(run: RunReader, chat: Chat) -> tuple[Candidates, RightAnswers]:
    candidates, answers = Candidates(), RightAnswers()
    for conversation in run.conversations():
        groups = [conversation.split] if conversation.split == "train" else []
        for turn in conversation.candidate.turns:
            if actor_of(turn, chat) == "Agent":
                candidates.add(one_line(turn.text), *groups)
        for cut in _cuts(conversation, chat):
            said = (cut.reply, *cut.others)
            answers.add(cut.key, [candidates.add(text) for text in said])
    return candidates, answers


def _cuts(conversation: AcceptedConversation, chat: Chat) -> Iterator[Cut]:
    """Yield the user's turns, except the first, that an agent answers at once."""
    turns = conversation.candidate.turns
    users = [place for place, turn in enumerate(turns) if actor_of(turn, chat) == "User"]
    for place in users[1:]:
        if place + 1 < len(turns) and actor_of(reply := turns[place + 1], chat) == "Agent":
            context = context_of(turns, place)
            others = [one_line(other.text) for other in reply.alternatives]
            yield Cut(context, key_of(context), one_line(reply.text), others, place + 1)


class RankFiles(SplitFiles):
    """Files with one line per candidate: label, utterances and reply, separated by tabs. The number of
    columns varies with the context, so `datasets` cannot load them."""

    suffix = "txt"
    is_table = False

    def begin(self, path: Path) -> WriteRow:
        """Begin the lines of a split."""
        write = self.open(path).write

        def line(value: dict[str, Any]) -> int:
            return write(f"{value['label']}\t{value['context']}\t <<<AGENT>>>: {value['reply']}\n".encode())

        return line


FORMAT = Format(
    name="msdialog-responserank",
    summary="Contexts with ten candidate replies, one of them true, as MSDialog-ResponseRank has them.",
    rows=rows,
    reasons={
        **REASONS,
        "turns": "the conversation has fewer or more turns than this format holds",
        "no_cut": "no turn of a user but the first is answered by an agent at once",
        "stop_words": "the true reply has nothing but stop words, so that nothing can be looked up by it",
    },
    tables={
        "label": "1 for the true reply, 0 for the nine others",
        "context": "the utterances, a column each: the first one and up to nine that end with the user's turn",
        "reply": "the candidate, behind a space and `<<<AGENT>>>: `",
    },
    use="""\
for line in open("THIS_FOLDER/train.txt", encoding="utf-8"):
    label, *context, reply = line.rstrip("\\n").split("\\t")""",
    needs=("bm25s",),
    files=RankFiles,
    chat=False,
    options=("agent",),
    notes=(
        WHO,
        "The ten lines of a context stand together, the true reply first: shuffle them before you rank with a model that breaks ties by place.",
        (
            "The nine are drawn without replacement from the 1,000 replies of agents on the train side that BM25 (k1 1.2, b 0.75) finds "
            "for the true one, of 3 to 400 words; equal replies are indexed once. None says nearly the same as what follows the "
            "context anywhere in the run. A reply of stop words alone, and one for which nine cannot be found, has no lines."
        ),
        "Conversations of 3 to 99 turns have contexts, and a context that is there already has no second one.",
        "There is no validation file; take one from the end of the train file, whole tens of lines.",
    ),
    tags=("response-ranking", "retrieval"),
    tasks=("text-ranking",),
    tried=(
        Tried(
            library="NeuralResponseRanking",
            version="d1a4b33",
            day="2026-11-22",
            what="the preparation of its preprocess_dmn.py, under Python 2.7.18, took every line, found every context with ten candidates and filtered none.",
        ),
    ),
)
