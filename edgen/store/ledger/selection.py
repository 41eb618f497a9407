"""Selections: the fact in the ledger of a run that was selected from another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from edgen.store.ledger.opening import decode_fact

SELECTION = "selection"


class Clause(msgspec.Struct, frozen=True):
    """One condition of a selection."""

    name: str
    """The reason of conversations that it rejected."""
    says: str
    """The condition in words."""
    of: int
    """Conversations that it was applied to."""
    took: int
    """Conversations that it rejected."""


class SplitRule(msgspec.Struct, frozen=True):
    """A split that replaces the job's: by the values of a name. `test` is the share of the test side.
    `in_order`: the latest values are the test side, and groups are numbered, latest first; else groups are
    hashes of values."""

    by: str
    test: Annotated[float, Meta(ge=0, lt=1)]
    in_order: bool = False

    @property
    def words(self) -> str:
        """The split's criterion, for people."""
        return f"test {self.test:.4g} by {self.by}{', the latest' if self.in_order else ''}"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a selected run."""

    run: str
    """The name of the source run's folder."""
    sha256: str
    """The digest of its accepted records, in order."""
    accepted: int
    kept: int
    clauses: tuple[Clause, ...]
    options: tuple[str, ...]
    """The options of `edgen select`."""
    split: SplitRule | None = None
    """The split of `--split-by`, from this selection or an earlier one."""
    tested: int = 0
    """Conversations on the test side."""
    before: Selection | None = None
    """The source run's own selection."""

    @property
    def depth(self) -> int:
        """The number of successive selections."""
        return 1 if self.before is None else 1 + self.before.depth


def read_selection(noted: str | None, path: Path) -> Selection | None:
    """Decode the fact; None if missing. Raises DamagedError for an invalid one."""
    return decode_fact(noted, Selection, path, "what it says of its selection")
