"""A writer of texts for a turn of a conversation: the same in other words, or wrong replies at its place.

Useless texts are dropped, by reason: texts that repeat the turn or another text (`same`, `twice`), and wrong
replies that are nearly right (`right`), since they would be false mistakes. An answer without any useful text
is retried. The conversation up to the turn is fenced as for a judge (see `edgen.protocols.fence`); later
turns are not shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any

import msgspec

from edgen.plugin import (
    Address,
    AnswerKind,
    Message,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    SimulatedAnswers,
    Simulation,
    Turn,
    ask,
)
from edgen.plugin.forms import form, list_of
from edgen.plugin.forms import text as text_of
from edgen.plugin.protocols import (
    Protocol,
    RejectionReason,
    View,
    describe_ending,
    fence_turns,
    list_utterances,
    words_without_marks,
)
from edgen.plugin.texts import are_alike
from edgen.reading.answers.texts import read_texts

SHOWN = ("guarded",)
VARIABLES = (*SHOWN, "fence", "role", "count")
_WORD = re.compile(r"\w+")


class Written(msgspec.Struct, frozen=True):
    """The texts for a turn, and the numbers of dropped texts by reason."""

    texts: tuple[str, ...]
    dropped: dict[str, int] = {}


class WritingProtocol(SimulatedAnswers, Protocol):
    """The protocol that asks for texts for a turn."""

    name = "writing"
    precedence = 13
    answers = (AnswerKind("texts", "several texts, a numbered list or a JSON list", VARIABLES),)

    def simulated(self, request: Simulation) -> str | None:
        """Return the turn in other words, or replies of the same shape about something else."""
        from edgen.protocols.writing_simulated import answer

        return answer(request)


WRITING = WritingProtocol()


def write_texts(
    turns: Sequence[Turn],
    count: int,
    address: Address,
    prompt: Prompting,
    rules: Rules,
    role: str,
    choose: Callable[[Sequence[str], Turn], Written],
) -> Generator[Request, Reply, Written | Rejection]:
    """Return up to `count` texts for the last turn, or a rejection. `role` is the role that answers. `choose`
    selects the useful texts of an answer."""
    said = turns[-1]

    def read(reply: Reply) -> Written | Rejection:
        found = read_texts(reply.text, count, said.role, **describe_ending(reply))
        if isinstance(found, Rejection):
            return found
        written = choose(found, said)
        if not written.texts:
            return Rejection(
                RejectionReason.IDENTICAL,
                "all its texts are repetitions, or right where wrong ones are requested",
            )
        return written

    messages = make_writing_messages(turns, count, address, prompt, rules)
    view = _make_view(turns, count, address, prompt, rules) if rules.by_people(role) else None
    asked = form(texts=list_of(text_of(), count, count))
    question = Question(
        address, messages, WRITING.name, role, prompt.schema, form=prompt.form(asked), view=view
    )
    return (yield from ask(question, rules, read))


def make_writing_messages(
    turns: Sequence[Turn], count: int, address: Address, prompt: Prompting, rules: Rules
) -> tuple[Message, ...]:
    """Return the writer's messages. The conversation ends with the turn to write for, which has the number
    1."""
    return prompt.messages(_make_variables(turns, count, address, rules))


def _make_variables(turns: Sequence[Turn], count: int, address: Address, rules: Rules) -> dict[str, Any]:
    fenced = fence_turns(
        rules.seed, address.scenario, f"{address.task}/{address.step}", _number_last_turn(turns)
    )
    return {**fenced, "role": turns[-1].role, "count": count}


def _number_last_turn(turns: Sequence[Turn]) -> list[Turn]:
    *before, said = turns
    return [*before, Turn(f"(1) {said.role}", said.text)]


def _make_view(turns: Sequence[Turn], count: int, address: Address, prompt: Prompting, rules: Rules) -> View:
    """Return what a person who writes sees: the conversation up to the turn, and the template's words."""
    known = _make_variables(turns, count, address, rules)
    text = words_without_marks(prompt.messages({**known, "guarded": ""}), known["fence"])
    return View(turns=list_utterances(_number_last_turn(turns)), text=text)


def choose_texts(texts: Sequence[str], turn: Turn, *, wrong: bool = False) -> Written:
    """Return the texts that add something to `turn`. With `wrong`, texts that are nearly right are dropped,
    too."""
    right = [turn.text, *(other.text for other in turn.alternatives)]
    kept: dict[str, str] = {}
    dropped = Counter[str]()
    known = {_normalize_words(text) for text in right}
    for text in texts:
        plain = _normalize_words(text)
        if not plain or plain in known:
            dropped["same"] += 1
        elif plain in kept:
            dropped["twice"] += 1
        elif wrong and any(are_alike(text, one) for one in right):
            dropped["right"] += 1
        else:
            kept[plain] = text
    return Written((*kept.values(),), dict(sorted(dropped.items())))


def _normalize_words(text: str) -> str:
    """Return the words of a text. Texts that differ only in signs and case have the same words."""
    return " ".join(_WORD.findall(text.casefold()))
