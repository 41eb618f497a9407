"""The examples of a set, each with its candidates: the rows of the format."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from edgen.core.digest import hash64
from edgen.export.chat import Chat
from edgen.export.format import Item, LeftOut, Row, RunReader
from edgen.export.formats.dstc7.collect import Example, Known, Side, collect
from edgen.export.formats.dstc7.options import Dstc7Options
from edgen.export.msdialog import actor_of, one_line
from edgen.retrieval.negatives import WrongAnswers
from edgen.retrieval.truth import NONE
from edgen.retrieval.written import WrittenTexts

Candidate = dict[str, str]  # `candidate-id` and `utterance`


def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
    """A row for each example: `example` as it is in the file, its `side`, and how many of its candidates came from
    elsewhere than was asked for (`topped_up`) or from the train side to another (`borrowed`)."""
    options = chat.own if isinstance(chat.own, Dstc7Options) else Dstc7Options()
    known = collect(run, chat, options)
    drawing, ids = Drawing(known), Ids()
    for one in known.examples():
        if isinstance(one, LeftOut):
            yield one
            continue
        name = f"{one.conversation.candidate.id}-{one.cut.place + 1}"
        seed = f"{run.job.seed}/pool/{name}"
        none = options.subtask == 4 and hash64(f"{seed}/none") < options.none * 2.0**64
        wrong = drawing.wrong(one, options.candidates - (not none), seed)
        if not wrong.enough:
            yield LeftOut("small_pool")
            continue
        texts = [*wrong.texts, *([] if none else [one.cut.reply])]
        random.Random(hash64(f"{seed}/order")).shuffle(texts)  # noqa: S311 - a draw that can be made again
        right = [{"candidate-id": NONE, "utterance": NONE}] if none else ids.candidates([one.cut.reply])
        example = {
            "data-split": one.side,
            "example-id": name,
            "messages-so-far": _messages(one, chat, options),
            "options-for-correct-answers": right,
            "options-for-next": ids.candidates(texts),
            "scenario": options.subtask,
        }
        value = {
            "side": one.side,
            "example": example,
            "topped_up": drawing.topped_up,
            "borrowed": drawing.borrowed,
        }
        yield Row(one.conversation.split, value)


class Drawing:
    """Draws wrong candidates as was asked for; `topped_up` and `borrowed` are of the last draw."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.topped_up = self.borrowed = 0
        self._bm25: dict[Side, Any] = {}
        self._written: WrittenTexts | None = None
        if known.options.negatives == "written":
            self._written = WrittenTexts(_written_file(known.run))

    def wrong(self, one: Example, count: int, seed: str) -> WrongAnswers:
        """So many wrong candidates for an example: as was asked for as far as there are such, then any of its side, then
        any of the train side."""
        candidates = self.known.candidates
        right = [candidates.texts[number] for number in self.known.answers.of(one.cut.key)]
        wrong = WrongAnswers(candidates, right, count, seed)
        self._as_asked(one, wrong)
        asked = count if self.known.options.negatives == "random" else len(wrong.texts)
        wrong.draw(candidates.among(one.side))
        own = len(wrong.texts)
        if one.side != "train":
            wrong.draw(candidates.among("train"))
        self.topped_up, self.borrowed = max(0, own - asked), len(wrong.texts) - own
        return wrong

    def _as_asked(self, one: Example, wrong: WrongAnswers) -> None:
        kind = self.known.options.negatives
        if kind == "same-topic":
            wrong.draw(self.known.candidates.among(self.known.about(one.conversation)))
        elif kind == "bm25":
            wrong.draw(self._index(one.side).best(one.cut.reply) or ())
        elif self._written is not None:
            turn = one.conversation.candidate.turns[one.cut.place]
            texts = self._written.of(one.conversation.candidate.id, one.cut.place, turn.text)
            wrong.take(map(one_line, texts))

    def _index(self, side: Side) -> Any:
        if side not in self._bm25:
            from edgen.retrieval.bm25 import Bm25

            candidates = self.known.candidates
            self._bm25[side] = Bm25((number, candidates.texts[number]) for number in candidates.among(side))
        return self._bm25[side]


class Ids(dict[str, str]):
    """The id of each text: twelve characters that depend on the text alone, so that a text has one id in every file and
    every export."""

    def __missing__(self, text: str) -> str:
        self[text] = found = candidate_id(text)
        return found

    def candidates(self, texts: Sequence[str]) -> list[Candidate]:
        """The texts with their ids."""
        return [{"candidate-id": self[text], "utterance": text} for text in texts]


def candidate_id(text: str) -> str:
    """Sixty bits of a digest, in the letters and digits of base 32."""
    return base64.b32encode(hashlib.blake2b(text.encode(), digest_size=8).digest())[:12].decode()


def _messages(one: Example, chat: Chat, options: Dstc7Options) -> list[dict[str, str]]:
    def speaker(turn: Any) -> str:
        if options.speakers == "roles":
            return str(turn.role).lower()
        return "participant_2" if actor_of(turn, chat) == "Agent" else "participant_1"

    before = one.conversation.candidate.turns[: one.cut.place]
    return [{"speaker": speaker(turn), "utterance": one_line(turn.text)} for turn in before]


def _written_file(run: RunReader) -> Path:
    return run.rundir.written("wrong")
