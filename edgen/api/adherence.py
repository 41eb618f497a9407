"""What a judge model says of a run's adherence to its scenarios: asked once, kept in the run's `adherence/`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from edgen.api.judging import judge_ledger, load_judged_job, run_judge
from edgen.api.supervision.backends import open_backends
from edgen.api.supervision.control import Control, explain_os_errors
from edgen.api.supervision.snapshot import Title
from edgen.config import Job
from edgen.core import resources
from edgen.core.errors import RunError, UsageError
from edgen.evaluation.adherence_sheets import AdherenceSheets
from edgen.evaluation.measures.adherence import Adherence
from edgen.evaluation.measuring import measures_of_other_families
from edgen.preferences.judge import Judge
from edgen.prompting import load_prompt
from edgen.protocols.adherence import VARIABLES
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

_SETTABLE = ("backends", "limits", "asks")


def judge_adherence(
    run: Path, control: Control, sample: int, overrides: Iterable[str]
) -> dict[str, Adherence]:
    """What the job's `judge` says of `sample` conversations of each arm that was begun, by the arm's name.

    Locks the run. Raises UsageError where the job has no judge or a setting does not count here, RunError where there
    is nothing to ask about, and what stops the judge.
    """
    if sample < 1:
        raise UsageError("--judge: expected how many conversations to ask about, 1 or more.")
    rundir = RunFolder(run)
    rundir.require()
    with explain_os_errors(run), rundir.lock_for_writing(), RunReader(run) as reader:
        if not reader.accepted:
            raise RunError(
                f"{run}: no conversation was accepted in this run, so there is nothing to ask a judge about."
            )
        if (needed := measures_of_other_families(reader.family).get("adherence")) is not None:
            raise UsageError(
                f"--judge: adherence is asked about in conversations of the {needed} family, and {run} has those of the "
                f"{reader.family.name} family. Leave --judge out."
            )
        job = load_judged_job(rundir, overrides, _SETTABLE, "a judge, who is asked about what the run holds")
        if "judge" not in job.backends:
            raise UsageError(
                f"no judge backend is in the job of {run} (there: {', '.join(job.backends)}). Add `backends.judge` "
                "to the job, or give one here: --set 'backends.judge={type: openai, model: …}'."
            )
        return asyncio.run(_ask_judge(reader, job, sample, control))


async def _ask_judge(reader: RunReader, job: Job, sample: int, control: Control) -> dict[str, Adherence]:
    prompt = load_prompt(resources.find("prompts", "adherence"), VARIABLES, expects="sheet")
    config, folder = {"judge": job.backends["judge"]}, reader.rundir.adherence
    async with open_backends(config, job.limits, control.trust, functions=control.functions) as backends:
        tasks = AdherenceSheets(reader, job, Judge.of(backends["judge"], prompt), sample)
        title = Title(f"{reader.name} adherence", outcomes=("read", "unread"))
        await run_judge(tasks, folder, backends, title, control)
    return dict(zip(reader.views, tasks.results(judge_ledger(tasks, folder)), strict=True))
