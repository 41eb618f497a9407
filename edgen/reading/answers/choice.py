"""The reader of a choice: the offered utterance that a reply chooses, or its free text.

A choice is a number, alone or with a word around it (`2`, `Option 2.`, `I choose 2`, `{"choice": 2}`), a
number in front of an utterance (`2. I am on my way.`), or exactly one of the offered utterances. Anything
else is the speaker's own words, with or without `Say:` in front, and is read as any turn is. Never raises;
linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from edgen.core.forms import Form, either, form, parts, whole_number
from edgen.core.forms import text as text_of
from edgen.core.text import compile_later
from edgen.core.values import Rejection, RejectionReason
from edgen.reading.answer_body import body_of, decode_json, strip_fence
from edgen.reading.assistant_words import find_service_refusal
from edgen.reading.one_turn.reader import read_turn
from edgen.reading.roles import TEACHER_STUDENT, OwnWords, RoleWords
from edgen.reading.text.characters import excerpt

_NOUN = r"(?:(?:my|the)\s)?(?:best\s)?(?:answer|choice|option|pick|number|utterance|reply|no\.?)(?:\shere)?"
_CHOOSE = r"(?:i(?:['’]ll|['’]d|\s(?:will|would))?\s(?:choose|pick|select|take|say|go\swith)\s)?"
_WORDS = rf"{_CHOOSE}(?:{_NOUN}(?:\sis)?[\s:#]{{0,3}}){{0,3}}"
_ALONE = compile_later(rf"(?i)(?![-−]\d)[^\w\n]{{0,6}}{_WORDS}[^\w\n]{{0,4}}(\d{{1,6}})[^\w\n]{{0,6}}")
_IN_FRONT = compile_later(r"[^\w\n]{0,4}(\d{1,6})[*_]{0,2}\s?(?:[.):\]]\s{0,5}(?=\S)|\((?=\w))")
# `Option 2: Wait a moment.`, `Number 2 is best.`, `2, because it fits.`, `2 - Wait a moment.`
_NAMED = compile_later(
    rf"(?i)[^\w\n]{{0,6}}{_CHOOSE}(?:the\s)?(?:option|choice|number|utterance"
    r"|answer)\s?#?(\d{1,6})[*_]{0,2}"
    r"(?:\s?[.):,–—-]|\s(?:is|fits|seems|works|would\sbe|makes)\b)\s{0,5}(?=\S)"
)
_REASONED = compile_later(
    rf"(?i)[^\w\n]{{0,4}}{_WORDS}(\d{{1,6}})[*_]{{0,2}}(?:,?\s(?:because|since|as it)\b|\s[–—-]\s)"
)
_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
# `Option two.`, `I would go with the second one.`
_IN_LETTERS = compile_later(
    rf"(?i)[^\w\n]{{0,6}}{_CHOOSE}(?:(?:{_NOUN}[\s:#]{{1,3}})?({'|'.join(_CARDINALS)})"
    rf"|(?:the\s)?({'|'.join(_ORDINALS)})(?:\s(?:one|option|choice|answer|utterance|reply))?)[^\w\n]{{0,6}}"
)
_ASKED = compile_later(r"(?i)\W{0,6}(?:i\b|my\b|option|number|choice|answer)")
_WRAPPED = compile_later(r"(?is)\A<(answer|choice|option|reply|response|number)>(.{0,4000}?)</\1>\Z")
_LABEL = compile_later(r"\A[*_]{0,3}([^\W\d][^\n:：]{0,40}?)[*_]{0,3}[:：][*_]{0,3}\s{1,3}(?=\S)")
_ITEM = r"(?:number|option|choice|no\.)\s"
_SEVERAL = compile_later(
    rf"(?i)[^\w]{{0,9}}(?:{_ITEM})?\d{{1,3}}(?:(?:[^\w]{{1,9}}|\s(?:or|and)\s)(?:or\s"
    rf"|and\s)?(?:{_ITEM})?\d{{1,3}}){{1,99}}[^\w]{{0,9}}"
)
_INLINE = compile_later(r"(?:\A|(?<=[\s|]))(\d{1,3})\s?[.):|]\s{0,3}(?=\w)")
_CUT_OBJECT = compile_later(r"""\A\s*\{\s*"(?:choice|number|option|answer)"\s*:\s*"?(\d{1,6})"?\s*[,}]""")
_KEYS = ("choice", "number", "option", "answer")
_NUMBERED = compile_later(r"[^\w\n]{0,9}(\d{1,6})[*_]{0,2}\s?(?:[.):\]]|-\s)")
_NUMBER = compile_later(r"\A[^\w\n]{0,9}(?:\d{1,6}[*_]{0,2}\s?[.):\]]\s{0,5})?")
_SAY = compile_later(r"(?i)\A\s*[*_\"]{0,3}say[*_\"]{0,3}\s?:\s*")

NOT_OFFERED = "not_offered"
"""The reason of a reply that makes no allowed choice. Protocols that offer choices declare it."""


_BEGUN = 8  # letters of an utterance that nobody says by chance


class Chosen(msgspec.Struct, frozen=True):
    """A choice. `number` counts from 1; None if `text` is said instead. `ended`: with the end marker."""

    number: int | None
    text: str = ""
    ended: bool = False
    repairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def choice_form(offered: int, *, free: bool = False) -> Form:
    """Return the form of a choice of `offered` utterances.

    If the choice is `free`, an object with `say` holds the speaker's own words. A bare text in its place
    would tempt small models to write the utterance out.
    """
    if not offered:
        return form(say=text_of())
    number = whole_number(1, offered)
    return form(choice=either(number, parts(say=text_of())) if free else number)


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
    """Return which of the utterances `offered` a role chooses, or what it says if it is `free` to.

    The utterances are numbered from 1. Returns a Rejection if the reply does neither.
    """
    body = _unwrap_reply(strip_fence(body_of(text)), role)
    refused = find_service_refusal(refusal, finish_reason)
    if refused is not None:
        if refused.reason is not RejectionReason.TRUNCATED or not _is_chosen(body):
            return refused
        if (begun := _CUT_OBJECT.match(body)) is not None:
            body = begun[1]
    if _SEVERAL.fullmatch(body):
        return Rejection(NOT_OFFERED, f"it names several choices: {excerpt(body)}")
    number, said = _split(body)
    if not _is_choice_alone(body, number) and (recited := _count_recited(body, offered)) > 1:
        return Rejection(NOT_OFFERED, f"it recites {recited} of the choices")
    if number is None:
        number = _find_repeated(said, offered) or _read_spelled_number(said, alone=not free)
    if number is not None:
        if 1 <= number <= len(offered):
            return Chosen(number)
        return Rejection(NOT_OFFERED, f"it chooses number {number}, and there are {len(offered)}")
    turn = read_turn(said, role, finish_reason=finish_reason, refusal=refusal, roles=roles, words=words)
    if isinstance(turn, Rejection):
        return turn
    if (place := _find_repeated(turn.text, offered)) is not None:
        return Chosen(place)
    if not turn.text:
        return Rejection(RejectionReason.EMPTY, "it neither chooses nor says anything")
    if not free:
        return Rejection(NOT_OFFERED, f"it says what was not offered: {excerpt(turn.text)}")
    return Chosen(None, turn.text, turn.ended, turn.repairs)


def _split(body: str) -> tuple[int | None, str]:
    """Return the number that a reply chooses, or what it says."""
    value = decode_json(body) if body.startswith("{") else None
    if isinstance(value, dict):
        number = _read_whole_number(next((value[key] for key in _KEYS if key in value), None))
        value = number if isinstance(number, dict) else value
        if type(number) is int and (number or "say" not in value):  # 0 next to `say`: something of its own
            return number, ""
        said = value.get("say", value.get("text", number))
        return _split_words(said) if isinstance(said, str) else (None, "")
    return _split_words(body)


def _split_words(body: str) -> tuple[int | None, str]:
    """Return the number that words choose, or what they say."""
    if _SAY.match(body):
        return None, _SAY.sub("", body, count=1)
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    listed = _is_list(lines)
    # A model may explain its choice, before or after it; the last number of a list is no choice.
    for line in dict.fromkeys((*lines[:1], *lines[-1:])):
        if (alone := _ALONE.fullmatch(line)) and not (listed and _NUMBERED.match(line)):
            return int(alone[1]), ""
    if not listed and (front := _find_front_number(body)):
        return int(front[1]), ""
    return None, body


def _read_spelled_number(said: str, *, alone: bool) -> int | None:
    """Return the number that a reply chooses in letters; None if it chooses none.

    `alone`: the reply can only mean a number, so a word like `second` is enough.
    """
    found = _IN_LETTERS.fullmatch(said.strip())
    if found is None or not (alone or _ASKED.match(said)):
        return None
    cardinal, ordinal = (word.lower() if word else word for word in found.groups())
    return 1 + (_CARDINALS.index(cardinal) if cardinal else _ORDINALS.index(ordinal))


def _is_choice_alone(body: str, number: int | None) -> bool:
    """Return whether a number is a choice by itself, in JSON or alone on a line, rather than an item's."""
    if number is None:
        return False
    return body.startswith("{") or any(_ALONE.fullmatch(line.strip()) for line in body.split("\n"))


