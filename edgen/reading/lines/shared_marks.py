"""Remove the marks that every turn of a reply has around its text: they belong to the layout.

    Teacher              ; Teacher         | Teacher || …       [turn1]            Teacher — *…*
    > Good morning!      : Good morning!   |-                   speaker = …        Student — *…*

A mark counts only if all turns have it (the last one may lack the marks after a turn), so that a quotation, a
list or an emphasis in some turns stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence

from edgen.core.text import compile_later
from edgen.reading.lines.columns import drop_columns, drop_quoted_cells
from edgen.reading.lines.counts import drop_counts, drop_last_counts
from edgen.reading.lines.headings import drop_headings
from edgen.reading.lines.labels import open_block
from edgen.reading.lines.line import Lines, RoleLine, decode_text, find_shape
from edgen.reading.text.characters import find_common_start
from edgen.reading.text.surroundings import read_value_of_line

_LEAST = 3  # turns: fewer may well agree by chance
_LEADING = "|>:=~»→-–—"  # marks with which speech never begins
_DASHES = "|>»—–"  # the same after a name and a colon, where the other marks may begin a list or a text
_BEFORE_COUNT = ("(", "[", "#")
_BULLETS = ("* ", "+ ", "• ")
_QUOTES = (">", "|", ":")  # marks at the beginning of each line of a text
_QUOTATION = tuple("\"'”’")
_FEW_EMPHASISED = 0.25  # of texts in italics: some may hold words in bold
_EMPHASIS = ("**", "__", "*", "_")
_MOST_BETWEEN = 4  # lines of the layout between two turns
_MOST_ENDS = 24  # characters
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}
# Before a text: `(smiling)`, `smiling_:`.
_STAGE = compile_later(r"\s*(?:[(\[][^\W\d][^()\[\]\n]{1,60}[)\]]|[^\W\d_]{2,20}[*_]{1,2}:)\s+(?=\S)")
_STAGED = compile_later(r"[_*]:")
_CHECKS = "✓✔☑✅"  # after messages that were read
_CHECKED = compile_later(rf"[ ]?[{_CHECKS}]+(?=[^\S\n]*(?:\n|\Z))")
_ENDS_NOTE = frozenset(")]*_")
_BRACKETED_LINE = compile_later(
    r"\n[^\S\n]*[*_]{0,3}(?:\([^()\n]{1,120}\)|\[[^\[\]\n]{1,120}\])[*_]{0,3}(?=\n|\Z)"
)
_CLOCK = compile_later(r"(?i)\s?[\[(]\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]m)?[\])]\Z")
_MOST_CLOCK = 20  # characters
_ENDING = frozenset(")]}><|/\\+#[{│┃║")  # first characters of the marks after a turn
_CLOSERS = _ENDING - {*"[{<\\#"}
# A name or a key before a text, and what separates them.
_NAME = compile_later(r"[^\W\d_][^\n\d:：=\"]{0,30}?(?:[ ]*(:|：|=(?=[ ]*\"))[ ]+|(</\w+>\s*<\w+>))")
_NUMBER = compile_later(r"\d+")
_BLANKS = compile_later(r"[^\S\n]+")
# Marks with words in them.
_TAGGED = compile_later(r"(?s)\\.*|\[[^\]]*\][ ,;.]*|(?:<(?!/s>)[^>|]*>[ ,;.]*)+|\{[^}]*\}[ ,;.]*|\#\w+:?0")
# What people type: `:)`, `;-)`, `(^_^)`, `\o/`.
SMILEY = compile_later(
    r"(?:[:;=8xX^>][-'^o_~*]{0,2}[()\[\]{}DPp/\\|3<>*]{1,3}|\([^\w\s()]{1,3}[_.o~][^\w\s()]{1,3}\)|\\?o/)\Z"
)
_SMILEY_FIRST = compile_later(r"[:;=][-'^o~]?[()\[\]DP]{1,3}(?=\s|\Z)")
_BLOCKQUOTE = compile_later(r"\n[^\S\n]{0,12}>[^\S\n]?")
_COMMAND = compile_later(r"\\(?:\\|[a-z]{2}|\Z)")  # of LaTeX: `\\`, `\par`; of Markdown: `\`
_KEYWORD = compile_later(r":[A-Z]{2,20}:")  # of Org mode
_LONGEST = 80  # characters of a line that belongs to the layout
_KEY = compile_later(r"([^\W\d_][\w-]{1,20}):[ ]")  # of a line at the head of a message: `Subject: verbs`


def drop_shared_marks(found: Lines, *, several: bool) -> bool:
    """Remove the marks that all turns have; return whether headings between turns were removed, too.

    `several`: a turn before the last may have several lines.
    """
    lines = found.lines
    if len(lines) < _LEAST:
        return False
    first = lines[0].body.strip()
    # A colon in front of a text on its line separates it already.
    if "\n" in first and _KEYWORD.match(first):
        _drop_first_lines(lines)
        first = lines[0].body.strip()
    start = first[:_LONGEST]
    keyed = ":" in start or "=" in start or "</" in start
    first = _drop_beginnings(lines, first, keyed=keyed)
    if "\n" in first:
        _drop_first_lines(lines)
        _drop_between(lines)
    if several:
        _drop_margin(lines)
    _drop_line_ends(lines)
    if lines[0].label.endswith("|") and "|" in first.strip("|") and "<|" not in lines[0].prefix:
        drop_columns(lines)
    elif lines[0].label.endswith((",", ";", "\t")):
        drop_quoted_cells(lines)
    if keyed:
        _drop_names(lines)
    if first.startswith(_EMPHASIS):
        _drop_emphasis(lines, next(filter(first.startswith, _EMPHASIS)))
    headed = several and drop_headings(lines)
    if several and [line.body.rstrip()[-1:] in _ENDS_NOTE for line in lines].count(True) >= _LEAST:
        _drop_notes(lines)
    return headed


def _drop_beginnings(lines: Sequence[RoleLine], first: str, *, keyed: bool) -> str:
    """Remove counts, marks and stage directions with which all texts begin, by the `first` text; return what
    is left of it, with the marks before it. `keyed`: it may begin with a name or a key."""
    separated = lines[0].kind == "colon" and lines[0].body[:1] != "\n"
    leading = _DASHES if separated else _LEADING
    if first[:1] in _BEFORE_COUNT:
        drop_counts(lines)
        first = lines[0].body.strip()
    elif first[1:2] in ("-", "+") and first[0] in ("|", ">"):
        for line in lines:
            open_block(line)
        first = lines[0].body.strip()
    if (first[:1] in leading and "«" not in first) or (
        not separated and unicodedata.category(first[:1] or "a") == "So"
    ):
        _drop_leading(lines, leading + first[:1])
    elif not separated and first.startswith(_BULLETS):
        _drop_leading(lines, first[0])
    elif (not separated and first[:1] in ("(", "[")) or (keyed and _STAGED.search(first, 0, _LONGEST)):
        _drop_stages(lines)
        first = lines[0].body.strip()
    return first


def _drop_line_ends(lines: Sequence[RoleLine]) -> None:
    """Remove counts, marks and ticks with which all texts end."""
    end = lines[0].body.rstrip()
    if end[-1:] in (")", "]") and end[-2:-1].isdigit():
        drop_last_counts(lines)
        end = lines[0].body.rstrip()
    tagged = end[-1:].isdigit() and "#" in end[-_MOST_ENDS:]
    if tagged or end.rstrip(",;.")[-1:] in _CLOSERS or "\\" in end[-9:]:
        _drop_ends(lines)
    if end[-1:] in _CHECKS and all(line.body.rstrip()[-1:] in _CHECKS for line in lines[:-1]):
        _drop_checks(lines)


def without_quote_marks(found: Lines) -> Lines:
    """Return the lines of a Markdown quotation without the marks before them."""
    for line in found.lines:
        line.prefix = _BLOCKQUOTE.sub("", "\n" + line.prefix, 1).lstrip("\n")
        line.label = _BLOCKQUOTE.sub("\n", line.label, 1)
        line.body = _BLOCKQUOTE.sub("\n", line.body)
    found.lead = _BLOCKQUOTE.sub("\n", found.lead)
    return found


def _drop_leading(lines: Sequence[RoleLine], leading: str) -> None:
    """Remove the marks with which all texts begin."""
    texts = [line.body.lstrip() for line in lines]
    if all(map(_SMILEY_FIRST.match, texts)):
        return
    marks = texts[0][: len(texts[0]) - len(texts[0].lstrip(f"{leading} "))]
    marks = find_common_start([marks, *texts])
    if not marks.strip() or any(text == marks for text in texts):
        return
    for line, text in zip(lines, texts, strict=True):
        line.body = text[len(marks) :]
        if (mark := marks.strip()) in _QUOTES or unicodedata.category(mark[0]) == "So":
            line.body = line.body.replace(f"\n{marks}", "\n")
        if line.body.startswith('"'):
            decode_text(line)


def _drop_stages(lines: Sequence[RoleLine]) -> None:
    """Remove the words in brackets with which all texts begin: `(smiling)`."""
    stages = [_STAGE.match(line.body) for line in lines]
    if all(stages):
        for line, stage in zip(lines, stages, strict=True):
            line.body = line.body[stage.end() :] if stage else line.body


def _drop_first_lines(lines: Sequence[RoleLine]) -> None:
    """Remove the lines with which all texts begin, apart from numbers and roles: `Today at 9:30`."""
    roles = {line.role.lower() for line in lines}
    below = all(line.body.lstrip(" \t")[:1] == "\n" for line in lines)  # the labels
    for _ in range(_MOST_BETWEEN):
        texts = [line.body.strip().partition("\n") for line in lines]
        firsts = [text[0] for text in texts]
        keyed = below and have_key(firsts) and _stand_above_texts([text[2] for text in texts])
        if not all(text[2] for text in texts) or not (keyed or _are_similar(firsts, roles)):
            return
        spoken = not (keyed or any(map(str.isdigit, firsts[0])) or _KEYWORD.fullmatch(firsts[0]))
        if spoken and len({*firsts}) == 1:
            return
        for line, text in zip(lines, texts, strict=True):
            line.body = text[2]


def have_key(lines: Sequence[str]) -> bool:
    """Return whether short lines have the same key: `Subject: verbs`."""
    keys = {found[1] if len(line) <= _LONGEST and (found := _KEY.match(line)) else "" for line in lines}
    return len(keys) == 1 and keys != {""}


def _stand_above_texts(below: Sequence[str]) -> bool:
    """Return whether a blank line or another key follows the first lines of some texts."""
    return all(text[:1] == "\n" for text in below) or have_key([text.partition("\n")[0] for text in below])


def _drop_margin(lines: Sequence[RoleLine]) -> None:
    """Remove the margin that the further lines of turns share."""
    if margin := find_margin([line.body for line in lines[:-1]]):
        for line in lines:
            line.body = line.body.replace(f"\n{margin}", "\n")


def find_margin(texts: Sequence[str]) -> str:
    """Return the blanks with which the further lines of texts begin, if all share them and several texts have
    words after no more blanks; else nothing. Blanks before lists and code alone may belong to them."""
    further = [
        lines
        for text in texts
        if "\n" in text and (lines := [*filter(str.strip, text.strip().split("\n")[1:])])
    ]
    if len(further) < _LEAST:
        return ""
    start = find_common_start([line for lines in further for line in lines])
    margin = start[: len(start) - len(start.lstrip(" \t"))]
    worded = [any(line[len(margin)].isalpha() for line in lines) for lines in further] if margin else []
    return margin if worded.count(True) >= _LEAST else ""


def _are_similar(lines: list[str], roles: Collection[str] = ()) -> bool:
    """Return whether short lines are the same, numbers and roles apart."""
    if lines[0] == lines[-1] and lines.count(lines[0]) == len(lines):
        return True
    words = len(lines[0].split())
    if any(len(line) > _LONGEST or len(line.split()) != words for line in lines):
        return False
    shapes = (["role" if kind in roles else kind for kind in find_shape(line.strip())] for line in lines)
    first = next(shapes)
    return all(shape == first for shape in shapes)


def _drop_ends(lines: Sequence[RoleLine]) -> None:
    """Remove the marks with which all texts end: `),`, `"/>`, `[10:05]`.

    The last text may lack the part that separates a text from the next.
    """
    bodies = [line.body.rstrip() for line in lines[:-1]]
    clocks = [
        _CLOCK.search(body, max(0, len(body) - _MOST_CLOCK)) for body in bodies if body[-1:] in (")", "]")
    ]
    if len(clocks) == len(bodies) and all(clocks):
        for line, clock in zip(lines, clocks, strict=False):
            line.body = line.body[: clock.start()] if clock else line.body
        said, rest, below = lines[-1].body.partition("\n")
        lines[-1].body = _CLOCK.sub("", said) + rest + below
        return
    shared = find_common_start([body[: -_MOST_ENDS - 1 : -1] for body in bodies])[::-1]
    if literal := not _ENDING.isdisjoint(shared):
        shared = shared.lstrip(" ")
    else:
        ends = [_BLANKS.sub(" ", _NUMBER.sub("0", body[-_MOST_ENDS:])) for body in bodies]
        shared = find_common_start([end[::-1] for end in ends])[::-1]
    start = next((at for at, mark in enumerate(shared) if mark in _ENDING), -1)
    if start < 0 or (any(map(str.isalnum, shared[start:])) and not _TAGGED.fullmatch(shared, start)):
        return
    quoted = shared[:start].endswith(_QUOTATION)
    shared = shared[start:]
    opening = _OPENING.get(shared[0])
    if (
        opening is not None
        and not quoted
        and any(body.count(opening) >= body.count(shared[0]) for body in bodies)
    ):
        return
    if any(body.strip() == shared for body in bodies) or all(map(SMILEY.search, bodies)):
        return
    if "\\" in shared and not _COMMAND.search(shared):
        return
    quotes = [
        body[: -len(shared)][-1:] in _QUOTATION or "(" in line.label
        for line, body in zip(lines, bodies, strict=False)
    ]
    if shared.rstrip(" ,;.")[-1:] == ")" and not all(quotes):
        return
    mark = re.escape(shared.rstrip(" ,;.")).replace("0", r"\d+").replace(r"\ ", r"[^\S\n]+")
    pattern = re.compile(rf"{mark}[ ,;.]*(?=\n|\Z)")
    if quoted and all(body.count('"') % 2 for body in bodies):
        pattern = re.compile(rf"[\"']{pattern.pattern}")  # the label has the other quotation mark
    for line, body in zip(lines, bodies, strict=False):
        end = -len(shared) if literal and not quoted else [*pattern.finditer(body)][-1].start()
        line.body = body[:end]
    lines[-1].body = pattern.sub("", lines[-1].body, count=1)


def _drop_checks(lines: Sequence[RoleLine]) -> None:
    """Remove the marks of read messages at the ends of the texts' last lines."""
    for line in lines[:-1]:
        line.body = line.body.rstrip().rstrip(_CHECKS)
    said, rest = lines[-1].body, ""
    if (found := _CHECKED.search(said)) is not None:
        said, rest = said[: found.start()], said[found.end() :]
    lines[-1].body = said + rest


