"""One attempt at a call, or one question to the server; what plugins' backends return is validated."""

from __future__ import annotations

from edgen.core.plugin_faults import blaming, require_value
from edgen.core.values import Reply, Request
from edgen.providers import Backend
from edgen.providers.base import CountsSlots


async def complete_once(backend: Backend, provider: str, request: Request) -> Reply:
    """Return the backend's reply to one attempt.

    Raises CallError. Raises FaultyPluginError if a plugin's backend raises anything else or returns no Reply.
    """
    with blaming("provider", provider, "in place of a CallError"):
        reply = await backend.complete(request)
    require_value("provider", provider, reply, Reply, "a Reply")
    return reply


async def count_slots(backend: CountsSlots, provider: str) -> int | None:
    """Return how many calls the backend's server answers at once; None if it does not say.

    Raises CallError and FaultyPluginError as `complete_once` does.
    """
    with blaming("provider", provider, "in place of a CallError"):
        slots = await backend.slots()
    if slots is not None:
        require_value("provider", provider, slots, int, "a number of slots or None")
    return slots
