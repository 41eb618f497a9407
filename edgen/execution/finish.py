"""From a settled ledger to the files people load: shards, manifest, rejected.jsonl.

All of it is streamed, and made again from the ledger whenever it is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from edgen.config import Job, resolved_values
from edgen.core.digest import fingerprint, sha256_of_file
from edgen.core.errors import DataError
from edgen.core.files import write_lines
from edgen.core.version import __version__
from edgen.families.base import record_id
from edgen.space.splits import HeldOutGroups
from edgen.store.ledger import Ledger, RunStatus, Scope
from edgen.store.run_folder import RunFolder
from edgen.store.shards import MANIFEST, Counts, verify_manifest, write_shards

DIGESTS = "digests"  # the ledger's fact: the sha256 of the files beside the shards


class RunSummary(NamedTuple):
    """What a run has come to, as its files tell it. `facts` are what a manifest has of it besides."""

    job: Job
    status: RunStatus
    facts: Mapping[str, Any] = {}

    @property
    def scope(self) -> Scope:
        """Which outcomes of a ledger it is."""
        plan = self.status.plan
        return Scope(plan.fingerprint, plan.scenarios, self.job.replicates, plan.first)


def manifest_facts(described: Mapping[str, Any], template_sha256: str, space_sha256: str) -> dict[str, Any]:
    """What a manifest has of a job as `describe_job` has it, and of its template and space."""
    return {"job": described, "template_sha256": template_sha256, "space_sha256": space_sha256}


def describe_job(job: Job) -> dict[str, Any]:
    """The job as a manifest holds it, plain values: without what shapes neither answers nor files, so that pieces
    which were made otherwise come to the same."""
    return {key: value for key, value in resolved_values(job).items() if key not in ("limits", "batch")}


async def write_files(
    made: RunSummary, rundir: RunFolder, ledger: Ledger, side: HeldOutGroups, *, anew: bool = True
) -> None:
    """Write the files of a run; `side` is the test side of all the job's arms.
    Not `anew`: leave them as they are if they stand, and are those of what was made."""
    mark = written_mark(made, side)
    known = ledger.fact("written") == mark, ledger.fact(DIGESTS)
    if not anew and known[0] and await asyncio.to_thread(files_intact, rundir, known[1]):
        return
    # Until all of them are there, no mark says that any is.
    ledger.set_fact("written", "")
    await ledger.flush()
    await asyncio.to_thread(_finish, made, rundir, ledger, side)
    ledger.set_fact(DIGESTS, await asyncio.to_thread(_digests, rundir))
    ledger.set_fact("written", mark)


def _finish(made: RunSummary, rundir: RunFolder, ledger: Ledger, side: HeldOutGroups) -> None:
    """Write what was accepted to shards, and the rest, with reasons, to rejected.jsonl."""
    counts = {True: 0, False: 0}
    outcomes = ledger.outcomes(made.scope)
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
    write_lines(rundir.rejected, _rejected_lines(made, ledger))


def _describe_run(made: RunSummary, ledger: Ledger) -> dict[str, Any]:
    """What a manifest holds beside its files."""
    status, fingerprint = made.status, made.status.plan.fingerprint
    return {
        "job": made.facts["job"],
        "fingerprint": fingerprint,
        "simulated": ledger.fact("simulated") == fingerprint,
        "template_sha256": made.facts["template_sha256"],
        "space_sha256": made.facts["space_sha256"],
        "planned": status.planned,
        "rejected": dict(sorted(status.rejected.items())),
        "failed": dict(sorted(status.failed.items())),
        "edgen": __version__,
    }


def files_intact(rundir: RunFolder, digests: str | None) -> bool:
    """Whether the finished files are there, whole: the shards as their manifest has them, the others as `digests`
    has them, the ledger's fact of that name; None where an earlier edgen kept none."""
    try:
        found = _digests(rundir)
        return (digests is None or found == digests) and not verify_manifest(rundir.shards)
    except (DataError, OSError):
        return False


def _digests(rundir: RunFolder) -> str:
    """The sha256 of the files that no manifest tells of, as JSON."""
    digests = {}
    for path in (rundir.shards / MANIFEST, rundir.rejected):
        digests[path.name] = sha256_of_file(path)
    return msgspec.json.encode(digests).decode()


def _rejected_lines(made: RunSummary, ledger: Ledger) -> Iterator[bytes]:
    for scenario, replicate, status, reason, detail, reply in ledger.outcomes(made.scope).refused():
        yield msgspec.json.encode(
            {
                "id": record_id(made.job.name, scenario, replicate),
                "status": status,
                "reason": reason,
                "detail": detail,
                "reply": None if reply is None else reply.text,
            }
        )


def written_mark(made: RunSummary, side: HeldOutGroups) -> str:
    """A name for what would be written: equal marks, equal files."""
    job, status, plan = made.job, made.status, made.status.plan
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
