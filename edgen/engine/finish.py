"""From a settled ledger to the files people load: shards, manifest, rejected.jsonl.

All of it is streamed, and made again from the ledger whenever it is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgen import __version__
from edgen.config import Job, resolved
from edgen.errors import DataError
from edgen.files import open_regular
from edgen.ledger import Ledger
from edgen.records import record_id
from edgen.rundir import RunDir
from edgen.shards import MANIFEST, Counts, verify_manifest, write_jsonl_atomic, write_shards
from edgen.splits import Side, choose

DIGESTS = "digests"  # the ledger's fact: the sha256 of the files beside the shards


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has come to, as its files tell it: of the scenarios from `first` on and below `scenarios`.

    `told` is the job as the manifest holds it, plain values; `rejected` and `failed` are counts by reason.
    """

    job: Job
    told: dict[str, Any]
    fingerprint: str
    template_sha256: str
    space_sha256: str
    first: int
    scenarios: int
    planned: int
    accepted: int
    rejected: Mapping[str, int]
    failed: Mapping[str, int]

    @property
    def scope(self) -> tuple[str, int, int, int]:
        """What of a ledger it is: the arguments of `Ledger.groups`, `records` and `refused`."""
        return self.fingerprint, self.scenarios, self.job.replicates, self.first


def told(job: Job) -> dict[str, Any]:
    """The job as a manifest holds it, plain values: without what shapes neither answers nor files, so that pieces
    which were made otherwise come to the same."""
    return {key: value for key, value in resolved(job).items() if key not in ("limits", "batch")}


async def write_files(
    made: Made, rundir: RunDir, ledger: Ledger, side: Side | None = None, *, anew: bool = True
) -> None:
    """Write the files of a run; `side` is the test side, where it is chosen for several runs together.
    Not `anew`: leave them as they are if they stand, and are those of what was made."""
    mark = written_mark(made, side)
    known = ledger.fact("written") == mark, ledger.fact(DIGESTS)
    if not anew and known[0] and await asyncio.to_thread(stand, rundir, known[1]):
        return
    # Until all of them are there, no mark says that any is.
    ledger.set_fact("written", "")
    await ledger.flush()
    await asyncio.to_thread(_finish, made, rundir, ledger, side)
    ledger.set_fact(DIGESTS, await asyncio.to_thread(_digests, rundir))
    ledger.set_fact("written", mark)


def _finish(made: Made, rundir: RunDir, ledger: Ledger, side: Side | None) -> None:
    """Write what was accepted to shards, and the rest, with reasons, to rejected.jsonl."""
    counts = {True: 0, False: 0}
    if side is None:
        side = choose(ledger.groups(*made.scope), made.accepted, made.job.split.test)
    for group, count in ledger.groups(*made.scope):
        counts[side.is_test(group)] += count
    with contextlib.closing(ledger.records(*made.scope)) as records:
        write_shards(
            rundir.shards,
            ((side.is_test(group), record) for group, record in records),
            Counts(train=counts[False], test=counts[True]),
            made.job.shards,
            _described(made, simulated=ledger.fact("simulated") == made.fingerprint),
        )
    write_jsonl_atomic(rundir.rejected, _rejected(made, ledger))


def _described(made: Made, *, simulated: bool) -> dict[str, Any]:
    """What a manifest holds beside its files."""
    return {
        "job": made.told,
        "fingerprint": made.fingerprint,
        "simulated": simulated,
        "template_sha256": made.template_sha256,
        "space_sha256": made.space_sha256,
        "planned": made.planned,
        "rejected": dict(sorted(made.rejected.items())),
        "failed": dict(sorted(made.failed.items())),
        "edgen": __version__,
    }


def stand(rundir: RunDir, digests: str | None) -> bool:
    """Whether the finished files are there, whole: the shards as their manifest has them, the others as `digests`
    has them, the ledger's fact of that name; None where an earlier edgen kept none."""
    try:
        told = _digests(rundir)
        return (digests is None or told == digests) and not verify_manifest(rundir.shards)
    except (DataError, OSError):
        return False


def _digests(rundir: RunDir) -> str:
    """The sha256 of the files that no manifest tells of, as JSON."""
    digests = {}
    for path in (rundir.shards / MANIFEST, rundir.rejected):
        with open_regular(path) as file:
            digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return msgspec.json.encode(digests).decode()


Groups = Callable[[], Iterator[tuple[int, int]]]


def common_side(groups: Sequence[Groups], share: float) -> Side:
    """The test side of several runs together: nothing of one group is on both sides of any of them.

    `groups` give (group hash, accepted) of each, by ascending hash, from the beginning at each call.
    """
    total = sum(count for each in groups for _, count in each())
    merged = heapq.merge(*(each() for each in groups))
    together = itertools.groupby(merged, key=lambda item: item[0])
    return choose(((group, sum(count for _, count in counts)) for group, counts in together), total, share)


def _rejected(made: Made, ledger: Ledger) -> Iterator[bytes]:
    for scenario, replicate, status, reason, detail, raw in ledger.refused(*made.scope):
        yield msgspec.json.encode(
            {
                "id": record_id(made.job.name, scenario, replicate),
                "status": status,
                "reason": reason,
                "detail": detail,
                "reply": raw,
            }
        )


def written_mark(made: Made, side: Side | None) -> str:
    """A name for what would be written: equal stamps, equal files. `side`: None where it is this run's own,
    which follows from the rest."""
    job = made.job
    ended = made.accepted + sum(made.rejected.values()) + sum(made.failed.values())
    facts = (
        made.fingerprint,
        job.name,
        made.scenarios,
        job.replicates,
        made.accepted,
        ended,
        job.split,
        job.shards,
        *([] if side is None else [side]),
        *([made.first] if made.first else []),
    )
    return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]
