"""Turns in a layout that no rule knows, found by the frame that all labels share.

    1 / Teacher / …    Turn(role="teacher", text="…"),    - **Speaker:** Teacher    P1 = Teacher, P2 = Student
                                                            **Text:** …             P1: …
    | Teacher | Student |      “…,” said the teacher.       say('teacher', "…");
    | …       | …       |          … [Teacher]              Then the teacher asked: “…”

The text is rewritten as lines `Teacher: …`. A frame is what stands before a speaker's word on its line and
what follows it, numbers, letters of a list and hours apart. It counts only if two speakers have it at least
twice each, and if it holds a mark that no sentence has. Without a frame, each line may hold one quotation and
one speaker outside of it, or end with its speaker. This is tried only where nothing else finds two speakers.
Linear in the text's length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.reading.lines.line import TOKEN, RoleLine, decode_text, find_kind, find_shape
from edgen.reading.lines.speakers import Speakers, list_abbreviations, list_known_speakers
from edgen.reading.roles import ARTICLES, RolePattern, RoleWords
from edgen.reading.text.characters import find_common_start, fold
from edgen.reading.text.marker import may_mark

_LEAST = 2  # turns of each speaker
_LEFT = 60  # characters before a speaker's word
_RIGHT = 60  # characters of a frame after it
_MOST_LABELS = 400  # of a conversation in an unknown layout
_MOST = 0.75  # of the lines that begin alike, which go on alike
_ALTERNATING = 6  # labels with nothing but a full stop
_HEAD = 800  # characters in which a legend may stand
_AROUND = 90  # characters of a line outside of its quotation
_LAST_WORD = compile_later(r"(?<!\w)[^\W\d_]{1,5}[ ']?\Z")
# Marks that a sentence has as well; with these alone nothing is a label.
_SENTENCE = frozenset(".,!?;'’()[… \"“”„")
_QUOTES = "\"'“”„«»‹›「」『』"
_PAIRS = {"[": "]", "(": ")", "{": "}", "<": ">", "#": "#", "=": "=", "*": "*", "|": "|", "%": "%", "~": "~"}
# `P1 = Teacher`, `Q: the teacher`, `A stands for the student`; `Ann (teacher)`; `the teacher (Q)`.
_LEGEND = RolePattern(
    r"(?<!\w)(?P<short>[A-Z][\w.]{0,15}|[^\W_a-z]\w{0,2}|[^\w\s]{1,4})[*_`\"'/]{0,3}\s?(?:=|:|->|→|–|-|is"
    r"|stands for|for)\s?(?:the\s|an?\s)?[*_`\"']{0,3}(?P<role>(?i:ROLE))(?![^\W\d_])"
    r"|(?:(?m:^)[^\w\n]{0,6}|[:,;][ ](?:and[ ])?)(?P<person>[A-Z][\w.'’-]{0,19}(?:[ ][A-Z][\w.'’-]{0,19}){0,2})[*_]{0,3}[ "
    r"]\((?:the\s|an?\s)?(?P<of>(?i:ROLE))\)|(?i:ROLE)[ ]\((?P<letter>[A-Z])\)"
)
_BULLETS = "*_-–—|#>.:•·=~"  # in front of a name, of which none is a speaker's sign
_LEGEND_MARKS = ("=", ":", ">", "→", "–", "-", "is", "for", "(")
_COLUMNS = compile_later(r"(?m)^(?P<head>[^\n]{0,80}\|[^\n]{0,80})\n[|: -]{5,}\n")
_CHANCE = compile_later(r"(?i)\n(?P<left>[^\n]{0,60}?)(?:probability|likelihood|chance)[^\w\n]{0,12}(?=\d)")
_CELL = compile_later(r"(?<!\\)\|")
# What opens a quotation, and what closes it: the last of these on the line.
_CLOSED_BY = {'"': '"', "“": '”"', "„": '“”"', "«": "»", "「": "」", "—": "—", "–": "–"}
_OPENS = compile_later("[" + "".join(_CLOSED_BY) + "]")
# What stands before a speaker who is named after a text.
_SIGNS = compile_later(r"(?:[-–—]{1,2}|[\[(<|]|[\"”»][ ]?[,;|])[^\S\n]?[*_\"']{0,3}\Z")
_QUOTED_LINE = compile_later(r"(?m)^> ?")
_ENDS_SIGN = " .,;:*_\"')]>|\n"
_AFTER_SIGN = frozenset(_ENDS_SIGN)


class _Label(NamedTuple):
    """A speaker's word: the start of its line, its end, its role, and the shape of the text before it."""

    start: int
    end: int
    role: str
    left: tuple[str, ...]


