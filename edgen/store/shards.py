"""A finished data set on disk: files in ED's layout, and a manifest with their digests.

`write_shards` streams, so its memory does not grow with the number of records. All files are complete on disk
before the first is renamed, and the manifest is renamed last. Until then the earlier files stay. After a
crash between renames the manifest does not match. The layout of a record is that of `json.dump(records, file,
indent=4, ensure_ascii=False)`, except that a float below 0.0001 or from 1e16 keeps its original spelling.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.config import Shards, Split
from edgen.core.digest import compute_sha256_of_file
from edgen.core.errors import DataError, Problem
from edgen.core.files import Part, explain_write_errors, sync_folder
from edgen.core.text import join_first
from edgen.store.run_folder import RunFolder

MANIFEST = "manifest.json"
LAYOUT = {"name": "education-dialogue", "version": 1}
_NAME = re.compile(r"conversations_(?:train|eval)[0-9]*\.json")
_LEFTOVER = re.compile(r"\.(?:conversations_(?:train|eval)[0-9]*|manifest)\.json(?:\.[0-9a-f]{16})?\.part")

SideName = Literal["train", "test"]
Planned = tuple[str, SideName, int]  # file name, side, number of records


class SplitCounts(msgspec.Struct, frozen=True):
    """Records per side."""

    train: int
    test: int


class ShardFile(msgspec.Struct, frozen=True):
    """A file in the manifest. `path` is its name; `sha256` is in hex."""

    path: str
    side: SideName
    records: int
    sha256: str
    bytes: int


class Manifest(msgspec.Struct, frozen=True):
    """The needed fields of a manifest; others are ignored."""

    layout: dict[str, Any]
    counts: SplitCounts
    files: tuple[ShardFile, ...]


def _plan_files(counts: SplitCounts, shards: Shards) -> list[Planned]:
    """Return every file: ED's names, sizes that differ by at most one. A single test file has no number in
    its name, as in ED."""
    files: list[Planned] = []
    sides: list[tuple[SideName, str, int, int]] = [
        ("train", "train", counts.train, shards.train),
        ("test", "eval", counts.test, shards.test),
    ]
    for side, word, total, number in sides:
        each, rest = divmod(total, number)
        for i in range(number):
            suffix = "" if side == "test" and number == 1 else str(i + 1)
            files.append((f"conversations_{word}{suffix}.json", side, each + (i < rest)))
    return files


def write_shards(
    folder: Path,
    records: Iterable[tuple[bool, bytes]],
    counts: SplitCounts,
    shards: Shards,
    describe: Mapping[str, Any],
) -> dict[str, Any]:
    """Write `records`, (is_test, compact JSON) in order, and return the manifest.

    `counts` gives the number of records on each side (ValueError if wrong); `describe` is the rest of the
    manifest. Removes shards named in the folder's earlier manifest and leftovers of killed writes; other
    files stay. Raises StoppedError if the disk is full, RunError if the folder cannot be written; the earlier
    files then stay.
    """
    with explain_write_errors(folder), contextlib.ExitStack() as undo:
        folder.mkdir(exist_ok=True)  # do not recreate a run's folder that the user removed
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                path.unlink()

        def begin(name: str) -> Part:
            part = Part(folder / name, alone=True)
            undo.callback(part.discard)
            return part

        files, parts = _fill_files(records, _plan_files(counts, shards), begin)
        manifest = _describe_files(counts, files, describe)
        vouching = Part(folder / MANIFEST, alone=True)
        undo.callback(vouching.discard)
        vouching.write(msgspec.json.format(msgspec.json.encode(manifest), indent=4) + b"\n")
        vouching.close()
        for part in parts:
            part.publish()
        # Before the new manifest: after a crash here the old one still names them.
        for name in _list_previous_shards(folder) - {file.path for file in files}:
            (folder / name).unlink(missing_ok=True)
        vouching.publish()
        sync_folder(folder)
    return manifest


def write_list_atomic(path: Path, records: Iterable[bytes]) -> int:
    """Write compact JSON records to one file in ED's layout. Return their number. Raises as
    `write_shards`."""
    with explain_write_errors(path), contextlib.ExitStack() as undo:
        part = Part(path)
        undo.callback(part.discard)
        made = _List(part)
        for record in records:
            made.add(record)
        made.close()
        made.publish()
        sync_folder(path.parent)
    return made.records


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a folder of shards. Raises DataError if it is missing or invalid."""
    path = folder / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise DataError(
            str(path), "there is no such file; 'edgen generate' writes it with the shards."
        ) from None
    except OSError as problem:
        raise DataError(str(path), f"it cannot be read: {problem.strerror}.") from None
    except (ValueError, RecursionError) as problem:
        raise DataError(
            str(path),
            f"this is not a valid manifest of shards ({problem}); run 'edgen generate' again to write it.",
        ) from None


