"""From a settled ledger to the final files: shards, manifest, rejected.jsonl.

The files are streamed from the ledger and can be made again from it at any time. Whether a run is finished is
decided read-only, before anything is changed.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.config import Job, Split, load_kept_job, resolve_values
from edgen.core.digest import compute_fingerprint, compute_sha256_of_file
from edgen.core.errors import DataError, EdgenError, TemplateError
from edgen.core.files import write_lines
from edgen.core.registry import list_names
from edgen.core.system import run_in_thread
from edgen.core.version import __version__
from edgen.core.yaml_values import read_text
from edgen.families.base import make_record_id
from edgen.planning.allowed_files import Reach
from edgen.planning.plan import Plan
from edgen.prompting import Prompt
from edgen.prompting.prompt import find_schema_file, read_answer_schema
from edgen.protocols.base import find_rounds
from edgen.space.splits import HeldOutGroups
from edgen.store.inputs_copy import keep_copy
from edgen.store.ledger import (
    OPEN,
    SELECTION,
    Ledger,
    LedgerReader,
    LedgerSummary,
    RunPlan,
    RunStatus,
    read_selection,
    read_summary,
)
from edgen.store.run_folder import RunFolder
from edgen.store.shards import (
    MANIFEST,
    SplitCounts,
    digest_shards,
    find_strays,
    read_manifest,
    verify_manifest,
    write_shards,
)
from edgen.store.split_side import read_test_side

# Facts in the ledger
JOB = "job"  # the job as in a manifest
_WRITTEN = "written"  # a mark for the written files
_DIGESTS = "digests"  # the sha256 of files that no manifest covers


class RunSummary(NamedTuple):
    """A run's results by its files. `described`: its job, see `describe_job`."""

    job: Job
    status: RunStatus
    described: Mapping[str, Any]
    template_sha256: str
    space_sha256: str


def describe_job(job: Job) -> dict[str, Any]:
    """Return the job for a manifest, as plain values: without settings that shape neither answers nor files,
    so that pieces made differently have equal manifests. Texts for people are named without their folder."""
    plain = resolve_values(job)
    for name, backend in job.backends.items():
        for key in backend.FILES:
            if (path := plain["backends"][name][key]) is not None:
                plain["backends"][name][key] = Path(path).name
    left_out = ("limits", "batch", "on", "workers", "partitions", "stop_when_useless")
    return {key: value for key, value in plain.items() if key not in left_out}


def make_run_plan(
    job: Job, under: str, part: range | None = None, *, scenarios: int | None = None
) -> RunPlan:
    """Return the plan of a run of a job under a fingerprint: `part` of its scenarios, None for all.
    `scenarios`: their number with a top-up."""
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
        rounds=find_rounds(job).total,
    )


async def write_files(
    made: RunSummary, rundir: RunFolder, ledger: Ledger, side: HeldOutGroups, *, anew: bool = True
) -> None:
    """Write the files of a run; `side` is the test side over all the job's arms. Unless `anew`, keep them if
    they exist and match the results."""
    mark = _compute_files_mark(made.job, made.status, side)
    known = ledger.read_fact(_WRITTEN) == mark, ledger.read_fact(_DIGESTS)
    if not anew and known[0] and await run_in_thread(_are_files_intact, rundir, known[1]):
        return
    keep_copy(ledger, rundir)
    # Until all files are written, no mark vouches for any.
    ledger.set_fact(_WRITTEN, "")
    await ledger.flush()
    await run_in_thread(_write, made, rundir, ledger, side)
    ledger.set_fact(_DIGESTS, await run_in_thread(_digest_files, rundir))
    ledger.set_fact(_WRITTEN, mark)


