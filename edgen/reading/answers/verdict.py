"""The verdict of a judge that was asked to output 1 or 2: 1, 2, or None.

An answer form is a line that is nothing but an answer: `2`, `**Output: 2**`, `Interaction 2`,
`{"answer": 2}`, `Response 2 is better.` The one at the end counts, regardless of the reasoning before it;
else the one at the start, if nothing after it takes it back. Two that differ give None. Without an answer
form, a sentence may state the side (`verdict_prose`). A lesson that continues, a list, a score and an answer
that somebody in the lesson gives do not count. In doubt the verdict is None: a misread verdict would be a
wrong label, while an unread one is retried.

Never raises. Of a long reply, only whole lines at its start and its end are read, which bounds the cost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import Enum, auto
from typing import Literal, NamedTuple

import msgspec

from edgen.core.text import compile_later
from edgen.core.values import FinishReason
from edgen.reading.answers.verdict_prose import (
    BARE,
    CONCLUDED,
    CONCLUSION,
    LABEL,
    NAME,
    NOUN,
    OPENED,
    PRIVATE_USE,
    SIDE,
    Choice,
    compile_words,
    find_preferred,
    find_stated,
    is_heading,
    is_retracted,
    mark_sides,
    read_side,
    split_sentences,
    states_other,
)
from edgen.reading.text.thinking import drop_thinking

_HEAD, _TAIL = 2_000, 4_000  # characters that are looked at
_FIRST, _LAST = 50, 100  # and lines of them


class _Kind(Enum):
    DIGIT = auto()  # `2`
    NAME = auto()  # `Interaction 2`: an answer, or the heading of a part
    ORDINAL = auto()  # `second`: an answer if it is the whole reply
    ANSWER = auto()  # `Answer: 2`
    LABEL = auto()  # `Verdict: 2`, which no student gives
    BETTER = auto()  # `Better: 2`, which may be about one criterion
    OVERALL = auto()  # `Overall: 2`: an answer, or the last of some scores
    STATEMENT = auto()  # `Interaction 2 is better.`


_LABELLED = (_Kind.ANSWER, _Kind.LABEL, _Kind.BETTER)


class _Form(NamedTuple):
    kind: _Kind
    choice: Choice


_ANSWER = (
    r"(?:(?:(?:the|my|so the|final|overall|your) ){0,2}(?:final )?answer|antwort|respuesta|réponse|reponse"
    r"|ответ|答案|回答|risposta|resposta|答え|정답)"
)
_OVERALL = r"(?:(?:the )?(?:overall|result|final result|in total|outcome|conclusion))"
_ASKED = r"(?: ?\((?:1 or 2|2 or 1|[\ue001\ue002] (?:or|/) [\ue001\ue002]|[12]/[12])\))?"
_QUOTE = r"[\"'«»]?"
_SEPARATOR = (
    rf"{_QUOTE}{_ASKED}(?: (?:is|was|would be|ist|es|est)\b ?:?| ?[:=]{{1,2}}>?| ?(?:->|→|=>|–|—|-) ?|是) ?"
)
_FILLER = (
    rf"(?:{CONCLUSION}|(?:definitely|clearly|ok|okay|sure|certainly|hmm|well|i (?:think|believe|say|would "
    r"say)|i'd say|it's|it is|that would be|my|final|based on the criteria)(?:[,:!]|\.{1,3})? ){0,4}"
)
_ORDINALS: dict[str, Choice] = {"one": 1, "two": 2, "first": 1, "second": 2}
_OPEN, _CLOSE = r"[\"'(\[{<« ]{0,6}", r"[\"')\]}>» ,]{0,6}"
_NAMES = compile_words(rf"{SIDE}|\b(?:one|two|first|second)\b")
_LINE = compile_words(
    rf"(?P<filler>{_FILLER})(?:(?P<label>{LABEL}{_SEPARATOR})|(?P<answer>{_ANSWER}{_SEPARATOR})"
    rf"|(?P<overall>{_OVERALL}{_SEPARATOR})|(?P<output>output ))?"
    rf"(?P<arrow>(?:->|→|=>) ?)?{_OPEN}(?:(?!teacher){NOUN}{_QUOTE} ?[:=] ?{_OPEN})?"
    rf"(?:(?P<side>{SIDE})|(?P<ordinal>one|two|first|second)\b){_CLOSE}"
    rf"(?: ?\((?P<again>{SIDE})\)?|,? (?:and )?not (?P<other>{SIDE}))?"
)
_STATED = compile_words(rf"{OPENED}(?: ?[.!)]){{0,3}}")
_NUMBERED = compile_words(rf"(?P<number>{BARE})[.):] ?(?P<rest>{SIDE}[^\n]{{0,300}})")
_BARE_LABEL = compile_words(rf"(?:{LABEL}|{_ANSWER}|{_OVERALL}){_ASKED}(?: is)? ?:?")
_ALL_IN_ALL = compile_words(r"\b(?:output|verdict|final|overall|decision|judge?ment|conclusion|vote)\b")
_KEY = compile_words(rf"(?:{LABEL}|(?:final ?)?answer|(?:better|best|preferred|winning) ?{NOUN})")
_SCORE = compile_words(
    r"[^\W\d_][^\n:=]{0,60}? ?[:=–—-] ?[\"']?(?:[0-9.]{1,4}|[\ue001\ue002])[\"']?(?: ?/ ?[0-9]{1,3})?[.,]?"
)
# An explanation, so what stands before it is no heading.
_EXPLAINED = compile_words(r"(?:the )?(?:reason|reasoning|explanation|justification|rationale|because|why)\b")
# A bare number after these words may be what somebody in the lesson said.
_QUOTES = compile_words(
    r"\b(?:says?|said|asks?|asked|answer(?:s|ed)|repl(?:ies|ied)|wr(?:ites|ote)|comput\w{1,3}|gets?|got"
    r"|finds?|found|counts?|calculat\w{1,3}"
    r"|adds?|step|number|equals?|result|sum|solution)\b|[\"«»0-9:\ue001\ue002]"
)
_ROLE = compile_words(r"(?:teacher|student)(?: ?\([^()\n]{1,40}\))? ?:")
_EDGE = " \t\"'.,!()[]{}<>#«»…\\"

_THOUGHT = compile_later(r"(?i)(?=<(?:think|thinking|reasoning)>|\[THINK\])")
_GAP = "Left out."  # in place of what is not looked at; no answer
_BOXED = compile_later(r"\\boxed\s{0,3}\{\s{0,3}(?:\\text\s{0,3}\{)?([^{}\n]{1,40})\}{1,2}")
_SOMEBODY = compile_later(r"(?i)\b(?:student|teacher|pupil|he|she|they)\b")
_TAG = compile_later(r"<([A-Za-z][\w-]{0,30})>")
_CLOSING_TAG = compile_later(r"</[A-Za-z][\w-]{0,30}>|<\|[\w-]{1,30}\|>")
_FENCE = compile_later(r"(?m)^[^\S\n]{0,3}```(?:[^\W\d]\w{0,11})?[^\S\n]{0,9}$")
_BULLET = compile_later(r"(?:>{1,3} ?|#{1,6} |[-•–] ){1,6}")
_STAR = compile_later(r"(?m)^[^\S\n]{0,20}\*(?=\s)")
_MARKS = compile_later("[*`$\u200b\ufeff\ufe0f\u20e3]")
_SPELLINGS = str.maketrans("１２：。（）_’‘“”„№", '12:.() \'\'"""#')


