"""Select the lines of one conversation: the role lines under one heading, up to the conversation's end.

A role line starts a turn. Role lines also occur inside a quoted turn, in an explanation after the
probability and in a second conversation; the rules here leave them out. `Inside` lists the marks and words
of all turns once, and a rule whose marks or words are missing does not run. Linear in the length.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from edgen.core.text import compile_later
from edgen.reading.roles import RoleWords
from edgen.reading.text import surroundings
from edgen.reading.text.characters import find_marks, fold
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.quotes import CLOSERS, find_closing

_SCANNER = json.JSONDecoder()
_TRIPLE = ('"""', "'''")
TOKEN = compile_later(r"\d+|[^\W\d_]+|[^\w\s]|_|\n|[^\S\n]+")
# The line after a conversation's heading, if it is not a role line.
_BEGINS = compile_later(r"(?m)\s*+(?:[\[{][^\S\n]*+$|```|~~~|[-=*_]{3,}[^\S\n]*+$)")
_GIVES = compile_later(
    r"(?i)\n(?>(?:[^\w\n]|_){0,16})(?:(?:the|final|estimated|overall|student['’]s)[ ]){0,3}(?:probability"
    r"|likelihood)\b[^\n]{0,300}(?=\n|\Z)"
)
_EXPLANATION = compile_later(
    r"(?i)\s[\W_]{0,30}(?:analysis|notes?|explanation|reason(?:ing|s)?|summary|commentary"
    r"|rationale|evaluation|assessment|breakdown|justification)\b"
)
_NOTE = compile_later(r"[*_]{0,3}(?:\[([^\[\]\n]{0,80})\]|\(([^()\n]{0,80})\))[*_]{0,3}")
_DOUBLE = frozenset('"“')
_PROSE = compile_later(r"[^\S\n]*\n(?:[^\S\n]*\n){1,9}[^\S\n]*(?=[^\s#=\-_][^\n]*\w)")


class RoleLine(msgspec.Struct, gc=False):
    """A line that starts a turn, with the text up to the next such line."""

    role: str  # role that speaks
    label: str  # text of the label, from the line break before it on
    body: str  # text between this label and the next one
    prefix: str  # text before the role's name
    kind: str = "colon"  # what separates name and text: "colon", "tag", "alone" (a line break) or "dash"
    named: bool = False  # a name or a note stands next to the role
    aliased: bool = False  # another word stands for the role
    form: str = ""  # how the role is written; "" for the bare word
    start: int = 0  # offset of the line in the text, set only for the reader of one turn
    text: int = 0  # offset of what follows the label, set only for the reader of one turn


class Lines(msgspec.Struct):
    """A text cut at the lines that start a turn.

    lead: the text before the first such line, from a line break on.
    lines: the lines that start a turn.
    plain: whether each is a role's bare name and a colon.
    """

    lead: str
    lines: list[RoleLine]
    plain: bool = False

    @property
    def head(self) -> str:
        """The text before the first turn."""
        return self.lead[1:]


def have_two_speakers(lines: Sequence[RoleLine]) -> bool:
    """Return whether more than one role speaks in some lines."""
    if len(lines) < 2 or lines[1].role != lines[0].role:  # most
        return len(lines) > 1
    return any(line.role != lines[0].role for line in lines)


def keep(found: Lines, kept: Sequence[RoleLine]) -> Lines:
    """Return the text cut at the `kept` lines only; the text of the other lines joins the line before."""
    if len(kept) == len(found.lines):
        return found
    left = {id(line) for line in kept}
    pieces = [found.lead]
    bodies: list[list[str]] = [pieces]
    for line in found.lines:
        if id(line) in left:
            bodies.append([line.body])
        else:
            bodies[-1] += (line.label, line.body)
    for line, body in zip(kept, bodies[1:], strict=True):
        line.body = "".join(body)
    return Lines("".join(pieces), list(kept))


def strip_half_marks(line: RoleLine, text: str, roles: RoleWords) -> str:
    """Return the text that a line introduces, without the other half of the marks before the role."""
    prefix = line.prefix.rstrip()
    if not prefix:
        return text
    if prefix.endswith("|") and text.startswith(">"):
        text = text[1:]
    if prefix.endswith(("**", "__")) and text.endswith(prefix[-2:]) and text.count(prefix[-2:]) % 2:
        text = text[:-2]
    mark = line.prefix[-1:]
    if mark in ("*", "_") and line.label.count(mark) == 1 and text.endswith(mark) and text.count(mark) % 2:
        text = text[:-1]
    if line.kind == "tag" and "|" in prefix and text.endswith("|"):
        text = text[:-1]
    if (
        prefix.endswith(("(", "('", '("'))
        and text.rstrip(" ,;").endswith(")")
        and text.count(")") > text.count("(")
    ):
        text = text.rstrip(" ,;")[:-1]
    if prefix.endswith("<") and line.kind == "colon" and text.endswith(">") and "<" not in text:
        text = text[:-1]
    if "<" in prefix or "[" in prefix:
        cut = max(text.rfind("</"), text.rfind("[/"))
        if cut >= 0 and text[cut + 2 :].lower().startswith((*roles.by_name, "turn")):
            text = text[:cut]
    return text


