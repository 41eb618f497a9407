"""Merging of pieces or runs of a job into one run with its files.

Inputs are locked against writers and never changed. The new run is made in a hidden folder next to its
destination and renamed at the end, so the destination is always complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.config import Job
from edgen.core.errors import RunError
from edgen.core.files import replace_file
from edgen.execution.run import JOB, RunSummary, make_run_plan, write_files
from edgen.families.base import make_record_id
from edgen.merging.extras import copy_rest, judge_ledgers
from edgen.merging.identity import InputPart, compare_runs, list_begun_arms
from edgen.merging.new_run import copy_job, describe_original_job, make_run, refuse_open, refuse_target
from edgen.planning.gates import asks_for_near_duplicates
from edgen.space.splits import choose_common_side
from edgen.store.ledger import SELECTION, Ledger, RunPlan, RunStatus
from edgen.store.ledger.merge import Drop, MergedLedger, MergeDuplicates, SourceLedger
from edgen.store.run_folder import RunFolder

_DUPLICATES = "duplicates.jsonl"


class MergeInput(msgspec.Struct, frozen=True, kw_only=True):
    """A merged ledger: its planned scenarios and its status."""

    run: str  # folder of the run
    arm: str  # empty without arms
    first: int  # first planned scenario
    end: int  # end of the planned scenarios, exclusive
    planned: int  # conversations
    accepted: int  # conversations
    pending: int  # conversations without an outcome


class MergeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a merge."""

    inputs: tuple[MergeInput, ...]  # merged ledgers, by arm
    same: int
    """Conversations settled with the same outcome in several inputs."""
    other: int
    """Conversations settled with different outcomes in several inputs."""
    others: tuple[str, ...]
    """The ids of the first conversations that differ."""
    answered_twice: int
    """Calls answered in several inputs."""
    answered_otherwise: int
    """Calls in `answered_twice` with different answers."""
    gaps: dict[str, tuple[tuple[int, int], ...]]
    """Half-open ranges of scenarios that no input planned, by arm."""
    notes: tuple[str, ...]
    """Sentences for the user."""
    complete: bool  # everything is settled, with enough accepted in each arm


def merge(
    paths: Sequence[Path], output: Path, on_stage: Callable[[str], None] = lambda _stage: None
) -> MergeResult:
    """Merge the runs in the folders `paths` into one, in the folder `output`.

    Raises UsageError if a run is named twice or `output` is taken. Raises RunError if a run cannot be read,
    has open batches, or belongs to another job than the first. Raises LockedError if a run is at work.
    """
    refuse_target(paths, output)
    runs = [RunFolder(path) for path in paths]
    with contextlib.ExitStack() as stack:
        for run in runs:
            run.require()
            stack.enter_context(run.lock_for_reading())
            for arm in list_begun_arms(run):
                stack.enter_context(run.arm(arm).lock_for_reading())
        job, parts, notes = compare_runs(runs)
        if asks_for_near_duplicates(part.job for part in parts):
            raise RunError(
                f"{paths[0]}: its job has a gate on near_duplicate, which was decided in each run "
                "separately: a conversation that is new in one may be in another, too. Merge runs without "
                "that gate, and leave near-duplicates out of the result "
                "(`edgen select RUN --where 'not near_duplicate'`)."
            )
        work = stack.enter_context(make_run(output, "merging"))
        return _Merger(runs, job, parts, work, on_stage).make(notes)


class _Merged(NamedTuple):
    """A merged part, in its new folder."""

    folder: RunFolder
    summary: RunSummary
    twice: MergeDuplicates
    gaps: tuple[tuple[int, int], ...]