def verify_manifest(folder: Path, records: Mapping[str, int] | None = None) -> list[Problem]:
    """Return the differences between the files in `folder` and its manifest. Raises DataError as
    `read_manifest`.

    `records`, if given, holds the number of records found in each file, by name. Unlisted files are no
    difference: see `find_strays`.
    """
    manifest = read_manifest(folder)
    problems = []
    for side, count in (("train", manifest.counts.train), ("test", manifest.counts.test)):
        listed = sum(file.records for file in manifest.files if file.side == side)
        if listed != count:
            problems.append(Problem(f"$.counts.{side}", f"it says {count}, but the files add up to {listed}"))
    for i, file in enumerate(manifest.files):
        if difference := _describe_difference(folder, file):
            problems.append(Problem(f"$.files[{i}]", difference))
        elif records is not None and (found := records.get(file.path, 0)) != file.records:
            problems.append(
                Problem(
                    f"$.files[{i}].records", f"{file.path} holds {found} records instead of {file.records}"
                )
            )
    return problems


def find_strays(folder: Path) -> list[str]:
    """Return the names of files in `folder` that its manifest does not list, without hidden files. Raises
    DataError as `read_manifest`."""
    listed = {MANIFEST, *(file.path for file in read_manifest(folder).files)}
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as problem:
        raise DataError(str(folder), f"it cannot be read: {problem.strerror}.") from None
    return [name for name in names if name not in listed and not name.startswith(".")]


def _describe_difference(folder: Path, file: ShardFile) -> str | None:
    if not _NAME.fullmatch(file.path):
        return f"{file.path!r} is not the name of a shard"
    try:
        with (folder / file.path).open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            if size != file.bytes:
                return f"{file.path} has {size} bytes instead of {file.bytes}; it was changed or cut off"
            if hashlib.file_digest(opened, "sha256").hexdigest() != file.sha256:
                return f"{file.path} has another sha256; it was changed after it was written"
    except OSError as problem:
        return f"{file.path} cannot be read: {problem.strerror}"
    return None


def digest_shards(
    records: Iterable[tuple[bool, bytes]], counts: SplitCounts, shards: Shards
) -> list[ShardFile]:
    """Return the manifest entries that `write_shards` would make for the same arguments, without writing.
    Raises ValueError as it does."""
    return _fill_files(records, _plan_files(counts, shards), lambda _name: None)[0]


def _fill_files(
    records: Iterable[tuple[bool, bytes]], plan: list[Planned], begin: Callable[[str], Part | None]
) -> tuple[list[ShardFile], list[_List]]:
    """Fill the planned files, which `begin` opens by name. Return their entries in the manifest, and the
    files."""
    train, test = (
        _SideFiles([file for file in plan if file[1] == side], begin) for side in ("train", "test")
    )
    for is_test, record in records:
        (test if is_test else train).add(record)
    return train.finish() + test.finish(), train.parts + test.parts


_TOGETHER = 1 << 16  # bytes of records that are formatted, written and digested at once


