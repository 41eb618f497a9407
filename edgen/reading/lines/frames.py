"""Turns in a layout that no rule knows, found by the frame that all labels share.

    1 / Teacher / …    Turn(role="teacher", text="…"),    - **Speaker:** Teacher    P1 = Teacher, P2 = Student
                                                            **Text:** …             P1: …
    | Teacher | Student |      “…,” said the teacher.
    | …       | …       |          … [Teacher]

The text is rewritten as lines `Teacher: …`. A frame is what stands before a speaker's word on its line and
what follows it, numbers, letters of a list and hours apart. It counts only if two speakers have it at least
twice each, and if a mark that no sentence has is part of it. This is tried only where nothing else finds two
speakers. Linear in the text's length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from edgen.core.lazy_patterns import compile_later
from edgen.reading.lines.line import TOKEN, RoleLine, kind_of, shape_of
from edgen.reading.lines.role_lines import decode_text
from edgen.reading.roles import ARTICLES, RolePattern, RoleWords

_LEAST = 2  # turns of each speaker
_LEFT = 60  # characters before a speaker's word
_RIGHT = 60  # characters of a frame after it
_MOST_LABELS = 400  # of a conversation in an unknown layout
_MOST = 0.75  # of the lines that begin alike, which go on alike
_BEGINNING = 6  # letters of an abbreviation, and one more
_ALTERNATING = 6  # labels with nothing but a full stop
_HEAD = 800  # characters in which a legend may stand
_ARTICLE = compile_later(rf"(?i)\b(?:{'|'.join(sorted(ARTICLES))})[ ']?\Z")
# Marks that a sentence has as well; with these alone nothing is a label.
_SENTENCE = frozenset(".,;!?'’()[… \"“”„")
_QUOTES = "\"'“”„«»"
_PAIRS = {"[": "]", "(": ")", "{": "}", "<": ">", "#": "#", "=": "=", "*": "*", "|": "|", "%": "%", "~": "~"}
# `P1 = Teacher`, `Q: the teacher`, `A stands for the student`; `Teacher (T)`.
_LEGEND = RolePattern(
    r"(?<!\w)(?P<short>[A-Z][\w.]{0,15}|[^\W_a-z]\w{0,2}|[^\w\s]{1,4})[*_`\"']{0,3}\s?(?:=|:|->|→|–|-|is|stands for|for)\s?(?:the\s|an?\s)?[*_`\"']{0,3}(?P<role>(?i:ROLE))(?![^\W\d_])"
    r"|(?m:^)[^\w\n]{0,6}(?P<person>[A-Z][\w.'’-]{0,19}(?:[ ][A-Z][\w.'’-]{0,19}){0,2})[*_]{0,3}[ ]\((?:the\s|an?\s)?(?P<of>(?i:ROLE))\)"
)
_COLUMNS = r"(?im)^\|?[ ]*[*_]{0,2}(?P<one>%s)[*_]{0,2}[ ]*\|[ ]*[*_]{0,2}(?P<two>%s)[*_]{0,2}[ ]*\|?[ ]*\n[|: -]{5,}\n"
_CHANCE = compile_later(r"(?i)\n(?P<left>[^\n]{0,60}?)(?:probability|likelihood|chance)[^\w\n]{0,12}(?=\d)")
_CELL = compile_later(r"(?<!\\)\|")
_SAID = compile_later(
    r"\A\s*(?P<text>(?P<open>[\"“«„—–])[^\n]*)(?P<close>[\"”»“—–])[ ]?(?P<by>[^\n\"”»“]{3,60})[.:]?\s*\Z"
)


_SIGNED = compile_later(
    r"(?s)\A(?P<text>.*\S)\s*(?:[-–—]{1,2}[^\S\n]*(?P<dash>)|[\[(<](?P<bracket>))(?:the )?(?P<who>[^\W\d_]{2,30})(?(bracket)[\])>])[.]?\s*\Z"
)


class _Label(NamedTuple):
    """A speaker's word: the start of its line, its end, its role, and the shape of the text before it."""

    start: int
    end: int
    role: str
    left: tuple[str, ...]


def rewrite_frames(text: str, roles: RoleWords) -> str | None:
    """Return the text with its turns as lines `Teacher: …`; None if no frame makes out two speakers."""
    words, below = _legend(text, roles)
    if words:
        labels = _labels(text, words, _pattern_of((*words,)))
        return _rewritten(text, [label for label in labels if label.start >= below])
    words, pattern = _compile_role_words(roles)
    return (
        _rewritten(text, _labels(text, words, pattern))
        or _rewritten(text, _labels(text, *_abbreviations(roles)))
        or _rewrite_columns(text, words)
        or _rewrite_said(text, words, pattern)
        or _rewrite_signed(text, words)
    )


