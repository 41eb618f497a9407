from __future__ import annotations

import asyncio

from edgen.core.values import Address, Reply
from edgen.store.ledger import Ledger


def store_reply(
    ledger: Ledger,
    address: Address,
    key: bytes,
    reply: Reply,
    latency: float,
    tries: int,
    *,
    charged_tokens: int = 0,
    cost_usd: float | None = None,
) -> asyncio.Future[None]:
    """Store one reply."""
    return ledger.store([(address, key, reply, charged_tokens, cost_usd)], latency, tries)
