"""Events of a run, as values for any number of listeners.

    run · start · progress · rate · retries · circuit_opened · circuit_closed · batch · note · stage · finish

`text` is a sentence for a person; `facts` are the same as JSON-able values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec


class Event(msgspec.Struct, frozen=True):
    """One event."""

    name: str
    text: str = ""
    facts: dict[str, Any] = {}


Listener = Callable[[Event], object]


class Events(msgspec.Struct, eq=False):
    """A channel for events. Without listeners, it does nothing."""

    listeners: list[Listener] = []
    """Each gets every event; it must not raise, and must not block."""

    def listen(self, listener: Listener) -> None:
        """Send every event from now on to `listener`."""
        self.listeners.append(listener)

    def tell(self, name: str, text: str = "", **facts: Any) -> None:
        """Send an event with this name, text and facts."""
        self.send(Event(name, text, facts))

    @contextlib.contextmanager
    def report_stages(self) -> Iterator[Callable[[str], None]]:
        """Yield a function to call with the name of the present stage, for work without counts."""
        tell = partial(self.tell, "stage")
        try:
            yield tell
        finally:
            tell("")

    def send(self, event: Event) -> None:
        """Send an event to every listener."""
        for listener in self.listeners:
            listener(event)
