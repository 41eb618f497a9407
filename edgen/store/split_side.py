"""The test side of a run: the groups of scenarios that are held out, of all its arms together."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable

from edgen.space.splits import HeldOutGroups, choose_common_side
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder


def read_test_side(arms: Iterable[RunFolder], share: float) -> HeldOutGroups:
    """Return the test side of a run's arms together; `share` is the job's."""
    with contextlib.ExitStack() as stack:
        return choose_side([stack.enter_context(LedgerReader(own.ledger)) for own in arms], share)


def choose_side(views: Collection[LedgerReader], share: float) -> HeldOutGroups:
    """Return the test side of these arms together: by the split that was chosen for it later, if any."""
    selections = (view.selection for view in views)
    rule = next((one.split for one in selections if one is not None and one.split is not None), None)
    groups = [view.groups() for view in views]
    if rule is None:
        return choose_common_side(groups, share)
    return choose_common_side(groups, rule.test, in_order=rule.in_order)