class _Merger:
    """A merge in the folder `work`. `job`: the new run's job."""

    def __init__(
        self,
        runs: Sequence[RunFolder],
        job: Job,
        parts: Sequence[InputPart],
        work: RunFolder,
        tell: Callable[[str], None],
    ) -> None:
        self._runs = runs
        self._job = job
        self._parts = parts
        self._work = work
        self._tell = tell
        self._scratch = work.path / ".copies"
        # (source folders, merged folder): of the whole runs, and of each arm.
        self._folders = [(runs, work), *((part.runs, work.arm(part.arm)) for part in parts if part.arm)]
        self._made: dict[str, _Merged] = {}

    def make(self, notes: Iterable[str]) -> MergeResult:
        self._scratch.mkdir()
        # Check everything before writing anything.
        sources = [(part, self._list_sources(part)) for part in self._parts]
        for runs, _ in self._folders:
            for run, path in judge_ledgers(runs):
                refuse_open(run, SourceLedger(path, str(path), self._scratch))
        duplicates = self._work.path / "merged" / _DUPLICATES
        duplicates.parent.mkdir()
        with replace_file(duplicates) as file:

            def drop(facts: dict[str, Any]) -> None:
                file.write(msgspec.json.encode(facts) + b"\n")

            for run in self._runs:
                if (earlier := run.path / "merged" / _DUPLICATES).is_file():
                    file.write(earlier.read_bytes())
            for part, own in sources:
                self._made[part.arm] = self._put_together(part, own, drop)
            self._keep_job()
            asyncio.run(self._write_files())
            unlike = [note for runs, to in self._folders for note in copy_rest(runs, to, self._scratch, drop)]
        shutil.rmtree(self._scratch)
        if not duplicates.stat().st_size:
            shutil.rmtree(duplicates.parent)
        return self._make_result(sources, [*notes, *unlike])

    def _make_result(
        self, sources: list[tuple[InputPart, list[SourceLedger]]], notes: Iterable[str]
    ) -> MergeResult:
        made = self._made.values()
        return MergeResult(
            inputs=tuple(_make_input(part.arm, source) for part, own in sources for source in own),
            same=sum(one.twice.same for one in made),
            other=sum(one.twice.other for one in made),
            others=tuple(
                make_record_id(one.summary.job.name, *unit) for one in made for unit in one.twice.others
            ),
            answered_twice=sum(one.twice.calls for one in made),
            answered_otherwise=sum(one.twice.calls_otherwise for one in made),
            gaps={arm: one.gaps for arm, one in self._made.items() if one.gaps},
            notes=tuple(notes),
            complete=self._is_settled()
            and all(one.summary.status.accepted >= one.summary.status.plan.asked for one in made),
        )

    def _list_sources(self, part: InputPart) -> list[SourceLedger]:
        """Return the ledgers of a part. Raises RunError if one is damaged, has open batches, or does not
        match its job."""
        found = []
        for run in part.runs:
            self._tell(f"looking at {run.path}")
            source = SourceLedger(run.ledger, str(run.path), self._scratch)
            refuse_open(run, source)
            _refuse_selected(run, source)
            expected = part.job.resolved.fingerprint if part.job.resolved is not None else ""
            if source.fingerprint not in ("", expected):
                raise RunError(
                    f"{run.path}: its conversations were not made by the job that it names: `edgen "
                    "generate` with a changed job did not finish. Run it again until it ends."
                )
            found.append(source)
        return found

    def _put_together(self, part: InputPart, sources: Sequence[SourceLedger], drop: Drop) -> _Merged:
        own, job, noted = self._work.arm(part.arm), part.job, part.job.resolved
        assert noted is not None
        own.path.mkdir(parents=True, exist_ok=True)
        with MergedLedger(own.ledger, noted.fingerprint, drop, branching=job.branch is not None) as ledger:
            for source in sources:
                self._tell(f"adding {source.run}")
                ledger.add(source)
            # The plan covers the whole job; with a top-up, the largest plan.
            planned = [source.status.plan.scenarios for source in sources] if job.top_up else []
            plan = make_run_plan(job, noted.fingerprint, scenarios=max([job.conversations, *planned]))
            description = describe_original_job(job, sources)
            facts = {JOB: msgspec.json.encode(description).decode()}
            status = ledger.close(plan, facts, _explain_shortage)
            twice = ledger.count_duplicates()
        summary = RunSummary(job, status, description, noted.template_sha256, noted.space_sha256)
        gaps = _find_gaps((source.status.plan for source in sources), plan.scenarios)
        return _Merged(own, summary, twice, gaps)

    def _keep_job(self) -> None:
        """Write the first run's job, and its arms' jobs, with the largest counts."""
        for part in self._parts:
            copy_job(part.runs[0], self._work.arm(part.arm), part.job)
        if self._runs[0].arms_folder.exists():
            copy_job(self._runs[0], self._work, self._job)
            numbered = [run.number_arms() for run in self._runs]
            longest = max(numbered, key=len)
            self._work.number_arms(longest)

    def _is_settled(self) -> bool:
        """Return whether every arm of the job is settled completely."""
        return all(
            arm in self._made and not self._made[arm].summary.status.pending for arm in self._job.arm_names
        )

    async def _write_files(self) -> None:
        """Write the files, as at the end of a run, if everything is settled."""
        if not self._is_settled():
            return
        self._tell("writing files")
        made = [self._made[arm] for arm in self._made if arm in self._job.arm_names]
        async with contextlib.AsyncExitStack() as stack:
            ledgers = [
                await stack.enter_async_context(Ledger(one.folder.ledger, create=False)) for one in made
            ]
            each = [(*one[:2], ledger) for one, ledger in zip(made, ledgers, strict=True)]
            groups = [
                ledger.open_outcomes(summary.status.plan.scope).iterate_groups()
                for _, summary, ledger in each
            ]
            side = choose_common_side(groups, made[0].summary.job.split.test)
            for folder, summary, ledger in each:
                await write_files(summary, folder, ledger, side)


def _refuse_selected(run: RunFolder, source: SourceLedger) -> None:
    """Raise RunError for a selected run, since its removed conversations would count as settled."""
    if SELECTION in source.facts:
        raise RunError(
            f"{run.path}: this run was selected from another (`edgen select`), so it is not a "
            "piece of a job. Merge the generated runs, and select from the result."
        )


def _make_input(arm: str, source: SourceLedger) -> MergeInput:
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


def _find_gaps(plans: Iterable[RunPlan], end: int) -> tuple[tuple[int, int], ...]:
    """Return half-open ranges of the scenarios below `end` that are in none of the plans."""
    found, at = [], 0
    for first, stop in sorted((plan.first, plan.scenarios) for plan in plans):
        if first > at:
            found.append((at, min(first, end)))
        at = max(at, stop)
    return (*found, (at, end)) if at < end else tuple(found)


def _explain_shortage(status: RunStatus) -> str | None:
    if status.pending:
        return (
            f"Merged, with {status.pending:,} of {status.planned:,} conversations pending: `edgen generate` "
            "with the job makes them."
        )
    if status.accepted < status.plan.asked:
        return f"Merged: {status.accepted:,} of {status.plan.asked:,} conversations were accepted."
    return None