@cache
def _compile_role_words(roles: RoleWords) -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Return the role of each word for one, in any language, of two letters or more, and their pattern."""
    words = {word: role for word, role in roles.aliases.items() if len(word) > 1}
    for i, some in enumerate(roles.foreign()):
        words |= dict.fromkeys(some, roles.names[i])
    words |= roles.by_name
    return words, _pattern_of((*words,), "(?i)")


def _pattern_of(words: tuple[str, ...], flags: str = "") -> re.Pattern[str]:
    return re.compile(rf"{flags}(?<![^\W\d_])(?:{_join_alternatives(words)})(?![^\W\d_])")


def _join_alternatives(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def _legend(text: str, roles: RoleWords) -> tuple[Mapping[str, str], int]:
    """Return the short names that a reply's legend gives the speakers, and the end of one at its beginning.

    ({}, 0) if it does not name two speakers.
    """
    known, _ = _compile_role_words(roles)
    found: dict[str, str] = {}
    end = 0
    tail = max(_HEAD, len(text) - _HEAD // 2)
    for match in (*_LEGEND.of(roles).finditer(text[:_HEAD]), *_LEGEND.of(roles).finditer(text, tail)):
        short, role = match["short"] or match["person"], match["role"] or match["of"]
        if short.lower() not in known and kind_of(short) != "am":
            found.setdefault(short, known[role.lower()])
            end = match.end() if match.start() < _HEAD else end
    return (found, end) if len({*found.values()}) > 1 else ({}, 0)


@cache
def _abbreviations(roles: RoleWords) -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Return the beginnings that only one role's name has (`T`, `Stu.`), and their pattern."""
    starts = [(name[:length].title(), name) for name in roles.names for length in range(1, _BEGINNING)]
    each = Counter(start for start, _ in starts)
    words = {start: name for start, name in starts if each[start] == 1}
    return words, _pattern_of((*words,))


def _labels(text: str, words: Mapping[str, str], pattern: re.Pattern[str]) -> list[_Label]:
    """Return the first speaker's word of every line."""
    labels: list[_Label] = []
    last = -1
    for match in pattern.finditer(text):
        begin = max(0, match.start() - _LEFT - 1)
        start = text.rfind("\n", begin, match.start()) + 1
        if (not start and begin) or start == last:
            continue
        last = start
        left = _ARTICLE.sub("", text[start : match.start()])
        labels.append(
            _Label(start, match.end(), words.get(match[0]) or words[match[0].lower()], shape_of(left))
        )
    return labels


def _kind(token: str) -> str:
    """Return the kind of a token, with one kind of quotation marks."""
    return '"' if token in _QUOTES else kind_of(token)


def _rewritten(text: str, labels: Sequence[_Label]) -> str | None:
    """Return the text with the labels of the most frequent frame as `Teacher:`."""
    by_left: dict[tuple[str, ...], list[_Label]] = {}
    for label in labels:
        by_left.setdefault(label.left, []).append(label)
    for left, same in sorted(by_left.items(), key=lambda item: -len(item[1])):
        if len(same) > _MOST_LABELS:
            return None
        if not _speak(same):
            break
        found = _find_rights(text, same)
        kept = [(label, end) for label, end in zip(same, found, strict=True) if end is not None]
        right = text[kept[0][0].end : kept[0][1]] if kept else ""
        if len(kept) < len(same) and any(map(str.strip, left)):
            continue  # a label in another form would leave its words to somebody else
        if _speak([label for label, _ in kept]) and _separates(left, right, kept):
            return _as_lines(_with_probability(text, left, kept[-1][1]), kept)
    return None


def _speak(labels: Sequence[_Label]) -> bool:
    """Return whether two speakers have labels enough."""
    counts = sorted(Counter(label.role for label in labels).values())
    return len(counts) > 1 and counts[-2] >= _LEAST and counts[-1] <= 3 * counts[-2]


def _find_rights(text: str, labels: Sequence[_Label]) -> list[int | None]:
    """Return the end of each label's frame, the longest that most share; None for a label without it."""
    tokens = [[*TOKEN.finditer(text, label.end, label.end + _RIGHT)] for label in labels]
    within = [*range(len(labels))]
    depth = 0
    while True:
        kinds = Counter(_kind(tokens[i][depth][0]) for i in within if depth < len(tokens[i]))
        kind, count = kinds.most_common(1)[0] if kinds else ("", 0)
        if count < _MOST * len(labels) or not kind:
            break
        going = [i for i in within if depth < len(tokens[i]) and _kind(tokens[i][depth][0]) == kind]
        if not _speak([labels[i] for i in going]):
            break
        within, depth = going, depth + 1
    ends: list[int | None] = [None] * len(labels)
    for i in within:
        shared = tokens[i][:depth]
        while shared and shared[-1][0] in _QUOTES:  # the text's own
            shared.pop()
        ends[i] = shared[-1].end() if shared else labels[i].end
    return ends


