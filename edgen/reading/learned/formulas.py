"""Marks of formulas and code: in a layout without them, they are a turn's own."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.text import compile_later
from edgen.reading.roles import RoleWords
from edgen.reading.text.wrappers import without_wrappers

FORMULAS = frozenset("<>&[]{}\\`|")
_TAGS = frozenset("<>&")
_NAMED_OUTSIDE = compile_later(r'"[^"]*?[^\W\d_]')  # of the strings: `",\n   Student:  "`
# What the general reader may decode: a backslash before a quotation mark or in `\n`, and an entity of HTML.
_ESCAPED = compile_later(r"\\(?![A-Za-mo-tv-z()\[\]{}%$&_#,;:! ])|&#?\w{1,8};")


def list_plain_marks(top: str, gaps: Sequence[str], rest: str, opener: str, *, json: bool) -> frozenset[str]:
    """Return the marks of formulas that are a turn's own: those that the layout has not. In JSON, brackets
    belong to the strings, and backslashes to their escapes.

    `top`, `gaps` and `rest` are the texts around the turns, `opener` is the quotation mark before each.
    """
    around = "".join((top, *gaps))
    taken = {mark for mark in FORMULAS if mark in around}
    taken |= {mark for mark in "<>&\\`|" if mark in rest}
    if json:
        taken -= {*"[]{}"}
    if not taken.isdisjoint("<>&\\"):
        taken |= _TAGS
    if opener == "'" or (json and not all(map(_NAMED_OUTSIDE.match, gaps))):
        taken.add("\\")
    return FORMULAS - taken


def are_formulas(whole: str, text: str, marks: str, roles: RoleWords, *, tagged: bool) -> bool:
    """Return whether marks of formulas in the turns of a reply are no escapes, fences, half brackets or
    markup. `whole`: all turns, `marks`: their marks, `text`: the reply, `tagged`: its layout has tags."""
    if ("\\" in marks or "&" in marks) and _ESCAPED.search(whole) is not None:
        return False
    if "``" in whole or any(whole.count(pair[0]) != whole.count(pair[1]) for pair in ("[]", "{}")):
        return False
    if _TAGS.isdisjoint(marks) and ("\\" not in marks or tagged):
        return True
    return without_wrappers(text, [], roles) == text
