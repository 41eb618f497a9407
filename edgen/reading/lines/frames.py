"""Cut a text in an unknown layout at its labels, which have their frame in common.

    1 / Teacher / …    Turn(role="teacher", text="…"),    - **Speaker:** Teacher    P1 = Teacher, P2 = Student
                                                            **Text:** …             P1: …
    | Teacher | Student |      “…,” said the teacher.       say('teacher', "…");
    | …       | …       |          … [Teacher]              Then the teacher asked: “…”

A frame is the text around a speaker's word in a label; numbers, letters of a list and hours may differ. A
frame counts if two speakers have it at least twice each, and if it holds a mark that sentences lack. Without
a frame, each line may hold one quotation and one speaker outside the quotation, or end with its speaker.
Frames are tried only if no other rule finds two speakers. Linear in the text's length.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from operator import ne

from edgen.core.text import compile_later
from edgen.reading.lines.columns import cut_at_cells, decode, find_opening_mark, gather_lines
from edgen.reading.lines.frame_ends import LEAST, QUOTES, SpeakerLabel, find_frame_ends, speak
from edgen.reading.lines.legend import read_legend
from edgen.reading.lines.line import Lines, find_shape, keep
from edgen.reading.lines.role_lines import split_lines
from edgen.reading.lines.speakers import Speakers, list_abbreviations, list_known_speakers
from edgen.reading.roles import ARTICLES, TITLES, RoleWords
from edgen.reading.text.characters import fold
from edgen.reading.text.marker import may_mark

_LEFT = 60  # characters before a speaker's word
_MOST_LABELS = 400  # labels of a conversation in an unknown layout
_ALTERNATING = 6  # labels with nothing but a full stop
_AROUND = 90  # characters of a line outside of its quotation
# A person's name before the role, as in `Ann, Teacher:`.
_NAME_BEFORE = compile_later(r"[A-Z][\w'’-]*\.?(?: [A-Z][\w'’-]*\.?){0,2}(?=,? [(\[]\Z|, \Z| ?[-–—/|] ?\Z)")
_EMOJI = compile_later(r"(?:[\u2600-\u27bf\U0001f300-\U0001faff][\u200d\ufe0f\U0001f3fb-\U0001f3ff]*)+ ?")
_LAST_WORD = compile_later(r"(?<!\w)([^\W\d_]{1,5})(?:[ ']|\.[ ])?\Z")
_BEFORE_NAMES = ARTICLES.union(TITLES)
# Marks that a sentence has as well; with these alone nothing is a label.
_SENTENCE = frozenset(".,!?;'’()[… \"“”„")
_PAIRS = {"[": "]", "(": ")", "{": "}", "<": ">", "#": "#", "=": "=", "*": "*", "|": "|", "%": "%", "~": "~"}
_CHANCE = compile_later(r"(?i)\n(?P<left>[^\n]{0,60}?)(?:probability|likelihood|chance)[^\w\n]{0,12}(?=\d)")
# What opens a quotation, and what closes it: the last of these on the line.
_CLOSED_BY = {'"': '"', "“": '”"', "„": '“”"', "«": "»", "「": "」", "—": "—", "–": "–"}
_OPENS = compile_later("[" + "".join(_CLOSED_BY) + "]")
# What stands before a speaker who is named after a text.
_SIGNS = compile_later(r"(?:[-–—]{1,2}|[\[(<|]|[\"”»][ ]?[,;|])[^\S\n]?[*_\"']{0,3}\Z")
_CLOSES = '"”»'
_BEFORE_TEXT = " |>*_-0123456789.)"
_QUOTED_LINE = compile_later(r"(?m)^> ?")
_ENDS_SIGN = " .,;:*_\"')]>|\n"
_AFTER_SIGN = frozenset(_ENDS_SIGN)


def cut_at_frames(text: str, roles: RoleWords) -> Lines | None:
    """Return a text cut at its labels in an unknown layout; None if no layout has two speakers."""
    found = _cut_text(text, roles)
    return None if found is None else _cut_inside_turns(found, roles)


def _cut_text(text: str, roles: RoleWords) -> Lines | None:
    """Return a text cut in the first manner that finds two speakers; None if none does."""
    defined, below = read_legend(text, roles)
    if defined is not None:
        labels = [label for label in _find_labels(text, defined) if label.start >= below]
        if (cut := _cut_at_labels(text, labels, defined=True)) is not None:
            return cut
    known = list_known_speakers(roles).select_within(text)
    return (
        _cut_at_labels(text, _find_labels(text, known))
        or _cut_at_labels(text, _find_labels(text, list_abbreviations(roles)))
        or cut_at_cells(text, known)
        or _cut_at_quotations(text, known)
        or _cut_at_signed_texts(text, known)
    )


def _cut_inside_turns(found: Lines, roles: RoleWords) -> Lines:
    """Return the text also cut at lines such as `Teacher: …` before and inside the turns.

    Otherwise the words after these labels would become part of another speaker's turn.
    """
    head = _cut_at_plain_labels(found.head, roles)
    lines = [*head.lines]
    for line in found.lines:
        lines.append(line)
        said, _, below = line.body.partition("\n")
        if ":" in below or "：" in below:
            inside = _cut_at_plain_labels(below, roles)
            line.body = said + inside.lead
            lines += inside.lines
    return found if len(lines) == len(found.lines) else Lines(head.lead, lines)


def _cut_at_plain_labels(text: str, roles: RoleWords) -> Lines:
    """Return a text cut at its lines such as `Teacher: …`."""
    labelled = (":" in text or "：" in text) and any(map(text.lower().__contains__, roles.by_name))
    if not labelled:
        return Lines(f"\n{text}", [])
    found = split_lines(text, roles)
    plain = [line for line in found.lines if line.kind == "colon" and not (line.form or line.aliased)]
    return keep(found, plain)


def _find_labels(text: str, speakers: Speakers) -> list[SpeakerLabel]:
    """Return the first speaker's word of every line."""
    labels: list[SpeakerLabel] = []
    names: dict[str, set[str]] = {}  # roles by the name of a person before them
    below = 0  # start of the line after the last label's
    for at, end, role in speakers.find_in(text):
        if at < below:
            continue
        start = text.rfind("\n", below, at) + 1 or below
        if at - start <= _LEFT:
            before = _without_article(text[start:at])
            before = before if before.isascii() else _EMOJI.sub("", before)
            if before[:1].isupper() and (name := _NAME_BEFORE.match(before)) is not None:
                names.setdefault(name[0], set()).add(role)
            labels.append(SpeakerLabel(start, -end, role, _find_left(before)))
        below = text.find("\n", -end) + 1
        if not below:
            break
    known = len(names) == 2 and all(len(named) == 1 for named in names.values())
    for shape in map(find_shape, names if known else ()):
        labels = [
            label._replace(left=("name", *label.left[len(shape) :]))
            if label.left[: len(shape)] == shape
            else label
            for label in labels
        ]
    return labels


