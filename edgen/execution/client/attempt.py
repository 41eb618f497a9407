"""One attempt at a call, with validation of replies of plugins' backends."""

from __future__ import annotations

from edgen.core.plugin_faults import blaming, require_value
from edgen.core.values import Reply, Request
from edgen.providers import Backend


async def complete_once(backend: Backend, provider: str, request: Request) -> Reply:
    """Return the backend's reply to one attempt.

    Raises CallError. Raises FaultyPluginError if a plugin's backend raises anything else or returns no Reply.
    """
    with blaming("provider", provider, "in place of a CallError"):
        reply = await backend.complete(request)
    require_value("provider", provider, reply, Reply, "a Reply")
    return reply
