"""What is there of the five kinds that packages can add, and what is wrong with one that cannot be used."""

from __future__ import annotations

import msgspec

from edgen.core import registry


class PluginFacts(msgspec.Struct, frozen=True):
    """One entry point: what it adds, from which package and version. `error` is why it cannot be used."""

    kind: str
    name: str
    package: str
    version: str
    object: str
    error: str | None = None


def list_plugins() -> list[PluginFacts]:
    """Everything of the five kinds, by kind and name, edgen's own among them. Each is loaded to see whether it can be."""
    return [
        PluginFacts(one.kind, one.name, one.package, one.version, one.object, registry.problem(one))
        for one in registry.plugins()
    ]
