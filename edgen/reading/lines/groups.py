"""Which role lines make up one conversation: those under one heading, up to its end.

Role lines also stand where nobody speaks: inside a quoted turn, in an explanation behind the
probability, in a second conversation. Linear in the text's length.
"""

from __future__ import annotations

import re

from edgen.reading.lines.role_lines import RoleLine
from edgen.reading.text import surroundings
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.quotes import CLOSERS, find_closing

# What may follow a heading with a conversation under it, a role line apart.
_BEGINS = re.compile(r"\s*+(?:[\[{][^\S\n]*+$|```|~~~|[-=*_]{3,}[^\S\n]*+$)", re.MULTILINE)
_BLANK = re.compile(r"(?:[^\S\n]*+\n)*+")
_GIVES = re.compile(
    r"^(?:[^\w\n]|_){0,16}+(?:(?:the|final|estimated|overall|student['’]s)[ ]){0,3}(?:probability|likelihood)\b[^\n]{0,300}$",
    re.IGNORECASE | re.MULTILINE,
)
_EXPLANATION = re.compile(
    r"\s{1,20}(?:[^\w\n]|_){0,8}(?:analysis|notes?|explanation|reason(?:ing|s)?|summary|commentary|rationale|evaluation"
    r"|assessment|breakdown|justification)\b",
    re.IGNORECASE,
)
_PROSE = re.compile(r"[^\S\n]*\n(?:[^\S\n]*\n){1,9}[^\S\n]*(?=[^\s#=\-_][^\n]*\w)")

Group = tuple[list[RoleLine], int, int]


def split_groups(text: str, starts: list[RoleLine]) -> list[Group]:
    """The role lines under each heading, with where the text of the group begins and ends."""
    headings = [h for h in surroundings.HEADING.finditer(text) if h.start() > starts[0].start]
    groups: list[Group] = []
    begin = 0
    current: list[RoleLine] = []
    position = 0
    for number, line in enumerate(starts):
        between: list[int] = []
        while position < len(headings) and headings[position].start() < line.start:
            if (
                _BEGINS.match(text, headings[position].end())
                or _next_line(text, headings[position].end()) == line.start
            ):
                between.append(headings[position].start())
            position += 1
        # The first and the last are enough to look at, however many a turn holds.
        ends = dict.fromkeys((between[0], between[-1])) if between and current else ()
        found = next((at for at in ends if not _inside_quotes(text, starts, number, at)), None)
        if found is not None:
            groups.append((current, begin, found))
            current, begin = [], found
        current.append(line)
    groups.append((current, begin, len(text)))
    return groups


def _next_line(text: str, at: int) -> int:
    """Where the first line behind `at` starts that is not blank."""
    following = _BLANK.match(text, at)
    return following.end() if following is not None else at


def _inside_quotes(text: str, starts: list[RoleLine], number: int, at: int) -> bool:
    """Whether `at`, which stands before the role line of this number, is inside a quoted turn: its
    quotation marks are open there, and closed before the next quoted turn."""
    spoken = starts[number - 1].text
    if text[spoken : spoken + 40].lstrip()[:1] not in ('"', "“") or not _open(text, spoken, at):
        return False
    later = (starts[i] for i in range(number, len(starts)))
    quoted = (line.start for line in later if text[line.text : line.text + 40].lstrip()[:1] in ('"', "“"))
    behind = text[at : next(quoted, len(text))]
    return behind.count('"') % 2 == 1 or behind.count("”") > behind.count("“")


def has_heading(text: str, group: Group) -> bool:
    """Whether a heading stands before the group's first turn."""
    return surroundings.HEADING.search(text, group[1], group[0][0].start) is not None


def cut_at_end(text: str, lines: list[RoleLine], end: int) -> tuple[list[RoleLine], int]:
    """The role lines of the conversation alone, and where the text behind its last turn's part starts.

    It is over with the turn that holds the end marker, and with the probability that both sides
    spoke before and that an explanation follows: role lines behind these only speak about it.
    """
    bounds = [*(line.start for line in lines[1:]), end]
    given = _explained(text, lines, end)
    marked = may_mark(text[lines[0].text : lines[-1].start])
    for i, line in enumerate(lines[:-1]):
        if bounds[i] > given or (marked and find_marker(text[line.text : bounds[i]]) is not None):
            return lines[: i + 1], bounds[i]
    return lines, end


def _explained(text: str, lines: list[RoleLine], end: int) -> int:
    """Where a line gives the probability between two role lines, an explanation behind it; `end` if none
    does.

    Mere prose behind it may also be a lesson about probability: it counts only if neither another
    probability nor an end marker comes later, and no more turns follow than stand before.
    """
    both = next((i for i, line in enumerate(lines) if line.role != lines[0].role), len(lines))
    start = lines[both].text if both + 1 < len(lines) else end
    matches = list(_GIVES.finditer(text, start, end))
    last = len(text) if matches and find_marker(text[start:end]) else matches[-1].start() if matches else 0
    i = both
    for match in matches:
        while i + 1 < len(lines) and lines[i + 1].start <= match.start():
            i += 1
        if i + 1 == len(lines):
            break
        value = surroundings.value_of_line(match.group())
        if value is None or not any(c.isdigit() for c in value):
            continue
        following = lines[i + 1].start
        behind = text[match.end() : min(match.end() + 300, following)]
        ends = last < following and len(lines) <= 2 * (i + 1) and _PROSE.match(behind) is not None
        if (ends or _EXPLANATION.match(behind)) and not _quoted_at(text, lines[i].text, match.start()):
            return match.start()
    return end


def _quoted_at(text: str, start: int, at: int) -> bool:
    """Whether a turn whose text starts at `start` is still inside its quotation marks at `at`."""
    opener = text[start : min(start + 40, at)].lstrip()[:1]
    said = text[start:at].rstrip(" \t\r\n]},")
    return opener in ('"', "“") and not said[said.find(opener) + 1 :].endswith(('"', "”"))


def drop_nested(text: str, lines: list[RoleLine], end: int) -> list[RoleLine]:
    """Without role lines that stand inside a turn's open quotation marks.

    A turn is open if it starts with a quotation mark that its own lines do not close; role lines
    without quotation marks belong to it if one of them closes it before the next quoted turn.
    """
    bounds = [line.start for line in lines[1:]] + [end]
    quoted = [
        text[line.text : min(line.text + 40, bound)].lstrip()[:1] in ('"', "“")
        for line, bound in zip(lines, bounds, strict=True)
    ]
    if not any(quoted):
        return lines
    kept: list[RoleLine] = []
    i = 0
    while i < len(lines):
        kept.append(lines[i])
        following = i + 1
        if (
            quoted[i]
            and following < len(lines)
            and not quoted[following]
            and _open(text, lines[i].text, bounds[i])
        ):
            j = following
            while j < len(lines) and not quoted[j] and not _closes(text, lines[j].text, bounds[j]):
                j += 1
            if j < len(lines) and not quoted[j]:
                following = j + 1
        i = following
    return kept


def _open(text: str, start: int, end: int) -> bool:
    body = text[start:end].strip()
    if not body:
        return False
    return find_closing(body, CLOSERS[body[0]], 1, len(body)) < 0 and (
        body.count('"') % 2 == 1 or body[0] != '"'
    )


def _closes(text: str, start: int, end: int) -> bool:
    body = text[start:end].rstrip(" \t\r\n,]")
    return body.endswith(('"', "”")) and (body.count('"') % 2 == 1 or body.count("”") > body.count("“"))