def rewrite_frames(text: str, roles: RoleWords) -> str | None:
    """Return the text with its turns as lines `Teacher: …`; None if no frame makes out two speakers."""
    defined, below = _read_legend(text, roles)
    if defined is not None:
        labels = [label for label in _find_labels(text, defined) if label.start >= below]
        return _rewrite_labels(text, labels, defined=True)
    known = list_known_speakers(roles).select_within(text)
    return (
        _rewrite_labels(text, _find_labels(text, known))
        or _rewrite_labels(text, _find_labels(text, list_abbreviations(roles).select_within(text)))
        or _rewrite_columns(text, known)
        or _rewrite_quotations(text, known)
        or _rewrite_signed(text, known)
    )


def _read_legend(text: str, roles: RoleWords) -> tuple[Speakers | None, int]:
    """Return the short names that a reply's legend gives the speakers, and the end of one at its beginning.

    (None, 0) if it does not name two speakers.
    """
    known = list_known_speakers(roles).words
    found: dict[str, str] = {}
    end = 0
    parts = (text,) if len(text) < 2 * _HEAD else (text[:_HEAD], text[-_HEAD // 2 :])
    for part in parts:
        for match in _LEGEND.of(roles).finditer(part) if _may_define(part, roles) else ():
            short = match["short"] or match["person"] or match["letter"]
            role = match["role"] or match["of"] or match[0].partition(" ")[0]
            if short.lower() not in known and find_kind(short) != "am" and not _is_no_sign(short):
                found.setdefault(short, known[role.lower()])
                end = match.end() if part is parts[0] and match.end() < len(text) // 2 else end
    return (Speakers(found, exact=True), end) if len({*found.values()}) > 1 else (None, 0)


def _is_no_sign(short: str) -> bool:
    """Return whether a short name is a number of two digits or more, or marks that stand before any name."""
    return not short.strip(_BULLETS) or (len(short) > 1 and short.isdigit())


def _may_define(part: str, roles: RoleWords) -> bool:
    """Return whether a text may say who speaks under a short name: cheap, as it is asked of every text."""
    lowered = part.lower()
    shorts: set[str] = set()
    for name in roles.by_name:
        defined = len(shorts)
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            if lowered.startswith(" (", end):
                shorts.add(part[end : end + 3])
            near = max(0, at - 40)
            before = part[part.rfind("\n", near, at) + 1 or near : at].rstrip("*_`\"' ")
            if len(before) > 1:
                before = before.removesuffix(" the").removesuffix(" an").removesuffix(" a").rstrip()
                mark = next((mark for mark in _LEGEND_MARKS if before.endswith(mark)), None)
                short = [] if mark is None else before[: -len(mark)].removesuffix(" stands ").split()[-1:]
                shorts.update(one for one in short if not one[0].islower())
            at = lowered.find(name, end)
        if len(shorts) == defined:
            return False
    return True


def _find_labels(text: str, speakers: Speakers) -> list[_Label]:
    """Return the first speaker's word of every line."""
    labels: list[_Label] = []
    below = 0  # start of the line after the last label's
    for at, end, role in speakers.find_in(text):
        if at < below:
            continue
        start = text.rfind("\n", below, at) + 1 or below
        if at - start <= _LEFT:
            labels.append(_Label(start, -end, role, find_shape(_without_article(text[start:at]))))
        below = text.find("\n", -end) + 1
        if not below:
            break
    return labels


def _without_article(before: str) -> str:
    """Return a text without an article at its end."""
    if not before[-1:].isalpha() and not before[-2:-1].isalpha():  # most
        return before
    found = _LAST_WORD.search(before, max(0, len(before) - 7))
    return (
        before[: found.start()] if found is not None and found[0].lower().rstrip(" '") in ARTICLES else before
    )


def _rewrite_labels(text: str, labels: Sequence[_Label], *, defined: bool = False) -> str | None:
    """Return the text with the labels of the most frequent frame as `Teacher:`.

    `defined`: a legend says who speaks under them.
    """
    by_left: dict[tuple[str, ...], list[_Label]] = {}
    for label in labels:
        by_left.setdefault(label.left, []).append(label)
    for left, same in sorted(by_left.items(), key=lambda item: -len(item[1])):
        if len(same) > _MOST_LABELS:
            return None
        if not _speak([label.role for label in same]):
            break
        kept = [
            (label, end) for label, end in zip(same, _find_rights(text, same), strict=True) if end is not None
        ]
        right = text[kept[0][0].end : kept[0][1]] if kept else ""
        if len(kept) < len(same) and any(map(str.strip, left)):
            continue  # a label in another form would leave its words to somebody else
        spoken = [label.role for label, _ in kept]
        if _speak(spoken) and (
            _separates(left, right, spoken, defined=defined) or _are_quoted(text, left, kept)
        ):
            return _as_lines(_with_probability(text, left, kept[-1][1]), kept)
    return None


def _speak(spoken: Sequence[str]) -> bool:
    """Return whether two of the roles that speak do so often enough."""
    counts = sorted(Counter(spoken).values())
    return len(counts) > 1 and counts[-2] >= _LEAST and counts[-1] <= 3 * counts[-2]


def _find_rights(text: str, labels: Sequence[_Label]) -> list[int | None]:
    """Return the end of each label's frame, the longest that most share; None for a label without it."""
    rights = [text[label.end : label.end + _RIGHT] for label in labels]
    # All share these tokens; a word or blanks at the end may be the beginning of longer ones.
    shared = TOKEN.findall(find_common_start(rights))
    if shared and (shared[-1].isalnum() or shared[-1][0] in " \t"):
        del shared[-1]
    ends = dict.fromkeys(range(len(labels)), sum(map(len, shared)))
    while True:
        each = [token[0] if (token := TOKEN.match(rights[i], end)) else "" for i, end in ends.items()]
        kinds = each[:1] * len(each) if each.count(each[0]) == len(each) else [*map(_find_kind, each)]
        if _is_name([(labels[i].role, token) for i, token in zip(ends, each, strict=True)]):
            kinds = ["name"] * len(kinds)
        kind = kinds[0] if kinds.count(kinds[0]) == len(kinds) else Counter(kinds).most_common(1)[0][0]
        if not kind or kinds.count(kind) < _MOST * len(labels):
            break
        going = [(i, len(token)) for i, one, token in zip(ends, kinds, each, strict=True) if one == kind]
        if len(going) < len(ends) and not _speak([labels[i].role for i, _ in going]):
            break
        ends = {i: ends[i] + length for i, length in going}
    # Quotation marks at its end are the text's own.
    return [
        label.end + len(rights[i][: ends[i]].rstrip(_QUOTES)) if i in ends else None
        for i, label in enumerate(labels)
    ]


def _is_name(tokens: Sequence[tuple[str, str]]) -> bool:
    """Return whether each speaker has a word of its own after the role, as in `<teacher_ann>`."""
    names = {*tokens}
    return 1 < len(names) == len(dict(names)) < len(tokens) // _LEAST and all(
        token.isalpha() for _, token in names
    )


def _find_kind(token: str) -> str:
    """Return the kind of a token, with one kind of quotation marks."""
    return "" if not token else '"' if token in _QUOTES else find_kind(token)


def _separates(left: tuple[str, ...], right: str, spoken: Sequence[str], *, defined: bool) -> bool:
    """Return whether what stands before and after a speaker's word makes it a label."""
    bare = right.strip()
    if bare == "." or (defined and not bare and not left):
        return len(spoken) >= _ALTERNATING and all(map(str.__ne__, spoken, spoken[1:]))
    marks = {mark for mark in right if not mark.isalnum()}
    if marks - _SENTENCE or right[:1] == "\n" or (len(bare) > 2 and not any(map(str.isalnum, bare))):
        return bare[-1:] not in ("(", ",")
    opened = next((mark for mark in reversed(left) if mark != " "), "")
    return _PAIRS.get(opened, "") in bare if opened in _PAIRS and bare else opened in ("(", "/", "@")


def _are_quoted(text: str, left: tuple[str, ...], labels: Sequence[tuple[_Label, int]]) -> bool:
    """Return whether a quotation that ends its line follows each label: `say("Teacher", "…");`."""
    for label, end in labels:
        below = text.find("\n", end)
        line = text[end : below if below >= 0 else len(text)]
        mark = line[:1]
        if not mark or mark not in _QUOTES:
            return False
        close = line.rfind(_CLOSED_BY.get(mark, mark)[0], 1)
        if close < 2 or any(map(str.isalnum, line[close + 1 :])):
            return False
        if not left and text[label.end : end].strip(" ,;"):
            return False
    return True


def _with_probability(text: str, left: tuple[str, ...], start: int) -> str:
    """Return the text with a later probability in the frame `left` on a line of its own.

    The first one after `start` counts. Without one, the text is unchanged.
    """
    for line in _CHANCE.finditer(text, start):
        if find_shape(line["left"]) == left:
            return f"{text[: line.start()]}\nProbability: {text[line.end() :]}"
    return text


def _as_lines(text: str, labels: Sequence[tuple[_Label, int]]) -> str | None:
    """Return the text with these labels as lines; None where tags are left in most turns."""
    starts = [label.start for label, _ in labels[1:]]
    bodies = [text[end:start] for (_, end), start in zip(labels, [*starts, len(text)], strict=True)]
    if sum("</" in body or "&lt;/" in body for body in bodies) > len(bodies) // 2:
        return None  # markup that is broken somewhere
    lines = [
        _render_line(label.role, body.strip(), text[label.end : end])
        for (label, end), body in zip(labels, bodies, strict=True)
    ]
    return "\n".join([text[: labels[0][0].start].rstrip(), *lines])


def _render_line(role: str, said: str, label: str = "") -> str:
    """Return a turn as a line, quoted letters decoded."""
    line = RoleLine(role, label, said, "")
    if said.startswith(('"', "'")):
        decode_text(line)
    return f"{role}: {line.body}"


def _rewrite_columns(text: str, known: Speakers) -> str | None:
    """Return the text with the rows of a table whose columns are the speakers as lines."""
    head = _COLUMNS.search(text) if "|" in text and "--" in text else None
    if head is None:
        return None
    speakers = [
        known.words.get(cell.strip(" *_").lower()) for cell in head["head"].strip().strip("|").split("|")
    ]
    if len(speakers) != 2 or None in speakers or speakers[0] == speakers[1]:
        return None
    lines: list[str] = []
    rest = text[head.end() :].split("\n")
    rows = [*takewhile(lambda line: "|" in line, rest)]
    for line in rows:
        cells = [cell.strip() for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]
        if len(cells) != len(speakers):
            return None
        lines += [f"{role}: {cell}" for role, cell in zip(speakers, cells, strict=True) if cell]
    return "\n".join([text[: head.start()], *lines, "", *rest[len(rows) :]])


def _rewrite_quotations(text: str, known: Speakers) -> str | None:
    """Return the text with lines of one quotation and one speaker outside of it as `Teacher: “…”`.

    Between the first of them and the last, no other line may hold a quotation: its words would be lost.
    """
    if sum(map(text.count, _CLOSED_BY)) < 2 * _LEAST:
        return None
    lines = text.split("\n")
    spoken = {
        place: said for place, line in enumerate(lines) if (said := _find_quotation(line.strip(), known))
    }
    if not _speak([role for role, _ in spoken.values()]):
        return None
    first, last = min(spoken), max(spoken)
    if any(place not in spoken and _may_quote(lines[place].strip()) for place in range(first, last)):
        return None
    return "\n".join(
        [_render_line(*spoken[place]) if place in spoken else line for place, line in enumerate(lines)]
    )


def _may_quote(line: str) -> bool:
    return line[:1] in _CLOSED_BY or any(mark in line for mark in _CLOSED_BY if mark not in "—–")


def _find_quotation(line: str, known: Speakers) -> tuple[str, str] | None:
    """Return who speaks in a line and the quotation, with its marks; None unless there is one of each."""
    if not line or (opened := _OPENS.search(line, 0, _AROUND)) is None:
        return None
    start, mark = opened.start(), opened[0]
    dash = mark in "—–"
    if dash and start:
        return None
    end = max(line.rfind(close, start + 1) for close in _CLOSED_BY[mark])
    behind = line[end + 1 :]
    if end < start + 2 or start + len(behind) > _AROUND:
        return None
    roles = {role for part in (line[:start], behind) if part for _, _, role in known.find_in(part)}
    if len(roles) != 1:
        return None
    said = line[1:end].strip() if dash else line[start : end + 1]
    return roles.pop(), said + behind if may_mark(fold(behind)) else said


def _rewrite_signed(text: str, known: Speakers) -> str | None:
    """Return the text with paragraphs or lines that end with who speaks, as `… [Teacher]`, as lines."""
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    if len(paragraphs) <= 2 * _LEAST:
        paragraphs = text.split("\n")
    lines: list[str] = []
    spoken: list[str] = []
    for paragraph in paragraphs:
        signed = _find_signer(paragraph.rstrip(), known)
        if signed is not None:
            spoken.append(signed[0])
            paragraph = f"{signed[0]}: {signed[1]}"
        lines.append(paragraph)
    counts = sorted(Counter(spoken).values())
    enough = len(counts) > 1 and counts[0] >= _LEAST and len(spoken) * 2 > len(lines)
    return "\n\n".join(lines) if enough else None


def _find_signer(paragraph: str, known: Speakers) -> tuple[str, str] | None:
    """Return who signs a paragraph, and the text above or before this; None if nobody does."""
    begin = max(0, len(paragraph) - _LEFT)
    sign = paragraph[begin:]
    if sign.rstrip(_ENDS_SIGN).lower().endswith(known.known):
        for start, end, role in reversed(known.find_in(sign)):
            start, end = begin + start, begin - end
            if not _AFTER_SIGN.issuperset(paragraph[end:]):
                return None
            before = _without_article(paragraph[:start])
            mark = _SIGNS.search(before, max(0, len(before) - 8))
            said = before[: mark.start()] if mark is not None else _cut_before_verb(before)
            if not said.strip():
                return None
            return role, (_QUOTED_LINE.sub("", said) if ">" in said else said).strip()
    return None


def _cut_before_verb(before: str) -> str:
    """Return the text before `, dit le`, where it begins with a dash; nothing without one."""
    said, comma, verb = before.rpartition(",")
    return said.lstrip("—–- ") if comma and before[:1] in "—–-" and len(verb.split()) in (1, 2) else ""
