"""Pieces of a job, or runs of it, made one run: what each has is put together, and the files are written.

The inputs are held against others meanwhile and never changed. The new run is made in a hidden folder beside its
place and renamed in the end, so that what stands there is whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import Job, load_job
from edgen.core.errors import JobError, RunError, UsageError
from edgen.core.files import replacing, sync_folder
from edgen.core.yaml_values import read_text, read_yaml
from edgen.execution.finish import RunSummary, describe_job, manifest_facts, write_files
from edgen.execution.merge_extras import copy_rest, judge_ledgers
from edgen.execution.run import EVERYTHING
from edgen.execution.run_identity import OF_ALL, Part, begun_arms, group_parts, longest_list
from edgen.families.base import record_id
from edgen.space.splits import choose_common_side
from edgen.store.ledger import OPEN, Drop, Duplicates, Ledger, MergedLedger, RunPlan, RunStatus, SourceLedger
from edgen.store.ledger.opening import damaged_error
from edgen.store.run_folder import RunFolder, inputs_named, run_around

_DUPLICATES = "duplicates.jsonl"


class MergeInput(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger that was put in: the scenarios that it was to make, half open, and how it stands."""

    run: str
    arm: str
    first: int
    end: int
    planned: int
    accepted: int
    pending: int


class MergeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `same` and `other` count conversations that are settled in several inputs, alike or not;
    `others` are the ids of the first that are not. `answered_twice` counts calls, and `answered_otherwise` those
    of them whose answers differ. `gaps` are scenarios, half open, that no input was to make, by arm; `notes`
    are sentences."""

    inputs: tuple[MergeInput, ...]
    same: int
    other: int
    others: tuple[str, ...]
    answered_twice: int
    answered_otherwise: int
    gaps: dict[str, tuple[tuple[int, int], ...]]
    notes: tuple[str, ...]
    complete: bool


def merge(
    paths: Sequence[Path], output: Path, tell: Callable[[str], None] = lambda _stage: None
) -> MergeResult:
    """Make one run, in the folder `output`, of those in the folders `paths`.

    Raises UsageError where there is nothing to do or `output` is taken, RunError where a run cannot be read, has
    batches that are open, or is of another job than the first; LockedError where somebody works on one.
    """
    _refuse(paths, output)
    runs = [RunFolder(path) for path in paths]
    with contextlib.ExitStack() as stack:
        for run in runs:
            run.require()
            stack.enter_context(run.lock_for_reading())
            for arm in begun_arms(run):
                stack.enter_context(run.arm(arm).lock_for_reading())
        parts, notes = group_parts(runs)
        output.parent.mkdir(parents=True, exist_ok=True)
        work = RunFolder(output.with_name(f".{output.name}.merging"))
        _refuse_stranger(work)
        work.path.mkdir(exist_ok=True)
        stack.enter_context(work.lock_for_writing())
        _clear(work)
        try:
            merged = _Merger(runs, parts, work, tell).make(notes)
            _publish(work, output)
        except BaseException:
            shutil.rmtree(work.path, ignore_errors=True)
            raise
    return merged


def _refuse(paths: Sequence[Path], output: Path) -> None:
    seen: dict[Path, Path] = {}
    for path in paths:
        if (real := path.resolve()) in seen:
            raise UsageError(f"{path}: this run is named twice; name each once.")
        seen[real] = path
    if output.exists() or output.is_symlink():
        raise UsageError(f"{output}: something is there already; name a new folder with -o.")
    if (around := run_around(output.parent)) is not None:
        raise UsageError(
            f"{output}: this is in the folder of the run {around}; name a folder elsewhere with -o."
        )


def _refuse_stranger(work: RunFolder) -> None:
    """Raise UsageError where the hidden folder is there, and no killed merge has left it."""
    path = work.path
    ours = path.is_dir() and not path.is_symlink() and (work.lock.is_file() or not any(path.iterdir()))
    if (path.exists() or path.is_symlink()) and not ours:
        raise UsageError(
            f"{path}: the new run would be made here first, and something is there; move it away."
        )


def _clear(work: RunFolder) -> None:
    """Remove what a killed merge left."""
    for path in work.path.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != work.lock:
            path.unlink()


def _publish(work: RunFolder, output: Path) -> None:
    try:
        work.path.rename(output)
    except OSError:
        raise UsageError(
            f"{output}: something has come there meanwhile; name a new folder with -o."
        ) from None
    sync_folder(output.parent)


class _Merger:
    """The work, in the folder `work`."""

    def __init__(
        self, runs: Sequence[RunFolder], parts: Sequence[Part], work: RunFolder, tell: Callable[[str], None]
    ) -> None:
        self._runs = runs
        self._parts = parts
        self._work = work
        self._tell = tell
        self._scratch = work.path / ".copies"
        self._inputs: list[MergeInput] = []
        self._several: list[tuple[Part, Duplicates]] = []
        self._gaps: dict[str, tuple[tuple[int, int], ...]] = {}
        self._made: dict[str, tuple[RunFolder, RunSummary]] = {}

    def make(self, notes: Iterable[str]) -> MergeResult:
        self._scratch.mkdir()
        # Everything is looked at before anything is written.
        sources = [(part, self._sources(part)) for part in self._parts]
        for run, path in judge_ledgers([*self._runs, *(run for part in self._parts for run in part.runs)]):
            refuse_open(run, SourceLedger(path, str(path), self._scratch))
        (self._work.path / "merged").mkdir()
        with replacing(self._work.path / "merged" / _DUPLICATES) as file:

            def drop(facts: dict[str, Any]) -> None:
                file.write(msgspec.json.encode(facts) + b"\n")

            for run in self._runs:
                if (earlier := run.path / "merged" / _DUPLICATES).is_file():
                    file.write(earlier.read_bytes())
            for part, own in sources:
                self._put_together(part, own, drop)
            self._keep_job()
            asyncio.run(self._write_files())
            copy_rest(self._runs, self._work, self._scratch, drop)
            for part in self._parts:
                if part.arm:
                    copy_rest(part.runs, self._work.arm(part.arm), self._scratch, drop)
        shutil.rmtree(self._scratch)
        if not (dropped := self._work.path / "merged" / _DUPLICATES).stat().st_size:
            shutil.rmtree(dropped.parent)
        several = [counts for _, counts in self._several]
        return MergeResult(
            inputs=tuple(self._inputs),
            same=sum(counts.same for counts in several),
            other=sum(counts.other for counts in several),
            others=tuple(
                record_id(p.job.name, *unit) for p, counts in self._several for unit in counts.others
            ),
            answered_twice=sum(counts.calls for counts in several),
            answered_otherwise=sum(counts.calls_otherwise for counts in several),
            gaps=self._gaps,
            notes=tuple(notes),
            complete=self._settled()
            and all(made.status.accepted >= made.status.plan.asked for _, made in self._made.values()),
        )

    def _sources(self, part: Part) -> list[SourceLedger]:
        """The ledgers of a part. Raises RunError for one that is damaged or has open batches."""
        found = []
        for run in part.runs:
            self._tell(f"looking at {run.path}")
            source = SourceLedger(run.ledger, str(run.path), self._scratch)
            refuse_open(run, source)
            expected = part.job.resolved.fingerprint if part.job.resolved is not None else ""
            if source.fingerprint not in ("", expected):
                raise RunError(
                    f"{run.path}: its conversations were not made by the job that is noted there: generation with a "
                    "changed job was begun and not ended. Run `edgen generate` with the job again, to its end."
                )
            found.append(source)
        return found

    def _put_together(self, part: Part, sources: Sequence[SourceLedger], drop: Drop) -> None:
        own, job, noted = self._work.arm(part.arm), part.job, part.job.resolved
        assert noted is not None
        fingerprint = noted.fingerprint
        own.path.mkdir(parents=True, exist_ok=True)
        with MergedLedger(own.ledger, fingerprint, drop, branching=job.branch is not None) as ledger:
            for source in sources:
                self._tell(f"adding {source.run}")
                ledger.add(source)
                self._inputs.append(_input(part.arm, source))
            plan = _plan(job, fingerprint, sources)
            gaps = _gaps((source.status.plan for source in sources), plan.scenarios)
            if gaps:
                self._gaps[part.arm] = gaps
            plain = _describe_job(job, sources)
            facts = {EVERYTHING: msgspec.json.encode(plain).decode()}
            if any(source.facts.get("simulated") == fingerprint for source in sources):
                facts["simulated"] = fingerprint
            status = ledger.close(plan, facts, _shortage)
            self._several.append((part, ledger.several()))
        made = RunSummary(job, status, manifest_facts(plain, noted.template_sha256, noted.space_sha256))
        self._made[part.arm] = own, made

    def _keep_job(self) -> None:
        """The first run's job, and those of the arms, as large as the largest."""
        for part in self._parts:
            _copy_job(part.runs[0], self._work.arm(part.arm), part.job)
        if (first := self._runs[0]).arms_folder.exists():
            jobs = [load_job(run.job) for run in self._runs]
            sizes = {key: max(getattr(job, key) for job in jobs) for key in OF_ALL}
            _copy_job(first, self._work, msgspec.structs.replace(jobs[0], **sizes))
            self._work.numbered_arms(longest_list(run.numbered_arms() for run in self._runs))

    def _settled(self) -> bool:
        """Whether all that is planned is settled, in every arm that the job has."""
        wanted = load_job(self._runs[0].job).arm_names
        return all(arm in self._made and not self._made[arm][1].status.pending for arm in wanted)

    async def _write_files(self) -> None:
        """Write the files, where all is settled: what a run's own end would have written."""
        if not self._settled():
            return
        self._tell("writing files")
        wanted = load_job(self._runs[0].job).arm_names
        async with contextlib.AsyncExitStack() as stack:
            each = [
                (made, own, await stack.enter_async_context(Ledger(own.ledger, create=False)))
                for arm, (own, made) in self._made.items()
                if arm in wanted
            ]
            groups = [ledger.outcomes(made.scope).groups for made, _, ledger in each]
            side = choose_common_side(groups, each[0][0].job.split.test)
            for made, own, ledger in each:
                await write_files(made, own, ledger, side)


