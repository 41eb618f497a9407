"""Kinds of conversations, one folder each."""

from __future__ import annotations

import functools
from typing import Any

from edgen.core import registry
from edgen.core.errors import JobError, Problem
from edgen.core.version import DISTRIBUTION
from edgen.families.base import Family
from edgen.space.model import Space


def family_of(space: Space, named: str | None = None) -> Family:
    """Return the family of a space's conversations: the job's choice, else the first of edgen's own that
    fits.

    Raises PluginError for an unknown name, JobError if it does not fit.
    """
    if named is None:
        return next(family for family in _own_families() if family.fits(space))
    family: Family = registry.find("family", named)
    if not family.fits(space):
        problem = Problem("$.family", f"{named} does not fit the dimensions and roles of {space.name}")
        raise JobError("the job", "1 problem:", (problem,))
    return family


def family_of_record(record: Any) -> Family:
    """Return the family whose layout a decoded record has; if none recognises it, the first of edgen's own.
    Plugins' families are loaded only if none of edgen's own recognises it."""
    for families in (_own_families, _other_families):
        if found := next((family for family in families() if family.recognizes(record)), None):
            return found
    return _own_families()[0]


@functools.cache
def _own_families() -> list[Family]:
    own: list[Family] = [
        registry.find("family", plugin.name)
        for plugin in registry.plugins()
        if plugin.kind == "family" and plugin.package == DISTRIBUTION
    ]
    return sorted(own, key=lambda family: family.precedence)


@functools.cache
def _other_families() -> list[Family]:
    return [family for family in registry.find_all("family") if family not in _own_families()]
