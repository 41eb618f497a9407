"""Read-only checks of finished runs: everything is made, and the files match the ledger."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.config import Job, load_kept_job, resolve_values
from edgen.core.digest import compute_sha256_of_file
from edgen.core.errors import EdgenError, TemplateError
from edgen.core.registry import list_names
from edgen.core.yaml_values import read_text
from edgen.execution.run import WRITTEN, compute_files_mark, make_run_plan
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.plan import Plan
from edgen.prompting import Prompt
from edgen.prompting.prompt import find_schema_file, read_answer_schema
from edgen.space.splits import HeldOutGroups
from edgen.store.ledger import (
    OPEN,
    LedgerReader,
    LedgerSummary,
    read_summary,
)
from edgen.store.run_folder import RunFolder
from edgen.store.shards import (
    FILE_DIGESTS,
    MANIFEST,
    SplitCounts,
    digest_shards,
    find_damaged_files,
    read_manifest,
)
from edgen.store.split_side import read_test_side


def find_stale_files(run: RunFolder, side: HeldOutGroups) -> Iterator[tuple[str, str]]:
    """Yield (file, difference) for each finished file that does not match the run's ledger. `side`: the test
    side over all the job's arms. For an unfinished run, only files of an earlier end of it are compared, with
    their digests. Memory: one record."""
    with LedgerReader(run.ledger) as view:
        job, mark = load_kept_job(run.job), view.read_fact(WRITTEN)
        if mark != compute_files_mark(job, view.status, side):
            if mark:  # without one, they are being written
                yield from _find_changed_files(run, view.read_fact(FILE_DIGESTS), kept=False)
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
        known = view.read_fact(FILE_DIGESTS)
    yield from _find_changed_files(run, known, kept=True)


def _find_changed_files(run: RunFolder, known: str | None, *, kept: bool) -> Iterator[tuple[str, str]]:
    """Yield (file, difference) for each file that has another digest than the known one. `kept`: none may be
    missing."""
    for name, digest in (msgspec.json.decode(known, type=dict[str, str]) if known else {}).items():
        path = run.shards / name if name == MANIFEST else run.path / name
        if compute_sha256_of_file(path) != digest if path.is_file() else kept:
            yield path.relative_to(run.path).as_posix(), "it was changed after edgen wrote it"


def is_finished(
    whole: Mapping[str, Any],
    plans: Mapping[str, Plan],
    prints: Mapping[str, str],
    rundir: RunFolder,
    part: range | None,
) -> bool:
    """Return whether the folder holds everything of exactly this form of the job, with intact files.

    `whole`: the job from `planning.kept_job.inline_files`. `plans`, `prints`: plans and their fingerprints by
    arm. `part`: the requested piece, None for all. An unreadable or locked run is not finished.
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
        return all(_is_intact(runs[arm], kept[arm], plan.job, side) for arm, plan in plans.items())
    except (EdgenError, OSError):  # the start that follows reports the error
        return False


def _is_same_job(run: RunFolder, job: Mapping[str, Any], extra: Mapping[str, Prompt]) -> bool:
    """Return whether the run's own copy of the job is equal, except for paths of inputs, and these inputs
    exist. The templates in `extra`, which no fingerprint covers, must be equal byte for byte."""
    there = load_kept_job(run.job)
    named = (there.space, there.prompt, *there.prompts.values())
    later = {*list_names("protocol")}  # templates that are used after the run
    ours, theirs = copy.deepcopy(dict(job)), resolve_values(there)
    for plain in (ours, theirs):
        for values in (plain, *plain["arms"].values()):
            for key in ("space", "prompt", "prompts"):
                values.pop(key, None)
    allowed = AllowedFiles.of(run.job)
    kept = {
        use: allowed.find_file("prompts", there.prompts[use], f"prompts.{use}")
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
    """Return whether the run has the schemas of the plan's templates next to its copies of the templates."""
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


def _is_intact(run: RunFolder, kept: LedgerSummary, job: Job, side: HeldOutGroups) -> bool:
    """Return whether the files match the results, and the ledger's data derived from answers are
    undamaged."""
    facts = kept.facts
    if facts.get(WRITTEN) != compute_files_mark(job, kept.status, side):
        return False
    if find_damaged_files(run, facts.get(FILE_DIGESTS)):
        return False
    with LedgerReader(run.ledger) as view:
        return view.is_sound()
