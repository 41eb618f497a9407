"""Turns out of lines: everything that is neither in a strict form nor JSON.

`find_in_lines` splits a text at the lines that start a turn, ends each turn where the layout says so, and keeps what
stands around the turns apart. Linear in the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from edgen.reading.assembly import Found
from edgen.reading.lines.groups import cut_at_end, drop_nested, has_heading, split_groups
from edgen.reading.lines.role_lines import RoleLine, find_role_lines, unadorned
from edgen.reading.repairs import Repair
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text import surroundings
from edgen.reading.text.marker import find_marker, may_mark
from edgen.reading.text.quotes import (
    CLOSERS,
    find_closing,
    find_layout_openers,
    is_silent,
    note_words_behind,
    unwrap,
)

# A list of quoted turns that stands on one line.
_INLINE = RolePattern(r"(?i)(?<=[\[,\"”])[^\S\n]{1,9}(?=(?:NAME):[^\S\n]{0,9}[\"“])")
# Code that opens at the end of a turn's first line.
_CODE = re.compile(r"(?:```|~~~)\w{0,20}[^\S\n]?\Z")
_BLOCKQUOTE = re.compile(r"(?m)^[^\S\n]{0,12}>[^\S\n]?")
_FOOT = re.compile(r"(?i)\][^\S\n]{1,9}Probability")


@dataclass(slots=True)
class LineConversation(Found):
    """One conversation as it stands in a text, behind this `head`."""

    head: str = ""
    finished: bool = False  # an end marker or a probability stands behind its turns

    @property
    def speakers(self) -> int:
        return len({role for role, text, _ in self.entries if not is_silent(text)})


# No reply holds more; what stands behind them is not looked at.
MAX_CONVERSATIONS = 100


def find_in_lines(text: str, roles: RoleWords) -> LineConversation | None:
    """The conversation in a text: the first in which two roles speak, one under a heading before others; None if no
    line starts a turn."""
    starts = find_role_lines(text, roles)
    inline = len(starts) < 2 and _INLINE.of(roles).search(text) is not None
    if inline:
        text = _FOOT.sub("]\nProbability", _INLINE.of(roles).sub("\n", text))
        starts = find_role_lines(text, roles)
    if not starts:
        return None
    quoted = all(line.prefix.lstrip().startswith(">") for line in starts)
    if quoted:
        text = _BLOCKQUOTE.sub("", text)
        starts = find_role_lines(text, roles)
    groups = split_groups(text, starts)[:MAX_CONVERSATIONS]
    blocks = [_block(text, group, begin, end, roles) for group, begin, end in groups]
    if inline or quoted:
        blocks[0].repairs.append(Repair.LAYOUT)
    preface = not has_heading(text, groups[0]) and not blocks[0].finished
    order = blocks[1:] + blocks[:1] if preface else blocks
    chosen = next((block for block in order if block.speakers > 1), order[0])
    if any(block.speakers > 1 and block is not chosen for block in (blocks[1:] if preface else blocks)):
        chosen.repairs.append(Repair.EXTRA_CONVERSATION)
        return chosen
    begin, end = groups[blocks.index(chosen)][1:]
    if surroundings.has_words(text[:begin]):
        chosen.repairs.append(Repair.PREAMBLE)
    if surroundings.has_words(text[end:]):
        chosen.repairs.append(Repair.POSTAMBLE)
    return chosen


def _block(text: str, lines: list[RoleLine], begin: int, end: int, roles: RoleWords) -> LineConversation:
    """The conversation whose role lines are given, in text[begin:end]."""
    lines, over = cut_at_end(text, drop_nested(text, lines, end), end)
    head = text[begin : lines[0].start]
    bodies = [
        text[line.text : lines[i + 1].start if i + 1 < len(lines) else over] for i, line in enumerate(lines)
    ]
    departs = _departs(lines, head, bodies)
    bodies = [b.replace('\\"', '"') if b[:40].lstrip().startswith('\\"') else b for b in bodies]
    openers = find_layout_openers(bodies)
    fenced = len(surroundings.FENCE.findall(head)) % 2 == 1
    given, rest = surroundings.split_probabilities(head)
    bracketed = _bracketed(head)
    noted = {
        Repair.CODE_FENCE: fenced,
        Repair.PREAMBLE: surroundings.has_words(rest),
        Repair.LAYOUT: departs or not bracketed,
        Repair.ROLE_NAME: any(line.named for line in lines),
        Repair.ROLE_ALIAS: any(line.aliased for line in lines),
    }
    block = LineConversation(head=head, repairs=[name for name, found in noted.items() if found])
    reader = _Reader(block, openers, fenced, bracketed, _listed(bodies), roles)
    tail = ""
    for i, (line, body) in enumerate(zip(lines, bodies, strict=True)):
        tail = reader.turn(line, body, last=i + 1 == len(lines))
    if bracketed and "]" not in text[lines[-1].text : end]:
        block.repairs.append(Repair.LAYOUT)
    _tail(block, tail, text[over:end], given)
    return block


def _tail(block: LineConversation, tail: str, late: str, given: list[Any]) -> None:
    """Read what stands behind the last turn; `late` are the role lines behind the conversation's end."""
    if surroundings.FENCE.search(tail):
        block.repairs.append(Repair.CODE_FENCE)
    values, rest = surroundings.split_probabilities(tail)
    values = values or surroundings.split_probabilities(late)[0]
    block.probabilities = values or given
    if late and any(ended for _, _, ended in block.entries):
        block.repairs.append(Repair.AFTER_END_MARKER)
    marked = find_marker(rest)
    if marked is not None:
        rest = marked.said + rest[marked.end :]
        if not any(ended for _, _, ended in block.entries):
            block.unspoken = True
            block.repairs += marked.repairs
    block.finished = bool(values) or block.unspoken or any(ended for _, _, ended in block.entries)
    if surroundings.has_words(rest):
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


