"""Whether a run has nothing left to do: found out before anything of it is touched, by reading alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from edgen.config import Job, load_job, resolved_values
from edgen.core.errors import EdgenError, TemplateError
from edgen.core.yaml_values import read_text
from edgen.execution.finish import DIGESTS, RunSummary, files_intact, written_mark
from edgen.planning.allowed_files import Reach
from edgen.store.ledger import OPEN, LedgerReader, LedgerSummary, summary_at
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import read_test_side


class ArmRequest(NamedTuple):
    """What is asked for: a job, its fingerprint, and the texts of templates that shape no conversation, by use."""

    job: Job
    under: str
    extra: Mapping[str, str]


def is_finished(whole: Job, jobs: Mapping[str, ArmRequest], rundir: RunFolder, part: range | None) -> bool:
    """Whether all that is asked for was made in the folder, under this very form of the job, and its files stand.

    `jobs` are those of the arms, by name; `part` is the piece that is asked for, None for all. What cannot be read, or is being worked on, is not finished.
    """
    runs = {arm: rundir.arm(arm) for arm in jobs}
    if rundir.is_locked() or not all(own.job.exists() and own.ledger.exists() for own in runs.values()):
        return False
    try:
        if whole.arms and not _same_job(rundir, whole):
            return False
        if not all(_same_job(runs[arm], job, extra) for arm, (job, _, extra) in jobs.items()):
            return False
        kept = {arm: summary_at(own.ledger) for arm, own in runs.items()}
        if not all(_is_made(kept[arm], job, under, part) for arm, (job, under, _) in jobs.items()):
            return False
        side = read_test_side(runs.values(), whole.split.test)
        return all(
            kept[arm].facts.get("written") == written_mark(RunSummary(job, kept[arm].status), side)
            and files_intact(runs[arm], kept[arm].facts.get(DIGESTS))
            and _is_sound(runs[arm])
            for arm, (job, _, _) in jobs.items()
        )
    except (EdgenError, OSError):  # the work itself says what is wrong
        return False


def _is_sound(run: RunFolder) -> bool:
    """Whether nothing of its ledger that is made of answers is damaged; else it is to be made again."""
    with LedgerReader(run.ledger) as view:
        return view.is_sound()


def _same_job(run: RunFolder, job: Job, extra: Mapping[str, str] | None = None) -> bool:
    """Whether the run's own copy of the job says the same, but for where its inputs are, and these are there;
    those in `extra` with these very texts. (The others are in the fingerprint.)"""
    there = load_job(run.job)
    named = (there.space, there.prompt, *there.prompts.values())
    ours, theirs = resolved_values(job), resolved_values(there)
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


def _is_made(kept: LedgerSummary, job: Job, under: str, part: range | None) -> bool:
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
