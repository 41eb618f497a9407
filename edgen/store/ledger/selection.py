"""What a run that was selected of another says of it: a fact of its ledger."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgen.store.ledger.opening import decode_fact

SELECTION = "selection"


class Clause(msgspec.Struct, frozen=True):
    """One thing that was asked of conversations: its name, which is the reason of those that it took; what it says; how
    many it was asked about, and how many it took."""

    name: str
    says: str
    of: int
    took: int


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Of which run it was made, and how. `run`: the name of its folder; `sha256`: the digest of its accepted records, in
    order; `options`: those of `edgen select`; `before`: how that run was selected itself."""

    run: str
    sha256: str
    accepted: int
    kept: int
    clauses: tuple[Clause, ...]
    options: tuple[str, ...]
    before: Selection | None = None

    @property
    def depth(self) -> int:
        """How often was selected."""
        return 1 if self.before is None else 1 + self.before.depth


def read_selection(noted: str | None, path: Path) -> Selection | None:
    """The fact as it is noted; None where it is not. Raises DamagedError for one that is none."""
    return decode_fact(noted, Selection, path, "what it says of its selection")
