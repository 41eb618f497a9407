"""Which role lines make up one conversation: those under one heading, up to its end.

Role lines also stand where nobody speaks: inside a quoted turn, in an explanation behind the probability, in a second
conversation. Linear in the text's length.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise

from edgen.reading.lines.role_lines import RoleLine
from edgen.reading.text import surroundings
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.quotes import CLOSERS, find_closing

# What may follow a heading with a conversation under it, a role line apart.
_BEGINS = re.compile(r"(?m)\s*+(?:[\[{][^\S\n]*+$|```|~~~|[-=*_]{3,}[^\S\n]*+$)")
_BLANK = re.compile(r"(?:[^\S\n]*+\n)*+")
_GIVES = re.compile(
    r"(?im)^(?:[^\w\n]|_){0,16}+(?:(?:the|final|estimated|overall|student['’]s)[ ]){0,3}(?:probability|likelihood)\b[^\n]{0,300}$"
)
_EXPLANATION = re.compile(
    r"(?i)\s{1,20}(?:[^\w\n]|_){0,8}(?:analysis|notes?|explanation|reason(?:ing|s)?|summary|commentary|rationale|evaluation"
    r"|assessment|breakdown|justification)\b"
)
_PROSE = re.compile(r"[^\S\n]*\n(?:[^\S\n]*\n){1,9}[^\S\n]*(?=[^\s#=\-_][^\n]*\w)")

Group = tuple[list[RoleLine], int, int]


def split_groups(text: str, starts: list[RoleLine]) -> list[Group]:
    """The role lines under each heading, with where the text of the group begins and ends."""
    lines = {line.start for line in starts}
    headings = [
        heading.start()
        for heading in surroundings.HEADING.finditer(text, starts[0].text)
        if _BEGINS.match(text, heading.end()) or _next_line(text, heading.end()) in lines
    ]
    cuts = [(0, 0)]
    for number, (before, line) in enumerate(pairwise(starts), 1):
        between = headings[bisect_left(headings, before.start) : bisect_left(headings, line.start)]
        # The first and the last are enough to look at, however many a turn holds.
        ends = dict.fromkeys((*between[:1], *between[-1:]))
        cuts += [(number, at) for at in ends if not _inside_quotes(text, starts, number, at)][:1]
    cuts.append((len(starts), len(text)))
    return [(starts[first:last], begin, end) for (first, begin), (last, end) in pairwise(cuts)]


def _next_line(text: str, at: int) -> int:
    """Where the first line behind `at` starts that is not blank."""
    following = _BLANK.match(text, at)
    return following.end() if following is not None else at


def _inside_quotes(text: str, starts: list[RoleLine], number: int, at: int) -> bool:
    """Whether `at`, before the role line of this number, is inside a turn's quotation marks, which close behind it."""
    if not _is_quoted_open(text, starts[number - 1].text, at):
        return False
    later = (starts[i] for i in range(number, len(starts)))
    quoted = (line.start for line in later if _is_quoted(text, line.text))
    return _closes_one(text[at : next(quoted, len(text))])


def has_heading(text: str, group: Group) -> bool:
    """Whether a heading stands before the group's first turn."""
    return surroundings.HEADING.search(text, group[1], group[0][0].start) is not None


def cut_at_end(text: str, lines: list[RoleLine], end: int) -> tuple[list[RoleLine], int]:
    """The role lines of the conversation alone, and where the text behind its last turn starts.

    It ends with the turn that holds the end marker, or at the probability, once both sides spoke and an explanation
    follows: later role lines only speak about it.
    """
    bounds = [*(line.start for line in lines[1:]), end]
    given = _explained(text, lines, end)
    marked = may_mark(text[lines[0].text : lines[-1].start])
    for i, line in enumerate(lines[:-1]):
        if bounds[i] > given or (marked and find_marker(text[line.text : bounds[i]]) is not None):
            return lines[: i + 1], bounds[i]
    return lines, end


def _explained(text: str, lines: list[RoleLine], end: int) -> int:
    """Where a line gives the probability between two role lines, an explanation behind it; `end` if none does.

    Mere prose behind it may be a lesson about probability: it counts only if neither another probability nor an end
    marker comes later, and no more turns follow than stand before.
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
        if (ends or _EXPLANATION.match(behind)) and not _is_quoted_open(text, lines[i].text, match.start()):
            return match.start()
    return end


def drop_nested(text: str, lines: list[RoleLine], end: int) -> list[RoleLine]:
    """Without role lines inside a turn's open quotation marks: those without quotation marks that follow a quoted turn,
    up to the one that closes it, if that comes before the next quoted turn."""
    bounds = [*(line.start for line in lines[1:]), end]
    quoted = [_is_quoted(text, line.text, bound) for line, bound in zip(lines, bounds, strict=True)]
    kept: list[RoleLine] = []
    i = 0
    while i < len(lines):
        kept.append(lines[i])
        i += 1
        turn_ends = i == len(lines) or quoted[i] or not quoted[i - 1]
        if not turn_ends and _is_quoted_open(text, lines[i - 1].text, bounds[i - 1]):
            stops = (j for j in range(i, len(lines)) if quoted[j] or _closes(text, lines[j].text, bounds[j]))
            stop = next(stops, None)
            if stop is not None and not quoted[stop]:
                i = stop + 1
    return kept


def _is_quoted(text: str, start: int, end: int | None = None) -> bool:
    """Whether a turn whose text starts at `start` begins with a quotation mark."""
    return text[start : start + 40 if end is None else min(start + 40, end)].lstrip()[:1] in ('"', "“")


def _is_quoted_open(text: str, start: int, end: int) -> bool:
    """Whether such a turn begins with a quotation mark that is still open at `end`."""
    body = text[start:end].strip()
    if body[:1] not in ('"', "“") or not _is_quoted(text, start, end):
        return False
    return find_closing(body, CLOSERS[body[0]], 1, len(body)) < 0 and (
        body[0] != '"' or body.count('"') % 2 == 1
    )


def _closes(text: str, start: int, end: int) -> bool:
    body = text[start:end].rstrip(" \t\r\n,]")
    return body.endswith(('"', "”")) and _closes_one(body)


def _closes_one(text: str) -> bool:
    """Whether more quotation marks close in a text than open."""
    return text.count('"') % 2 == 1 or text.count("”") > text.count("“")
