"""How a scenario becomes a conversation, one file a kind. `PROTOCOLS` is the table of them."""

from __future__ import annotations

from edgen.protocols.base import Conversing, Prompting, Result, Rules, Start
from edgen.protocols.oneshot import oneshot

PROTOCOLS: dict[str, Start] = {"oneshot": oneshot}
# The backends' roles that a protocol asks.
PROTOCOL_ROLES: dict[str, tuple[str, ...]] = {"oneshot": ("default",)}

__all__ = ["PROTOCOLS", "PROTOCOL_ROLES", "Conversing", "Prompting", "Result", "Rules", "Start"]
