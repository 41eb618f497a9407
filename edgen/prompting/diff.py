"""A comparison of two rendered prompts: as a unified diff, or row by row with the changes in each.

Prompts may have any origin, and difflib can take very long over adversarial texts. Beyond MOST_LINES lines,
MOST_WORDS words of a line or MOST_PAIRS pairs of words in all, the rest is shown as changed without details.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import msgspec

from edgen.core.text import compile_later
from edgen.core.values import Message

MOST_LINES = 1_000  # lines of one text
MOST_WORDS = 400  # words of one line
MOST_PAIRS = 400_000  # compared pairs of words, over all lines

_WORD = compile_later(r"\s+|[^\W_]+|.")

# A line in pieces; True for a piece that differs from the other side.
Pieces = tuple[tuple[str, bool], ...]


class DiffRow(msgspec.Struct, frozen=True):
    """A line of each side; None for a side without a matching line."""

    left: Pieces | None
    right: Pieces | None


def join_messages(messages: Sequence[Message]) -> str:
    """Return the messages of a request as one text, each under its role."""
    return "\n".join([f"[{message.role}]\n{message.content}" for message in messages])


def unified_diff(left: str, right: str, left_name: str, right_name: str) -> str:
    """Return a unified diff in the format of patch(1); an empty text for equal texts."""
    if left == right:
        return ""
    old, new = left.split("\n"), right.split("\n")
    if max(len(old), len(new)) > MOST_LINES:
        head = [f"--- {left_name}", f"+++ {right_name}", f"@@ -1,{len(old)} +1,{len(new)} @@"]
        return "\n".join([*head, *(f"-{line}" for line in old), *(f"+{line}" for line in new)])
    return "\n".join(difflib.unified_diff(old, new, left_name, right_name, lineterm=""))


def compare_rows(left: str, right: str) -> Iterator[DiffRow]:
    """Yield every line of both texts side by side, with the different words marked."""
    old, new = left.split("\n"), right.split("\n")
    pairs = 0
    for tag, a, b, c, d in _find_steps(old, new, MOST_LINES):
        if tag == "equal":
            yield from (DiffRow(((line, False),), ((line, False),)) for line in old[a:b])
            continue
        for number in range(max(b - a, d - c)):
            one = old[a + number] if a + number < b else None
            other = new[c + number] if c + number < d else None
            if one is None or other is None:
                yield DiffRow(_mark_all(one), _mark_all(other))
                continue
            words = _WORD.findall(one), _WORD.findall(other)
            pairs += len(words[0]) * len(words[1])
            yield _compare_lines(*words) if pairs <= MOST_PAIRS else DiffRow(_mark_all(one), _mark_all(other))


def _mark_all(line: str | None) -> Pieces | None:
    return None if line is None else ((line, True),)


def _compare_lines(old: list[str], new: list[str]) -> DiffRow:
    """Compare two different lines word by word."""
    marked: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for tag, a, b, c, d in _find_steps(old, new, MOST_WORDS):
        for pieces, part in zip(marked, (old[a:b], new[c:d]), strict=True):
            if part:
                pieces.append(("".join(part), tag != "equal"))
    return DiffRow(tuple(marked[0]), tuple(marked[1]))


def _find_steps(old: list[str], new: list[str], most: int) -> list[tuple[str, int, int, int, int]]:
    if max(len(old), len(new)) > most:
        return (
            [("replace", 0, len(old), 0, len(new))] if old != new else [("equal", 0, len(old), 0, len(new))]
        )
    return [*difflib.SequenceMatcher(None, old, new).get_opcodes()]
