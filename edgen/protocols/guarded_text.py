"""Texts as a judge can be shown them safely: fenced, and no line of them mistaken for the prompt's own.

Every line of a turn after its first begins with a bar, so a line inside a fence begins with a role that edgen
wrote or with that bar: none can equal a heading, a rule, a label or a fence. The mark of the fence is a digest of
the job's seed, the pair and all that is shown. Who wrote the texts could not know it, a later start makes the same
one, and both orders have the same, so that they differ in nothing but the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import count

from edgen.core.values import TaskId, Turn

# What a judge's template may use besides the plain texts, whatever is compared.
GUARDED: tuple[str, ...] = ("compare", "fence", "guarded", "guarded_1", "guarded_2")
CONTINUED = "  | "  # begins every line of a turn but its first


def guarded_lines(turns: Iterable[Turn]) -> str:
    """A conversation of which every line begins with a role or with CONTINUED."""
    return "\n".join([f"{turn.role}: {_mark_lines(turn.text)}" for turn in turns])


def _mark_lines(text: str) -> str:
    first, *rest = text.splitlines() or [""]  # breaks at whatever any program takes for the end of a line
    return "\n".join([first, *[CONTINUED + line for line in rest]])


def make_mark(seed: int, scenario: int, task: TaskId, texts: Sequence[str]) -> str:
    """The mark of a pair's fences: 16 hex digits that stand in none of the texts."""
    for salt in count():
        digest = hashlib.blake2b(f"{seed}/{scenario}/{task}/{salt}".encode(), digest_size=8)
        for text in sorted(texts):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data) + data)
        if not any(digest.hexdigest() in text for text in texts):
            break
    return digest.hexdigest()


def fence_text(what: str, lines: str, fence: str) -> str:
    """The lines between two that hold the fence's mark and say what stands between them."""
    return f"[{fence}] {what} begins\n{lines}\n[{fence}] {what} ends"
