"""A run in partitions: ranges of its scenarios, each made by a process with its own ledger, then merged.

One process stores about 1,700 answers per second; several store several times as many. Until the merge is
done, the partitions' folders are in NAME.partitions next to the run's folder. The merge streams, and renames
its result at the end, so the run's folder is always complete. All caps hold for the partitions together:
calls in flight and rates are divided, and tokens and money are leased in small amounts from one book. An open
lease counts as spent, so a kill exceeds no cap. Partitions end when this process ends. The same command
resumes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import pickle
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.config import Job, Limits
from edgen.core.errors import EdgenError, UsageError
from edgen.core.files import write_new
from edgen.core.options import CallMode
from edgen.core.system import interrupt, is_hangup, run_in_thread
from edgen.core.text import quantity
from edgen.execution.pieces import check_part
from edgen.execution.progress import Activity, Snapshot, StatusEvent, add_usage
from edgen.execution.session import make_signal_error
from edgen.generation.options import GenerateOptions
from edgen.merging.merge import merge
from edgen.planning.load import JobSource
from edgen.providers.trust import Consents
from edgen.runtime.backends import find_address
from edgen.runtime.control import Control, Trust, explain_os_errors
from edgen.runtime.status import StatusReport, read_partitions_status
from edgen.store.run_folder import RunFolder

_PLAN, _BUDGET = "partitions.json", "budget.yaml"


class PartitionMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a partition: it can be stopped, a note, its state, or its end."""

    ready: bool = False  # from now on, a signal stops it cleanly
    note: str = ""  # for the log
    snapshot: Snapshot | None = None  # state of the partition
    done: bool = False  # it has ended; then the fields below are set
    made: int = 0  # calls that it made in this start
    ended: str = ""  # the error's message; empty if all was made
    code: int = 0  # exit code
    reason: str = ""  # one word for the status


class PartitionWork:
    """The work of a partition: the job, the options, and the user's consents."""

    def __init__(self, source: JobSource, options: GenerateOptions, control: Control) -> None:
        self.source, self.options = source, options
        self.consents: Consents = control.trust.consents
        self.code: tuple[Path, ...] = tuple(control.trust.code)

    @property
    def trust(self) -> Trust:
        """The consents as a Trust object."""
        trust = Trust(code=self.code)
        trust.consents = self.consents
        return trust


_decode = msgspec.json.Decoder(PartitionMessage, dec_hook=lambda _kind, value: Counter(value)).decode


