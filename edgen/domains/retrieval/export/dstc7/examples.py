"""The examples of a set with their candidates: the rows of the format."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgen.domains.retrieval.export.dstc7.collect import CutConversation, KnownUtterances, collect
from edgen.domains.retrieval.export.dstc7.options import Dstc7Options
from edgen.domains.retrieval.export.dstc7.pool import SharedPool
from edgen.domains.retrieval.export.dstc7.profile import Profiles, has_profile, read_knowledge
from edgen.domains.retrieval.export.dstc7.reworded import Rewordings
from edgen.domains.retrieval.export.msdialog import find_agent, join_lines
from edgen.domains.retrieval.export.sides import Side
from edgen.domains.retrieval.negatives import WrongAnswers
from edgen.domains.retrieval.submissions.truth import NONE
from edgen.plugin import Chat, LeftOut, Row, RunReader
from edgen.plugin.formats import WrittenTexts
from edgen.plugin.texts import hash64

if TYPE_CHECKING:
    from edgen.domains.retrieval.bm25 import Bm25

Candidate = dict[str, str]  # `candidate-id` and `utterance`


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row for each example, and for each text of a shared pool."""
    options = chat.options.of(Dstc7Options)
    files = read_knowledge(run) if options.subtask == 5 else {}
    known = collect(run, find_agent(run, chat.options), options)
    if options.subtask == 2:
        yield from _with_shared_pool(known)
    elif options.subtask == 3:
        yield from _with_paraphrases(known, Rewordings(known))
    else:
        for row in _with_own_pools(known):
            yield dataclasses.replace(row, files=files) if isinstance(row, Row) and files else row


def _with_paraphrases(known: KnownUtterances, reworded: Rewordings) -> Iterator[Row | LeftOut]:
    """Yield rows of examples whose right answers include paraphrases, and rows of their conversations.
    `reworded` in a row counts the paraphrases. Raises ShortError if no answer has paraphrases."""
    found = 0
    for row in _with_own_pools(known, reworded):
        found += isinstance(row, Row) and row.value["reworded"] > 0
        yield row
    if not found:
        raise reworded.make_no_paraphrases_error()
    yield from reworded.iterate_dialogs()


def _with_own_pools(known: KnownUtterances, reworded: Rewordings | None = None) -> Iterator[Row | LeftOut]:
    """Yield rows of examples with their own candidates. A row has

    * `example` in the file's format, with a profile if the space is about courses, and its `side`,
    * `topped_up`: the number of candidates from another source than requested,
    * `borrowed`: the number of candidates from the train side for another side,
    * `reworded`: the number of right answers that are paraphrases.
    """
    options, drawing, ids = known.options, CandidateDrawing(known), TextIds()
    profiles = Profiles(known.run.space) if has_profile(known.run.space) else None
    for one in known.iterate_examples():
        if isinstance(one, LeftOut):
            yield one
            continue
        seed = f"{known.run.job.seed}/pool/{one.name}"
        none = options.subtask == 4 and hash64(f"{seed}/none") < options.none * 2.0**64
        others = reworded.of(one.conversation, one.cut.place) if reworded else []
        answers = [one.cut.reply, *others][: options.candidates - 1]
        wrong = drawing.draw_wrong(one, options.candidates - (0 if none else len(answers)), seed, others)
        if not wrong.enough:
            yield LeftOut("small_pool")
            continue
        texts = [*wrong.texts, *([] if none else answers)]
        random.Random(hash64(f"{seed}/order")).shuffle(texts)  # noqa: S311 - a draw that can be made again
        right = [{"candidate-id": NONE, "utterance": NONE}] if none else ids.list_candidates(answers)
        example = make_example(one, known, right, ids.list_candidates(texts))
        if profiles is not None:
            example["profile"] = profiles.of(one)
        told = {"topped_up": drawing.topped_up, "borrowed": drawing.borrowed, "reworded": len(answers) - 1}
        yield Row(one.conversation.split, {"side": one.side, "example": example, **told})


