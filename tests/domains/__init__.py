"""Tests of the domains. Each folder belongs to the domain's own folder in edgen/domains/."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType


def modules_of(name: str) -> list[ModuleType]:
    """Import the module of this name from each domain that has one; a test of the engine uses it."""
    files = sorted(Path(__file__).parent.glob(f"*/{name}.py"))
    return [importlib.import_module(f"{__name__}.{file.parent.name}.{name}") for file in files]