class _List:
    """A JSON list in the file `part`, or only digested. `bytes` and `sha256` cover the content so far."""

    def __init__(self, part: Part | None) -> None:
        self.part = part
        self._hash = hashlib.sha256()
        self._waiting: list[bytes] = []  # records that wait to be written
        self._together = 0  # their bytes
        self.records = 0
        self.bytes = 0

    def add(self, record: bytes) -> None:
        self.records += 1
        self._waiting.append(record)
        self._together += len(record)
        if self._together > _TOGETHER:
            self._write_waiting()

    def close(self) -> None:
        """Write the list's end, and sync the file."""
        self._write_waiting()
        self._write(b"\n]" if self.records else b"[]")
        if self.part is not None:
            self.part.close()

    def publish(self) -> None:
        """Rename the file to its final name."""
        assert self.part is not None
        self.part.publish()

    @property
    def sha256(self) -> str:
        """The digest of a closed list."""
        return self._hash.hexdigest()

    def _write_waiting(self) -> None:
        """Write the waiting records, indented as elements of a list."""
        if self._waiting:
            laid_out = msgspec.json.format(b"[%b]" % b",".join(self._waiting), indent=4)
            self._write(b"," if self.bytes else b"[")
            self._write(memoryview(laid_out)[1:-2])
            self._waiting, self._together = [], 0

    def _write(self, data: bytes | memoryview) -> None:
        if self.part is not None:
            self.part.write(data)
        self._hash.update(data)
        self.bytes += len(data)


class _SideFiles:
    """The files of one side, filled in sequence. `begin` opens the file of a name."""

    def __init__(self, plan: list[Planned], begin: Callable[[str], Part | None]) -> None:
        self.parts: list[_List] = []
        self._plan = plan
        self._begin = begin

    def add(self, record: bytes) -> None:
        while self._is_full():
            self._open_next()
        self.parts[-1].add(record)

    def finish(self) -> list[ShardFile]:
        """Create the remaining empty files, too, and return the entries of all files."""
        while self._is_full() and len(self.parts) < len(self._plan):
            self._open_next()
        if not self._is_full():
            raise ValueError("there are fewer records than were counted")
        self.parts[-1].close()
        return [
            ShardFile(name, side, part.records, part.sha256, part.bytes)
            for (name, side, _), part in zip(self._plan, self.parts, strict=True)
        ]

    def _is_full(self) -> bool:
        """Return whether the present file has all its records, or there is no file yet."""
        return not self.parts or self.parts[-1].records == self._plan[len(self.parts) - 1][2]

    def _open_next(self) -> None:
        if len(self.parts) == len(self._plan):
            raise ValueError("there are more records than were counted")
        if self.parts:
            self.parts[-1].close()
        self.parts.append(_List(self._begin(self._plan[len(self.parts)][0])))


def _describe_files(
    counts: SplitCounts, files: list[ShardFile], describe: Mapping[str, Any]
) -> dict[str, Any]:
    own = {"layout": LAYOUT, "counts": msgspec.to_builtins(counts), "files": msgspec.to_builtins(files)}
    if taken := own.keys() & describe.keys():
        raise ValueError(f"the manifest's own keys cannot be described: {sorted(taken)}")
    return {**own, **describe}


def _list_previous_shards(folder: Path) -> set[str]:
    """Return the shards in the folder's present manifest; empty if it is missing or unreadable."""
    if not (folder / MANIFEST).exists():
        return set()
    try:
        return {file.path for file in read_manifest(folder).files if _NAME.fullmatch(file.path)}
    except DataError:
        return set()


def list_file_warnings(split: Split, folder: Path) -> Iterator[str]:
    """Yield warnings about a run's shards in `folder`: a test share that whole groups cannot reach, and
    foreign files among the shards."""
    counts = read_manifest(folder).counts
    total = counts.train + counts.test
    if total and abs(counts.test - split.test * total) > max(1.0, 0.01 * total):
        yield (
            f"the test side has {counts.test} of {total} conversations instead of {split.test:.0%}: groups "
            f"(split.by: {split.words}) stay whole, and no choice of whole groups comes closer."
        )
    if names := find_strays(folder):
        yield (
            f"{folder}: {join_first(names, 3)}: not in the manifest, so not part of this data set. A loader that "
            "reads the folder by a pattern would read it as well: move it elsewhere."
        )


# --- finished files that no manifest covers

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
