"""edgen generates synthetic conversations with language models.

    import edgen

    run = edgen.generate("jobs/quickstart.yaml", conversations=20)
    for conversation in run.conversations():
        print(conversation)

What is imported from here is loaded when it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from edgen.core.version import __version__

if TYPE_CHECKING:
    from edgen.api.objects.conversation import Conversation
    from edgen.api.objects.functions import agenerate, generate
    from edgen.api.objects.functions import open as open  # noqa: A004 - as edgen.open
    from edgen.api.objects.job import Job
    from edgen.api.objects.results import Comparison, Pairs, Stats
    from edgen.api.objects.run import Run, compare
    from edgen.core import errors
    from edgen.core.events import Event
    from edgen.core.values import Reply, Request

_HOMES = {
    "generate": "edgen.api.objects.functions",
    "agenerate": "edgen.api.objects.functions",
    "open": "edgen.api.objects.functions",
    "compare": "edgen.api.objects.run",
    "Comparison": "edgen.api.objects.results",
    "Conversation": "edgen.api.objects.conversation",
    "Event": "edgen.core.events",
    "Job": "edgen.api.objects.job",
    "Pairs": "edgen.api.objects.results",
    "Reply": "edgen.core.values",
    "Request": "edgen.core.values",
    "Run": "edgen.api.objects.run",
    "Stats": "edgen.api.objects.results",
}

__all__ = [
    "Comparison",
    "Conversation",
    "Event",
    "Job",
    "Pairs",
    "Reply",
    "Request",
    "Run",
    "Stats",
    "__version__",
    "agenerate",
    "compare",
    "errors",
    "generate",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("edgen.core.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'edgen' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "open"])  # which `from edgen import *` leaves out: it is a builtin's name
