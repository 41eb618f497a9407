"""Search for the turns of a reply in its text: what stands around them, and how they are written there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from edgen.core.text import compile_later
from edgen.core.values import Turn
from edgen.reading.learned.turn_codes import PLAIN, QUOTED, encode_turn, list_codes

LONGEST = 600  # characters before, between or after the turns
_MARGIN = 12  # characters in place of a line break in a turn
TAG = compile_later("<[^<>]*>")


class TurnPlaces(NamedTuple):
    """The texts around the turns of a reply, and how these are written."""

    gaps: list[str]  # texts between the turns
    rest: str  # text after the last turn
    code: int
    joint: str


def find_turns(text: str, turns: Sequence[Turn], at: int, *, quoted: bool = False) -> TurnPlaces | None:
    """Return the texts between the turns and after the last one, and how the turns are written; None where
    one does not follow in the text. The first begins near `at`. `quoted`: turns may stand in quotation marks
    even if the first does not."""
    before = TAG.sub("", text[:at])
    codes = list_codes('"' if quoted else before)
    code = QUOTED if '"' in before else PLAIN
    gaps = []
    joint = ""
    for turn in turns:
        for written in codes:
            said = encode_turn(turn.text, written)
            place = text.find(said, at)
            if "\n" in turn.text:
                if 0 <= place <= at + LONGEST and "\n" in said:
                    joint = joint or "\n"
                else:
                    joint = joint or _find_joint(text, turn.text, written, at)
                    said = joint.join([encode_turn(line, written) for line in turn.text.split("\n")])
                    place = text.find(said, at)
            if 0 <= place <= at + LONGEST:
                break
        else:
            return None
        code = max(code, written)
        gaps.append(text[at:place])
        at = place + len(said)
    return TurnPlaces(gaps[1:], text[at:], code, joint)


def _find_joint(text: str, said: str, code: int, at: int) -> str:
    """Return the characters between the first two lines of a turn in a text; nothing if they are too many."""
    first, *others = (encode_turn(line, code) for line in said.split("\n"))
    breaks, second = next(((number, line) for number, line in enumerate(others, 1) if line), (1, ""))
    start = text.find(first, at) + len(first)
    end = text.find(second, start)
    joint = text[start : start + (end - start) // breaks]
    return (
        joint if start >= len(first) and len(joint) <= _MARGIN and joint * breaks == text[start:end] else ""
    )
