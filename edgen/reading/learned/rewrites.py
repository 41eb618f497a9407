"""Forms of a layout that change from reply to reply without a meaning.

They are the padding of a table, and quotation marks around only the texts that need them. A reply is
rewritten so that these are always the same, and then cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from edgen.core.text import compile_later
from edgen.reading.learned.texts import DIGITS

PAD = "\x16"  # stands for padding
_PADDED = compile_later(r" {4}([|│║┃])\n")
_RULE = compile_later(r"[-─═━=]{4,}")
_EDGE = 4  # lines at either end that may hold a rule
COLUMNS = frozenset(",;\t")  # what separates them


class Padding(msgspec.Struct):
    """Blanks up to the right edge of a table."""

    bar: str  # the mark at this edge

    def apply(self, text: str) -> str | None:
        """Return the text with `PAD` in place of padding and rules; None if it holds this sign itself."""
        if PAD in text:
            return None
        bar, edge = self.bar, PAD + self.bar
        lines = [
            line[:-1].rstrip(" ") + edge if line[-1:] == bar else line
            for line in text.replace(f"\n{bar}  ", f"\n{bar} ").split("\n")  # before numbers of one digit
        ]
        for some in (slice(_EDGE), slice(max(_EDGE, len(lines) - _EDGE), None)):
            lines[some] = [_RULE.sub(PAD, line) for line in lines[some]]
        return "\n".join(lines)


class Quoting(msgspec.Struct):
    """Quotation marks around the texts in CSV that need them."""

    bare: re.Pattern[str]  # a label and a text without quotation marks after it, as groups

    def apply(self, text: str) -> str:
        """Return the text with all turns in quotation marks."""
        parts = self.bare.split("\n" + text)
        parts[2::3] = [f'"{said}"' for said in parts[2::3]]
        return "".join(parts)[1:]


def find_rewrite(top: str, gaps: Sequence[str], rest: str) -> Padding | Quoting | None:
    """Return how to rewrite replies with these texts before, between and after the turns; None if these are
    alike as they are."""
    opened = [gap.endswith('"') for gap in (top, *gaps)]
    if not all(opened) and any(opened):
        # An end marker may stand before the last mark.
        closed = [*[gap.startswith('"') for gap in gaps], '"' in rest.partition("\n")[0]]
        labels = {gap[gap.rfind("\n") :].removesuffix('"') for gap in ("\n" + top, *gaps)}
        ends = {label[-1:] for label in labels}
        if closed != opened or not all(label.startswith("\n") for label in labels):
            return None
        if len(ends) > 1 or not ends.issubset(COLUMNS):
            return None  # only in CSV does the general reader take few quotation marks for the layout's
        named = "|".join(
            sorted({re.escape(DIGITS.sub("0", label)).replace("0", "[0-9]+") for label in labels})
        )
        return Quoting(re.compile(rf"({named})([^\"\\\n{ends.pop()}]+)(?=\n|\Z)"))
    padded = next((found for gap in gaps if (found := _PADDED.search(gap)) is not None), None)
    if padded is None or any(map(_RULE.search, gaps)):
        return None  # the general reader may leave a rule between rows in the turns
    return Padding(padded[1])