def _drop_between(lines: Sequence[RoleLine]) -> None:
    """Remove the lines with which all bodies end in front of the next turn, apart from numbers.

    After the last turn, a line that begins like the first of these lines says something else: `[result]`.
    """
    roles = {line.role.lower() for line in lines}
    bodies = [line.body.rstrip().split("\n")[-_MOST_BETWEEN - 1 :] for line in lines[:-1]]
    shared = 0
    most = min(map(len, bodies)) - 1
    while shared < most:
        ends = [body[-1 - shared] for body in bodies]
        if not (_are_similar(ends, roles) or have_key(ends)):
            break
        if any(not "".join(body[: -1 - shared]).strip() for body in bodies):
            break  # the only line of a text
        shared += 1
    while shared and not bodies[0][-shared].strip():
        shared -= 1
    if not shared:
        return
    for line in lines[:-1]:
        line.body = line.body.rstrip().rsplit("\n", shared)[0]
    last = lines[-1].body.split("\n")
    same = next(
        (place for place, line in enumerate(last) if _are_similar([bodies[0][-shared], line], roles)), 0
    )
    if same:
        lines[-1].body = "\n".join([*last[:same], *last[same + 1 :]])
    elif not (mark := bodies[0][-shared].lstrip()[0]).isalnum():
        pattern = rf"\n[^\S\n]*{re.escape(mark)}[^\n]{{0,40}}(?=\n|\Z)"
        found = re.search(pattern, lines[-1].body)
        if found is not None and read_value_of_line(found[0][1:]) is None:
            lines[-1].body = f"{lines[-1].body[: found.start()]}\n{lines[-1].body[found.end() :]}"


