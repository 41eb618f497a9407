"""The one way to cut a text into words: that of `transcript.detect`, which every measure uses.

Words are runs of letters and digits with the apostrophes inside them, folded to lower case; each
character of a script without spaces is one, and so is a sign that changes what a sum says.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgen.core.values import Turn
from edgen.reading.detect import words

__all__ = ["cut", "words"]


def cut(turns: Iterable[Turn]) -> list[list[str]]:
    """The words of each turn."""
    return [words(turn.text) for turn in turns]
