"""Lines that start a turn, and a text cut at them.

`unadorned` drops the other half of the marks that stand before a role: `**` at the end of a bold line, `|` of
a table, a closing tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from edgen.core.text import compile_later
from edgen.reading.roles import RoleWords

_FEW = 3  # labels below texts, and one more
TOKEN = compile_later(r"\d+|[^\W\d_]+|[^\w\s]|_|\n|[^\S\n]+")


class RoleLine(msgspec.Struct, gc=False):
    """A line that starts a turn, and what stands between it and the next one."""

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
    """Return the number of roles that speak in some lines."""
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


def stand_behind(found: Lines) -> bool:
    """Return whether all labels stand below the texts that they name, each before a blank line."""
    if found.lines[0].kind == "colon":
        return False
    bodies = [line.body for line in found.lines[:-1]]
    before = [found.lead, *bodies]
    return (
        len(bodies) >= _FEW
        and all(text.strip() and text.rstrip(" \t")[-1:] != "\n" for text in before)
        and all(
            body.lstrip(" \t").startswith("\n") and not body.lstrip(" \t")[1:].partition("\n")[0].strip()
            for body in bodies
        )
    )


def strip_half_marks(line: RoleLine, text: str, roles: RoleWords) -> str:
    """Return the text that a line introduces, without the other half of the marks before the role."""
    prefix = line.prefix.rstrip()
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
    cut = max(text.rfind("</"), text.rfind("[/"))
    if (
        cut >= 0
        and ("<" in prefix or "[" in prefix)
        and text[cut + 2 :].lower().startswith((*roles.by_name, "turn"))
    ):
        text = text[:cut]
    return text


@lru_cache(maxsize=4096)
def find_shape(text: str) -> tuple[str, ...]:
    """Return the kinds of a text's tokens: two texts of one layout have the same."""
    return tuple(map(find_kind, TOKEN.findall(text)))


@lru_cache(maxsize=4096)
def find_kind(token: str) -> str:
    """Return a token, one number for all numbers, one letter for a list's letters and numbers, and one half
    of the day
    for both."""
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
