"""The judge of a session: it sees the conversation and the responses to its last turn, and names the best and
the worst response.

Responses have letters in an order that is drawn for each turn, so that a letter does not reveal the tutor.
Conversation and responses are fenced as for any judge (see `edgen.protocols.fence`).
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import msgspec

from edgen.plugin import (
    Address,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    Turn,
    ask,
)
from edgen.plugin.answers import body_of, object_in
from edgen.plugin.forms import Form, form, one_of
from edgen.plugin.protocols import RejectionReason, describe_ending, fence_texts
from edgen.plugin.texts import excerpt

JUDGE = "judge"  # the backend, and the use of its template
UNJUDGED = "unjudged"  # a flag of a conversation
SHOWN_TO_JUDGE = ("guarded", "responses", "letters")  # variables that its template must show
JUDGE_VARIABLES = (*SHOWN_TO_JUDGE, "fence")


def judge_responses(
    turns: Sequence[Turn],
    responses: Sequence[Turn],
    order: random.Random,
    variables: Mapping[str, Any],
    address: Address,
    prompt: Prompting,
    rules: Rules,
) -> Generator[Request, Reply, tuple[int, int] | None]:
    """Yield the requests to the judge; return the places of the best and of the worst response, None if its
    answers are unreadable. `variables`: further variables of the judge's template."""
    places = order.sample(range(len(responses)), len(responses))
    letters = string.ascii_uppercase[: len(places)]

    def read(reply: Reply) -> tuple[int, int] | Rejection:
        return read_best_worst(reply.text, letters, **describe_ending(reply))

    shown = judge_variables(turns, [responses[place] for place in places], address, rules.seed)
    messages = prompt.messages({**variables, **shown})
    asked = prompt.form(judge_form(len(letters)))
    question = Question(address, messages, "tutoring", JUDGE, prompt.schema, form=asked)
    found = yield from ask(question, rules, read)
    return None if isinstance(found, Rejection) else (places[found[0]], places[found[1]])


def judge_form(responses: int) -> Form:
    """Return the form of the judge's answer about a number of responses."""
    letters = one_of(string.ascii_uppercase[:responses])
    return form(best=letters, worst=letters)


def judge_variables(
    turns: Sequence[Turn], responses: Sequence[Turn], address: Address, seed: int
) -> dict[str, str]:
    """Return the variables of a judge's template: the fenced conversation and responses. `responses` are in
    the order of their letters."""
    letters = string.ascii_uppercase[: len(responses)]
    lettered = [Turn(letter, response.text) for letter, response in zip(letters, responses, strict=True)]
    shown = {"guarded": ("Conversation", turns), "responses": ("Responses", lettered)}
    fenced = fence_texts(seed, address.scenario, f"{address.task}/{address.step}", shown)
    return {**fenced, "letters": ", ".join(letters)}


def mark_judged(responses: Sequence[Turn], best: int, worst: int) -> list[Turn]:
    """Return the responses with the judgement in the data of the best and the worst."""
    marks = {best: "best", worst: "worst"}
    return [
        msgspec.structs.replace(response, data={**response.data, "judged": marks[place]})
        if place in marks
        else response
        for place, response in enumerate(responses)
    ]


_SAID = re.compile(
    r"(?i)\b(best|worst)\b[ \t*_\"'”]{0,4}(?:is|[:：=])[ \t*_\"'“(\[]{0,4}(?:response )?([a-z])\b"
)


def read_best_worst(
    text: str, letters: str, *, finish_reason: str = "stop", refusal: str | None = None
) -> tuple[int, int] | Rejection:
    """Return the places of the best and of the worst among `letters`, or a rejection. The answer is `{"best":
    "A", "worst": "C"}`, or a line for each. Unknown letters, the same letter twice and any other text are
    rejected. Never raises; linear in the text's length."""
    if refusal is not None:
        return Rejection(RejectionReason.REFUSED, excerpt(refusal))
    body = body_of(text)
    named = object_in(body) or {}
    if "best" not in named:
        named = {found[1].lower(): found[2] for found in _SAID.finditer(body)}
    best, worst = (_find_place(named.get(key), letters) for key in ("best", "worst"))
    if best is not None and worst is not None and best != worst:
        return best, worst
    reason = RejectionReason.TRUNCATED if finish_reason == "length" else RejectionReason.UNREAD
    return Rejection(reason, excerpt(text))


def _find_place(named: object, letters: str) -> int | None:
    """Return the index of a letter in `letters`; None for any other value."""
    letter = named.strip().upper() if isinstance(named, str) else ""
    return letters.index(letter) if len(letter) == 1 and letter in letters else None
