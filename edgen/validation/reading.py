"""Files of records of any origin: found, read and split into records, not decoded yet.

A file is a JSON list, JSON Lines, the log of one room, or a JSON object of records by their ids, in UTF-8;
several such objects may be nested in one (`{"first": {"0": …}, "second": {"0": …}}`). A file that cannot be
split raises DataError with the line; problems inside a record are found elsewhere.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from edgen.core.errors import DataError

MAX_BYTES = 1 << 30
_CHUNK = 1 << 20
_SUFFIXES = (".json", ".jsonl")
_OF_RECORDS = {"conversation", "background_info"}
_OF_RECORDS_BY_ID = _OF_RECORDS | {"past_convo", "pastConvo", "utterances"}  # each has one of these
_OF_A_LOG = {"type", "logs"}  # of a room: one object per file
_ABOUT = ("manifest.json", "croissant.json")  # these describe the files next to them

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files at one path. `manifest` is its folder, if there is one, `space` a run's space file."""

    files: tuple[Path, ...]
    manifest: Path | None = None
    space: Path | None = None


def printable(path: Path | str) -> str:
    """Return the path as printable text for any bytes in its name."""
    return str(path).encode(errors="replace").decode()


def runs_at(path: Path) -> list[Path]:
    """Return the runs of a run with arms, in the order of their names; `path` itself for anything else."""
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
    files, has_manifest = _records_in(shards), (shards / "manifest.json").is_file()
    if not files and not has_manifest:
        files = _records_in(path / "data")
    if not files and not has_manifest:
        tables = any((path / "data").glob("*.parquet")) or any(path.glob("*.parquet"))
        hint = " Parquet is not read; `edgen export RUN --to ed` writes files that are." if tables else ""
        raise DataError(str(path), f"this folder holds no .json or .jsonl file of records.{hint}")
    space = shards.parent / "inputs" / "space.yaml"
    return Inputs(
        tuple(files),
        shards if has_manifest else None,
        space if has_manifest and space.is_file() else None,
    )


