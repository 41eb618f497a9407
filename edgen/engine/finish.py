"""From a settled ledger to the files people load: shards, manifest, rejected.jsonl.

All of it is streamed, and made again from the ledger whenever it is asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from edgen.config import Job
from edgen.ledger import Ledger
from edgen.records import record_id
from edgen.rundir import RunDir
from edgen.shards import Counts, write_jsonl_atomic, write_shards
from edgen.splits import Side, choose


def finish(
    job: Job,
    rundir: RunDir,
    ledger: Ledger,
    fingerprint: str,
    scenarios: int,
    side: Side,
    describe: dict[str, Any],
) -> None:
    """Write what was accepted to shards, and the rest, with reasons, to rejected.jsonl."""
    scope = (fingerprint, scenarios, job.replicates)
    counts = {True: 0, False: 0}
    for group, count in ledger.groups(*scope):
        counts[side.is_test(group)] += count
    with contextlib.closing(ledger.records(*scope)) as records:
        write_shards(
            rundir.shards,
            ((side.is_test(group), record) for group, record in records),
            Counts(train=counts[False], test=counts[True]),
            job.shards,
            describe,
        )
    write_jsonl_atomic(rundir.rejected, _rejected(job, ledger, scope))


Groups = Callable[[], Iterator[tuple[int, int]]]


def common_side(groups: Sequence[Groups], share: float) -> Side:
    """The test side of several runs together: nothing of one group is on both sides of any of them.

    `groups` give (group hash, accepted) of each, by ascending hash, from the beginning at each call.
    """
    total = sum(count for each in groups for _, count in each())
    merged = heapq.merge(*(each() for each in groups))
    together = itertools.groupby(merged, key=lambda item: item[0])
    return choose(((group, sum(count for _, count in counts)) for group, counts in together), total, share)


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


def stamp(job: Job, fingerprint: str, scenarios: int, accepted: int, ended: int, side: Side | None) -> str:
    """A name for what `finish` would write: equal stamps, equal files. `side`: None where it is this run's
    own, which follows from the rest."""
    facts = (
        fingerprint,
        job.name,
        scenarios,
        job.replicates,
        accepted,
        ended,
        job.split,
        job.shards,
        *([] if side is None else [side]),
    )
    return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]
