"""From a settled ledger to the files people load: shards, manifest, rejected.jsonl; and whether they stand already.

The files are streamed out of the ledger, and made again from it whenever that is asked for. Whether a run has nothing
left to do is found out by reading alone, before anything of it is touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from edgen.config import Job, load_job, protocol_of, resolved_values
from edgen.core.digest import fingerprint, sha256_of_file
from edgen.core.errors import DataError, EdgenError, TemplateError
from edgen.core.files import write_lines
from edgen.core.version import __version__
from edgen.core.yaml_values import read_text
from edgen.families.base import record_id
from edgen.planning.allowed_files import Reach
from edgen.planning.plan import Plan
from edgen.prompting import Prompt
from edgen.prompting.answer_schema import read_answer_schema, schema_file
from edgen.space.splits import HeldOutGroups
from edgen.store.ledger import (
    OPEN,
    SELECTION,
    Ledger,
    LedgerReader,
    LedgerSummary,
    RunPlan,
    RunStatus,
    read_selection,
    summary_at,
)
from edgen.store.run_folder import RunFolder
from edgen.store.shards import MANIFEST, Counts, verify_manifest, write_shards
from edgen.store.split_side import read_test_side

# Facts in the ledger
JOB = "job"  # the job as a manifest holds it
_WRITTEN = "written"  # the mark of the files that were written
_DIGESTS = "digests"  # the sha256 of those that no manifest tells of


class RunSummary(NamedTuple):
    """What a run has come to, as its files tell it. `described`: its job, see `describe_job`."""

    job: Job
    status: RunStatus
    described: Mapping[str, Any]
    template_sha256: str
    space_sha256: str


def describe_job(job: Job) -> dict[str, Any]:
    """The job as a manifest holds it, plain values: without what shapes neither answers nor files, so that pieces
    which were made otherwise come to the same."""
    return {key: value for key, value in resolved_values(job).items() if key not in ("limits", "batch")}


def plan_of_run(job: Job, under: str, part: range | None = None, *, scenarios: int | None = None) -> RunPlan:
    """What a run of a job is to make under a fingerprint: `part` of its scenarios, None for all. `scenarios`: how many
    there are with a top-up."""
    whole = range(job.conversations)
    wanted = whole if part is None else part
    return RunPlan(
        name=job.name,
        fingerprint=under,
        scenarios=wanted.stop if scenarios is None else scenarios,
        replicates=job.replicates,
        asked=len(wanted) * job.replicates,
        first=wanted.start,
        of=None if wanted == whole else job.conversations,
        rounds=protocol_of(job).rounds(job).total,
    )


async def write_files(
    made: RunSummary, rundir: RunFolder, ledger: Ledger, side: HeldOutGroups, *, anew: bool = True
) -> None:
    """Write the files of a run; `side` is the test side of all the job's arms.
    Not `anew`: leave them as they are if they stand, and are those of what was made."""
    mark = _written_mark(made.job, made.status, side)
    known = ledger.fact(_WRITTEN) == mark, ledger.fact(_DIGESTS)
    if not anew and known[0] and await asyncio.to_thread(_files_intact, rundir, known[1]):
        return
    # Until all of them are there, no mark says that any is.
    ledger.set_fact(_WRITTEN, "")
    await ledger.flush()
    await asyncio.to_thread(_write, made, rundir, ledger, side)
    ledger.set_fact(_DIGESTS, await asyncio.to_thread(_digests, rundir))
    ledger.set_fact(_WRITTEN, mark)


def _write(made: RunSummary, rundir: RunFolder, ledger: Ledger, side: HeldOutGroups) -> None:
    """Write what was accepted to shards, and the rest, with reasons, to rejected.jsonl."""
    outcomes = ledger.outcomes(made.status.plan.scope)
    counts: Counter[bool] = Counter()
    for group, count in outcomes.groups():
        counts[side.is_test(group)] += count
    with contextlib.closing(outcomes.records()) as records:
        write_shards(
            rundir.shards,
            ((side.is_test(group), record) for _, _, group, record in records),
            Counts(train=counts[False], test=counts[True]),
            made.job.shards,
            _describe_run(made, ledger),
        )
    refused = (
        {
            "id": record_id(made.job.name, scenario, replicate),
            "status": status,
            "reason": reason,
            "detail": detail,
            "reply": None if reply is None else reply.text,
        }
        for scenario, replicate, status, reason, detail, reply in outcomes.refused()
    )
    write_lines(rundir.rejected, map(msgspec.json.encode, refused))


def _describe_run(made: RunSummary, ledger: Ledger) -> dict[str, Any]:
    """What a manifest holds beside its files."""
    status, under = made.status, made.status.plan.fingerprint
    selection = read_selection(ledger.fact(SELECTION), ledger.path)
    return {
        "job": made.described,
        "fingerprint": under,
        "simulated": ledger.fact("simulated") == under,
        "template_sha256": made.template_sha256,
        "space_sha256": made.space_sha256,
        "planned": status.planned,
        "rejected": dict(sorted(status.rejected.items())),
        "failed": dict(sorted(status.failed.items())),
        "edgen": __version__,
        **({} if selection is None else {"selection": msgspec.to_builtins(selection)}),
    }


def _files_intact(rundir: RunFolder, digests: str | None) -> bool:
    """Whether the finished files are there, whole: the shards as their manifest has them, the others as `digests`
    has them; None where an earlier edgen kept none."""
    try:
        found = _digests(rundir)
        return (digests is None or found == digests) and not verify_manifest(rundir.shards)
    except (DataError, OSError):
        return False


def _digests(rundir: RunFolder) -> str:
    """The sha256 of the files that no manifest tells of, as JSON."""
    files = (rundir.shards / MANIFEST, rundir.rejected)
    return msgspec.json.encode({path.name: sha256_of_file(path) for path in files}).decode()


def _written_mark(job: Job, status: RunStatus, side: HeldOutGroups) -> str:
    """A name for what would be written: equal marks, equal files."""
    plan = status.plan
    facts = (
        plan.fingerprint,
        job.name,
        plan.scenarios,
        job.replicates,
        status.accepted,
        status.planned - status.pending,
        job.split,
        job.shards,
        side,
        *([plan.first] if plan.first else []),
    )
    return fingerprint(facts)


def is_finished(
    whole: Mapping[str, Any],
    plans: Mapping[str, Plan],
    prints: Mapping[str, str],
    rundir: RunFolder,
    part: range | None,
) -> bool:
    """Whether all that is asked for was made in the folder, under this very form of the job, and its files stand.

    `whole` is the job as `planning.load.held_values` has it, `plans` and their fingerprints are by arm; `part` is the piece that is asked for, None for all. What cannot be read,
    or is being worked on, is not finished.
    """
    runs = {arm: rundir.arm(arm) for arm in plans}
    if rundir.is_locked() or not all(own.job.exists() and own.ledger.exists() for own in runs.values()):
        return False
    try:
        if whole["arms"] and not _same_job(rundir, whole, {}):
            return False
        if not all(
            _same_job(runs[arm], resolved_values(plan.job), plan.extra_prompts) for arm, plan in plans.items()
        ):
            return False
        if not all(_has_schemas(runs[arm], plan) for arm, plan in plans.items()):
            return False
        kept = {arm: summary_at(own.ledger) for arm, own in runs.items()}
        if not all(_is_made(kept[arm], plan.job, prints[arm], part) for arm, plan in plans.items()):
            return False
        side = read_test_side(runs.values(), whole["split"]["test"])
        return all(_stands(runs[arm], kept[arm], plan.job, side) for arm, plan in plans.items())
    except (EdgenError, OSError):  # the work itself says what is wrong
        return False


def _same_job(run: RunFolder, job: Mapping[str, Any], extra: Mapping[str, Prompt]) -> bool:
    """Whether the run's own copy of the job says the same, but for where its inputs are, and these are there; the
    templates in `extra`, which are in no fingerprint, to the letter."""
    there = load_job(run.job)
    named = (there.space, there.prompt, *there.prompts.values())
    ours, theirs = copy.deepcopy(dict(job)), resolved_values(there)
    for plain in (ours, theirs):
        for values in (plain, *plain["arms"].values()):
            for key in ("space", "prompt", "prompts"):
                values.pop(key, None)
    reach = Reach.of(run.job)
    kept = {
        use: reach.file("prompts", there.prompts[use], f"prompts.{use}")
        for use in extra
        if use in there.prompts
    }
    texts = {use: (read_text(path, TemplateError), read_answer_schema(path)) for use, path in kept.items()}
    return (
        ours == theirs
        and ("oracle" in there.prompts) == ("oracle" in job["prompts"])
        and texts == {use: (prompt.text, prompt.schema) for use, prompt in extra.items()}
        and all((run.path / name).is_file() for name in named if name)
    )


def _has_schemas(run: RunFolder, plan: Plan) -> bool:
    """Whether the schemas of the plan's templates stand beside the run's own copies of these."""
    there = load_job(run.job)
    named = {"default": there.prompt, **there.prompts}
    asked = [use for use, prompt in plan.prompts.items() if prompt.schema is not None]
    return all(schema_file(run.path / (named.get(use) or use)).is_file() for use in asked)


def _is_made(kept: LedgerSummary, job: Job, under: str, part: range | None) -> bool:
    plan = kept.status.plan
    return (
        plan == plan_of_run(job, under, part, scenarios=plan.scenarios if job.top_up else None)
        and kept.status.state(held=False) == "complete"
        and not any(batch.state in OPEN for batch in kept.batches)
    )


def _stands(run: RunFolder, kept: LedgerSummary, job: Job, side: HeldOutGroups) -> bool:
    """Whether the files are there and are those of what was made, and nothing in the ledger that is made of answers is
    damaged; else it is to be made again."""
    facts = kept.facts
    if facts.get(_WRITTEN) != _written_mark(job, kept.status, side):
        return False
    if not _files_intact(run, facts.get(_DIGESTS)):
        return False
    with LedgerReader(run.ledger) as view:
        return view.is_sound()