def _write(made: RunSummary, rundir: RunFolder, ledger: Ledger, side: HeldOutGroups) -> None:
    """Write accepted conversations to shards, and the rest, with reasons, to rejected.jsonl."""
    outcomes = ledger.open_outcomes(made.status.plan.scope)
    counts: Counter[bool] = Counter()
    for group, count in outcomes.iterate_groups():
        counts[side.is_test(group)] += count
    with contextlib.closing(outcomes.iterate_records()) as records:
        write_shards(
            rundir.shards,
            ((side.is_test(group), record) for _, _, group, record in records),
            SplitCounts(train=counts[False], test=counts[True]),
            made.job.shards,
            _describe_run(made, ledger),
        )
    refused = (
        {
            "id": make_record_id(made.job.name, scenario, replicate),
            "status": status,
            "reason": reason,
            "detail": detail,
            "reply": None if reply is None else reply.text,
        }
        for scenario, replicate, status, reason, detail, reply in outcomes.list_refused()
    )
    write_lines(rundir.rejected, map(msgspec.json.encode, refused))


def find_stale_files(run: RunFolder, side: HeldOutGroups) -> Iterator[tuple[str, str]]:
    """Yield (file, difference) for each finished file that does not match the run's ledger. `side`: the test
    side over all the job's arms. An unfinished run has no finished files of its present form. Memory: one
    record."""
    with LedgerReader(run.ledger) as view:
        job = load_kept_job(run.job)
        if view.read_fact(_WRITTEN) != _compute_files_mark(job, view.status, side):
            return
        counts: Counter[bool] = Counter()
        for group, count in view.iterate_groups():
            counts[side.is_test(group)] += count
        wanted = digest_shards(
            ((side.is_test(group), record) for _, _, group, record in view.iterate_records()),
            SplitCounts(train=counts[False], test=counts[True]),
            job.shards,
        )
        listed = {file.path: file for file in read_manifest(run.shards).files}
        for file in wanted:
            if listed.pop(file.path, None) != file:
                yield f"shards/{file.path}", "it does not hold the records of the ledger"
        for name in listed:
            yield f"shards/{name}", "the manifest lists it, and the ledger has no records for it"
        known = view.read_fact(_DIGESTS)
    for name, digest in (msgspec.json.decode(known, type=dict[str, str]) if known else {}).items():
        path = run.shards / name if name == MANIFEST else run.path / name
        if not path.is_file() or compute_sha256_of_file(path) != digest:
            yield path.relative_to(run.path).as_posix(), "it was changed after edgen wrote it"


def _describe_run(made: RunSummary, ledger: Ledger) -> dict[str, Any]:
    """Return the manifest's contents besides its files."""
    status, under = made.status, made.status.plan.fingerprint
    selection = read_selection(ledger.read_fact(SELECTION), ledger.path)
    return {
        "job": made.described,
        "fingerprint": under,
        "simulated": ledger.read_fact("simulated") == under,
        "template_sha256": made.template_sha256,
        "space_sha256": made.space_sha256,
        "planned": status.planned,
        "rejected": dict(sorted(status.rejected.items())),
        "failed": dict(sorted(status.failed.items())),
        "edgen": __version__,
        **({} if selection is None else {"selection": msgspec.to_builtins(selection)}),
    }


def _are_files_intact(rundir: RunFolder, digests: str | None) -> bool:
    """Return whether the finished files exist unchanged: shards by their manifest, others by `digests`; None
    if an earlier edgen kept none."""
    try:
        found = _digest_files(rundir)
        return (digests is None or found == digests) and not verify_manifest(rundir.shards)
    except (DataError, OSError):
        return False


def _digest_files(rundir: RunFolder) -> str:
    """Return the sha256 of the files that no manifest covers, as JSON."""
    files = (rundir.shards / MANIFEST, rundir.rejected)
    return msgspec.json.encode({path.name: compute_sha256_of_file(path) for path in files}).decode()


def _compute_files_mark(job: Job, status: RunStatus, side: HeldOutGroups) -> str:
    """Return a mark for the files to be written: equal marks, equal files."""
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
    return compute_fingerprint(facts)


