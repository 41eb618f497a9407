"""Conversations of one scenario that say the same: branches and arms can come out alike."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from edgen.exporters.voice import Message


class Repeats:
    """What was there already, a scenario at a time. Of each row 16 bytes are kept, until the next scenario."""

    def __init__(self) -> None:
        self._scenario: int | None = None
        self._given: set[bytes] = set()

    def has(self, scenario: int, messages: Sequence[Message]) -> bool:
        """Whether these messages were asked about before, in this scenario. Scenarios come one after the other."""
        if scenario != self._scenario:
            self._scenario, self._given = scenario, set()
        key = blake2b(msgspec.json.encode(messages), digest_size=16).digest()
        if key in self._given:
            return True
        self._given.add(key)
        return False
