"""Lines that start a turn, and a text cut at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec


class RoleLine(msgspec.Struct, gc=False):
    """A line that starts a turn, and what stands between it and the next one.

    role: who speaks.
    label: the text of the label, from the line break before it on.
    body: the text between this label and the next one.
    prefix: what stands before the role's name.
    kind: what separates the name from the text: a colon, a tag, a line break ("alone") or a dash.
    named: whether a name or a note stands next to the role.
    aliased: whether another word stands for the role.
    form: how the role is written, "" for the bare word.
    start, text: where the line and its text start; only `find_role_lines` sets them.
    """

    role: str
    label: str
    body: str
    prefix: str
    kind: str = "colon"
    named: bool = False
    aliased: bool = False
    form: str = ""
    start: int = 0
    text: int = 0


class Lines(msgspec.Struct):
    """A text cut at the lines that start a turn.

    lead: what stands before the first of them, from a line break on.
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


def count_speakers(lines: Iterable[RoleLine]) -> int:
    """How many roles speak in some lines."""
    return len({line.role for line in lines})


def keep(found: Lines, kept: Sequence[RoleLine]) -> Lines:
    """Return the text cut at some of its lines only; the others become part of what stands before them."""
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
