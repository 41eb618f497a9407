"""Modules that are imported when one of their names is first used.

Each process that runs tests side by side collects all of them, and the SDKs of one folder's tests take two
seconds to import.
"""

from __future__ import annotations

import importlib
from typing import Any


class Late:
    """A module, by its name. Attributes that pytest looks for in every object (`__test__`) import nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