def decode_text(line: RoleLine) -> None:
    """Decode a quoted text with letters escaped as in JSON and YAML, or marks doubled as in tables."""
    said = line.body.strip()
    mark = said[:1]
    if said.startswith(_TRIPLE) and (end := said.find(mark * 3, 3)) > 0:
        line.body = mark + said[3:end].strip() + mark + said[end + 3 :]
        return
    columns = line.label.rstrip(" ").endswith((",", ";", "\t"))
    columns = columns or (mark == "'" and said[-1] == mark)  # of YAML
    if mark in ("'", '"') and columns and mark * 2 in said[1:-1] and f"\\{mark}" not in said:
        line.body = mark + said[1:-1].replace(mark * 2, mark) + said[-1]
    elif "\\u" in said:
        with contextlib.suppress(ValueError):
            text, end = _SCANNER.raw_decode(said)
            line.body = f'"{text}"{said[end:]}'


@lru_cache(maxsize=4096)
def find_shape(text: str) -> tuple[str, ...]:
    """Return the kinds of a text's tokens: two texts of one layout have the same."""
    return tuple(map(find_kind, TOKEN.findall(text)))


@lru_cache(maxsize=4096)
def find_kind(token: str) -> str:
    """Return the kind of a token: `0` for numbers, `a` for letters and numerals of lists, `am` for am and pm,
    a blank for blanks, and the token in lower case otherwise."""
    if token[0].isdigit():
        return "0"
    if token.isspace():
        return token if token == "\n" else " "  # noqa: S105 - no password
    lowered = token.lower()
    if lowered in ("am", "pm"):
        return "am"
    if (len(token) == 1 and token.isalpha()) or "①" <= token <= "⑳" or {*lowered} <= {*"ivx"}:
        return "a"
    return lowered


class Inside(NamedTuple):
    """The turns' texts, and the marks and words that a turn before the last may hold.

    A rule about marks or words that no turn holds does not run.
    """

    texts: list[str]  # of all turns, stripped
    marks: str  # of all but the last, line breaks before them included (`find_marks`)
    several: bool  # one may have several lines
    called: bool  # one may have several lines and a colon
    headed: bool  # a heading of a conversation may stand in one
    given: bool  # a probability may stand in one
    marked: bool  # an end marker may stand in one

    def may_share(self, first: str) -> bool:
        """Return whether a mark of the layout other than quotation marks may stand around the turns' texts.

        `first`: the first turn's text, stripped.
        """
        plain = first[:1].isalnum() or first[:1] in '"“'
        return not plain or self.marks.strip('\x1f"“”') != "" or first.rstrip(",;.")[-1:] in ("/", "+")


def look_inside(lines: Sequence[RoleLine]) -> Inside:
    """Return the turns' texts, and the marks and words that decide which rules run."""
    bodies = [line.body.rstrip() for line in lines]
    whole = "\x1f".join(bodies[:-1])
    words, marks = fold(whole), find_marks(whole)
    several = "\n" in marks
    return Inside(
        [body.lstrip() for body in bodies],
        marks,
        several,
        several and (":" in marks or "：" in marks),
        several and surroundings.may_head(words),
        several and surroundings.may_give(words),
        may_mark(words),
    )


class LineGroup(msgspec.Struct):
    """The role lines of one conversation.

    `head` is the text before them, `late` the text after its end; `plain` as in `Lines`.
    """

    head: str
    lines: list[RoleLine]
    plain: bool
    late: str = ""


def split_groups(found: Lines, inside: Inside) -> list[LineGroup]:
    """Return the role lines under each heading."""
    groups = [LineGroup(found.head, found.lines, found.plain)]
    if not inside.headed:
        return groups
    lines = found.lines
    first = 0
    for number, line in enumerate(lines[:-1]):
        at = _find_heading(line.body, lines, number)
        if at >= 0:
            groups[-1].lines = lines[first : number + 1]
            groups.append(LineGroup(line.body[at + 1 :], lines[number + 1 :], found.plain))
            line.body = line.body[:at]
            first = number + 1
    return groups


def _find_heading(body: str, lines: Sequence[RoleLine], number: int) -> int:
    """Return the place of the line break before the next conversation's heading in a body, or -1."""
    if not surroundings.may_head(fold(body)):
        return -1
    end = len(body.rstrip())
    breaks = [
        heading.start()
        for heading in surroundings.HEADING_BELOW.finditer(body)
        if heading.end() >= end or _BEGINS.match(body, heading.end())
    ]
    # Checking the first and the last is enough, however many a turn holds.
    for at in dict.fromkeys((*breaks[:1], *breaks[-1:])):
        if not _is_inside_quotes(body, at, lines, number):
            return at
    return -1