def read_verdict(
    text: str, *, finish_reason: FinishReason = "stop", refusal: str | None = None
) -> Choice | None:
    """Return the side that a judge's reply names; None if it names neither or is in doubt."""
    if refusal is not None or finish_reason in ("length", "content_filter"):
        return None
    if text.rfind("<think") > text.rfind("</"):
        return None  # thoughts that never end
    if "<" in text or "[/" in text:
        text = drop_thinking(_THOUGHT.sub("\n", text), [])
    lines = _split_marked_lines(_shorten_reply(text))
    if not lines:
        return None
    forms = [_read_form(line, alone=len(lines) == 1) for line in lines]
    if any(_ROLE.match(line) for line in lines):
        return _choose_around_lesson(forms)
    # Next to other lines an ordinal is no answer; next to a score, an overall one is another score.
    scored = any(form is None and _SCORE.fullmatch(line) for line, form in zip(lines, forms, strict=True))
    doubtful = {_Kind.ORDINAL: len(lines) > 1, _Kind.OVERALL: scored}
    return _decide_side(lines, [None if form and doubtful.get(form.kind) else form for form in forms])


def _shorten_reply(text: str) -> str:
    """Return the reply; of a long one its first and its last whole lines."""
    text = text.strip()
    if len(text) <= _HEAD + _TAIL:
        return text
    head, tail = text[:_HEAD].rpartition("\n")[0], text[-_TAIL:].partition("\n")[2]
    return "\n".join([head, _GAP, tail or _GAP])


