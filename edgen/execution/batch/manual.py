"""Commands on a run's batches: list them, cancel them, read results from files.

A run has a ledger, or one per arm, and one per judge; each batch belongs to one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from edgen.config import BackendConfig, CallSettings, Job, Price, load_job
from edgen.execution.batch.lifecycle import BatchLifecycle, LostBatch
from edgen.execution.batch.ownership import require_backend, require_own
from edgen.execution.batch.results import ResultCounts, check_lines, read_results
from edgen.execution.open_batches import end_unsent
from edgen.execution.progress import Events
from edgen.providers import find_batch_services
from edgen.providers.batches import BatchService, LineResult, NeverBegun, ReadLine
from edgen.store.ledger import OPEN, Ledger, NotedBatch, OutstandingCall, read_batches_at
from edgen.store.run_folder import RunFolder


class LedgerBatches(msgspec.Struct, frozen=True):
    """A ledger of a run with its batches. `whose`: its owner, an arm, a judge or the rollouts; empty for the
    run itself."""

    path: Path
    whose: str
    batches: tuple[NotedBatch, ...]


def list_ledger_batches(rundir: RunFolder) -> list[LedgerBatches]:
    """Return every ledger of the run that ever had a batch, without changing any."""
    return [
        LedgerBatches(path, _describe_owner(rundir, path), tuple(batches))
        for path in rundir.ledgers()
        if (batches := read_batches_at(path))
    ]


def _describe_owner(rundir: RunFolder, path: Path) -> str:
    if path == rundir.ledger:
        return ""
    if path.name == rundir.ledger.name:
        return path.parent.name
    return f"{'rollouts' if path.parent == rundir.rollouts else 'judge'} {path.stem[:8]}"


def read_job(rundir: RunFolder, held: LedgerBatches) -> Job:
    """Return the job that a ledger's batches belong to."""
    own = RunFolder(held.path.parent)
    return load_job(own.job if own.job.exists() else rundir.job)


async def give_up(
    job: Job, ledger: Ledger, services: Mapping[str, BatchService], numbers: Iterable[int], events: Events
) -> list[ResultCounts]:
    """Cancel a ledger's open batches with these numbers, and read their answers. Return the counts of each
    result file."""
    read: list[ResultCounts] = []
    lifecycle = BatchLifecycle(
        CallSettings.of(job), ledger, services, events, lambda _batch, _path, counts: read.append(counts)
    )
    lifecycle.end()
    wanted = set(numbers)
    batches = [batch for batch in ledger.list_batches(*OPEN) if batch.number in wanted]
    require_own(ledger.path, batches, job.backends)
    for batch in batches:
        if batch.state == "written":
            await lifecycle.drop(batch, "given up")
            continue
        try:
            await lifecycle.complete(batch)
        except LostBatch as lost:
            # The provider may have worked on the batch, so the budget is charged at the maximum.
            await lifecycle.drop(batch, str(lost), charged=True)
            events.tell("note", f"batch {batch.number} is given up: {lost}")
    return read


def make_reader(configs: Iterable[BackendConfig]) -> ReadLine:
    """Return a reader of result lines in the formats of all these backends' providers."""
    readers = [
        check_lines(config.provider, find_batch_services(config).read_line)
        for config in {type(config): config for config in configs}.values()
    ]

    def read(line: bytes) -> LineResult | NeverBegun | None:
        return next((said for reader in readers if (said := reader(line)) is not None), None)

    return read


async def read_file(ledger: Ledger, job: Job, path: Path) -> ResultCounts:
    """Read a user's result file into one ledger of a run. Raises OSError if the file cannot be read."""
    made_for = {}
    for batch in ledger.list_batches():
        require_backend(ledger.path, batch, job.backends)
        made_for[batch.number] = job.backends[batch.backend]

    def find_price(row: OutstandingCall) -> Price | None:
        return None if row.batch not in made_for else made_for[row.batch].price

    reading = await read_results(path, make_reader(made_for.values()), ledger, find_price)
    for batch in ledger.list_batches("written"):
        if ledger.out.read_sums(batch.number)[0] == 0:
            await end_unsent(ledger, batch, "read by hand", "read")
    return reading