def _find_front_number(body: str) -> re.Match[str] | None:
    """Return the number in front of a reply: of an utterance, or with a reason for it."""
    return _IN_FRONT.match(body) or _NAMED.match(body) or _REASONED.match(body)


def _read_whole_number(value: object) -> object:
    """Return the whole number that a value in JSON stands for (`2`, `"2."`, `2.0`, `[2]`), else the value."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (plain := value.strip(" .#")).isdecimal():
        return int(plain[:6])
    return value


def _unwrap_reply(body: str, role: str) -> str:
    """Return a reply without a tag around it, and without its speaker's name before a number."""
    if (tag := _WRAPPED.match(body)) is not None:
        body = tag[2].strip()
    label = _LABEL.match(body)
    own = label is not None and label[1].casefold() == role.casefold()
    return body[label.end() :] if label is not None and own and body[label.end()].isdigit() else body


def _is_chosen(body: str) -> bool:
    """Return whether a reply that was cut off begins with a whole choice: `1. On my`."""
    if _CUT_OBJECT.match(body):
        return not body.lstrip("{ \n").partition(":")[2].lstrip(' "').startswith("0")
    return not _is_list(body.split("\n")) and _find_front_number(body) is not None


def _is_list(lines: Sequence[str]) -> bool:
    """Return whether lines are numbered, each with another number, or one line holds several numbers."""
    if len({found[1] for line in lines if (found := _NUMBERED.match(line))}) > 1:
        return True
    first = next((line for line in lines if line.strip()), "")
    return len({found[1] for found in _INLINE.finditer(first[:2000])}) > 1


def _count_recited(said: str, offered: Sequence[str]) -> int:
    """Return how many of the utterances stand in a reply or are begun by one of its lines.

    More than one makes the reply a list of the choices.
    """
    whole = _fold(said)
    texts = [_fold(_NUMBER.sub("", line)) for line in said.split("\n") if line.strip()]
    texts = [text for text in texts if len(text) >= _BEGUN] if len(texts) > 1 else []
    folded = {one for text in offered if (one := _fold(text).rstrip(" .?!"))}
    return sum(
        (len(one) >= _BEGUN and one in whole) or any(one.startswith(text) for text in texts) for one in folded
    )


def _find_repeated(said: str, offered: Sequence[str]) -> int | None:
    """Return the number of the utterance that a reply repeats, but for case, blanks and quotes; or None."""
    folded = _fold(said)
    return next((place for place, one in enumerate(offered, 1) if _fold(one) == folded), None)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split()).strip("\"'“”|* ").rstrip(".!。！\"'”")
