"""From a settled ledger to the files people load: shards, manifest, rejected.jsonl.

All of it is streamed, and made again from the ledger whenever it is asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.config import Job
from edgen.ledger import Ledger
from edgen.records import record_id
from edgen.rundir import RunDir
from edgen.shards import Counts, write_jsonl_atomic, write_shards
from edgen.splits import choose


def finish(
    job: Job, rundir: RunDir, ledger: Ledger, fingerprint: str, scenarios: int, describe: dict[str, Any]
) -> None:
    """Write what was accepted to shards, and the rest, with reasons, to rejected.jsonl."""
    scope = (fingerprint, scenarios, job.replicates)
    total = sum(count for _, count in ledger.groups(*scope))
    side = choose(ledger.groups(*scope), total, job.split.test)
    with contextlib.closing(ledger.records(*scope)) as records:
        write_shards(
            rundir.shards,
            ((side.is_test(group), record) for group, record in records),
            Counts(train=total - side.count, test=side.count),
            job.shards,
            describe,
        )
    write_jsonl_atomic(rundir.rejected, _rejected(job, ledger, scope))


def _rejected(job: Job, ledger: Ledger, scope: tuple[str, int, int]) -> Iterator[bytes]:
    for scenario, replicate, status, reason, detail, raw in ledger.refused(*scope):
        yield msgspec.json.encode(
            {
                "id": record_id(job.name, scenario, replicate),
                "status": status,
                "reason": reason,
                "detail": detail,
                "reply": raw,
            }
        )


def stamp(job: Job, fingerprint: str, scenarios: int, accepted: int, ended: int) -> str:
    """A name for what `finish` would write: equal stamps, equal files."""
    facts = (fingerprint, job.name, scenarios, job.replicates, accepted, ended, job.split, job.shards)
    return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]