def _split_marked_lines(text: str) -> list[str]:
    """Return the lines of a reply without markup, with a character for each side that they mention."""
    text = PRIVATE_USE.sub("", text)
    text = _BOXED.sub(_unbox_answer, _replace_json(_FENCE.sub("", text)))
    text = _CLOSING_TAG.sub("\n", _TAG.sub(r"\n\1: ", text)).translate(_SPELLINGS)
    text = "".join(c for c in text if c.isascii() or unicodedata.category(c) not in ("So", "Sk", "Cf"))
    lines = (" ".join(line.split()) for line in _MARKS.sub("", _STAR.sub("-", text)).splitlines())
    said = mark_sides("\n".join(line for line in lines if any(map(str.isalnum, line)))).split("\n")
    said = [line for line in map(_without_bullet, said) if line]
    return _join_labels(said if len(said) <= _FIRST + _LAST else [*said[:_FIRST], _GAP, *said[-_LAST:]])


def _without_bullet(line: str) -> str:
    """Return the line without what makes it a heading or a point of a list; a point that is left open is no
    heading."""
    bullet = _BULLET.match(line)
    if bullet is None:
        return line
    rest = line[bullet.end() :]
    return (
        f"{rest};" if "#" not in bullet.group() and rest[-1:].isalnum() and not _NAMES.search(rest) else rest
    )


def _join_labels(lines: Sequence[str]) -> list[str]:
    """Return a label that has a line of its own goes before the next line."""
    joined: list[str] = []
    for line in lines:
        if joined and _BARE_LABEL.fullmatch(joined[-1]) and _read_form(line, alone=True):
            joined[-1] = f"{joined[-1].rstrip(' :')}: {line}"
        else:
            joined.append(line)
    return joined


def _unbox_answer(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 200) : match.start()].rpartition("\n")[2]
    return f" {match[1]}" if _SOMEBODY.search(before) else f"\nanswer: {match[1]}\n"


