"""Fences around conversations in prompts for a judge, a labeller or any other reader.

Turns are foreign text: one may imitate the prompt's headings, another turn, or the end of the conversation.
So templates show them `guarded`. Every line of a turn after its first begins with a bar, regardless of the
line end, and the whole is between two lines with a mark. The mark is a digest of the job's seed and of the
whole content: the writer of a turn cannot know it, and none of the texts contains it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from edgen.core.values import TaskId, Turn

CONTINUED = "  | "  # begins every line of a turn but its first
FENCED = ("guarded", "fence")  # the variables of a template that shows one conversation


def fence_turns(seed: int, scenario: int, task: TaskId, turns: Iterable[Turn]) -> dict[str, str]:
    """Return the variables FENCED of a template that shows one conversation."""
    return fence_texts(seed, scenario, task, {"guarded": ("Conversation", turns)})


def fence_texts(
    seed: int, scenario: int, task: TaskId, shown: Mapping[str, tuple[str, Iterable[Turn]]]
) -> dict[str, str]:
    """Return the variables of a template that shows several texts, and `fence`, their common mark.

    `shown` maps each variable to a description of the text and its turns or entries.
    """
    guarded = {name: guard_lines(turns) for name, (_, turns) in shown.items()}
    fence = make_mark(seed, scenario, task, [*guarded.values()])
    texts = {name: fence_text(shown[name][0], lines, fence) for name, lines in guarded.items()}
    return {**texts, "fence": fence}


def guard_lines(turns: Iterable[Turn]) -> str:
    """Return a conversation of which every line begins with a role or with CONTINUED. Roles in records of
    other origin can be any text, too."""
    return "\n".join([_mark_lines(f"{turn.role}: {turn.text}") for turn in turns])


def _mark_lines(text: str) -> str:
    first, *rest = text.splitlines()  # breaks at every character that some program takes for a line end
    return "\n".join([first, *[CONTINUED + line for line in rest]])


def make_mark(seed: int, scenario: int, task: TaskId, texts: Sequence[str]) -> str:
    """Return the mark of a request's fences: 16 hex digits that none of the texts contains."""
    for salt in count():
        digest = hashlib.blake2b(f"{seed}/{scenario}/{task}/{salt}".encode(), digest_size=8)
        for text in sorted(texts):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data) + data)
        if not any(digest.hexdigest() in text for text in texts):
            break
    return digest.hexdigest()


def fence_text(what: str, lines: str, fence: str) -> str:
    """Return the lines between two lines that hold the fence's mark and describe the text."""
    return f"[{fence}] {what} begins\n{lines}\n[{fence}] {what} ends"
