"""edgen generates synthetic conversations with language models.

    import edgen

    run = edgen.generate("jobs/quickstart.yaml", conversations=20)
    for conversation in run.conversations():
        print(conversation)

Names are loaded at their first use.
"""

from __future__ import annotations

from edgen.core.version import __version__

TYPE_CHECKING = False  # typing takes milliseconds to import, and a signal meanwhile would print a traceback
if TYPE_CHECKING:
    from typing import Any

    from edgen.api.objects.functions import agenerate, generate
    from edgen.api.objects.functions import open as open  # noqa: A004 - as edgen.open
    from edgen.api.objects.job import Job
    from edgen.api.objects.results import Candidates, Comparison, Layer, Pairs, Stats
    from edgen.api.objects.run import Conversation, Run
    from edgen.api.objects.run_functions import annotate, candidates, compare, select
    from edgen.core import errors
    from edgen.core.values import Reply, Request, Token, Usage
    from edgen.evaluation.function_measure import measure
    from edgen.execution.progress import Event

_HOMES = {
    "edgen.api.objects.functions": ("agenerate", "generate", "open"),
    "edgen.api.objects.job": ("Job",),
    "edgen.api.objects.results": ("Candidates", "Comparison", "Layer", "Pairs", "Stats"),
    "edgen.api.objects.run": ("Conversation", "Run"),
    "edgen.api.objects.run_functions": ("annotate", "candidates", "compare", "select"),
    "edgen.execution.progress": ("Event",),
    "edgen.core.values": ("Reply", "Request", "Token", "Usage"),
    "edgen.evaluation.function_measure": ("measure",),
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
    "Usage",
    "__version__",
    "agenerate",
    "annotate",
    "candidates",
    "compare",
    "errors",
    "generate",
    "measure",
    "select",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "errors":
        return importlib.import_module("edgen.core.errors")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    registry = importlib.import_module("edgen.core.registry")
    if name in registry.list_names("function"):  # a function of a domain
        return registry.find("function", name)
    raise AttributeError(f"module 'edgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    import importlib

    of_domains = importlib.import_module("edgen.core.registry").list_names("function")
    return sorted([*__all__, *of_domains, "open"])  # `import *` leaves out `open`, a builtin's name