def _is_inside_quotes(body: str, at: int, lines: Sequence[RoleLine], number: int) -> bool:
    """Return whether a place in the body of line `number` is inside quotation marks that close later."""
    if not _is_quoted_open(body[:at]):
        return False
    rest = [body[at:]]
    for line in lines[number + 1 :]:
        if _is_quoted(line.body):
            break
        rest += (line.label, line.body)
    return _closes_one("".join(rest))


def cut_at_end(group: LineGroup, inside: Inside) -> None:
    """Keep only the role lines of the conversation, and set `late` to the text after its end.

    A conversation ends with the turn that holds the end marker. It also ends at the probability if both sides
    spoke before and an explanation follows, since later role lines only belong to the explanation.
    """
    if not (inside.given or inside.marked):
        return
    lines, marked = group.lines, inside.marked
    given = _find_explained_line(lines) if inside.given else len(lines)
    for i, line in enumerate(lines[:-1]):
        if i >= given or (marked and find_marker(line.body) is not None):
            group.late = "".join([part for line in lines[i + 1 :] for part in (line.label, line.body)])[1:]
            group.lines = lines[: i + 1]
            return


def _find_explained_line(lines: Sequence[RoleLine]) -> int:
    """Return the index of the line whose body gives the probability with an explanation after it.

    Returns the number of lines if no body does. Prose after the probability may be a lesson about
    probability. Such prose counts as an explanation only if no other probability and no end marker comes
    later, and if at most as many turns follow as stand before.
    """
    both = next((i for i, line in enumerate(lines) if line.role != lines[0].role), len(lines))
    marked, last = False, -1
    for i in range(both, len(lines) - 1):
        body = lines[i].body
        for match in _GIVES.finditer(body):
            value = surroundings.read_value_of_line(match.group()[1:])
            if value is None or not any(c.isdigit() for c in value):
                continue
            if last < 0:
                rest = [line.body for line in lines[both:]]
                marked = find_marker("\n".join(rest)) is not None
                last = max(j for j in range(both, len(lines)) if _GIVES.search(lines[j].body))
            ends = not marked and i == last and len(lines) <= 2 * (i + 1)
            later = body[match.end() : match.end() + 300] + "\n"
            prose = ends and _PROSE.match(later) is not None
            if (prose or _EXPLANATION.match(later)) and not _is_quoted_open(body[: match.start() + 1]):
                return i
    return len(lines)


def drop_nested(group: LineGroup, firsts: Sequence[str]) -> None:
    """Leave out role lines inside a turn's open quotation marks.

    A turn is open if its closing mark comes in a later line, before the next quoted turn. The lines up to
    this line have no quotation marks of their own. `firsts`: each turn's first character.
    """
    kinds = {*firsts}
    if kinds <= _DOUBLE or not kinds & _DOUBLE:
        return
    lines = group.lines
    quoted = [first in _DOUBLE for first in firsts]
    kept: list[RoleLine] = []
    i = 0
    while i < len(lines):
        kept.append(lines[i])
        i += 1
        turn_ends = i == len(lines) or quoted[i] or not quoted[i - 1]
        if not turn_ends and _is_quoted_open(lines[i - 1].body):
            stops = (j for j in range(i, len(lines)) if quoted[j] or _closes(lines[j].body))
            stop = next(stops, None)
            if stop is not None and not quoted[stop]:
                i = stop + 1
    group.lines = keep(Lines("", lines), kept).lines


def take_note(lines: Sequence[RoleLine]) -> list[str]:
    """Remove the line in brackets that gives the probability from the end of a turn; return its value.

    The value is in a list. If no turn or several turns end with such a line, the list is empty and all lines
    stay.
    """
    found = []
    for line in lines[:-1]:
        said, _, last = line.body.rstrip().rpartition("\n")
        if said.strip() and (note := _NOTE.fullmatch(last.strip())) is not None:
            value = surroundings.read_value_of_line(note[1] or note[2])
            if value and any(map(str.isdigit, value)):
                found.append((line, said, value))
    if len(found) != 1:
        return []
    ((line, line.body, value),) = found
    return [value]


def _is_quoted(body: str) -> bool:
    """Return whether a turn begins with a quotation mark."""
    return body.lstrip()[:1] in ('"', "“")


def _is_quoted_open(text: str) -> bool:
    """Return whether a turn begins with a quotation mark that is still open at the end of this text."""
    body = text.strip()
    if body[:1] not in ('"', "“") or not _is_quoted(text):
        return False
    return find_closing(body, CLOSERS[body[0]], 1, len(body)) < 0 and (
        body[0] != '"' or body.count('"') % 2 == 1
    )


def _closes(text: str) -> bool:
    body = text.rstrip(" \t\r\n,]")
    return body.endswith(('"', "”")) and _closes_one(body)


def _closes_one(text: str) -> bool:
    """Return whether more quotation marks close in a text than open."""
    return text.count('"') % 2 == 1 or text.count("”") > text.count("“")
