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
    from edgen.api.objects.functions import agenerate, generate
    from edgen.api.objects.functions import open as open  # noqa: A004 - as edgen.open
    from edgen.api.objects.job import Job
    from edgen.api.objects.results import Candidates, Comparison, Layer, Pairs, Stats
    from edgen.api.objects.run import Conversation, Run
    from edgen.api.objects.run_functions import annotate, candidates, compare, select
    from edgen.api.scoring import baseline, score
    from edgen.core import errors
    from edgen.core.events import Event
    from edgen.core.values import Reply, Request, Token

_HOMES = {
    "edgen.api.objects.functions": ("agenerate", "generate", "open"),
    "edgen.api.objects.job": ("Job",),
    "edgen.api.objects.results": ("Candidates", "Comparison", "Layer", "Pairs", "Stats"),
    "edgen.api.objects.run": ("Conversation", "Run"),
    "edgen.api.objects.run_functions": ("annotate", "candidates", "compare", "select"),
    "edgen.api.scoring": ("baseline", "score"),
    "edgen.core.events": ("Event",),
    "edgen.core.values": ("Reply", "Request", "Token"),
}

__all__ = [
    "Candidates",
    "Comparison",
    "Conversation",
    "Event",
    "Job",
    "Layer",
    "Pairs",
    "Reply",
    "Request",
    "Run",
    "Stats",
    "Token",
    "__version__",
    "agenerate",
    "annotate",
    "baseline",
    "candidates",
    "compare",
    "errors",
    "generate",
    "score",
    "select",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("edgen.core.errors")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'edgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "open"])  # which `from edgen import *` leaves out: it is a builtin's name