def refuse_open(run: RunFolder, source: SourceLedger) -> None:
    """Raise RunError where batches of a ledger are open: what they answer would be lost to the new run."""
    if waiting := [batch for batch in source.batches if batch.state in OPEN]:
        which = ", ".join(f"{batch.number} ({batch.state})" for batch in waiting[:5])
        raise RunError(
            f"{run.path}: batches are open in {source.path.name}: {which}. Have them read first, with `edgen generate "
            f"JOB -o {run.path} --via batch` or `edgen batch read {run.path} FILES…`, or end them with "
            f"`edgen batch cancel {run.path}`."
        )


def _input(arm: str, source: SourceLedger) -> MergeInput:
    status = source.status
    return MergeInput(
        run=source.run,
        arm=arm,
        first=status.plan.first,
        end=status.plan.scenarios,
        planned=status.planned,
        accepted=status.accepted,
        pending=status.pending,
    )


def _plan(job: Job, fingerprint: str, sources: Sequence[SourceLedger]) -> RunPlan:
    """All of the job; with a top-up what was planned, whoever planned the most."""
    scenarios = job.conversations
    if job.top_up:
        scenarios = max(scenarios, *(source.status.plan.scenarios for source in sources))
    return RunPlan(
        name=job.name,
        fingerprint=fingerprint,
        scenarios=scenarios,
        replicates=job.replicates,
        asked=job.conversations * job.replicates,
    )


