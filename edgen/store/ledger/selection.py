"""What a run that was selected of another says of it: a fact of its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from edgen.store.ledger.opening import decode_fact

SELECTION = "selection"


class Clause(msgspec.Struct, frozen=True):
    """One thing that was asked of conversations: its name, which is the reason of those that it took; what it says; how
    many it was asked about, and how many it took."""

    name: str
    says: str
    of: int
    took: int


class SplitRule(msgspec.Struct, frozen=True):
    """A split that a run has instead of its job's: by the values of a name; `test` is the share of the test side.
    `in_order`: it is the latest values, and groups are numbered, the latest first; else groups are hashes of values."""

    by: str
    test: Annotated[float, Meta(ge=0, lt=1)]
    in_order: bool = False

    @property
    def words(self) -> str:
        """What it is split by, as people read it."""
        return f"test {self.test:.4g} by {self.by}{', the latest' if self.in_order else ''}"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Of which run it was made, and how. `run`: the name of its folder; `sha256`: the digest of its accepted records, in
    order; `options`: those of `edgen select`; `split`: that of `--split-by`, this time or before; `tested`: how many are
    on the test side; `before`: how that run was selected itself."""

    run: str
    sha256: str
    accepted: int
    kept: int
    clauses: tuple[Clause, ...]
    options: tuple[str, ...]
    split: SplitRule | None = None
    tested: int = 0
    before: Selection | None = None

    @property
    def depth(self) -> int:
        """How often was selected."""
        return 1 if self.before is None else 1 + self.before.depth


def read_selection(noted: str | None, path: Path) -> Selection | None:
    """The fact as it is noted; None where it is not. Raises DamagedError for one that is none."""
    return decode_fact(noted, Selection, path, "what it says of its selection")
