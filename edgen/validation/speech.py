"""What was said in a conversation as a file has it: its turns without debris and end marker.

The turns are those that `fix` would keep; here nothing is written back, and what was found is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from edgen.core.values import Role, Turn
from edgen.reading import is_plain
from edgen.validation.artefacts import read_turn
from edgen.validation.repair import clean_fully

Marker = Literal["suffix", "own_turn", "inside", "absent"]


class Speech(msgspec.Struct, frozen=True):
    """`marker`: where the end marker stands (`inside`: something is said behind it, which is left out of
    `turns`); `ended_by`: who spoke it. `defects` are the kinds of debris found, each once."""

    turns: tuple[Turn, ...]
    marker: Marker
    ended_by: Role | None
    defects: tuple[str, ...]


def read_speech(turns: Iterable[Turn]) -> Speech:
    """What was said in turns as they are written. Raises on no text."""
    kept: list[Turn] = []
    defects: dict[str, None] = {}
    marker: Marker = "absent"
    ended_by: Role | None = None
    for turn in turns:
        if marker == "absent" and is_plain(turn.text):
            kept.append(turn)
            continue
        what = read_turn(turn.text)
        defects |= dict.fromkeys(kind for kind, _ in what.notes)
        if marker != "absent":
            marker = "inside" if what.says else marker
            continue
        text, marked, repairs = clean_fully(turn.text)
        if text:
            kept.append(Turn(turn.role, text))
        if marked:
            ended_by = turn.role
            marker = "suffix" if text else "own_turn"
            if "after_end_marker" in repairs:
                marker = "inside"
    defects.pop("marker_turn", None)  # `marker` tells
    return Speech(tuple(kept), marker, ended_by, tuple(defects))