def _replace_json(text: str) -> str:
    """Return the text with an object that starts or ends it replaced by the answer which it holds."""
    start, end = text.find("{"), text.rfind("}") + 1
    if start < 0 or end <= start or (text[:start].strip() and text[end:].strip()):
        return text
    try:
        value = msgspec.json.decode(text[start:end].encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return text
    if not isinstance(value, dict):
        return text
    keys = {key: re.sub(r"[_-]", " ", key[:80]) for key in value if isinstance(key, str)}
    found = {_read_json_side(value[key]) for key, name in keys.items() if _KEY.fullmatch(name)} - {0}
    said = found.pop() if len(found) == 1 else None
    return "\n".join([text[:start], f"answer: {said}" if said else _GAP, text[end:]])


def _read_json_side(value: object) -> Choice | Literal[0] | None:
    """Return the side that a value of a JSON object names; 0 for a text, which may be about anything."""
    if isinstance(value, str) and len(value) > 40:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    form = _read_form(mark_sides(PRIVATE_USE.sub("", str(value)).strip()), alone=True)
    return form.choice if form else None


def _read_form(line: str, *, alone: bool) -> _Form | None:
    """Return the answer that a line is, `alone` in its reply; None if it is something else or more."""
    if len(line) > 400 or not _NAMES.search(line):
        return None
    match = _LINE.fullmatch(line.strip(_EDGE))
    if match is not None and "?" not in line:
        return _read_line_form(line, match)
    said = _STATED.fullmatch(line.strip(" \"'")) if "?" not in line else None
    if said is not None:
        choice = find_stated(line.strip(" \"'"))
        return _Form(_Kind.STATEMENT, choice) if choice is not None else None
    numbered = _NUMBERED.fullmatch(line) if alone else None
    if numbered is not None and find_stated(numbered["rest"]) == read_side(numbered["number"]):
        return _Form(_Kind.STATEMENT, read_side(numbered["number"]))
    return None


def _read_line_form(line: str, match: re.Match[str]) -> _Form | None:
    mark = match["side"]
    choice = read_side(mark) if mark else _ORDINALS[match["ordinal"].lower()]
    if (match["again"] and read_side(match["again"]) != choice) or (
        match["other"] and read_side(match["other"]) == choice
    ):
        return None
    named = bool(mark) and re.match(NAME, mark) is not None
    if match["label"] or match["output"]:
        final = match["output"] or _ALL_IN_ALL.search(match["label"])
        return _Form(_Kind.LABEL if final else _Kind.BETTER, choice)
    if match["answer"]:
        return _Form(_Kind.LABEL if named or "final" in match["answer"].lower() else _Kind.ANSWER, choice)
    if match["overall"]:
        bare_result = not named and not match["overall"].lower().startswith(("overall", "the overall"))
        return None if bare_result else _Form(_Kind.OVERALL, choice)
    if line.rstrip("\"' ").endswith(":"):
        return None
    if named:
        return _Form(_Kind.STATEMENT if match["filler"] else _Kind.NAME, choice)
    return _Form(_Kind.DIGIT if mark else _Kind.ORDINAL, choice)


def _choose_around_lesson(forms: Sequence[_Form | None]) -> Choice | None:
    """Return the labelled answer that starts or ends a reply which has lines of a lesson."""
    labelled = {form.choice for form in forms if form and form.kind in _LABELLED}
    ends = [form for form in (forms[-1], forms[0]) if form and form.kind in _LABELLED]
    return ends[0].choice if ends and len(labelled) == 1 else None


def _decide_side(lines: Sequence[str], forms: Sequence[_Form | None]) -> Choice | None:
    """Return the answer form at the end, at the start, or with a label that only a verdict has; else the
    prose's."""
    last = forms[-1] or _read_last_sentence(lines[-1])
    if len({form.choice for form in (*forms, last) if form and form.kind is not _Kind.NAME}) > 1:
        return None
    if last is not None:
        doubtful = _is_heading(forms, last) or (len(lines) > 1 and _is_about(lines[-2], lines[-1], last))
        return None if doubtful or states_other(split_sentences(lines), last.choice) else last.choice
    # The last line that has a label which only a verdict has.
    at = max((i for i, form in enumerate(forms) if form and form.kind is _Kind.LABEL), default=None)
    if (first := forms[0]) is not None and first.kind is not _Kind.STATEMENT:
        at = 0 if first.kind is not _Kind.NAME or _EXPLAINED.match(lines[1]) else at
    if at is None or (form := forms[at]) is None:
        return _read_prose(lines)
    doubtful = states_other(split_sentences(lines[:at]), form.choice)
    return None if doubtful or is_retracted(split_sentences(lines[at + 1 :]), form.choice) else form.choice


def _is_heading(forms: Sequence[_Form | None], last: _Form) -> bool:
    """Return whether a name that ends the reply looks like the second of two headings."""
    if last.kind is not _Kind.NAME:
        return False
    headings = {form.choice for form in forms[:-1] if form and form.kind is _Kind.NAME}
    return bool(headings) and last.choice not in headings


def _is_about(before: str, line: str, form: _Form) -> bool:
    """Return whether an answer without a label stands under a heading, which may be one criterion of
    several."""
    if form.kind is _Kind.DIGIT:
        return before.endswith(":") and is_heading(before)
    return (
        form.kind in (_Kind.NAME, _Kind.STATEMENT, _Kind.BETTER)
        and not CONCLUDED.match(line)
        and len(split_sentences([line])) == 1
        and is_heading(before)
    )


def _read_prose(lines: Sequence[str]) -> Choice | None:
    """Return the side that prose states, if no sentence of it is an answer for the other side."""
    said = split_sentences(lines)
    choice = find_preferred(said)
    if choice is None:
        return None
    forms = [_read_form(sentence, alone=False) for sentence in said]
    against = [form for form in forms if form and form.choice != choice]
    return None if any(form.kind is not _Kind.NAME or form is forms[-1] for form in against) else choice


def _read_last_sentence(line: str) -> _Form | None:
    """Return the labelled or concluding answer in which a line of several sentences ends."""
    parts = split_sentences([line])
    if len(parts) < 2 or parts[-2].endswith("?") or '"' in parts[-1]:
        return None
    before, last = parts[:-1], parts[-1]
    form = _read_form(last, alone=False)
    if form is None:
        return None
    counts = {
        _Kind.LABEL: True,
        _Kind.BETTER: not is_heading(before[-1]),
        _Kind.ANSWER: ":" in last,
        _Kind.STATEMENT: CONCLUDED.match(last) is not None,
        _Kind.DIGIT: not any(_QUOTES.search(part) for part in before),
    }
    return form if counts.get(form.kind) else None
