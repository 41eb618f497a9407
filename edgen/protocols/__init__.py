"""How a scenario becomes a conversation, one file a kind. `PROTOCOLS` is the table of them.

`oracle` judges two conversations: it is driven like the others, and returns verdicts.
"""

from __future__ import annotations

from edgen.protocols.base import Conversing, Prompting, Result, Rules, Start
from edgen.protocols.oneshot import oneshot
from edgen.protocols.selfplay import selfplay

PROTOCOLS: dict[str, Start] = {"oneshot": oneshot, "selfplay": selfplay}

__all__ = ["PROTOCOLS", "Conversing", "Prompting", "Result", "Rules", "Start"]
