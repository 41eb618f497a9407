"""Memory of which servers have seen the beginnings of prompts.

Servers keep the computed state of recent prompts (the KV cache) and reuse it for requests with the same
beginning: the next turn of a conversation, its branches and replicates, several tutors of one student. A
prompt is cut into blocks; the mark of a block covers everything up to its end. A server counts as having seen
a prompt if it has seen half of its blocks.

The memory only guides the choice of a server. It shapes no answer and is not stored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, TypeVar

from edgen.core.values import Message

_BLOCK = 256  # characters, about 64 tokens
_MOST_BLOCKS = 256  # maximum blocks of a prompt; the rest is ignored
_KEPT = 65_536  # maximum marks, about 15 MB
_ENOUGH = 0.5  # a server has seen a prompt if it has seen this share of its blocks

S = TypeVar("S")


def mark(messages: Sequence[Message]) -> list[int]:
    """Return the marks of a prompt, one for each whole block."""
    text = "\n".join(f"{message.role}\n{message.content}" for message in messages)
    marks, before = [], 0
    for start in range(0, min(len(text) - _BLOCK + 1, _MOST_BLOCKS * _BLOCK), _BLOCK):
        before = hash((before, text[start : start + _BLOCK]))
        marks.append(before)
    return marks


class Prefixes(Generic[S]):
    """The recent marks, each with the servers that have seen it. The oldest are forgotten."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._servers: OrderedDict[int, frozenset[S]] = OrderedDict()
        self._kept = kept

    def find_servers(self, marks: Sequence[int]) -> frozenset[S]:
        """Return the servers that have seen most of a prompt; empty if none has seen enough."""
        least = max(1, int(len(marks) * _ENOUGH))
        for count in range(len(marks), least - 1, -1):
            if (found := self._servers.get(marks[count - 1])) is not None:
                return found
        return frozenset()

    def note(self, marks: Sequence[int], server: S) -> None:
        """Record that a server gets a prompt."""
        for one in marks:
            known = self._servers.get(one, frozenset())
            self._servers[one] = known if server in known else known | {server}
            self._servers.move_to_end(one)
        while len(self._servers) > self._kept:
            self._servers.popitem(last=False)
