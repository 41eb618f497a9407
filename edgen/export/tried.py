"""Trials of exports by edgen's authors, by format: tried.json, one table, updated by each round of trials."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import msgspec


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial of such an export by edgen's authors: a version of a library, a day (ISO 8601), and in `what` a
    sentence on what ran. For a repository without releases the version is its commit."""

    library: str
    version: str
    day: str
    what: str


def find_trials(name: str) -> tuple[Tried, ...]:
    """Return the trials of exports in the format of that name."""
    return _table()[name]


@functools.cache
def _table() -> dict[str, tuple[Tried, ...]]:
    data = Path(__file__).with_suffix(".json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[Tried, ...]])
