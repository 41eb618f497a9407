"""Adherence by a judge model, for `edgen stats RUN --judge`: the sheets of a run, asked for and counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.cli.trusting import Trust
from edgen.cli.work import made_backends, supervised, used_elsewhere, worded
from edgen.errors import RunError, UsageError
from edgen.ledger import Ledger
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.cli.progress import Display
    from edgen.config import Job
    from edgen.quality import results
    from edgen.runreader import RunReader

SAMPLE = 200  # conversations of each arm
_SETTABLE = ("backends", "limits", "asks")


def judged(
    run: Path, sample: int = SAMPLE, set_: list[str] | None = None, trust: Trust | None = None
) -> list[results.Adherence]:
    """What the job's `judge` says of `sample` conversations of the run: one result, or one for each arm that
    was begun, in the order of `RunReader.views`. Sheets are kept in the run's `adherence/`: what was asked
    is not asked again.

    Holds the run meanwhile, so it is not to be held. Raises UsageError where the job has no judge or a setting
    does not count here, RunError where there is nothing to ask about, and what stops the judge.
    """
    from edgen.runreader import RunReader

    if sample < 1:
        raise UsageError("--judge: expected how many conversations to ask about, 1 or more.")
    rundir = RunDir(run)
    rundir.require()
    with worded(run), rundir.held(), RunReader(run) as reader:
        if not reader.accepted:
            raise RunError(
                f"{run}: no conversation was accepted in this run, so there is nothing to ask a judge about."
            )
        return asyncio.run(_judged(reader, _job(rundir, set_ or []), sample, trust or Trust()))


def _job(rundir: RunDir, assignments: list[str]) -> Job:
    """The run's job with the settings of this command, if it names a judge."""
    from edgen.config import load_job

    for assignment in assignments:
        if assignment.partition("=")[0].strip().split(".")[0] not in _SETTABLE:
            raise UsageError(
                f"--set {assignment}: it does not count for a judge, who is asked about what the run holds; "
                f"these do: {', '.join(_SETTABLE)}."
            )
    job = load_job(rundir.job, assignments)
    if "judge" not in job.backends:
        raise UsageError(
            f"no judge backend is in the job of {rundir.path} (there: {', '.join(job.backends)}). Add `backends.judge` "
            "to the job, or give one here: --set 'backends.judge={type: openai, model: …}'."
        )
    return job


async def _judged(reader: RunReader, job: Job, sample: int, trust: Trust) -> list[results.Adherence]:
    from edgen import resources
    from edgen.engine.appraising import Appraiser, Appraising, appraiser_id, work_through
    from edgen.engine.session import Session
    from edgen.prompting import load_prompt
    from edgen.protocols.adherence import VARIABLES

    rundir = reader.rundir
    prompt = load_prompt(resources.find("prompts", "adherence"), VARIABLES, expects="sheet")
    async with made_backends({"judge": job.backends["judge"]}, job.limits, trust) as backends:
        backend = backends["judge"]
        judge = Appraiser(id=appraiser_id(backend.identity, prompt), model=backend.model, prompt=prompt)
        appraising = Appraising(reader, job, judge, sample)
        path = rundir.adherence / f"{judge.id}.db"
        template = {"name": prompt.name, "sha256": prompt.sha256, "text": prompt.text}
        facts = {"judge": judge.id, "backend": dict(backend.identity), "template": template}
        rundir.note_judge(judge.id, facts, rundir.adherence)
        async with Ledger(path) as ledger:
            elsewhere = used_elsewhere(rundir, path)
            session = Session(appraising, backends, ledger, roles=("judge",), elsewhere=elsewhere)
            session.tally.planned = appraising.planned

            async def work(_display: Display) -> None:
                await work_through(appraising, session)

            await supervised(session, f"{reader.name} adherence", work, ("read", "unread"))
    return appraising.results(path)