@dataclass(slots=True)
class _Reader:
    """Takes the bodies of one block's turns, one after the other, and adds them to the block."""

    block: LineConversation
    openers: Collection[str]
    fenced: bool
    bracketed: bool
    listed: bool
    roles: RoleWords

    def turn(self, line: RoleLine, body: str, *, last: bool) -> str:
        """Add the turn; what is behind it is returned, and named where it is words."""
        repairs = self.block.repairs
        may = may_mark(body)
        marked = find_marker(body) if may else None
        said = body if marked is None else _closed(marked.said, body[marked.end :], self.openers)
        end, closed = self._end(said, last)
        if last and marked is not None and not closed and _attached(marked.said, body[marked.end :]):
            end = len(said)
        between = said[end:]
        text = said[:end]
        if self.listed and marked is None and text.rstrip().endswith(","):
            text = text.rstrip()[:-1]
        text = unwrap(unadorned(line, text.rstrip(), self.roles), self.openers, repairs)
        if may and marked is None and (bare := find_marker(text)) is not None:
            repairs += bare.repairs
            self.block.entries.append((line.role, unwrap(bare.said, (), repairs), True))
            return body[end:]
        outside = marked is not None and bool(between.strip(' \t\r\n,;"”*_'))
        if marked is not None and closed and "\n" in between and not outside:
            repairs.append(Repair.UNSPOKEN_MARKER)
        if marked is not None and not (outside and last):
            repairs += marked.repairs
            self.block.entries.append((line.role, text, True))
            behind, _, below = body[marked.end :].partition("\n")
            note_words_behind(behind, repairs)
            return below
        self.block.entries.append((line.role, text, False))
        if last:
            return body[end:]
        if surroundings.has_words(between):
            repairs.append(Repair.STRAY_TEXT if closed else Repair.POSTAMBLE)
        return ""

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
        """Where the first line stands that cannot belong to the turn; lines inside a closed code block can."""
        line_end = body.find("\n")
        said = body.rstrip()
        if line_end < 0 or line_end >= len(said):
            return len(body)
        in_code = _CODE.search(body, max(0, line_end - 24), line_end) is not None
        held_back = labelled = -1
        for match in surroundings.STOP.finditer(said, line_end + 1):
            kind, at = match.lastgroup, match.start()
            if kind == "fence":
                if self.fenced and last and not in_code and not match["fence"].strip("`~ \t\r"):
                    return at
                in_code = not in_code
                held_back = -1
            elif held_back < 0 and self._stops(kind, said, at, last):
                if kind == "label":
                    labelled = at if labelled < 0 else labelled
                elif not in_code:
                    # An assessment under a label of its own leads up to the probability.
                    return labelled if kind == "likely" and labelled >= 0 else at
                else:
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
            return last and surroundings.value_of_line(line) is not None
        if kind in ("chatter", "label"):
            return last and not said[said.rfind("\n", 0, at - 1) + 1 : at].strip()
        return kind == "special"


def _attached(said: str, behind: str) -> bool:
    """Whether an end marker closes words on its line that are spoken, not the line that gives the probability."""
    line = said[said.rfind("\n") + 1 :]
    if not line.strip():
        return False
    return not surroundings.value_of_line(line) or bool(surroundings.split_probabilities(behind)[0])


def _closed(said: str, behind: str, openers: Collection[str]) -> str:
    """What was said before an end marker, with the closing quotation mark that stands behind it."""
    start = len(said) - len(said.lstrip())
    first = said[start : start + 1]
    if first not in openers or _last_closing(said, CLOSERS[first], start + 1, len(said)) >= 0:
        return said
    line = behind.partition("\n")[0]
    return said.rstrip() + next((closer for closer in CLOSERS[first] if closer in line), "")


def _later_closing(body: str, closers: str, start: int, stop: int) -> int:
    """Where the first line at or behind `stop` ends that closes what was opened before `start`; -1 if none does. A line
    with quotation marks in pairs (`Probability: "0.2",`) closes nothing."""
    odd = sum(body.count(c, start, stop) for c in closers) % 2
    at = stop
    while at < len(body):
        newline = body.find("\n", at)
        end = len(body) if newline < 0 else newline
        odd ^= sum(body.count(c, at, end) for c in closers) % 2
        if odd and find_closing(body, closers, at, end) >= 0:
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
        if find_closing(body, closers, line, line_end) >= 0:
            return line_end
        end = line
        for closer, mark in marks.items():
            if mark >= end:
                marks[closer] = body.rfind(closer, start, end)
    return -1
