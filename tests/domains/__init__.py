"""Tests of the domains: a folder each, which goes with the domain's own in edgen/domains/."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType


def modules_of(name: str) -> list[ModuleType]:
    """Import the module of this name of each domain that has one: what it adds to a test of the engine's."""
    files = sorted(Path(__file__).parent.glob(f"*/{name}.py"))
    return [importlib.import_module(f"{__name__}.{file.parent.name}.{name}") for file in files]
