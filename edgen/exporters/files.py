"""Rows to files: JSON Lines, Parquet, CSV, or the lists of the released data; streamed, each synced at its end.

The files of a whole data set (`hub`) and of a corpus (`corpus`) have modules of their own.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

import msgspec

from edgen.config import Shards
from edgen.errors import UsageError
from edgen.exporters.base import DEFAULT, Format, Row, Run, SplitName, Storage
from edgen.exporters.formulas import disarmed
from edgen.extras import install_command
from edgen.shards import MANIFEST, Counts, write_shards

BATCH = 1000  # rows of a Parquet row group


class Files(Protocol):
    """The files of one export in a folder. `close` ends them without finishing, as after an error."""

    def add(self, row: Row) -> None: ...

    def finish(self) -> dict[tuple[str, SplitName], str]:
        """End the files; returns the path pattern of each table's split, relative to the folder."""
        ...

    def close(self) -> None: ...


def open_files(format_: Format, run: Run, folder: Path, storage: Storage, *, csv_safe: bool = True) -> Files:
    """Files of the kind that the format needs; `storage` is that of a data set for the hub, `csv_safe` whether
    cells of a table are disarmed. Raises UsageError if a library for it is missing."""
    if format_.files == "hub":
        from edgen.exporters.hub import HubFiles

        return HubFiles(folder, run.job.shards, format_.configs[0].kinds, storage)
    if format_.files == "convokit":
        from edgen.exporters.corpus import CorpusFiles

        return CorpusFiles(folder, run)
    if format_.files == "csv":
        return CsvFiles(folder, safe=csv_safe)
    if format_.files == "ed":
        return _EdFiles(folder, run.job.shards)
    if format_.files == "parquet":
        return _ParquetFiles(folder)
    return _JsonLines(folder)


def _path(folder: Path, row: Row, suffix: str) -> Path:
    place = folder if row.config == DEFAULT else folder / row.config
    place.mkdir(exist_ok=True)
    return place / f"{row.split}.{suffix}"


class _JsonLines:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[tuple[str, SplitName], BinaryIO] = {}
        self._paths: dict[tuple[str, SplitName], str] = {}
        self._encode = msgspec.json.Encoder().encode

    def add(self, row: Row) -> None:
        key = (row.config, row.split)
        if key not in self._files:
            path = _path(self._folder, row, "jsonl")
            self._files[key] = path.open("xb", buffering=1 << 18)
            self._paths[key] = str(path.relative_to(self._folder))
        self._files[key].write(self._encode(row.value) + b"\n")

    def finish(self) -> dict[tuple[str, SplitName], str]:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        return self._paths

    def close(self) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()


class CsvFiles:
    """A table a split, its first row the columns; RFC 4180 with line breaks of its kind, in UTF-8. With `safe`,
    texts that a spreadsheet would take for formulas are disarmed; `disarmed` counts them."""

    def __init__(self, folder: Path, *, safe: bool) -> None:
        self._folder = folder
        self._safe = safe
        self.disarmed = 0
        self._files: dict[SplitName, TextIO] = {}
        self._writers: dict[SplitName, Any] = {}

    def add(self, row: Row) -> None:
        if row.split not in self._files:
            path = _path(self._folder, row, "csv")
            file = self._files[row.split] = path.open("x", encoding="utf-8", newline="", buffering=1 << 18)
            self._writers[row.split] = csv.writer(file)
            self._writers[row.split].writerow(row.value)
        self._writers[row.split].writerow(map(self._cell, row.value.values()))

    def _cell(self, value: Any) -> Any:
        if isinstance(value, bool):
            return str(value).lower()
        if not (self._safe and isinstance(value, str)):
            return value
        safe = disarmed(value)
        self.disarmed += safe != value
        return safe

    def finish(self) -> dict[tuple[str, SplitName], str]:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        return {(DEFAULT, split): f"{split}.csv" for split in self._files}

    def close(self) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()


class _ParquetFiles:
    def __init__(self, folder: Path) -> None:
        self._arrow, self._parquet = arrow()
        self._folder = folder
        self._waiting: dict[tuple[str, SplitName], list[dict[str, Any]]] = {}
        self._writers: dict[tuple[str, SplitName], Any] = {}
        self._paths: dict[tuple[str, SplitName], str] = {}

    def add(self, row: Row) -> None:
        key = (row.config, row.split)
        if key not in self._paths:
            self._paths[key] = str(_path(self._folder, row, "parquet").relative_to(self._folder))
        waiting = self._waiting.setdefault(key, [])
        waiting.append(row.value)
        if len(waiting) >= BATCH:
            self._write(key)

    def finish(self) -> dict[tuple[str, SplitName], str]:
        for key, waiting in self._waiting.items():
            if waiting:
                self._write(key)
        for key, writer in self._writers.items():
            writer.close()
            with (self._folder / self._paths[key]).open("rb+") as file:
                os.fsync(file.fileno())
        return self._paths

    def close(self) -> None:
        for writer in self._writers.values():
            with contextlib.suppress(OSError):
                writer.close()

    def _write(self, key: tuple[str, SplitName]) -> None:
        writer = self._writers.get(key)
        schema = None if writer is None else writer.schema
        table = self._arrow.Table.from_pylist(self._waiting[key], schema=schema)
        if writer is None:
            writer = self._writers[key] = self._parquet.ParquetWriter(
                str(self._folder / self._paths[key]), table.schema
            )
        writer.write_table(table)
        self._waiting[key] = []


class _EdFiles:
    """The released layout says beforehand how many records a file holds, so they wait in a file of their own."""

    def __init__(self, folder: Path, shards: Shards) -> None:
        self._folder = folder
        self._shards = shards
        self._spool = folder / ".records"
        self._file = self._spool.open("xb", buffering=1 << 18)
        self._counts: dict[SplitName, int] = {"train": 0, "test": 0}
        self._encode = msgspec.json.Encoder().encode

    def add(self, row: Row) -> None:
        self._counts[row.split] += 1
        self._file.write((b"1" if row.split == "test" else b"0") + self._encode(row.value) + b"\n")

    def finish(self) -> dict[tuple[str, SplitName], str]:
        self._file.close()
        train, test = self._counts["train"], self._counts["test"]
        # No file without a record, as in the released data.
        shards = Shards(
            train=max(1, min(self._shards.train, train)), test=max(1, min(self._shards.test, test))
        )
        manifest = write_shards(self._folder, self._records(), Counts(train, test), shards, {})
        for file in manifest["files"]:
            if not file["records"]:
                (self._folder / file["path"]).unlink()
        (self._folder / MANIFEST).unlink()
        self._spool.unlink()
        patterns: dict[tuple[str, SplitName], str] = {}
        if train:
            patterns[DEFAULT, "train"] = "conversations_train*.json"
        if test:
            patterns[DEFAULT, "test"] = "conversations_eval*.json"
        return patterns

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def _records(self) -> Iterator[tuple[bool, bytes]]:
        with self._spool.open("rb") as file:
            for line in file:
                yield line[:1] == b"1", line[1:-1]


def arrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet. Raises UsageError where they are not installed."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(
            f"this format is written as Parquet, which needs pyarrow: `{install_command('parquet')}`."
        ) from None
