"""Files of records of any origin: found, read and split into records, not yet decoded.

`stream` splits a file. An unsplittable file raises DataError with the line; other modules find problems
inside a record.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

import msgspec

from edgen.core.errors import DataError
from edgen.core.files import explain_read_errors
from edgen.core.yaml_values import suggest_file
from edgen.validation.stream import Piece, Recognizes, iterate_pieces, make_not_utf8_error

MAX_BYTES = 1 << 30
_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_TABLES = (".parquet",)
_OF_LINES = (".tsv", ".txt")
_MOST_FILES = 100_000
_PACKED = {
    b"PK\x03\x04": "a ZIP archive",
    b"\xfd7zXZ\x00": "an xz file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
}
_ABOUT = ("manifest.json", "croissant.json")  # these files describe the data files next to them


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files at one path. `manifest` is the folder of a manifest, if there is one, `space` a run's space
    file."""

    files: tuple[Path, ...]
    manifest: Path | None = None
    space: Path | None = None


def make_printable(path: Path | str) -> str:
    """Return the path as printable text for any bytes in its name."""
    return str(path).encode(errors="replace").decode()


def list_runs(path: Path) -> list[Path]:
    """Return the runs of a run with arms, in order of their names; for any other path, the path itself."""
    arms = path / "arms"
    try:
        if not arms.is_dir() or (path / "run.db").exists():
            return [path]
        return sorted(arm for arm in arms.iterdir() if (arm / "run.db").exists()) or [path]
    except OSError:  # readers report unreadable paths
        return [path]


def find_inputs(path: Path) -> Inputs:
    """Return the files to read at `path`: a file, a run, a run's shards, or a folder of JSON files, which may
    be in its `data` as on the Hugging Face hub.

    Raises DataError if there are none or they cannot be listed.
    """
    try:
        return _find_inputs(path)
    except OSError as problem:
        raise DataError(str(path), f"it cannot be read: {problem.strerror}.") from None


def _find_inputs(path: Path) -> Inputs:
    if not path.is_dir():
        return Inputs((path,))
    shards = path / "shards"
    if not shards.is_dir():
        if (path / "run.db").exists():
            raise DataError(str(path), "this run has no shards yet; finish it with 'edgen generate' first.")
        shards = path
    files, has_manifest = _list_record_files(shards), (shards / "manifest.json").is_file()
    if not files and not has_manifest:
        files = (
            _list_record_files(path / "data")
            or _list_record_files(path, _TABLES)
            or _list_record_files(path / "data", _TABLES)
            or _list_record_files(path, _OF_LINES)
            or _list_record_files_below(path)
        )
    if not files and not has_manifest:
        raise DataError(str(path), "this folder holds no .json, .jsonl or .parquet file of records.")
    space = shards.parent / "inputs" / "space.yaml"
    return Inputs(
        tuple(files),
        shards if has_manifest else None,
        space if has_manifest and space.is_file() else None,
    )


def _list_record_files(folder: Path, suffixes: tuple[str, ...] = _SUFFIXES) -> list[Path]:
    """Return the files of records in a folder, in the order of their numbers; empty without the folder."""
    if not folder.is_dir():
        return []
    return sorted(
        (p for p in folder.iterdir() if p.name.endswith(suffixes) and p.name not in _ABOUT and p.is_file()),
        key=lambda p: [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", p.name)],
    )


def _list_record_files_below(folder: Path) -> list[Path]:
    """Return the JSON files in subfolders, for data sets with a file per conversation; empty for a run. Links
    to folders are not followed."""
    found: list[Path] = []
    for place, inner, names in os.walk(folder):
        if "run.db" in names or "job.yaml" in names:
            inner.clear()
            continue
        inner.sort()
        found += _list_record_files(Path(place))
        if len(found) > _MOST_FILES:
            raise DataError(str(folder), f"it holds more than {_MOST_FILES:,} files; name a folder inside.")
    return found


def read_records(path: Path, recognizes: Recognizes | None = None) -> Iterator[Piece]:
    """Yield the records of a file of any size, in order; see `iterate_pieces`. A gzip file is unpacked while
    it is read. Raises DataError."""
    with open_data(path) as file:
        yield from iterate_pieces(file, make_printable(path), recognizes)


def open_data(path: Path) -> IO[bytes]:
    """Open a file of records, unpacked. Raises DataError for a file that cannot be read or unpacked."""
    source = make_printable(path)
    with explain_read_errors(source, DataError, partial(suggest_file, path)):
        file = path.open("rb")
    begin = file.peek(8)[:8]
    if begin.startswith(b"\x1f\x8b"):
        file.close()
        return cast("IO[bytes]", gzip.open(path, "rb"))
    for magic, what in _PACKED.items():
        if begin.startswith(magic):
            file.close()
            raise DataError(source, f"this is {what}; unpack it, or convert it to JSON, and name the result.")
    return file


def read_data(path: Path) -> bytes:
    """Return the contents of a file of at most MAX_BYTES bytes. Raises DataError."""
    source = str(path)
    with explain_read_errors(source, DataError, partial(suggest_file, path)), path.open("rb") as file:
        too_large = os.fstat(file.fileno()).st_size > MAX_BYTES
        data = b"" if too_large else file.read(MAX_BYTES + 1)
    # pipes have no size, so measure while reading
    if too_large or len(data) > MAX_BYTES:
        raise DataError(source, f"it is larger than {MAX_BYTES >> 20} MiB; split it into smaller files.")
    return data


def lines_of(data: bytes, source: str) -> list[str]:
    """Return the lines of a UTF-8 text file. Only line feeds end a line, since cells of a table may contain
    other separators. Raises DataError."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        raise make_not_utf8_error(source, problem.start, data.count(b"\n", 0, problem.start) + 1) from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def cut(data: bytes, source: str) -> list[msgspec.Raw]:
    """Split the bytes of a file into records. Errors call it `source`."""
    return [piece.raw for piece in iterate_pieces(io.BytesIO(data), source)]
