"""The provider batches of a run: list them, cancel them, and read fetched results."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from edgen.core.errors import DataError, RunError, ShortError, UsageError
from edgen.execution.batch.manual import LedgerBatches, give_up, list_ledger_batches, read_file, read_job
from edgen.execution.batch.ownership import require_own
from edgen.execution.batch.results import ResultCounts
from edgen.runtime.backends import open_backends, open_batches
from edgen.runtime.control import Control, explain_os_errors, run_in_own_loop
from edgen.store.ledger import OPEN, Ledger, NotedBatch, count_outstanding_at
from edgen.store.run_folder import RunFolder


class BatchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as recorded in the run."""

    number: int  # the batch's number in its ledger, from 1
    of: str  # the arm or judge of the batch; empty: the run itself
    state: str  # last recorded state
    backend: str  # the backend's name in the job
    round: int  # round of the run
    requests: int  # number of requests
    id: str | None  # the provider's id; None before the batch is created
    file: str | None  # path of the request file
    sent_at: str | None  # ISO 8601, UTC; None before it is sent
    age_s: float  # seconds since it was sent or made
    message: str | None  # message of the provider, or the reason of a failure


class Cancelled(msgspec.Struct, frozen=True):
    """Numbers of cancelled batches, of their requests with an answer, and of those without."""

    run: str
    ended: int
    answered: int
    unanswered: int


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the lines of one result file."""

    path: str  # path of the file
    lines: int  # all lines
    answered: int  # lines read as answers now
    known: int  # lines answered earlier
    failed: int  # lines with an error
    unanswered: int  # lines of requests that the provider did not process
    strangers: int  # lines that answer no request of the run
    stranger: str  # id of the first stranger; empty without one
    unreadable: int  # lines that cannot be read


class ReadResults(msgspec.Struct, frozen=True):
    """Counts of each file, and `out`, the number of the run's requests that are still open."""

    run: str
    files: tuple[FileFacts, ...]
    out: int

    def require_own(self) -> None:
        """Raise DataError if a file does not belong to this run, ShortError if only some of its lines do
        not."""
        strange = [file for file in self.files if file.strangers or file.unreadable]
        if not strange:
            return
        first = strange[0]
        if not any(file.answered or file.known or file.failed for file in strange):
            about = f" (the first is about {first.stranger[:80]!r})" if first.stranger else ""
            raise DataError(
                first.path,
                f"none of its {first.lines:,} lines answers a request of this run{about}. Is it another "
                "run's, or a request file?",
            )
        raise ShortError(
            f"{first.path}: {first.strangers + first.unreadable:,} of its {first.lines:,} "
            "lines answer no request of this run and were skipped; the others are read."
        )


def list_batches(run: Path) -> list[BatchFacts]:
    """Return every batch of the run, from the ledger alone."""
    rundir = RunFolder(run).require()
    return [_describe(held.whose, batch) for held in list_ledger_batches(rundir) for batch in held.batches]


def _describe(whose: str, batch: NotedBatch) -> BatchFacts:
    sent = None if batch.sent_at is None else datetime.fromtimestamp(batch.sent_at, UTC)
    return BatchFacts(
        number=batch.number,
        of=whose,
        state=batch.state,
        backend=batch.backend,
        round=batch.round,
        requests=batch.requests,
        id=batch.remote_id,
        file=batch.file,
        sent_at=None if sent is None else sent.isoformat(timespec="seconds"),
        age_s=max(0.0, round(time.time() - (batch.sent_at or batch.made_at), 1)),
        message=batch.message,
    )


def cancel_batches(run: Path, numbers: Collection[int], control: Control) -> Cancelled:
    """Cancel batches at the provider, and read their answers. Without `numbers`: all open batches.

    Raises UsageError for a number of no open batch.
    """
    rundir = RunFolder(run).require()
    with explain_os_errors(rundir.path), rundir.lock_for_writing():
        known = list_ledger_batches(rundir)
        out = {batch.number for held in known for batch in held.batches if batch.state in OPEN}
        if missing := sorted(set(numbers) - out):
            raise UsageError(
                f"batch {missing[0]} of {run} is not open (open: "
                f"{', '.join(map(str, sorted(out))) or 'none'}); see `edgen batch list {run}`."
            )
        ended, read = 0, list[ResultCounts]()
        for held in known:
            wanted = [one for one in held.batches if one.state in OPEN and one.number in (numbers or out)]
            if wanted:
                ended += len(wanted)
                read += run_in_own_loop(_cancel(rundir, held, wanted, control))
    return Cancelled(str(run), ended, sum(one.answered for one in read), sum(one.unanswered for one in read))


async def _cancel(
    rundir: RunFolder, held: LedgerBatches, wanted: Sequence[NotedBatch], control: Control
) -> list[ResultCounts]:
    job = read_job(rundir, held)
    require_own(held.path, wanted, job.backends)
    at_provider = {batch.backend for batch in wanted if batch.state not in ("written", "ready")}
    configs = {name: job.backends[name] for name in sorted(at_provider)}
    async with (
        open_backends(configs, job.limits, control.trust) as backends,
        Ledger(held.path, create=False) as ledger,
        open_batches(job, backends) as services,
    ):
        return await give_up(job, ledger, services, [batch.number for batch in wanted], control.events)


def read_results(run: Path, files: Sequence[Path]) -> ReadResults:
    """Read result files into a run, from the provider or from another program that answered the request
    files.

    Reading a file twice changes nothing. Raises DataError for an invalid file, RunError for a run without
    batches.
    """
    rundir = RunFolder(run).require()
    for path in files:
        if not path.is_file():
            raise DataError(
                str(path), "there is no such file." if not path.exists() else "this is not a file."
            )
    with explain_os_errors(rundir.path), rundir.lock_for_writing():
        known = list_ledger_batches(rundir)
        if not known:
            raise RunError(f"{run}: this run has no batches, so no results belong to it.")
        each = run_in_own_loop(_read(rundir, known, files))
    read = tuple(_sum_up(path, readings) for path, readings in each.items())
    out = (
        (held.path, batch)
        for held in list_ledger_batches(rundir)
        for batch in held.batches
        if batch.state in OPEN
    )
    return ReadResults(
        str(run), read, sum(count_outstanding_at(ledger, batch.number) for ledger, batch in out)
    )


async def _read(
    rundir: RunFolder, known: Sequence[LedgerBatches], files: Sequence[Path]
) -> dict[Path, list[ResultCounts]]:
    each: dict[Path, list[ResultCounts]] = {path: [] for path in files}
    for held in known:
        async with Ledger(held.path, create=False) as ledger:
            for path in files:
                each[path].append(await read_file(ledger, read_job(rundir, held), path))
    return each


def _sum_up(path: Path, readings: Sequence[ResultCounts]) -> FileFacts:
    """Return the counts of one file over all ledgers of the run. A line is a stranger if it is one to every
    ledger."""
    lines, unreadable = readings[0].lines, readings[0].unreadable
    ours = sum(reading.lines - reading.strangers - reading.unreadable for reading in readings)
    strangers = max(0, lines - unreadable - ours)
    return FileFacts(
        path=str(path),
        lines=lines,
        answered=sum(reading.answered for reading in readings),
        known=sum(reading.known for reading in readings),
        failed=sum(reading.failed.total() for reading in readings),
        unanswered=sum(reading.unanswered for reading in readings),
        strangers=strangers,
        stranger=readings[0].stranger if strangers else "",
        unreadable=unreadable,
    )