def _with_shared_pool(known: KnownUtterances) -> Iterator[Row | LeftOut]:
    """Yield rows of examples, then rows of the pool with their `source`, in the order of ids."""
    pool, ids = SharedPool(known), TextIds()
    for one in known.iterate_examples():
        if isinstance(one, LeftOut):
            yield one
            continue
        example = make_example(one, known, ids.list_candidates(pool.list_right_texts(one)))
        yield Row(one.conversation.split, {"side": one.side, "example": example})
    texts = known.candidates.texts
    for number in sorted(pool.sources, key=lambda number: ids[texts[number]]):
        candidate = ids.list_candidates([texts[number]])[0]
        yield Row("train", {"candidate": candidate, "source": pool.sources[number]}, table="pool")


def make_example(
    one: CutConversation,
    known: KnownUtterances,
    right: list[Candidate],
    candidates: list[Candidate] | None = None,
) -> dict[str, Any]:
    """Return an example in the file's format."""
    return {
        "data-split": one.side,
        "example-id": one.name,
        "messages-so-far": [
            {"speaker": known.name_speaker(turn), "utterance": join_lines(turn.text)}
            for turn in one.conversation.candidate.turns[: one.cut.place]
        ],
        "options-for-correct-answers": right,
        **({} if candidates is None else {"options-for-next": candidates}),
        "scenario": known.options.subtask,
    }


class CandidateDrawing:
    """A source of wrong candidates. `topped_up` and `borrowed` count those of the last draw (see
    `_with_own_pools`)."""

    def __init__(self, known: KnownUtterances) -> None:
        self.known = known
        self.topped_up = self.borrowed = 0
        self._bm25: dict[Side, Bm25] = {}
        self._written: WrittenTexts | None = None
        if known.options.negatives == "written":
            self._written = WrittenTexts(known.run.rundir.locate_written_texts("wrong"))

    def draw_wrong(
        self, one: CutConversation, count: int, seed: str, others: Sequence[str] = ()
    ) -> WrongAnswers:
        """Return `count` wrong candidates for an example: from the requested source if it has enough, then
        any of the example's side, then any of the train side. `others` are right, besides all answers of the
        context in the run."""
        candidates = self.known.candidates
        right = [candidates.texts[number] for number in self.known.answers.of(one.cut.key)]
        wrong = WrongAnswers(candidates, [*right, *others], count, seed)
        self._as_asked(one, wrong)
        asked = count if self.known.options.negatives == "random" else len(wrong.texts)
        wrong.draw(candidates.list_group(one.side))
        own = len(wrong.texts)
        if one.side != "train":
            wrong.draw(candidates.list_group("train"))
        self.topped_up, self.borrowed = max(0, own - asked), len(wrong.texts) - own
        return wrong

    def _as_asked(self, one: CutConversation, wrong: WrongAnswers) -> None:
        kind = self.known.options.negatives
        if kind == "same-topic":
            wrong.draw(self.known.candidates.list_group(self.known.find_topic_group(one.conversation)))
        elif kind == "bm25":
            wrong.draw(self._make_index(one.side).find_best(one.cut.reply) or ())
        elif self._written is not None:
            turn = one.conversation.candidate.turns[one.cut.place]
            texts = self._written.of(one.conversation.candidate.id, one.cut.place, turn.text)
            wrong.take(map(join_lines, texts))

    def _make_index(self, side: Side) -> Bm25:
        if side not in self._bm25:
            from edgen.domains.retrieval.bm25 import Bm25

            candidates = self.known.candidates
            self._bm25[side] = Bm25(
                (number, candidates.texts[number]) for number in candidates.list_group(side)
            )
        return self._bm25[side]


class TextIds(dict[str, str]):
    """The id of each text: twelve characters that depend only on the text, so it is the same in all files and
    exports."""

    def __missing__(self, text: str) -> str:
        self[text] = found = make_candidate_id(text)
        return found

    def list_candidates(self, texts: Sequence[str]) -> list[Candidate]:
        """Return the texts with their ids."""
        return [{"candidate-id": self[text], "utterance": text} for text in texts]


def make_candidate_id(text: str) -> str:
    """Return 60 bits of a digest, in base 32."""
    return base64.b32encode(hashlib.blake2b(text.encode(), digest_size=8).digest())[:12].decode()
