"""Checks of a range of scenarios (`--range`), which makes a piece of a run."""

from __future__ import annotations

from pathlib import Path

from edgen.config import Job, list_arm_jobs
from edgen.core.errors import UsageError
from edgen.planning.gates import asks_for_near_duplicates
from edgen.protocols.base import find_rounds
from edgen.store.ledger import RunPlan


def check_part(job: Job, part: range) -> None:
    """Raise UsageError unless a job has these scenarios and can be made in pieces."""
    if job.top_up:
        raise UsageError(
            "--range and `top_up: true` do not go together: how many scenarios a top-up plans depends on "
            "what "
            "becomes of all of them. Use --set top_up=false and a larger number of conversations instead."
        )
    if asks_for_near_duplicates(list_arm_jobs(job, job.name).values()):
        raise UsageError(
            "--range and a gate on near_duplicate do not go together: a conversation may be near another "
            "piece's. "
            "Make the pieces without that gate (--set gates.NAME='True'), merge them, and `edgen select RUN "
            "--where 'not near_duplicate'`."
        )
    if part.stop > job.conversations:
        raise UsageError(
            f"--range {part.start}:{part.stop}: the job has {job.conversations} scenarios, so a range ends "
            f"at {job.conversations:,} at most. More of them: -n."
        )
    if part.start and find_rounds(job).total > 1:
        raise UsageError(
            f"--range {part.start}:{part.stop}: this job is made in rounds, and later rounds use the "
            f"results of earlier ones, so a piece of it starts at scenario 0. Use --range 0:{part.stop}."
        )


def check_piece(folder: Path, known: RunPlan, job: Job, asked: range | None) -> None:
    """Raise UsageError unless the requested scenarios (`asked`, None for all) include everything that the run
    in `folder` was planned to hold."""
    there = known.of is not None
    if asked is None and there:
        raise UsageError(
            f"{folder}: this run is a piece of its job, scenarios {known.first} to {known.scenarios - 1} of "
            f"{known.of}. Use --range {known.first}:{known.scenarios} to resume it, "
            f"--range 0:{job.conversations} to make all of them here, or choose another folder with -o."
        )
    if asked is not None and not (asked.start <= known.first and known.scenarios <= asked.stop):
        held = f"scenarios {known.first} to {known.scenarios - 1}" if there else "all scenarios of its job"
        again = (
            f"--range {known.first}:{known.scenarios}, or a range that contains it,"
            if there
            else "no --range"
        )
        raise UsageError(
            f"{folder}: this run holds {held}, and --range {asked.start}:{asked.stop} leaves some of them "
            f"out. Use {again} to resume it, or choose another folder for the piece with -o."
        )
