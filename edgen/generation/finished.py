"""Handling of a finished run: generating it again needs no key and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgen.annotation.layer import has_job_layers
from edgen.config import find_backend_name
from edgen.execution.finished import is_finished
from edgen.execution.progress import Title, read_still_snapshot
from edgen.execution.session import settle_lease
from edgen.planning.plan import Plan
from edgen.runtime.backends import list_configs, open_backends
from edgen.runtime.control import Control
from edgen.runtime.supervise import start_event
from edgen.store.ledger import run_status
from edgen.store.run_folder import RunFolder


async def is_complete(
    whole: Mapping[str, Any],
    plans: Mapping[str, Plan],
    folder: RunFolder,
    part: range | None,
    control: Control,
) -> bool:
    """Return whether a run, whose arms all have ledgers, needs no more work. `whole`: the job from
    `inline_files`. `plans`: by arm. `part`: the scenarios to make, None for all."""
    prints = {}
    for arm, plan in plans.items():
        async with open_backends(
            list_configs(plan), plan.job.limits, None, functions=control.functions
        ) as backends:
            identities = {role: backends[find_backend_name(plan.job, role)].identity for role in plan.roles}
        prints[arm] = plan.make_fingerprint(identities)
    return has_job_layers(folder) and is_finished(whole, plans, prints, folder, part)


def report_finished(name: str, plans: Mapping[str, Plan], folder: RunFolder, control: Control) -> None:
    """Report that a run is complete, and give back leases of a shared budget that its arms still hold."""
    for arm, plan in plans.items():
        if (budget := plan.job.limits.budget) is not None:
            settle_lease(budget, folder.arm(arm).ledger, control.note)
        snapshot = read_still_snapshot(run_status(folder.arm(arm).ledger), Title(name, arm))
        control.events.send(start_event(snapshot, snapshot.counts.kept))
    control.note(f"{folder.path}: the run is complete; nothing to do.")