def _separates(left: tuple[str, ...], right: str, labels: Sequence[tuple[_Label, int]]) -> bool:
    """Return whether what stands before and after a speaker's word makes it a label."""
    if right.strip() == ".":
        roles = [label.role for label, _ in labels]
        return len(roles) >= _ALTERNATING and all(map(str.__ne__, roles, roles[1:]))
    marks = {mark for mark in right if not mark.isalnum()}
    if marks - _SENTENCE or right[:1] == "\n":
        return right.rstrip()[-1:] not in ("(", ",")
    opened = next((mark for mark in reversed(left) if mark != " "), "")
    return (
        _PAIRS.get(opened, "") in right.strip()
        if opened in _PAIRS and right.strip()
        else opened in ("(", "/", "@")
    )


def _with_probability(text: str, left: tuple[str, ...], start: int) -> str:
    """Return the text with a later probability in the frame `left` on a line of its own.

    The first one after `start` counts. Without one, the text is unchanged.
    """
    for line in _CHANCE.finditer(text, start):
        if shape_of(line["left"]) == left:
            return f"{text[: line.start()]}\nProbability: {text[line.end() :]}"
    return text


def _as_lines(text: str, labels: Sequence[tuple[_Label, int]]) -> str | None:
    """Return the text with these labels as lines; None where tags are left in most turns."""
    starts = [label.start for label, _ in labels[1:]]
    bodies = [text[end:start] for (_, end), start in zip(labels, [*starts, len(text)], strict=True)]
    if sum("</" in body or "&lt;/" in body for body in bodies) > len(bodies) // 2:
        return None  # markup that is broken somewhere
    lines = [
        RoleLine(label.role, "", body.strip(), "") for (label, _), body in zip(labels, bodies, strict=True)
    ]
    for line in lines:
        if line.body.startswith('"'):
            decode_text(line)
    return "\n".join([text[: labels[0][0].start].rstrip(), *[f"{line.role}: {line.body}" for line in lines]])


def _rewrite_columns(text: str, words: Mapping[str, str]) -> str | None:
    """Return the text with the rows of a table whose columns are the speakers as lines."""
    choices = _join_alternatives(tuple(words))
    head = re.search(_COLUMNS % (choices, choices), text)
    if head is None or words[head["one"].lower()] == words[head["two"].lower()]:
        return None
    speakers = [words[head[name].lower()] for name in ("one", "two")]
    lines: list[str] = []
    for line in (rest := text[head.end() :].split("\n")):
        if "|" not in line:
            break
        cells = [cell.strip() for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]
        if len(cells) != len(speakers):
            return None
        lines += [f"{role}: {cell}" for role, cell in zip(speakers, cells, strict=True) if cell]
    behind = rest[len(rest) - (len(rest) - sum("|" in line for line in rest)) :]
    return "\n".join([text[: head.start()], *lines, "", *behind])


def _rewrite_said(text: str, words: Mapping[str, str], pattern: re.Pattern[str]) -> str | None:
    """Return the text with paragraphs such as `“…,” said the teacher.` as lines."""
    lines: list[str] = []
    spoken: list[str] = []
    quoted = 0
    for line in text.split("\n"):
        found = _SAID.match(line)
        named = {words[name.lower()] for name in pattern.findall(found["by"])} if found is not None else set()
        quoted += line.lstrip()[:1] in ('"', "“", "«", "„", "—")
        if found is None or len(named) != 1:
            lines.append(line)
            continue
        spoken += named
        close = "" if found["open"] in "—–" else found["close"]
        said = found["text"] if close else found["text"][1:]
        lines.append(f"{spoken[-1]}: {said.strip()}{close}")
    counts = sorted(Counter(spoken).values())
    enough = len(counts) > 1 and counts[0] >= _LEAST and len(spoken) == quoted
    return "\n".join(lines) if enough else None


def _rewrite_signed(text: str, words: Mapping[str, str]) -> str | None:
    """Return the text with paragraphs or lines that end with who speaks, as `… [Teacher]`, as lines."""
    paragraphs = re.split(r"\n[^\S\n]*\n\s*", text)
    if len(paragraphs) <= 2 * _LEAST:
        paragraphs = text.split("\n")
    lines: list[str] = []
    signed: list[str] = []
    for paragraph in paragraphs:
        found = _SIGNED.match(paragraph)
        role = words.get(found["who"].lower()) if found is not None else None
        if found is None or role is None:
            lines.append(paragraph)
            continue
        signed.append(role)
        lines.append(f"{role}: {re.sub(r'(?m)^> ?', '', found['text']).strip()}")
    counts = sorted(Counter(signed).values())
    enough = len(counts) > 1 and counts[0] >= _LEAST and len(signed) * 2 > len(lines)
    return "\n\n".join(lines) if enough else None
