"""Names that a module passes on and loads when they are first used."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def names_from(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for `module`; `homes` has the names of each module, space-separated."""
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(home_of[name]), name)
        setattr(sys.modules[module], name, found)
        return found

    return load
