"""Comparison of runs: they can be merged if their jobs differ only in settings that shape no conversation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgen.config import Job, load_job, select_shaping_values
from edgen.core.errors import RunError
from edgen.core.text import join_first
from edgen.planning.job_differences import flatten_values
from edgen.protocols.base import find_rounds
from edgen.store.run_folder import RunFolder

OF_ALL = ("conversations", "replicates")  # the merged job has the largest values of these
_OF_FIRST = ("split", "shards", "limits", "top_up")  # and the first run's values of these


class InputPart(msgspec.Struct, frozen=True):
    """One run or arm, in all inputs that have it. `job`: their common job, with the largest counts."""

    arm: str
    runs: tuple[RunFolder, ...]
    job: Job


def compare_runs(runs: Sequence[RunFolder]) -> tuple[Job, list[InputPart], list[str]]:
    """Return the merged run's job, the parts to merge, and sentences about remaining differences. Raises
    RunError if the runs cannot be merged."""
    jobs = [load_job(run.job) for run in runs]
    first = jobs[0]
    for run, job in zip(runs[1:], jobs[1:], strict=True):
        if odd := sorted({*job.arms} ^ {*first.arms}):
            raise RunError(
                f"{run.path}: this is a run of another job than {runs[0].path}: they differ in arms "
                f"({odd[0]})."
            )
    parts = []
    for arm in _list_all_arms(runs) if first.arms else [""]:
        those = tuple(run.arm(arm) for run in runs if not arm or run.arm(arm).ledger.exists())
        parts.append(InputPart(arm, those, _find_common_job(those)))
    notes = [
        f"{key} differs: that of {runs[0].path} is kept."
        for key in _OF_FIRST
        if len({msgspec.json.encode(getattr(job, key)) for job in jobs}) > 1
    ]
    notes += [
        f"{key} differs ({', '.join(map(str, sizes))}): the largest is kept."
        for key in OF_ALL
        if len(sizes := sorted({getattr(job, key) for job in jobs})) > 1
    ]
    return _choose_largest(jobs), parts, notes


def _choose_largest(jobs: Sequence[Job]) -> Job:
    """Return the first of these jobs, with the largest counts."""
    return msgspec.structs.replace(jobs[0], **{key: max(getattr(job, key) for job in jobs) for key in OF_ALL})


def _list_all_arms(runs: Sequence[RunFolder]) -> list[str]:
    """Return every arm begun in any of the runs. Raises RunError if arms have different numbers: candidates'
    numbers depend on them, and judgements are found by candidates' numbers."""
    numbered = {run.path: run.number_arms() for run in runs}
    longest = max(numbered.values(), key=len)
    for path, arms in numbered.items():
        if arms != longest[: len(arms)]:
            raise RunError(
                f"{path}: its arms came in another order ({', '.join(arms)}) than in the other runs "
                f"({', '.join(longest)}), so the sides of their pairs are others. Merge each arm separately "
                f"({path / 'arms' / arms[0]} and its like)."
            )
    begun = {arm for run in runs for arm in list_begun_arms(run)}
    return [*(arm for arm in longest if arm in begun), *sorted(begun - {*longest})]


def _find_common_job(runs: Sequence[RunFolder]) -> Job:
    """Return the common job of these runs, with the largest counts. Raises RunError without one."""
    jobs = [load_job(run.job) for run in runs]
    if find_rounds(jobs[0]).total > 1:
        raise RunError(
            f"{runs[0].path}: this run is made in rounds, which use the results of earlier "
            "rounds, so it cannot be merged with others."
        )
    prints = [None if job.resolved is None else job.resolved.fingerprint for job in jobs]
    for run, job, made_under in zip(runs, jobs, prints, strict=True):
        if made_under is None:
            raise RunError(f"{run.job}: it does not describe the run's settings. Was it edited by hand?")
        if made_under != prints[0]:
            ours, theirs = _list_shaping_values(jobs[0]), _list_shaping_values(job)
            differ = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
            raise RunError(
                f"{run.path}: this is a run of another job than {runs[0].path}: they differ in "
                f"{join_first(differ, 5, ' keys') or 'their fingerprints'}. Only runs and pieces of the same job "
                "can be merged."
            )
    return _choose_largest(jobs)


def _list_shaping_values(job: Job) -> dict[str, str]:
    """Return the settings that shape a run's conversations, by dotted key."""
    plain = select_shaping_values(job)
    for key in ("space", "prompt", "prompts"):
        plain.pop(key, None)
    found = dict(flatten_values({**plain, "name": job.name, "split": {"by": job.split.by}}))
    if job.resolved is not None:
        space, template = job.resolved.space_sha256, job.resolved.template_sha256
        found |= {"space": space, "prompt": template, "edgen": job.resolved.edgen}
    return found


def list_begun_arms(run: RunFolder) -> list[str]:
    """Return the existing named arms, including those no longer in the job."""
    return sorted(path.parent.name for path in run.arms_folder.glob("*/run.db"))
