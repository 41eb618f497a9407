"""Which of the utterances that were offered a reply chooses, or what it says instead.

A choice is a number, alone or with a word around it (`2`, `Option 2.`, `I choose 2`, `{"choice": 2}`), a number in front
of an utterance (`2. I am on my way.`), or an utterance that was offered, to the letter. All else is something of the
speaker's own, with or without `Say:` in front, and is read as any turn is. Never raises; linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from edgen.core.forms import Form, form, whole_number
from edgen.core.forms import text as text_of
from edgen.core.values import Rejection, RejectionReason
from edgen.reading.answers.body import body_of, decoded, unfenced
from edgen.reading.assistant_words import find_service_refusal
from edgen.reading.one_turn.reader import read_turn
from edgen.reading.roles import TEACHER_STUDENT, OwnWords, RoleWords
from edgen.reading.text.characters import excerpt

_WORDS = (
    r"(?:i(?:['’]ll|['’]d|\s(?:will|would))?\s(?:choose|pick|select|take|go\swith)\s)?"
    r"(?:(?:(?:my|the)\s)?(?:answer|choice|option|number|utterance|reply|no\.?)(?:\sis)?[\s:#]{0,3}){0,3}"
)
_ALONE = re.compile(rf"(?i)[^\w\n]{{0,6}}{_WORDS}[^\w\n]{{0,4}}(\d{{1,6}})[^\w\n]{{0,6}}")
_IN_FRONT = re.compile(r"[^\w\n]{0,4}(\d{1,6})[*_]{0,2}\s?[.):\]]\s{0,5}(?=\S)")
_NUMBERED = re.compile(r"[^\w\n]{0,9}(\d{1,6})[*_]{0,2}\s?(?:[.):\]]|-\s)")
_NUMBER = re.compile(r"\A[^\w\n]{0,9}(?:\d{1,6}[*_]{0,2}\s?[.):\]]\s{0,5})?")
_SAY = re.compile(r"(?i)\A\s*[*_\"]{0,3}say[*_\"]{0,3}\s?:\s*")


class Chosen(msgspec.Struct, frozen=True):
    """`number`: which one was chosen, from 1; None where `text` is said instead. `ended`: with the end marker."""

    number: int | None
    text: str = ""
    ended: bool = False
    repairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def choice_form(offered: int, *, free: bool = False) -> Form:
    """Return the form of a choice of `offered` utterances; 0 is something of the speaker's own, if it is `free`."""
    if not free:
        return form(choice=whole_number(1, offered))
    return form(choice=whole_number(0, offered), say=text_of(least=0))


def read_choice(
    text: str,
    offered: Sequence[str],
    role: str,
    *,
    free: bool = True,
    finish_reason: str = "stop",
    refusal: str | None = None,
    roles: RoleWords = TEACHER_STUDENT,
    words: OwnWords = (),
) -> Chosen | Rejection:
    """What `role` chooses of the utterances `offered`, numbered from 1, or says instead where it is `free` to; why
    neither, where it is neither."""
    body = unfenced(body_of(text))
    refused = find_service_refusal(refusal, finish_reason)
    if refused is not None and (refused.reason is not RejectionReason.TRUNCATED or not _is_chosen(body)):
        return refused
    number, said = _split(body)
    if number is None and len(recited := _recited(said, offered)) > 1:
        return Rejection(RejectionReason.NOT_OFFERED, f"it recites {len(recited)} of the choices")
    if number is None:
        number = _place(said, offered)
    if number is not None:
        if 1 <= number <= len(offered):
            return Chosen(number)
        return Rejection(
            RejectionReason.NOT_OFFERED, f"it chooses number {number}, and there are {len(offered)}"
        )
    turn = read_turn(said, role, finish_reason=finish_reason, refusal=refusal, roles=roles, words=words)
    if isinstance(turn, Rejection):
        return turn
    if (place := _place(turn.text, offered)) is not None:
        return Chosen(place)
    if not turn.text:
        return Rejection(RejectionReason.EMPTY, "it neither chooses nor says anything")
    if not free:
        return Rejection(RejectionReason.NOT_OFFERED, f"it says what was not offered: {excerpt(turn.text)}")
    return Chosen(None, turn.text, turn.ended, turn.repairs)


def _split(body: str) -> tuple[int | None, str]:
    """Return the number that a reply chooses, or what it says."""
    value = decoded(body) if body.startswith("{") else None
    if isinstance(value, dict):
        number = value.get("choice", value.get("number"))
        if isinstance(number, str) and number.strip().isdecimal():
            number = int(number.strip()[:6])
        if type(number) is int and (number or "say" not in value):  # 0 in a form: something of its own
            return number, ""
        said = value.get("say", value.get("text"))
        return None, said if isinstance(said, str) else ""
    if _SAY.match(body):
        return None, _SAY.sub("", body, count=1)
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    listed = _is_list(lines)
    # A model may explain its choice, before it or behind; the last number of a list is none.
    for line in dict.fromkeys((*lines[:1], *lines[-1:])):
        if (alone := _ALONE.fullmatch(line)) and not (listed and _NUMBERED.match(line)):
            return int(alone[1]), ""
    if not listed and (front := _IN_FRONT.match(body)):
        return int(front[1]), ""
    return None, body


def _is_chosen(body: str) -> bool:
    """Return whether a reply that was cut off begins with a whole choice: `1. On my`."""
    return not _is_list(body.split("\n")) and _IN_FRONT.match(body) is not None


def _is_list(lines: Sequence[str]) -> bool:
    """Return whether lines are numbered, each with another number."""
    return len({found[1] for line in lines if (found := _NUMBERED.match(line))}) > 1


def _recited(said: str, offered: Sequence[str]) -> set[str]:
    """Return the utterances that stand among what is said, several of which make it a list of what can be
    chosen."""
    if len(lines := [line for line in said.split("\n") if line.strip()]) < 2:
        return set()
    texts = {_fold(_NUMBER.sub("", line)) for line in lines}
    return {folded for one in offered if (folded := _fold(one)) in texts}


def _place(said: str, offered: Sequence[str]) -> int | None:
    """Return the number of an utterance that is said to the letter, but for case, blanks and quotation
    marks."""
    folded = _fold(said)
    return next((place for place, one in enumerate(offered, 1) if _fold(one) == folded), None)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split()).strip("\"'“”")
