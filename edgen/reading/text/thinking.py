"""Remove reasoning blocks such as `<think>…</think>` from a reply.

A block counts if its tag starts a line. A block without a closing tag runs to the end of the reply if its tag
has angle brackets and stands before the first role's line; `[Plan]` alone is a heading. A block without an
opening tag starts at the beginning of the reply, as with some chat templates. In a reply that is JSON as a
whole, tags belong to the texts.
"""

from __future__ import annotations

import re

import msgspec

from edgen.core.text import compile_later
from edgen.reading.repairs import Repair
from edgen.reading.roles import TEACHER_STUDENT, RolePattern, RoleWords
from edgen.reading.text.characters import fold, holds_pair

_NAMES = "think|thinking|thought|thoughts|reasoning|reason|reflection|scratchpad|analysis|planning|plan"
_OPEN = compile_later(rf"(?i)\n[^\S\n]{{0,40}}[<\[](?P<name>{_NAMES})[>\]]")
_CLOSE = compile_later(rf"(?i)[<\[]/(?:{_NAMES})[>\]]")
# Without an opening tag, a closing one counts only where an answer follows, not inside a sentence.
_ORPHAN = RolePattern(
    rf"(?i)[<\[]/(?:{_NAMES})[>\]](?=[^\S\n]*+(?:\n|\Z|```|\{{\s*+\"|\*{{0,2}}(?:conversation"
    r"|ROLE)\*{0,2}:))"
)
_SPOKEN = RolePattern(r"(?im)^(?>(?:[^\w\n<]|_){0,20})(?:ROLE)\b[^:\n]{0,40}:")
_FINAL = compile_later(r"<\|channel\|>final<\|message\|>")


_HINT = compile_later(r"[<\[/](?:think|thought|reason|reflection|scratchpad|analysis|plan)")


def may_hold_thinking(text: str) -> bool:
    """Return whether a text may hold a block. Cheap, since it runs for every reply."""
    if "<" not in text and not holds_pair(text, "[/"):
        return False
    return "<|channel|>" in text or _HINT.search(fold(text)) is not None


def drop_thinking(text: str, repairs: list[str], roles: RoleWords = TEACHER_STUDENT) -> str:
    """Return the text without its reasoning blocks."""
    if not may_hold_thinking(text) or _is_json(text):
        return text
    final = _FINAL.search(text)
    left = "\n" + (text if final is None else text[final.end() :])
    opened = _OPEN.search(left)
    orphan = _ORPHAN.of(roles).search(left)
    if orphan is not None and (opened is None or orphan.start() < opened.start()):
        left = "\n" + left[orphan.end() :]
    kept: list[str] = []
    at = 0
    while (opened := _OPEN.search(left, at)) is not None:
        closed = _CLOSE.search(left, opened.end())
        if closed is None and (opened := _find_unclosed(left, at, roles)) is None:
            break
        kept.append(left[at : opened.start() + 1])
        at = len(left) if closed is None else closed.end()
    answer = "".join((*kept, left[at:]))[1:]
    if len(answer) < len(text):
        repairs.append(Repair.THINKING)
    return answer


def _is_json(text: str) -> bool:
    """Return whether a text is an object or a list in JSON, and nothing else."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _find_unclosed(text: str, start: int, roles: RoleWords) -> re.Match[str] | None:
    """Return the first tag at or after `start` that opens a block which runs to the end of the text."""
    spoken = _SPOKEN.of(roles).search(text, start)
    stop = len(text) if spoken is None else spoken.start()
    return next((m for m in _OPEN.finditer(text, start, stop) if "<" in m.group()), None)
