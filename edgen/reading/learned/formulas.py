"""Marks of formulas and code: in a layout without them, they are a turn's own."""

from __future__ import annotations

from edgen.core.text import compile_later
from edgen.reading.roles import RoleWords
from edgen.reading.text.wrappers import without_wrappers

FORMULAS = frozenset("<>&[]{}\\`|")
TAGS = frozenset("<>&")
# What the general reader may decode: a backslash before a quotation mark or in `\n`, and an entity of HTML.
_ESCAPED = compile_later(r"\\(?![A-Za-mo-tv-z()\[\]{}%$&_#,;:! ])|&#?\w{1,8};")


def are_formulas(whole: str, text: str, marks: str, roles: RoleWords, *, tagged: bool) -> bool:
    """Return whether marks of formulas in the turns of a reply are no escapes, fences, half brackets or
    markup. `whole`: all turns, `marks`: their marks, `text`: the reply, `tagged`: its layout has tags."""
    if ("\\" in marks or "&" in marks) and _ESCAPED.search(whole) is not None:
        return False
    if (
        "``" in whole
        or "</" in whole
        or any(whole.count(pair[0]) != whole.count(pair[1]) for pair in ("[]", "{}"))
    ):
        return False
    if TAGS.isdisjoint(marks) and ("\\" not in marks or tagged):
        return True
    return without_wrappers(text, [], roles) == text
