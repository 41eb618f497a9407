"""Turns out of lines: everything that is neither the published layout to the letter nor JSON.

`spoken_lines` splits a text at the lines that start a turn, ends each turn where the layout says so,
and keeps what stands around the turns apart. Linear in the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from edgen.model import Role
from edgen.transcript import frame
from edgen.transcript.marker import find_marker
from edgen.transcript.quotes import CLOSERS, closing, layout_openers, name_behind, silent, unwrap
from edgen.transcript.repairs import Repair
from edgen.transcript.rolelines import RoleLine, role_lines

# A list of quoted turns that stands on one line.
_INLINE = re.compile(r"(?<=[\[,\"”])[^\S\n]{1,9}(?=(?:Teacher|Student):[^\S\n]{0,9}[\"“])", re.IGNORECASE)
# Code that opens at the end of a turn's first line.
_CODE = re.compile(r"(?:```|~~~)\w{0,20}[^\S\n]?\Z")
_FOOT = re.compile(r"\][^\S\n]{1,9}Probability", re.IGNORECASE)


@dataclass(slots=True)
class Block:
    """One conversation as it stands in a text: its turns as (role, text, marker spoken here)."""

    entries: list[tuple[Role, str, bool]] = field(default_factory=list)
    probabilities: list[Any] = field(default_factory=list)
    head: str = ""
    unspoken: bool = False
    repairs: list[str] = field(default_factory=list)

    @property
    def sides(self) -> int:
        return len({role for role, text, _ in self.entries if not silent(text)})


# No reply holds more; what stands behind them is not looked at.
MAX_CONVERSATIONS = 100


def spoken_lines(text: str) -> Block | None:
    """The conversation in a text: the first that two sides speak, one under a heading before others.

    None if no line starts a turn.
    """
    starts = role_lines(text)
    inline = len(starts) < 2 and _INLINE.search(text) is not None
    if inline:
        text = _FOOT.sub("]\nProbability", _INLINE.sub("\n", text))
        starts = role_lines(text)
    if not starts:
        return None
    groups = _groups(text, starts)[:MAX_CONVERSATIONS]
    blocks = [_block(text, group, begin, end) for group, begin, end in groups]
    if inline:
        blocks[0].repairs.append(Repair.LAYOUT)
    order = blocks[1:] + blocks[:1] if len(blocks) > 1 and not _headed(text, groups[0]) else blocks
    chosen = next((block for block in order if block.sides == 2), order[0])
    for block, group in zip(blocks, groups, strict=True):
        if block.sides == 2 and block is not chosen and (block is not blocks[0] or _headed(text, group)):
            chosen.repairs.append(Repair.EXTRA_CONVERSATION)
            return chosen
    begin, end = groups[blocks.index(chosen)][1:]
    if frame.chatter(text[:begin]):
        chosen.repairs.append(Repair.PREAMBLE)
    if frame.chatter(text[end:]):
        chosen.repairs.append(Repair.POSTAMBLE)
    return chosen


Group = tuple[list[RoleLine], int, int]


def _groups(text: str, starts: list[RoleLine]) -> list[Group]:
    """The role lines under each heading, with where the text of the group begins and ends."""
    cuts = [h.start() for h in frame.HEADING.finditer(text) if h.start() > starts[0].start]
    groups: list[Group] = []
    begin = 0
    current: list[RoleLine] = []
    position = 0
    for line in starts:
        cut = None
        while position < len(cuts) and cuts[position] < line.start:
            cut = cut if cut is not None else cuts[position]
            position += 1
        if cut is not None and current:
            groups.append((current, begin, cut))
            current, begin = [], cut
        current.append(line)
    groups.append((current, begin, len(text)))
    return groups


def _headed(text: str, group: Group) -> bool:
    return frame.HEADING.search(text, group[1], group[0][0].start) is not None


def _block(text: str, lines: list[RoleLine], begin: int, end: int) -> Block:
    """The conversation whose role lines are given, in text[begin:end]."""
    block = Block()
    lines = _nested_out(text, lines, end)
    head = text[begin : lines[0].start]
    bodies = [
        text[line.text : lines[i + 1].start if i + 1 < len(lines) else end] for i, line in enumerate(lines)
    ]
    departs = _departs(lines, head, bodies)
    bodies = [b.replace('\\"', '"') if b[:40].lstrip().startswith('\\"') else b for b in bodies]
    openers = layout_openers(bodies)
    fenced = len(frame.FENCE.findall(head)) % 2 == 1
    if fenced:
        block.repairs.append(Repair.CODE_FENCE)
    block.head = head
    given, rest = frame.probabilities(head)
    if frame.chatter(rest):
        block.repairs.append(Repair.PREAMBLE)
    bracketed = _bracketed(head)
    if departs or not bracketed:
        block.repairs.append(Repair.LAYOUT)
    if any(line.named for line in lines):
        block.repairs.append(Repair.ROLE_NAME)
    if any(line.aliased for line in lines):
        block.repairs.append(Repair.ROLE_ALIAS)
    reader = _Reader(block, openers, fenced, bracketed, _listed(bodies))
    tail = ""
    for i, (line, body) in enumerate(zip(lines, bodies, strict=True)):
        tail = reader.turn(line, body, last=i + 1 == len(lines))
    if bracketed and "]" not in text[lines[-1].text : end] and Repair.LAYOUT not in block.repairs:
        block.repairs.append(Repair.LAYOUT)
    _tail(block, tail, given)
    return block


def _tail(block: Block, tail: str, given: list[Any]) -> None:
    """The probability, an end marker and chatter behind the last turn."""
    if Repair.CODE_FENCE not in block.repairs and frame.FENCE.search(tail):
        block.repairs.append(Repair.CODE_FENCE)
    values, rest = frame.probabilities(tail)
    block.probabilities = values or given
    marked = find_marker(rest)
    if marked is not None:
        rest = marked.said + rest[marked.end :]
        if not any(ended for _, _, ended in block.entries):
            block.unspoken = True
            if not marked.standard:
                block.repairs.append(Repair.MARKER_FORM)
    if frame.chatter(rest):
        block.repairs.append(Repair.POSTAMBLE)


def _listed(bodies: list[str]) -> bool:
    """Whether all turns but perhaps the last end with the comma of a list."""
    inner = bodies[:-1]
    return bool(inner) and all(body.rstrip().endswith((",", ",\\")) for body in inner)


def _bracketed(head: str) -> bool:
    """Whether the list that the turns stand in was opened."""
    return any(line.strip().endswith(("[", "{")) for line in head.split("\n")[-6:])


def _departs(lines: list[RoleLine], head: str, bodies: list[str]) -> bool:
    """Whether the lines are written otherwise than in the published layout."""
    if "onversation" not in head:
        return True
    if any(line.prefix.strip() or line.kind != "colon" for line in lines):
        return True
    return any(body.lstrip()[:1] != '"' for body in bodies)


def _nested_out(text: str, lines: list[RoleLine], end: int) -> list[RoleLine]:
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
    return closing(body, CLOSERS[body[0]], 1, len(body)) < 0 and (body.count('"') % 2 == 1 or body[0] != '"')


def _closes(text: str, start: int, end: int) -> bool:
    body = text[start:end].rstrip(" \t\r\n,]")
    return body.endswith(('"', "”")) and (body.count('"') % 2 == 1 or body.count("”") > body.count("“"))


@dataclass(slots=True)
class _Reader:
    """Takes the bodies of one block's turns, one after the other, and adds them to the block."""

    block: Block
    openers: Collection[str]
    fenced: bool
    bracketed: bool
    listed: bool

    def turn(self, line: RoleLine, body: str, *, last: bool) -> str:
        """Add the turn; what is behind it is returned, and named where it is words."""
        repairs = self.block.repairs
        marked = find_marker(body)
        said = body if marked is None else _closed(marked.said, body[marked.end :], self.openers)
        end, closed = self._end(said, last)
        between = said[end:]
        text = said[:end]
        if self.listed and marked is None and text.rstrip().endswith(","):
            text = text.rstrip()[:-1]
        text = unwrap(self._unadorned(line, text), self.openers, repairs)
        if marked is None and (bare := find_marker(text)) is not None:
            self._mark(repairs, bare.standard)
            self.block.entries.append((line.role, unwrap(bare.said, (), repairs), True))
            return body[end:]
        outside = marked is not None and bool(between.strip(' \t\r\n,;"”*_'))
        if marked is not None and closed and "\n" in between and not outside:
            repairs.append(Repair.UNSPOKEN_MARKER)
        if marked is not None and not (outside and last):
            self._mark(repairs, marked.standard)
            self.block.entries.append((line.role, text, True))
            behind, _, below = body[marked.end :].partition("\n")
            name_behind(behind, repairs)
            return below
        self.block.entries.append((line.role, text, False))
        if last:
            return body[end:]
        if frame.chatter(between):
            repairs.append(Repair.STRAY_TEXT if closed else Repair.POSTAMBLE)
        return ""

    @staticmethod
    def _mark(repairs: list[str], standard: bool) -> None:
        if not standard:
            repairs.append(Repair.MARKER_FORM)

    def _unadorned(self, line: RoleLine, text: str) -> str:
        """Without the other half of marks that the line opened before the role."""
        text = text.rstrip()
        if line.prefix.rstrip().endswith("**") and text.endswith("**") and text.count("**") % 2:
            text = text[:-2]
        if line.kind == "tag" and "|" in line.prefix and text.endswith("|"):
            text = text[:-1]
        if "<" in line.prefix:
            cut = text.rfind("</")
            if cut >= 0 and text[cut:].lower().startswith(("</teacher", "</student", "</turn")):
                text = text[:cut]
        return text

    def _end(self, body: str, last: bool) -> tuple[int, bool]:
        """Where in the body the turn ends, and whether a closing quotation mark says so."""
        stop = self._stop(body, last)
        stripped = body.lstrip()
        first = stripped[:1]
        if first in self.openers:
            at = len(body) - len(stripped) + 1
            end = _last_closing(body, CLOSERS[first], at, stop)
            if end < 0 and stop < len(body.rstrip()):
                end = _later_closing(body, CLOSERS[first], at, stop)
            if end >= 0:
                return end, True
        return stop, False

    def _stop(self, body: str, last: bool) -> int:
        """Where the first line stands that cannot belong to the turn.

        Lines inside a code block belong to it, unless the block is never closed.
        """
        line_end = body.find("\n")
        said = body.rstrip()
        if line_end < 0 or line_end >= len(said):
            return len(body)
        in_code = _CODE.search(body, max(0, line_end - 24), line_end) is not None
        held_back = -1
        for match in frame.STOP.finditer(said, line_end + 1):
            kind, at = match.lastgroup, match.start()
            if kind == "fence":
                if self.fenced and last and not in_code and not match["fence"].strip("`~ \t\r"):
                    return at
                in_code = not in_code
                held_back = -1
            elif held_back < 0 and self._stops(kind, said, at, last):
                if not in_code:
                    return at
                held_back = at
        return held_back if held_back >= 0 else len(body)

    def _stops(self, kind: str | None, said: str, at: int, last: bool) -> bool:
        """Whether the line that starts at `at`, found to be of this kind, ends the turn."""
        if kind == "list":
            return last or self.bracketed
        newline = said.find("\n", at)
        if kind == "rule":
            return last or newline < 0
        if kind == "likely":
            line = said[at : newline if newline >= 0 else len(said)]
            return last and frame.probability_line(line) is not None
        if kind == "chatter":
            return last and not said[said.rfind("\n", 0, at - 1) + 1 : at].strip()
        return kind == "special"