def _drop_notes(lines: Sequence[RoleLine]) -> None:
    """Remove lines in brackets under all turns, or under several if they differ in numbers only."""
    ends = [line.body.rstrip().rpartition("\n") for line in lines]
    forms = [
        _NUMBER.sub("0", last) if said.strip() and _BRACKETED_LINE.fullmatch(f"\n{last}") else ""
        for said, _, last in ends
    ]
    whole = forms.count("") <= 1
    for line, (said, _, _), form in zip(lines, ends, forms, strict=True):
        line.body = said if form and (whole or forms.count(form) >= _LEAST) else line.body
    if whole:
        lines[-1].body = _BRACKETED_LINE.sub("", lines[-1].body, 1)


def _drop_names(lines: Sequence[RoleLine]) -> None:
    """Remove a name or a key with which all texts of each role begin: `Ann: `, `text = `."""
    if _NAME.match(lines[0].body[:_LONGEST].lstrip()) is None:
        return
    starts: dict[str, list[str]] = {}
    for line in lines:
        starts.setdefault(line.role, []).append(line.body[:_LONGEST].strip())
    names = {role: _NAME.match(find_common_start(texts)) for role, texts in starts.items()}
    if len(starts) < 2 or (min(map(len, starts.values())) < _LEAST and not _are_other_roles(names)):
        return
    marks = {(name[1] or name[2]) if name else "" for name in names.values()}
    same = len({name[0] if name else "" for name in names.values()}) == 1
    if len(marks) > 1 or not all(marks) or (same and marks <= {":", "："}):  # `Note: ` is speech
        return
    for line in lines:
        name = names[line.role]
        line.body = line.body.lstrip()[name.end() :] if name else line.body


def _are_other_roles(names: Mapping[str, re.Match[str] | None]) -> bool:
    """Return whether the name at the beginning of each role's texts is another role's."""
    others = {role: {other.lower() for other in names if other != role} for role in names}
    return all(
        name is not None and name[0].rstrip(" :：").lower() in others[role] for role, name in names.items()
    )


def _drop_emphasis(lines: Sequence[RoleLine], mark: str) -> None:
    """Remove the marks between which all texts stand. Few of them may hold more of these."""
    texts = [line.body.strip() for line in lines]
    # Lines below the last turn do not belong to the turn.
    texts[-1] = texts[-1].partition("\n")[0].rstrip()
    length = len(mark)
    if not all(len(text) > 2 * length and text.startswith(mark) and text.endswith(mark) for text in texts):
        return
    if sum(mark[0] in text[length:-length] for text in texts) > len(texts) * _FEW_EMPHASISED:
        return
    for line, text in zip(lines, texts, strict=True):
        line.body = line.body.replace(text, text[length:-length], 1)
