"""Whether a run has nothing left to do: found out before anything of it is touched, by reading alone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import NamedTuple

from edgen.config import Job, load_job, resolved
from edgen.engine.finish import DIGESTS, Made, common_side, stand, written_mark
from edgen.engine.reach import Reach
from edgen.errors import EdgenError, TemplateError
from edgen.ledger import OPEN, Kept, RunPlan, View, kept_at
from edgen.loading import read_text
from edgen.rundir import RunDir
from edgen.splits import Side


class Wanted(NamedTuple):
    """What is asked for: a job, its fingerprint, and the texts of templates that shape no conversation, by use."""

    job: Job
    under: str
    extra: Mapping[str, str]


def is_finished(whole: Job, jobs: Mapping[str | None, Wanted], rundir: RunDir, part: range | None) -> bool:
    """Whether all that is asked for was made in the folder, under this very form of the job, and its files stand.

    `jobs` are those of the arms, or the one of a job that has none; `part` is the piece
    that is asked for, None for all. What cannot be read, or is being worked on, is not finished.
    """
    runs = {arm: rundir.of(arm) for arm in jobs}
    if rundir.is_held() or not all(own.job.exists() and own.ledger.exists() for own in runs.values()):
        return False
    try:
        if whole.arms and not _same_job(rundir, whole):
            return False
        if not all(_same_job(runs[arm], job, extra) for arm, (job, _, extra) in jobs.items()):
            return False
        kept = {arm: kept_at(own.ledger) for arm, own in runs.items()}
        if not all(_is_made(kept[arm], job, under, part) for arm, (job, under, _) in jobs.items()):
            return False
        side = _side(list(runs.values()), whole.split.test) if whole.arms else None
        return all(
            kept[arm].facts.get("written") == written_mark(_made(kept[arm], job, under), side)
            and stand(runs[arm], kept[arm].facts.get(DIGESTS))
            and _is_sound(runs[arm])
            for arm, (job, under, _) in jobs.items()
        )
    except (EdgenError, OSError):  # the work itself says what is wrong
        return False


def _is_sound(run: RunDir) -> bool:
    """Whether nothing of its ledger that is made of answers is damaged; else it is to be made again."""
    with View(run.ledger) as view:
        return view.is_sound()


def _same_job(run: RunDir, job: Job, extra: Mapping[str, str] | None = None) -> bool:
    """Whether the run's own copy of the job says the same, but for where its inputs are, and these are there;
    those in `extra` with these very texts. (The others are in the fingerprint.)"""
    there = load_job(run.job)
    named = (there.space, there.prompt, *there.prompts.values())
    ours, theirs = resolved(job), resolved(there)
    for plain in (ours, theirs):
        for values in (plain, *plain["arms"].values()):
            for key in ("space", "prompt", "prompts"):
                values.pop(key, None)
    reach = Reach.of(run.job)
    texts = {
        use: read_text(reach.file("prompts", there.prompts[use], f"prompts.{use}"), TemplateError)
        if use in there.prompts
        else ""
        for use in extra or ()
    }
    return (
        ours == theirs
        and ("oracle" in there.prompts) == ("oracle" in job.prompts)
        and texts == dict(extra or {})
        and all((run.path / name).is_file() for name in named if name)
    )


def _is_made(kept: Kept, job: Job, under: str, part: range | None) -> bool:
    plan, wanted = kept.status.plan, range(job.conversations) if part is None else part
    return (
        plan.fingerprint == under
        and kept.status.state(held=False) == "complete"
        and not any(batch.state in OPEN for batch in kept.batches)
        and plan.of == (None if wanted == range(job.conversations) else job.conversations)
        and plan.first == wanted.start
        and (plan.scenarios == wanted.stop or job.top_up)
        and plan.replicates == job.replicates
        and plan.asked == len(wanted) * job.replicates
    )


def _side(runs: list[RunDir], share: float) -> Side:
    with contextlib.ExitStack() as stack:
        views = [stack.enter_context(View(run.ledger)) for run in runs]
        return common_side([view.groups for view in views], share)


def _made(kept: Kept, job: Job, under: str) -> Made:
    """What the files are of; their facts are not looked at."""
    status = kept.status
    plan: RunPlan = status.plan
    return Made(
        job=job,
        told={},
        fingerprint=under,
        template_sha256="",
        space_sha256="",
        first=plan.first,
        scenarios=plan.scenarios,
        planned=status.planned,
        accepted=status.accepted,
        rejected=status.rejected,
        failed=status.failed,
    )
