"""Find the end of a turn in the text between its label and the next one.

A closing quotation mark of the layout ends a turn, or the first line that cannot belong to it: a bracket that
closes the list, a fence, a rule, the probability, a note after the last turn. Linear in the length.
"""

from __future__ import annotations

from collections.abc import Collection

from edgen.core.text import compile_later
from edgen.reading.text import surroundings
from edgen.reading.text.quotes import CLOSERS, find_closing

# Code that opens at the end of a turn's first line.
_CODE = compile_later(r"(?:```|~~~)\w{0,20}[^\S\n]?\Z")


def find_end_of_turn(
    body: str, openers: Collection[str], *, last: bool, fenced: bool, bracketed: bool
) -> tuple[int, bool]:
    """Return the end of the turn in a body, and whether a closing quotation mark sets it.

    `openers`: opening quotation marks that belong to the layout. `last`: the turn is the last one. `fenced`:
    a code block is open where the turns begin. `bracketed`: the list that the turns stand in was opened.
    """
    stop = _find_stop(body, last, fenced, bracketed)
    stripped = body.lstrip()
    first = stripped[:1]
    if first in openers:
        at = len(body) - len(stripped) + 1
        end = _find_last_closing(body, CLOSERS[first], at, stop)
        if end < 0 and stop < len(body.rstrip()):
            end = _find_later_closing(body, CLOSERS[first], at, stop)
        if end >= 0:
            return end, True
    return stop, False


def _find_stop(body: str, last: bool, fenced: bool, bracketed: bool) -> int:
    """Return the start of the first line that cannot belong to the turn, or the body's length.

    Lines inside a closed code block can belong to it.
    """
    line_end = body.find("\n")
    said = body.rstrip()
    if line_end < 0 or line_end >= len(said):
        return len(body)
    in_code = _CODE.search(body, max(0, line_end - 24), line_end) is not None
    held_back = labelled = -1
    pattern = surroundings.LAST_STOP if last else surroundings.STOP
    for match in pattern.finditer(said, line_end):
        kind, at = match.lastgroup, match.start() + 1
        if kind == "fence":
            if fenced and last and not in_code and not match["fence"].strip("`~ \t\r"):
                return at
            in_code = not in_code
            held_back = -1
        elif held_back < 0 and _stops(kind, said, at, last, bracketed):
            if kind == "label":
                labelled = at if labelled < 0 else labelled
            elif not in_code:
                # An assessment under a label of its own leads up to the probability.
                return labelled if kind == "likely" and labelled >= 0 else at
            else:
                held_back = at
    return held_back if held_back >= 0 else len(body)


def _stops(kind: str | None, said: str, at: int, last: bool, bracketed: bool) -> bool:
    """Return whether the line that starts at `at`, found to be of this kind, ends the turn."""
    if kind == "list":
        return last or bracketed
    newline = said.find("\n", at)
    if kind == "rule":
        return last or at > surroundings.find_rules_start(said)
    line = said[at : newline if newline >= 0 else len(said)]
    if kind == "closing":
        return last and f"<{line.strip(' </>')}" not in said[:at]
    if kind == "likely":
        return last and surroundings.read_value_of_line(line) is not None
    if kind in ("chatter", "label"):
        return last and not said[said.rfind("\n", 0, at - 1) + 1 : at].strip()
    return kind in ("special", "stub")


def close_quotation(said: str, behind: str, openers: Collection[str]) -> str:
    """Return the words before an end marker, with the closing quotation mark that stands after the marker."""
    start = len(said) - len(said.lstrip())
    first = said[start : start + 1]
    if first not in openers or _find_last_closing(said, CLOSERS[first], start + 1, len(said)) >= 0:
        return said
    line = behind.partition("\n")[0]
    return said.rstrip() + next((closer for closer in CLOSERS[first] if closer in line), "")


def _find_later_closing(body: str, closers: str, start: int, stop: int) -> int:
    """Return the end of the first line from `stop` on that closes a turn opened before `start`, or -1.

    A line with quotation marks in pairs (`Probability: "0.2",`) closes nothing.
    """
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


def _find_last_closing(body: str, closers: str, start: int, stop: int) -> int:
    """Return the end of the last line of body[start:stop] that a closing quotation mark ends, or -1."""
    at = start + len(body[start:stop].rstrip(" \t\r\n,;.]}")) - 1
    if at >= start and body[at] in closers and body[at - 1] != "\\":
        newline = body.find("\n", at, stop)
        return stop if newline < 0 else newline
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
