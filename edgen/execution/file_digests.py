"""Digests of the finished files that no manifest covers, and the damage to finished files."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgen.core.digest import compute_sha256_of_file
from edgen.core.errors import DataError
from edgen.store.run_folder import RunFolder
from edgen.store.shards import MANIFEST, verify_manifest

FILE_DIGESTS = "digests"  # the fact in the ledger: the sha256 of the files, as JSON


def digest_files(run: RunFolder) -> str:
    """Return the sha256 of the files that no manifest covers, as JSON. Raises OSError if one is missing."""
    return msgspec.json.encode(
        {path.name: compute_sha256_of_file(path) for path in _list_files(run)}
    ).decode()


def find_damaged_files(run: RunFolder, digests: str | None) -> list[str]:
    """Return a clause for each finished file that is missing or was changed: shards by their manifest, others
    by `digests` (None: an earlier version of edgen kept no digests)."""
    known = msgspec.json.decode(digests, type=dict[str, str]) if digests else {}
    damaged = []
    try:
        for path in _list_files(run):
            if not path.is_file():
                damaged.append(f"{path.name} is missing")
            elif known and compute_sha256_of_file(path) != known.get(path.name):
                damaged.append(f"{path.name} was changed after edgen wrote it")
        return [*damaged, *(problem.message for problem in verify_manifest(run.shards))]
    except (DataError, OSError) as problem:
        return damaged or [str(problem).removesuffix(".")]


def _list_files(run: RunFolder) -> tuple[Path, ...]:
    """Return the finished files that no manifest covers."""
    return run.shards / MANIFEST, run.rejected