def _gaps(plans: Iterable[RunPlan], end: int) -> tuple[tuple[int, int], ...]:
    """The scenarios below `end`, half open, that are in none of the plans."""
    found, at = [], 0
    for first, stop in sorted((plan.first, plan.scenarios) for plan in plans):
        if first > at:
            found.append((at, min(first, end)))
        at = max(at, stop)
    return (*found, (at, end)) if at < end else tuple(found)


def _describe_job(job: Job, sources: Sequence[SourceLedger]) -> dict[str, Any]:
    """The job as a manifest holds it: as it was given, and not as the run keeps it."""
    noted = next((source for source in sources if EVERYTHING in source.facts), None)
    plain: dict[str, Any] = describe_job(job)
    if noted is not None:
        try:
            known = msgspec.json.decode(noted.facts[EVERYTHING], type=dict[str, Any])
        except (ValueError, RecursionError) as problem:
            raise damaged_error(noted.path, f"the job that it notes is none: {problem}") from None
        plain = {key: value for key, value in known.items() if key in plain}
    return {**plain, **{key: getattr(job, key) for key in OF_ALL}}


def _shortage(status: RunStatus) -> str | None:
    if status.pending:
        return (
            f"Merged, with {status.pending} of {status.planned} conversations pending: `edgen generate` with the job "
            "goes on with them."
        )
    if status.accepted < status.plan.asked:
        return f"Merged: {status.accepted} of {status.plan.asked} conversations were accepted."
    return None


def _copy_job(run: RunFolder, to: RunFolder, job: Job) -> None:
    """Copy a run's job and its inputs, with the numbers of `job`."""
    value = read_yaml(read_text(run.job, JobError), str(run.job), JobError)
    inputs = (run.path / name for name in sorted(inputs_named(value)))
    texts = {path.name: read_text(path, JobError) for path in inputs if path.parent == run.inputs}
    to.write_job({**value, **{key: getattr(job, key) for key in OF_ALL}}, texts)
