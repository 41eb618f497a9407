"""Which groups of a run are on the test side: of all its arms together, by the split that was chosen for it last."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable

from edgen.space.splits import HeldOutGroups, choose_common_side
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder


def read_test_side(arms: Iterable[RunFolder], share: float) -> HeldOutGroups:
    """The test side of the arms of a run together; `share` is what the job says."""
    with contextlib.ExitStack() as stack:
        return choose_side([stack.enter_context(LedgerReader(own.ledger)) for own in arms], share)


def choose_side(views: Collection[LedgerReader], share: float) -> HeldOutGroups:
    """The test side of what these hold together: by the split that was chosen for it afterwards, if one was."""
    selections = (view.selection for view in views)
    rule = next((one.split for one in selections if one is not None and one.split is not None), None)
    groups = [view.groups() for view in views]
    if rule is None:
        return choose_common_side(groups, share)
    return choose_common_side(groups, rule.test, in_order=rule.in_order)