class _Partitions(msgspec.Struct, frozen=True):
    """The division of a run, as noted at its beginning."""

    conversations: int
    partitions: int

    def find_part(self, number: int) -> range:
        """Return the scenarios of a partition."""
        first, end = (one * self.conversations // self.partitions for one in (number, number + 1))
        return range(first, end)


class PartitionError(EdgenError):
    """The error that ended a partition."""

    def __init__(self, line: PartitionMessage) -> None:
        super().__init__(line.ended)
        self.exit_code, self.reason = line.code, line.reason


class StoppedPartitions(NamedTuple):
    """Partitions that stopped before the merge."""

    status: StatusReport  # sums over the partitions
    ended: EdgenError  # the error that stopped them


async def make_partitions(
    source: JobSource, options: GenerateOptions, run: RunFolder, control: Control
) -> int | StoppedPartitions:
    """Make a run's conversations in partitions, and merge these into the run's folder. Return the number of
    calls, or how the partitions stopped after the first call. If the run exists, for example after the merge,
    make nothing. Raises UsageError if the job cannot be divided, and the error that ended a partition before
    the first call."""
    folder = run.partitions_folder
    if run.begun:
        if folder.exists():  # left by a kill after the merge
            await run_in_thread(shutil.rmtree, folder)
        elif source.job.partitions and run.ledger.exists():
            control.note(f"{run.path}: this run has one ledger, and keeps it.")
        return 0
    check_divisible(source.job, options, control)
    on = find_address(source.job, CallMode(on=options.on, workers=options.workers))
    with explain_os_errors(folder):
        plan = _find_plan(folder, source.job, control)
        parts = [folder / str(number) for number in range(plan.partitions)]
        workers = options.workers or source.job.workers
        async with _find_cluster(on, workers, len(parts), control) as (address, each):
            _keep_plan(folder, plan)
            limits = _share_limits(source.job.limits, plan.partitions, folder)
            job = msgspec.structs.replace(source.job, limits=limits, partitions=None)
            own = msgspec.structs.replace(options, on=address, workers=each, partitions=None)
            given = [
                PartitionWork(
                    source._replace(job=job),
                    msgspec.structs.replace(own, output=path, scenarios=plan.find_part(number)),
                    control,
                )
                for number, path in enumerate(parts)
            ]
            try:
                made = await _Processes(given, control, job).run()
            except EdgenError as ended:
                if (status := read_partitions_status(run)) is None:
                    raise
                return StoppedPartitions(status, ended)
        with control.events.report_stages() as tell:
            await run_in_thread(merge, parts, run.path, tell)
        await run_in_thread(shutil.rmtree, folder)
    return made


def check_divisible(job: Job, options: GenerateOptions, control: Control) -> None:
    """Raise UsageError if a job cannot be made in partitions."""
    if job.arms or options.scenarios is not None or options.via != "online" or options.write_only is not None:
        raise UsageError("partitions divide a job without arms, without --range and with single calls.")
    if any(function is not None for function in control.functions.values()):
        raise UsageError("partitions are other processes, which cannot call functions of this one.")
    if job.limits.budget is not None and (job.limits.max_tokens or job.limits.max_cost):
        raise UsageError(
            "partitions share one budget: leave limits.budget or limits.max_tokens and limits.max_cost out."
        )
    check_part(job, range(1, job.conversations))


def _find_plan(folder: Path, job: Job, control: Control) -> _Partitions:
    """Return the division of the run, as noted at its beginning. Raises UsageError for another number of
    conversations, or fewer calls in flight than partitions."""
    file, most = folder / _PLAN, job.limits.in_flight
    wanted = _Partitions(job.conversations, min(job.partitions or 1, job.conversations, most))
    if not file.exists():
        return wanted
    plan = msgspec.json.decode(file.read_bytes(), type=_Partitions)
    if plan.conversations != job.conversations:
        raise UsageError(
            f"{folder}: this run was begun with {plan.conversations:,} conversations, and cannot "
            f"be divided differently now. Resume it with -n {plan.conversations}; more can be "
            "made once it is complete."
        )
    if plan.partitions > most:
        raise UsageError(
            f"{folder}: this run was begun in {plan.partitions} partitions, and limits.in_flight is {most}. "
            f"Resume it with {plan.partitions} or more, at least one call for each."
        )
    if job.partitions is not None and plan != wanted:
        control.note(f"{folder}: this run was begun in {plan.partitions} partitions, and keeps them.")
    return plan


def _keep_plan(folder: Path, plan: _Partitions) -> None:
    if not (folder / _PLAN).exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_new(folder / _PLAN, msgspec.json.encode(plan))


def _share_limits(limits: Limits, count: int, folder: Path) -> Limits:
    """Return the limits of each partition, and write the budget file with the caps that they share."""
    caps = {"total": limits.max_cost, "tokens_total": limits.max_tokens}
    text = json.dumps({name: cap for name, cap in caps.items() if cap is not None})
    budget = limits.budget
    if text != "{}":
        budget = str((folder / _BUDGET).absolute())
        Path(budget).write_text(text + "\n")

    def divide_rate(rate: float | None) -> float | None:
        return None if rate is None else rate / count

    return msgspec.structs.replace(
        limits,
        in_flight=math.floor(limits.in_flight / count),
        requests_per_minute=divide_rate(limits.requests_per_minute),
        tokens_per_minute=divide_rate(limits.tokens_per_minute),
        max_tokens=None,
        max_cost=None,
        budget=budget,
    )


@contextlib.asynccontextmanager
async def _find_cluster(
    on: str, workers: int | None, parts: int, control: Control
) -> AsyncIterator[tuple[str, int | None]]:
    """Yield (the cluster that all partitions use, the workers of each); `here` and None if `on` is empty.
    `on`: `ray` starts a cluster on this machine. `workers`: of all partitions together; None for one per
    core."""
    if not on:
        yield "here", None
        return
    from edgen.execution.cluster.connect import ClusterConnection, describe_few_cores

    with ClusterConnection(
        on.removeprefix("ray").removeprefix("://"), max(workers or 1, parts)
    ) as connection:
        each = max(1, (workers or connection.cores) // parts)
        if few := describe_few_cores(connection.cores, each * parts):
            control.note(few)
        yield f"ray://{connection.address}", each


class _Processes:
    """The processes of the partitions."""

    def __init__(self, given: list[PartitionWork], control: Control, job: Job) -> None:
        self._given, self._control, self._job = given, control, job
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._snapshots: dict[int, Snapshot] = {}
        self._ready: set[int] = set()  # processes that a signal stops cleanly
        self._stopped: set[int] = set()  # processes that got a signal: a second one ends calls in flight
        self._stopping = False
        self._notes: set[str] = set()
        self._made = 0  # calls
        self._ended: PartitionError | None = None
        self._signal: EdgenError | None = None

    async def run(self) -> int:
        """Run all processes to their ends; return the number of calls. If one fails, stop the others cleanly
        and raise its error."""
        with self._control.interrupts(self._on_signal):
            waiting = [asyncio.create_task(self._run_process(*one)) for one in enumerate(self._given)]
            watching = asyncio.create_task(self._watch())
            try:
                await asyncio.gather(*waiting)
            except BaseException:
                self._stop()
                await asyncio.gather(*waiting, return_exceptions=True)
                raise
            finally:
                watching.cancel()
        if (ended := self._signal or self._ended) is not None:
            raise ended
        return self._made

    async def _run_process(self, number: int, given: PartitionWork) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "edgen.generation.partition_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # this process forwards the terminal's signals
            limit=2**24,
        )
        self._running[number] = process
        assert process.stdin is not None
        assert process.stdout is not None
        data = pickle.dumps(given)
        process.stdin.write(len(data).to_bytes(8, "big") + data)  # stays open while this process lives
        last: PartitionMessage | None = None
        while line := await process.stdout.readline():
            last = _decode(line)
            self._hear(number, last)
            self._made += last.made
        code = await process.wait()
        del self._running[number]
        self._ready.discard(number)
        self._stopped.discard(number)
        if last is None or not last.done:
            last = PartitionMessage(
                ended=f"Partition {number} was killed ({code}). {_RESUME}", code=4, reason="killed"
            )
        if (last.ended and last.code != 3) or (
            last.ended and last.reason == "useless"
        ):  # 3: too few accepted; the whole run reports it
            self._fail(last)

    def _fail(self, line: PartitionMessage) -> None:
        if self._ended is None:
            self._ended = PartitionError(line)
        if line.reason != "budget":  # other partitions may use the returned rest of its lease
            self._stop()

    def _hear(self, number: int, line: PartitionMessage) -> None:
        if line.ready:
            self._ready.add(number)
            if self._stopping:
                self._stop()
        if line.note and line.note not in self._notes:
            self._notes.add(line.note)
            self._control.note(line.note)
        if line.snapshot is not None:
            self._snapshots[number] = line.snapshot

    def _on_signal(self, number: int) -> None:
        if self._signal is None:
            self._signal = make_signal_error(number)
            self._control.note(
                f"Stopping {quantity(len(self._running), 'partition')}: waiting for calls in flight "
                "(another signal stops at once)."
            )
            self._stop()
        elif not is_hangup(number):  # one closed terminal may send several
            for unready in self._running.keys() - self._ready:  # these have made no calls
                with contextlib.suppress(ProcessLookupError):
                    self._running[unready].kill()
            self._stopped.clear()
            self._stop()

    def _stop(self) -> None:
        """Stop all processes cleanly; starting ones are stopped as soon as they are ready."""
        self._stopping = True
        for number in self._ready - self._stopped:
            with contextlib.suppress(ProcessLookupError):
                # Not by its own method, which would take the exit code that the loop waits for.
                if self._running[number].returncode is None:
                    interrupt(self._running[number].pid)
        self._stopped |= self._ready

    async def _watch(self) -> None:
        """Report the sums once a second; stop at the deadline."""
        deadline = self._control.deadline
        while True:
            await asyncio.sleep(1.0)
            if self._snapshots:
                snapshot = _add([*self._snapshots.values()], self._job)
                self._control.events.send(StatusEvent("progress", snapshot=snapshot))
            if deadline is not None and deadline.count_seconds_left() <= 0 and self._signal is None:
                self._signal = deadline.make_reason()
                self._stop()


_RESUME = "All answers are stored; run the same command again to resume."


def _add(each: list[Snapshot], job: Job) -> Snapshot:
    """Return the snapshot of all partitions together."""
    counts = each[0].counts
    added: dict[str, Any] = {}
    for name in counts.__struct_fields__:
        values = [getattr(one.counts, name) for one in each]
        known = [value for value in values if value is not None]
        added[name] = sum(known[1:], known[0]) if known else None
    added["planned"] = job.conversations * job.replicates
    acts = [one.activity or Activity() for one in each]
    activity = Activity(
        in_flight=sum(one.in_flight for one in acts),
        timeouts=sum(one.timeouts for one in acts),
        per_second=sum(one.per_second for one in acts),
        wait=min(one.wait for one in acts),
        last_answer=max((one.last_answer for one in acts if one.last_answer is not None), default=None),
    )
    total = add_usage([one.total for one in each])
    return Snapshot(title=each[0].title, counts=type(counts)(**added), total=total, activity=activity)
