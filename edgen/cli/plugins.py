"""`edgen plugins`: providers, protocols, families, formats and measures, and where each is from."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.cli.options import JsonOption
from edgen.cli.output import print_value
from edgen.core import registry


def command(json: JsonOption = False) -> None:
    """List what edgen is made of and what installed packages add to it, with the version of each package.

    Example: edgen plugins --json
    """
    found = [(plugin, registry.problem(plugin)) for plugin in registry.plugins()]
    keys = ("kind", "name", "package", "version", "object")
    plain = [{key: getattr(plugin, key) for key in keys} | {"error": problem} for plugin, problem in found]
    print_value({"plugins": plain}, _render(found), json=json)


def _render(found: list[tuple[registry.Plugin, str | None]]) -> Iterator[str]:
    width = max((len(plugin.name) for plugin, _ in found), default=0)
    kind = ""
    for plugin, problem in found:
        if plugin.kind != kind:
            yield from ("",) if kind else ()
            kind = plugin.kind
            yield f"{kind}s" if not kind.endswith("y") else f"{kind[:-1]}ies"
        yield f"  {plugin.name:{width}}  {plugin.origin}"
        if problem:
            yield f"  {'':{width}}  ERROR: {problem}"
