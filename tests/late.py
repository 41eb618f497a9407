"""Modules that are imported when something of them is first asked for.

Each process that runs tests side by side collects all of them, and the SDKs of one folder's tests take two seconds to import.
"""

from __future__ import annotations

import importlib
from typing import Any


class Late:
    """A module, by its name. What pytest looks for in everything that it finds (`__test__`) imports nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