def _records_in(folder: Path) -> list[Path]:
    """Return the files of records in a folder, in the order of their numbers; none if there is no folder."""
    if not folder.is_dir():
        return []
    return sorted(
        (p for p in folder.iterdir() if p.suffix in _SUFFIXES and p.name not in _ABOUT and p.is_file()),
        key=lambda p: [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", p.name)],
    )


def read_records(path: Path) -> list[msgspec.Raw]:
    """Return the records of a file, in order, as views of its bytes. Raises DataError."""
    return cut(read_data(path), str(path))


def read_data(path: Path) -> bytes:
    """Return the contents of a file of at most MAX_BYTES. Raises DataError."""
    source = str(path)
    try:
        with path.open("rb") as file:
            too_large = os.fstat(file.fileno()).st_size > MAX_BYTES
            data = b"" if too_large else file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DataError(source, "there is no such file.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise DataError(source, f"it cannot be read: {reason}.") from None
    # pipes have no size, so measure while reading
    if too_large or len(data) > MAX_BYTES:
        raise DataError(source, f"it is larger than {MAX_BYTES >> 20} MiB; split it into smaller files.")
    return data


def lines_of(data: bytes, source: str) -> list[str]:
    """Return the lines of a UTF-8 text file. Only line feeds end one, as a table's cells may have other
    separators. Raises DataError."""
    data = data.removeprefix(codecs.BOM_UTF8)
    _check_utf8(data, source)
    return [line.removesuffix("\r") for line in data.decode().removesuffix("\n").split("\n")]


def cut(data: bytes, source: str) -> list[msgspec.Raw]:
    """Split the bytes of a file into records. Errors call it `source`."""
    data = data.removeprefix(codecs.BOM_UTF8)
    _check_utf8(data, source)
    start = data[:_CHUNK].lstrip()[:1]
    if start == b"[":
        try:
            return _decode(data, list[msgspec.Raw], source, data, 0)
        except DataError:
            if (records := _as_python_reads(data)) is None:
                raise
            return records
    if start == b"{":
        records = _lines(data, source)
        return (_records_by_id(data) or records) if len(records) == 1 else records
    if not data.strip():
        raise DataError(source, "it is empty; an empty list of records is written [].")
    raise DataError(source, "it holds no records: expected a JSON list, or JSON Lines with an object a line.")


def _as_python_reads(data: bytes) -> list[msgspec.Raw] | None:
    """Return the records of a list that Python's json accepts but JSON does not: lone surrogates (`\\ud800`),
    NaN. Records with these stay undecodable; the others are valid."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return [msgspec.Raw(json.dumps(value).encode()) for value in values] if isinstance(values, list) else None


def _lines(data: bytes, source: str) -> list[msgspec.Raw]:
    records: list[msgspec.Raw] = []
    offset = 0
    for line in data.splitlines(keepends=True):
        if line.strip():
            try:
                records.append(_decode(line, msgspec.Raw, source, data, offset))
            except DataError:
                if len(record := _as_python_reads(b"[%b]" % line) or []) == 1:
                    records += record
                    offset += len(line)
                    continue
                if not records and (keys := _keys_of_one(data)) is not None:
                    if keys >= _OF_A_LOG:
                        return [msgspec.Raw(data)]
                    if (by_id := _records_by_id(data)) is not None:
                        return by_id
                    advice = "; put [ and ] around it" if keys & _OF_RECORDS else ""
                    raise DataError(
                        source, f"it holds one JSON object, not a list of records{advice}."
                    ) from None
                raise
        offset += len(line)
    return records


def _records_by_id(data: bytes) -> list[msgspec.Raw] | None:
    """Return the records of one JSON object of records by id, or of several such objects in one; None for
    anything else."""
    try:
        objects = msgspec.json.decode(data, type=dict[str, dict[str, msgspec.Raw]])
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        if not all(one.keys() & _OF_RECORDS_BY_ID for one in objects.values()):
            found = {f"{key}/{name}": raw for key, one in objects.items() for name, raw in one.items()}
        records = msgspec.json.decode(msgspec.json.encode(found), type=dict[str, dict[str, msgspec.Raw]])
    except (msgspec.DecodeError, RecursionError):
        return None
    if not records or not all(one.keys() & _OF_RECORDS_BY_ID for one in records.values()):
        return None
    return list(found.values())


def _keys_of_one(data: bytes) -> set[str] | None:
    """Return the keys of a single JSON object; None for anything else."""
    try:
        return set(msgspec.json.decode(data, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        return None


def _check_utf8(data: bytes, source: str) -> None:
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _CHUNK):
        held = len(decoder.getstate()[0])  # bytes of a character cut by the last chunk
        try:
            decoder.decode(data[start : start + _CHUNK], final=start + _CHUNK >= len(data))
        except UnicodeDecodeError as problem:
            byte = start - held + problem.start
            line = data.count(b"\n", 0, byte) + 1
            raise DataError(
                source, f"byte {byte} (line {line}) is not UTF-8; save the file as UTF-8."
            ) from None


def _decode(piece: bytes, type_: type[T], source: str, data: bytes, offset: int) -> T:
    """Decode `piece`, which starts at `offset` of `data`, as `type_`."""
    try:
        return msgspec.json.decode(piece, type=type_)
    except RecursionError:
        raise DataError(source, "it is nested too deeply to be a list of records.") from None
    except msgspec.DecodeError as problem:
        found = re.fullmatch(r"(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?", str(problem), re.DOTALL)
        detail, byte = (found[1], found[2]) if found else (str(problem), None)
        if byte is None:
            line = data.count(b"\n", 0, offset + len(piece.rstrip())) + 1
            raise DataError(
                source, f"it is not valid JSON: line {line} ends in the middle of a value."
            ) from None
        at = offset + int(byte)
        line, column = data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at)
        raise DataError(source, f"it is not valid JSON: line {line}, column {column}: {detail}.") from None