def _find_left(before: str) -> tuple[str, ...]:
    """Return the shape of the text before a speaker's word, with one kind of quotation marks."""
    shape = find_shape(before.lstrip(" "))
    return (*shape[:-1], '"') if shape and before[-1] in QUOTES else shape


def _without_article(before: str) -> str:
    """Return a text without an article or a title at its end."""
    if before[-2:] != ". " and not before[-1:].isalpha() and not before[-2:-1].isalpha():  # most
        return before
    found = _LAST_WORD.search(before, max(0, len(before) - 7))
    return before[: found.start()] if found is not None and found[1].lower() in _BEFORE_NAMES else before


def _cut_at_labels(text: str, labels: Sequence[SpeakerLabel], *, defined: bool = False) -> Lines | None:
    """Return the text cut at the labels of the most frequent frame.

    `defined`: a legend says who speaks under them.
    """
    by_left: dict[tuple[str, ...], list[SpeakerLabel]] = {}
    for label in labels:
        by_left.setdefault(label.left, []).append(label)
    if len(by_left) > 1:
        left, same = max(by_left.items(), key=lambda item: len(item[1]))
        first = labels[0].left
        if first != left and len(first) == len(left) and sum(map(ne, first, left)) == 1:
            same.insert(0, labels[0])  # the first may begin the list, or the sentence
    for left, same in sorted(by_left.items(), key=lambda item: -len(item[1])):
        if len(same) > _MOST_LABELS:
            return None
        if not speak([label.role for label in same]):
            break
        kept = [
            (label, end)
            for label, end in zip(same, find_frame_ends(text, same), strict=True)
            if end is not None
        ]
        right = text[kept[0][0].end : kept[0][1]] if kept else ""
        if len(kept) < len(same) and any(map(str.strip, left)):
            continue  # words after a label in another form would become part of another turn
        spoken = [label.role for label, _ in kept]
        if speak(spoken) and (
            _separates(left, right, spoken, defined=defined) or _are_quoted(text, left, kept)
        ):
            return _cut_around_labels(_with_probability(text, left, kept[-1][1]), kept)
    return None


def _separates(left: tuple[str, ...], right: str, spoken: Sequence[str], *, defined: bool) -> bool:
    """Return whether what stands before and after a speaker's word makes it a label."""
    bare = right.strip()
    if not bare and len(right) > 1 and right[0] != "\n":
        return True  # columns
    if bare.lstrip("0123456789") in (".", ")") or (defined and not bare and not left):  # `T1.`
        return len(spoken) >= _ALTERNATING and all(map(str.__ne__, spoken, spoken[1:]))
    marks = {mark for mark in right if not mark.isalnum()}
    if marks - _SENTENCE or right[:1] == "\n" or (len(bare) > 2 and not any(map(str.isalnum, bare))):
        return bare[-1:] not in ("(", ",")
    opened = next((mark for mark in reversed(left) if mark != " "), "")
    return _PAIRS.get(opened, "") in bare if opened in _PAIRS and bare else opened in ("(", "/", "@")


