"""Helpers that edgen's own kinds share, beyond `edgen.plugin`. A plugin may use them; they may change in any release.

A name is loaded when it is first used. tools.pyi has the types.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HOMES: dict[str, str] = {}


def __getattr__(name: str) -> Any:
    import importlib

    for home, names in _HOMES.items():
        if name in names.split():
            module = importlib.import_module(home)
            found = (
                getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{home}.{name}")
            )
            globals()[name] = found
            return found
    raise AttributeError(f"module 'edgen.plugin.tools' has no attribute {name!r}")
