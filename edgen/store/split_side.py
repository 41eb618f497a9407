"""The test side of a run: the held-out groups of scenarios, of all its arms together."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable

from edgen.space.splits import HeldOutGroups, choose_common_side
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder


def choose_side(views: Collection[LedgerReader], share: float) -> HeldOutGroups:
    """Return the common test side of these arms: by a split that was chosen afterwards if there is one."""
    selections = (view.selection for view in views)
    rule = next((one.split for one in selections if one is not None and one.split is not None), None)
    groups = [view.iterate_groups() for view in views]
    if rule is None:
        return choose_common_side(groups, share)
    return choose_common_side(groups, rule.test, in_order=rule.in_order)


def read_test_side(arms: Iterable[RunFolder], share: float) -> HeldOutGroups:
    """Return the test side of a run's arms together; `share` is the job's."""
    with contextlib.ExitStack() as stack:
        return choose_side([stack.enter_context(LedgerReader(own.ledger)) for own in arms], share)