def _closed(said: str, behind: str, openers: Collection[str]) -> str:
    """What was said before an end marker, with the closing quotation mark that stands behind it."""
    start = len(said) - len(said.lstrip())
    first = said[start : start + 1]
    if first not in openers or _last_closing(said, CLOSERS[first], start + 1, len(said)) >= 0:
        return said
    line = behind.partition("\n")[0]
    return said.rstrip() + next((closer for closer in CLOSERS[first] if closer in line), "")


def _later_closing(body: str, closers: str, start: int, stop: int) -> int:
    """Where the first line at or behind `stop` ends that closes what was opened before `start`; -1 if
    none does. A line with quotation marks in pairs (`Probability: "0.2",`) closes nothing."""
    odd = sum(body.count(c, start, stop) for c in closers) % 2
    at = stop
    while at < len(body):
        newline = body.find("\n", at)
        end = len(body) if newline < 0 else newline
        odd ^= sum(body.count(c, at, end) for c in closers) % 2
        if odd and closing(body, closers, at, end) >= 0:
            return end
        at = end + 1
    return -1


def _last_closing(body: str, closers: str, start: int, stop: int) -> int:
    """Where the last line of body[start:stop] ends that a closing quotation mark ends; -1 if none does."""
    marks = {closer: body.rfind(closer, start, stop) for closer in closers}
    end = stop
    while (at := max(marks.values())) >= 0:
        line = max(body.rfind("\n", start, at) + 1, start)
        newline = body.find("\n", at, end)
        line_end = end if newline < 0 else newline
        if closing(body, closers, line, line_end) >= 0:
            return line_end
        end = line
        for closer, mark in marks.items():
            if mark >= end:
                marks[closer] = body.rfind(closer, start, end)
    return -1
