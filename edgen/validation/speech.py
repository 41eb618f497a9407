"""What was said in a conversation as a file has it: its turns without debris and end marker.

The turns are those that `fix` would keep; here nothing is written back, and what was found is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from edgen.core.values import Role, Turn
from edgen.validation.artefacts import read_turn
from edgen.validation.repair import Clean, clean_fully


class Speech(msgspec.Struct, frozen=True):
    """`marker`: where the end marker stands (`inside`: something is said behind it, which is left out of
    `turns`); `ended_by`: who spoke it. `defects` are the kinds of debris found, each once."""

    turns: tuple[Turn, ...]
    marker: Literal["suffix", "own_turn", "inside", "absent"]
    ended_by: Role | None
    defects: tuple[str, ...]


def read_speech(
    turns: Sequence[tuple[Role, str]], clean: Clean, plain: Callable[[str], bool] = lambda _: False
) -> Speech:
    """What was said in these turns, (role, text) each. Raises on no text. `plain` tells of a text that holds
    letters and nothing to clean; where it says no, the text is looked at closely."""
    kept: list[Turn] = []
    defects: dict[str, None] = {}
    marker: Literal["suffix", "own_turn", "inside", "absent"] = "absent"
    ended_by: Role | None = None
    for role, raw in turns:
        if marker == "absent" and plain(raw):
            kept.append(Turn(role, raw))
            continue
        what = read_turn(raw)
        if what.notes:
            defects |= dict.fromkeys(kind for kind, _ in what.notes)
        if marker != "absent":
            marker = "inside" if what.says else marker
            continue
        text, marked, repairs = clean_fully(raw, clean)
        if text:
            kept.append(Turn(role, text))
        if marked:
            ended_by = role
            marker = "suffix" if text else "own_turn"
            if "after_end_marker" in repairs:
                marker = "inside"
    defects.pop("marker_turn", None)  # `marker` tells
    return Speech(tuple(kept), marker, ended_by, tuple(defects))
