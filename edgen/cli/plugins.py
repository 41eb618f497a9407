"""`edgen plugins`: providers, protocols, families, formats and measures, and where each is from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from edgen.cli.options.common import JsonOption
from edgen.cli.output import print_value

if TYPE_CHECKING:
    from edgen.api.plugins import PluginFacts


def command(json: JsonOption = False) -> None:
    """List what edgen is made of and what installed packages add to it, with the version of each package.

    Example: edgen plugins --json
    """
    from edgen.api.plugins import list_plugins

    found = list_plugins()
    print_value({"plugins": found}, _lines(found), json=json)


def _lines(found: list[PluginFacts]) -> Iterator[str]:
    width = max((len(one.name) for one in found), default=0)
    kind = ""
    for one in found:
        if one.kind != kind:
            yield from ("",) if kind else ()
            kind = one.kind
            yield f"{kind}s" if not kind.endswith("y") else f"{kind[:-1]}ies"
        yield f"  {one.name:{width}}  {one.package} {one.version}"
        if one.error:
            yield f"  {'':{width}}  ERROR: {one.error}"
