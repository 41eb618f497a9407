"""What edgen's authors ran on exports, by format: tried.json, one table, which a new round of trials changes alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import msgspec


@dataclass(frozen=True, slots=True)
class Tried:
    """What edgen's authors ran on such an export: a version of a library, on a day (ISO 8601), and in `what` a sentence
    that says what ran. For a repository without releases the version is its commit."""

    library: str
    version: str
    day: str
    what: str


def tried(name: str) -> tuple[Tried, ...]:
    """What was run on exports in the format of that name."""
    return _table()[name]


@functools.cache
def _table() -> dict[str, tuple[Tried, ...]]:
    data = Path(__file__).with_suffix(".json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[Tried, ...]])
