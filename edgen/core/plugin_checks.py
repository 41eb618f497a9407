"""Checks of an object that a package adds to edgen, made when it is loaded and by `edgen.testing`.

The module of each kind's base class has a function `list_flaws(object)` that yields what the kind requires
and the object lacks, each as a clause. The base is compared by name, so nothing is imported that the object
did not import itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

BASES: Mapping[str, tuple[str, str]] = {
    "provider": ("edgen.providers.base", "Provider"),
    "protocol": ("edgen.protocols.base", "Protocol"),
    "family": ("edgen.families.base", "Family"),
    "format": ("edgen.export.format", "Format"),
    "measure": ("edgen.evaluation.measure", "Measure"),
    "reader": ("edgen.families.reader", "DataSetReader"),
}
"""The module and the name of the base class of each kind that other packages add."""
_SHOWN = {"protocol": "ConversationProtocol", "reader": "readers.DataSetReader"}
"""The class of `edgen.plugin` that an author derives from, if not the base."""


def find_flaw(kind: str, loaded: Any) -> str | None:
    """Return why an object cannot be used as one of its kind, as a clause such as "has no `Config`"; None if
    it can. Raises the errors of the object's own attributes."""
    if kind not in BASES:
        return None
    module, base = BASES[kind]
    shown = f"edgen.plugin.{_SHOWN.get(kind, base)}"
    if isinstance(loaded, type):
        begins = f"is a class, not an object; write `OBJECT = {loaded.__name__}()`"
        return f"{begins} in its module, and OBJECT in its entry point"
    if (module, base) not in {(one.__module__, one.__qualname__) for one in type(loaded).__mro__}:
        return f"is of the class {type(loaded).__name__}, which is not derived from {shown}"
    return next(iter(importlib.import_module(module).list_flaws(loaded)), None)
