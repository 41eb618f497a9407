"""A finished data set on disk: ED's files in ED's layout, and a manifest that vouches for them.

`write_shards` streams; its memory does not grow with the number of records. Every file is whole and on the disk before
the first one gets its name, and the manifest gets its name last. Until then the earlier files stand as they were; a
crash between renames shows as a manifest that does not fit. A record is laid out as `json.dump(records, file,
indent=4, ensure_ascii=False)` lays it out, except that a float below 0.0001 or from 1e16 keeps the spelling it came with.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.config import Shards
from edgen.core.errors import DataError, Problem
from edgen.core.files import Part, explain_write_errors, sync_folder

MANIFEST = "manifest.json"
LAYOUT = {"name": "education-dialogue", "version": 1}
_NAME = re.compile(r"conversations_(?:train|eval)[0-9]*\.json")
_LEFTOVER = re.compile(r"\.(?:conversations_(?:train|eval)[0-9]*|manifest)\.json(?:\.[0-9a-f]{16})?\.part")

SideName = Literal["train", "test"]
Planned = tuple[str, SideName, int]  # a file's name, its side, how many records it gets


class Counts(msgspec.Struct, frozen=True):
    """Records per side."""

    train: int
    test: int


class ShardFile(msgspec.Struct, frozen=True):
    """One file as the manifest lists it. `path` is its name, `sha256` in hex."""

    path: str
    side: SideName
    records: int
    sha256: str
    bytes: int


class Manifest(msgspec.Struct, frozen=True):
    """What a manifest says about the files beside it; what else it holds is not read."""

    layout: dict[str, Any]
    counts: Counts
    files: tuple[ShardFile, ...]


def _plan_files(counts: Counts, shards: Shards) -> list[Planned]:
    """Every file: ED's names, sizes that differ by one at most. ED has one test file, without a number in its name."""
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
    counts: Counts,
    shards: Shards,
    describe: Mapping[str, Any],
) -> dict[str, Any]:
    """Write `records`, (is_test, compact JSON) in order, and return the manifest.

    `counts` says beforehand how many there are on each side (ValueError if that is not so);
    `describe` is what else the manifest holds. Shards of an earlier layout that the folder's
    manifest names are removed, and what a killed write left; nothing else is. Raises StoppedError
    if the disk is full, RunError if the folder cannot be written; the earlier files then stand.
    """
    with explain_write_errors(folder), contextlib.ExitStack() as undo:
        folder.mkdir(exist_ok=True)  # a run's own folder is not made again if somebody has removed it
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                path.unlink()
        plan = _plan_files(counts, shards)
        train, test = (
            _SideFiles(folder, [file for file in plan if file[1] == side], undo) for side in ("train", "test")
        )
        for is_test, record in records:
            (test if is_test else train).add(record)
        files = train.finish() + test.finish()
        manifest = _describe_files(counts, files, describe)
        vouching = Part(folder / MANIFEST)
        undo.callback(vouching.discard)
        vouching.write(msgspec.json.format(msgspec.json.encode(manifest), indent=4) + b"\n")
        vouching.close()
        for part in train.parts + test.parts:
            part.publish()
        # Before the new manifest: after a crash here the old one still names them.
        for name in _named_before(folder) - {file.path for file in files}:
            (folder / name).unlink(missing_ok=True)
        vouching.publish()
        sync_folder(folder)
    return manifest


