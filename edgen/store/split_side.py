"""The test side of a run: the held-out groups of scenarios, of all its arms together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from edgen.space.splits import HeldOutGroups, choose_side
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder


def read_test_side(arms: Iterable[RunFolder], share: float) -> HeldOutGroups:
    """Return the test side of a run's arms together; `share` is the job's."""
    with contextlib.ExitStack() as stack:
        return choose_side([stack.enter_context(LedgerReader(own.ledger)) for own in arms], share)
