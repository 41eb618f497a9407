"""How a scenario becomes a conversation, one file a kind; `protocol` finds one by its name.

`oracle` judges two conversations: it is driven like the others, and returns verdicts. A kind is imported
when it is asked for: what it reads with takes its time to load.
"""

from __future__ import annotations

from typing import Literal

from edgen.protocols.base import Conversing, Prompting, Result, Rules, Start


def protocol(name: Literal["oneshot", "selfplay"]) -> Start:
    """The protocol of that name."""
    if name == "selfplay":
        from edgen.protocols.selfplay import selfplay

        return selfplay
    from edgen.protocols.oneshot import oneshot

    return oneshot


__all__ = ["Conversing", "Prompting", "Result", "Rules", "Start", "protocol"]