def is_finished(
    whole: Mapping[str, Any],
    plans: Mapping[str, Plan],
    prints: Mapping[str, str],
    rundir: RunFolder,
    part: range | None,
) -> bool:
    """Return whether everything was made in the folder, under exactly this form of the job, and its files are
    intact.

    `whole` is the job as `planning.kept_job.inline_files` has it, `plans` and their fingerprints are by arm;
    `part` is the requested piece, None for all. An unreadable or locked run is not finished.
    """
    runs = {arm: rundir.arm(arm) for arm in plans}
    if rundir.is_locked() or not all(own.job.exists() and own.ledger.exists() for own in runs.values()):
        return False
    try:
        if whole["arms"] and not _is_same_job(rundir, whole, {}):
            return False
        if not all(
            _is_same_job(runs[arm], resolve_values(plan.job), plan.extra_prompts)
            for arm, plan in plans.items()
        ):
            return False
        if not all(_has_schemas(runs[arm], plan) for arm, plan in plans.items()):
            return False
        kept = {arm: read_summary(own.ledger) for arm, own in runs.items()}
        if not all(_is_made(kept[arm], plan.job, prints[arm], part) for arm, plan in plans.items()):
            return False
        side = read_test_side(runs.values(), whole["split"]["test"])
        return all(_stands(runs[arm], kept[arm], plan.job, side) for arm, plan in plans.items())
    except (EdgenError, OSError):  # the work itself reports the error
        return False


def _is_same_job(run: RunFolder, job: Mapping[str, Any], extra: Mapping[str, Prompt]) -> bool:
    """Return whether the run's own copy of the job is equal, except for paths of inputs, and these exist;
    templates in `extra`, which are in no fingerprint, must be equal byte for byte."""
    there = load_kept_job(run.job)
    named = (there.space, there.prompt, *there.prompts.values())
    later = {*list_names("protocol")}  # templates that are used after the run
    ours, theirs = copy.deepcopy(dict(job)), resolve_values(there)
    for plain in (ours, theirs):
        for values in (plain, *plain["arms"].values()):
            for key in ("space", "prompt", "prompts"):
                values.pop(key, None)
    reach = Reach.of(run.job)
    kept = {
        use: reach.find_file("prompts", there.prompts[use], f"prompts.{use}")
        for use in extra
        if use in there.prompts
    }
    texts = {use: (read_text(path, TemplateError), read_answer_schema(path)) for use, path in kept.items()}
    return (
        ours == theirs
        and there.prompts.keys() & later == job["prompts"].keys() & later
        and texts == {use: (prompt.text, prompt.schema) for use, prompt in extra.items()}
        and all((run.path / name).is_file() for name in named if name)
    )


def _has_schemas(run: RunFolder, plan: Plan) -> bool:
    """Return whether the schemas of the plan's templates stand next to the run's own copies."""
    there = load_kept_job(run.job)
    named = {"default": there.prompt, **there.prompts}
    asked = [use for use, prompt in plan.prompts.items() if prompt.schema is not None]
    return all(find_schema_file(run.path / (named.get(use) or use)).is_file() for use in asked)


def _is_made(kept: LedgerSummary, job: Job, under: str, part: range | None) -> bool:
    plan = kept.status.plan
    return (
        plan == make_run_plan(job, under, part, scenarios=plan.scenarios if job.top_up else None)
        and kept.status.find_state(held=False) == "complete"
        and not any(batch.state in OPEN for batch in kept.batches)
    )


def _stands(run: RunFolder, kept: LedgerSummary, job: Job, side: HeldOutGroups) -> bool:
    """Return whether the files match the results and nothing derived from answers is damaged in the ledger;
    else they are made again."""
    facts = kept.facts
    if facts.get(_WRITTEN) != _compute_files_mark(job, kept.status, side):
        return False
    if not _are_files_intact(run, facts.get(_DIGESTS)):
        return False
    with LedgerReader(run.ledger) as view:
        return view.is_sound()


def list_file_warnings(split: Split, own: RunFolder) -> Iterator[str]:
    """Yield warnings about a run's shards: whole groups that do not allow the requested share of test
    conversations, and foreign files among the shards."""
    counts = read_manifest(own.shards).counts
    total = counts.train + counts.test
    if total and abs(counts.test - split.test * total) > max(1.0, 0.01 * total):
        yield (
            f"the test side has {counts.test} of {total} conversations instead of {split.test:.0%}: groups "
            f"(split.by: {split.words}) stay whole, and no choice of whole groups comes closer."
        )
    if names := find_strays(own.shards):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield (
            f"{own.shards}: {shown}: not in the manifest, so not part of this data set. A loader that "
            "reads the folder by a pattern would read it as well: move it elsewhere."
        )
