"""Forms of a layout that change from reply to reply without a meaning: padding, and quotation marks only where a
text needs them. A reply is rewritten so that these are always the same, and then cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from edgen.core.text import compile_later
from edgen.reading.learned.texts import DIGITS

PAD = "\x16"  # stands for padding
# Blanks up to the next column or the end of a row, and the rule between rows.
_PADDING = re.compile(r" {2,}| (?=[|│║┃](?:\n|\Z))|(?<=[|│║┃]) (?=[0-9])|[-─═━=]{4,}")
_PADDED = compile_later(r" {4}[|│║┃]\n")
_RULE = compile_later(r"[-─═━=]{4}")
_SEPARATORS = ",;\t"  # of columns


class Rewrite(msgspec.Struct):
    """A form of replies in a layout that is made the same before they are cut."""

    pattern: re.Pattern[
        str
    ]  # what is rewritten: padding, or a label and the text without quotation marks after it
    quotes: bool  # quotation marks are put around the text

    def apply(self, text: str) -> str | None:
        """Return the text in the form of the layout; None if it holds the sign for padding itself."""
        if not self.quotes:
            return None if PAD in text else self.pattern.sub(PAD, text)
        parts = self.pattern.split("\n" + text)
        parts[2::3] = [f'"{said}"' for said in parts[2::3]]
        return "".join(parts)[1:]


PADDING = Rewrite(_PADDING, quotes=False)


def find_rewrite(top: str, gaps: Sequence[str], rest: str) -> Rewrite | None:
    """Return how to rewrite replies with these texts before, between and after the turns; None if these are
    alike as they are."""
    around = [top, *gaps]
    opened = [gap.endswith('"') for gap in around]
    if not all(opened) and any(opened):
        # An end marker may stand before the last mark.
        closed = [*[gap.startswith('"') for gap in gaps], '"' in rest.partition("\n")[0]]
        labels = {gap[gap.rfind("\n") :].removesuffix('"') for gap in ("\n" + top, *gaps)}
        if closed != opened or not all(label.startswith("\n") for label in labels):
            return None
        ends = {label[-1:] for label in labels}
        if len(ends) > 1 or not ends.issubset(_SEPARATORS):
            return None  # only in CSV does the general reader take few quotation marks for the layout's
        before = "|".join(
            sorted({re.escape(DIGITS.sub("0", label)).replace("0", "[0-9]+") for label in labels})
        )
        return Rewrite(re.compile(rf"({before})([^\"\\\n{ends.pop()}]+)(?=\n|\Z)"), quotes=True)
    if any(map(_RULE.search, gaps)):
        return None  # the general reader may leave a rule between rows in the turns
    return PADDING if any(map(_PADDED.search, gaps)) else None