def write_list_atomic(path: Path, records: Iterable[bytes]) -> int:
    """Write compact JSON records to one file of ED's layout; returns how many. Errors as write_shards."""
    with explain_write_errors(path), contextlib.ExitStack() as undo:
        part = _ListPart(path)
        undo.callback(part.discard)
        for record in records:
            part.add(record)
        part.close()
        part.publish()
        sync_folder(path.parent)
    return part.records


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder of shards. Raises DataError if it is missing or no manifest."""
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
            str(path), f"this is no manifest of shards ({problem}); run 'edgen generate' again to write it."
        ) from None


def verify_manifest(folder: Path, records: Mapping[str, int] | None = None) -> list[Problem]:
    """Where the files in `folder` differ from its manifest. Raises DataError as read_manifest.

    `records`, if given, says how many records were found in each file, by name. What the manifest does
    not list is no difference: see `strays`.
    """
    manifest = read_manifest(folder)
    problems = []
    for side, count in (("train", manifest.counts.train), ("test", manifest.counts.test)):
        listed = sum(file.records for file in manifest.files if file.side == side)
        if listed != count:
            problems.append(Problem(f"$.counts.{side}", f"it is {count}, but the files add up to {listed}"))
    for i, file in enumerate(manifest.files):
        if difference := _difference(folder, file):
            problems.append(Problem(f"$.files[{i}]", difference))
        elif records is not None and (found := records.get(file.path, 0)) != file.records:
            problems.append(
                Problem(
                    f"$.files[{i}].records", f"{file.path} holds {found} records instead of {file.records}"
                )
            )
    return problems


def strays(folder: Path) -> list[str]:
    """What is in `folder` and not in its manifest, by name: nobody's shards. They are left as they are. Hidden
    files are no shards to anybody. Raises DataError as read_manifest."""
    listed = {MANIFEST, *(file.path for file in read_manifest(folder).files)}
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as problem:
        raise DataError(str(folder), f"it cannot be read: {problem.strerror}.") from None
    return [name for name in names if name not in listed and not name.startswith(".")]


def _difference(folder: Path, file: ShardFile) -> str | None:
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


class _ListPart(Part):
    """A JSON list in the making. `bytes` and `sha256` are of what was written so far."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._hash = hashlib.sha256()
        self.records = 0
        self.bytes = 0

    def add(self, record: bytes) -> None:
        # A line feed in valid JSON is never part of a string, so each of them can be indented.
        laid_out = msgspec.json.format(record, indent=4).replace(b"\n", b"\n    ")
        self._put((b",\n    " if self.records else b"[\n    ") + laid_out)
        self.records += 1

    def close(self, *, sync: bool = True) -> None:
        self._put(b"\n]" if self.records else b"[]")
        super().close(sync=sync)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def _put(self, data: bytes) -> None:
        self.write(data)
        self._hash.update(data)
        self.bytes += len(data)


class _SideFiles:
    """The files of one side, filled one after the other."""

    def __init__(self, folder: Path, plan: list[Planned], undo: contextlib.ExitStack) -> None:
        self.parts: list[_ListPart] = []
        self._folder = folder
        self._plan = plan
        self._undo = undo

    def add(self, record: bytes) -> None:
        while self._is_full():
            self._open_next()
        self.parts[-1].add(record)

    def finish(self) -> list[ShardFile]:
        """Make the files that stay empty too, and describe all of them."""
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
        """Whether the present file has all its records; there is none at first."""
        return not self.parts or self.parts[-1].records == self._plan[len(self.parts) - 1][2]

    def _open_next(self) -> None:
        if len(self.parts) == len(self._plan):
            raise ValueError("there are more records than were counted")
        if self.parts:
            self.parts[-1].close()
        part = _ListPart(self._folder / self._plan[len(self.parts)][0])
        self._undo.callback(part.discard)
        self.parts.append(part)


def _describe_files(counts: Counts, files: list[ShardFile], describe: Mapping[str, Any]) -> dict[str, Any]:
    own = {"layout": LAYOUT, "counts": msgspec.to_builtins(counts), "files": msgspec.to_builtins(files)}
    if taken := own.keys() & describe.keys():
        raise ValueError(f"the manifest's own keys cannot be described: {sorted(taken)}")
    return {**own, **describe}


def _named_before(folder: Path) -> set[str]:
    """The shards that the folder's present manifest names: empty if it names none that is readable."""
    try:
        return {file.path for file in read_manifest(folder).files if _NAME.fullmatch(file.path)}
    except DataError:
        return set()
