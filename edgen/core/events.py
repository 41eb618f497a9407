"""What happens while a run goes on, as values: said once by whoever works, heard by any number of listeners.

    run · start · progress · rate · retries · circuit_opened · circuit_closed · batch · note · stage · finish

`text` is a sentence for a person; `facts` are JSON-able and say the same to a machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Event(msgspec.Struct, frozen=True):
    """One thing that happened."""

    name: str
    text: str = ""
    facts: dict[str, Any] = {}


Listener = Callable[[Event], object]


class Events:
    """Where things are said. With nobody listening, nothing happens."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Have `listener` told of everything from now on. It must not raise, and must not block."""
        self._listeners.append(listener)

    def tell(self, name: str, text: str = "", **facts: Any) -> None:
        """Say what happened."""
        self.send(Event(name, text, facts))

    def send(self, event: Event) -> None:
        """Hand an event to every listener."""
        for listener in self._listeners:
            listener(event)