def _are_quoted(text: str, left: tuple[str, ...], labels: Sequence[tuple[SpeakerLabel, int]]) -> bool:
    """Return whether a quotation that ends its line follows each label: `say("Teacher", "…");`."""
    for label, end in labels:
        below = text.find("\n", end)
        line = text[end : below if below >= 0 else len(text)]
        mark = line[:1]
        if not mark or mark not in QUOTES:
            return False
        close = line.rfind(_CLOSED_BY.get(mark, mark)[0], 1)
        if close < 2 or any(map(str.isalnum, line[close + 1 :])):
            return False
        if not left and text[label.end : end].strip(" ,;")[-1:] not in ("", "("):
            return False
    return True


def _with_probability(text: str, left: tuple[str, ...], start: int) -> str:
    """Return the text with a later probability in the frame `left` on a line of its own.

    The first one after `start` counts. Without one, the text is unchanged.
    """
    for line in _CHANCE.finditer(text, start):
        if _find_left(line["left"]) == left:
            return f"{text[: line.start()]}\nProbability: {text[line.end() :]}"
    return text


def _cut_around_labels(text: str, labels: Sequence[tuple[SpeakerLabel, int]]) -> Lines | None:
    """Return the text cut at these labels; None where tags are left in most turns."""
    starts = [label.start for label, _ in labels[1:]]
    bodies = [text[end:start] for (_, end), start in zip(labels, [*starts, len(text)], strict=True)]
    broken = [body for body in bodies if "</" in body or "&lt;/" in body] if "/" in text else []
    if len(broken) > len(bodies) // 2:
        return None  # markup that is broken somewhere
    if all(text[label.end : end].rstrip()[-1:] == "=" for label, end in labels):
        bodies = [*map(html.unescape, bodies)]  # an attribute has the text
    # One mark opened the name and the text: `print("Teacher: …")`.
    opened = find_opening_mark(text, *labels[0][0][:2])
    marks = [find_opening_mark(text, *label[:2]) for label, _ in labels] if opened else [""]
    if all(marks):
        bodies = [mark + body.lstrip() for mark, body in zip(marks, bodies, strict=True)]
    turns = [
        (label.role, decode(body.strip(), text[label.end : end]))
        for (label, end), body in zip(labels, bodies, strict=True)
    ]
    return gather_lines([(None, text[: labels[0][0].start].rstrip()), *turns])


def _cut_at_quotations(text: str, known: Speakers) -> Lines | None:
    """Return the text cut at lines of one quotation and one speaker outside of it.

    Between the first of them and the last, no other line may hold a quotation: its words would be lost.
    """
    if sum(map(text.count, _CLOSED_BY)) < 2 * LEAST:
        return None
    lines = text.split("\n")
    spoken = {
        place: said for place, line in enumerate(lines) if (said := _find_quotation(line.strip(), known))
    }
    if not speak([role for role, _ in spoken.values()]):
        return None
    first, last = min(spoken), max(spoken)
    if any(place not in spoken and _may_quote(lines[place].strip()) for place in range(first, last)):
        return None
    turns = {
        place: (role, decode(said, '",' if '""' in said else "")) for place, (role, said) in spoken.items()
    }
    return gather_lines([turns.get(place, (None, line)) for place, line in enumerate(lines)])


def _may_quote(line: str) -> bool:
    return line[:1] in _CLOSED_BY or any(mark in line for mark in _CLOSED_BY if mark not in "—–")


def _find_quotation(line: str, known: Speakers) -> tuple[str, str] | None:
    """Return the role and the quotation, with its marks, of a line; None unless the line has one of each."""
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


def _cut_at_signed_texts(text: str, known: Speakers) -> Lines | None:
    """Return the text cut at paragraphs or lines that end with who speaks, as `… [Teacher]`."""
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    if len(paragraphs) <= 2 * LEAST:
        paragraphs = text.split("\n")
    parts = [_find_signer(paragraph.rstrip(), known) or (None, paragraph) for paragraph in paragraphs]
    spoken = [role for role, _ in parts if role is not None]
    counts = sorted(Counter(spoken).values())
    enough = len(counts) > 1 and counts[0] >= LEAST and len(spoken) * 2 > len(parts)
    return gather_lines(parts, "\n\n") if enough else None


def _find_signer(paragraph: str, known: Speakers) -> tuple[str, str] | None:
    """Return the role that signs a paragraph and the text before the signature; None without a signature."""
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
            if mark is not None and mark[0][0] == said[:1] == '"':
                said = decode(f'{said}"', '",')
            elif mark is not None and mark[0][0] in _CLOSES and not _OPENS.match(said.lstrip(_BEFORE_TEXT)):
                said += mark[0][0]  # of a quotation at the end of the text
            if not said.strip():
                return None
            return role, (_QUOTED_LINE.sub("", said) if ">" in said else said).strip()
    return None


def _cut_before_verb(before: str) -> str:
    """Return the text before `, dit le`, where it begins with a dash; nothing without one."""
    said, comma, verb = before.rpartition(",")
    return said.lstrip("—–- ") if comma and before[:1] in "—–-" and len(verb.split()) in (1, 2) else ""
