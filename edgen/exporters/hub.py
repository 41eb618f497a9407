"""A data set's files as the Hugging Face hub names them: `data/train-00000-of-00005.parquet`, or `.jsonl`.

A name says how many files there are, and none is to be empty, so the rows wait in a file of their own until
all are known. The types of the columns are given and not guessed: a column without a value in the first rows
has the type that it has in the last. What is in memory is a batch.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from edgen.config import Shards
from edgen.exporters.base import DEFAULT, SPLITS, Kind, Row, SplitName, Storage
from edgen.exporters.files import BATCH, arrow

DATA = "data"
_decode = msgspec.json.decode


class HubFiles:
    """See `files.Files`. Raises UsageError at once where the storage is Parquet and pyarrow is missing.

    `sizes` are the bytes of each table's split in Arrow's memory, known when Parquet is finished.
    """

    def __init__(self, folder: Path, shards: Shards, kinds: Mapping[str, Kind], storage: Storage) -> None:
        self._folder = folder
        self._wanted: dict[SplitName, int] = {"train": shards.train, "test": shards.test}
        self._storage = storage
        self._schema = schema(kinds) if storage == "parquet" else None
        self.sizes: dict[tuple[str, SplitName], int] = {}
        self._rows: dict[SplitName, int] = {"train": 0, "test": 0}
        self._waiting: dict[SplitName, BinaryIO] = {
            split: (folder / f".{split}").open("x+b", buffering=1 << 18) for split in SPLITS
        }
        self._encode = msgspec.json.Encoder().encode

    def add(self, row: Row) -> None:
        self._rows[row.split] += 1
        self._waiting[row.split].write(self._encode(row.value) + b"\n")

    def finish(self) -> dict[tuple[str, SplitName], str]:
        (self._folder / DATA).mkdir()
        for split, waiting in self._waiting.items():
            waiting.seek(0)
            for path, count in self._named(split):
                self._write(path, itertools.islice(waiting, count), split)
            waiting.close()
            (self._folder / f".{split}").unlink()
        return {
            (DEFAULT, split): f"{DATA}/{split}-*.{self._storage}" for split in SPLITS if self._rows[split]
        }

    def close(self) -> None:
        for waiting in self._waiting.values():
            with contextlib.suppress(OSError):
                waiting.close()

    def _named(self, split: SplitName) -> Iterator[tuple[Path, int]]:
        """Every file of a split and its rows, which differ by one at most."""
        number = min(self._wanted[split], self._rows[split])
        for i in range(number):
            each, rest = divmod(self._rows[split], number)
            name = f"{split}-{i:05d}-of-{number:05d}.{self._storage}"
            yield self._folder / DATA / name, each + (i < rest)

    def _write(self, path: Path, lines: Iterator[bytes], split: SplitName) -> None:
        with path.open("xb") as file:
            if self._schema is None:
                file.writelines(lines)
            else:
                size = self._write_parquet(file, lines)
                self.sizes[DEFAULT, split] = self.sizes.get((DEFAULT, split), 0) + size
            file.flush()
            os.fsync(file.fileno())

    def _write_parquet(self, file: BinaryIO, lines: Iterator[bytes]) -> int:
        pa, parquet = arrow()
        size = 0
        with parquet.ParquetWriter(file, self._schema) as writer:
            while batch := [_decode(line) for line in itertools.islice(lines, BATCH)]:
                table = pa.Table.from_pylist(batch, schema=self._schema)
                size += table.nbytes
                writer.write_table(table)
        return size


def schema(kinds: Mapping[str, Kind]) -> Any:
    """The columns as an Arrow schema. Raises UsageError where pyarrow is not installed."""
    pa, _ = arrow()
    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        "turns": pa.list_(pa.struct([("role", pa.string()), ("text", pa.string())])),
    }
    return pa.schema([(name, types[kind]) for name, kind in kinds.items()])


def usual_storage() -> Storage:
    """Parquet where pyarrow is installed, else JSON Lines."""
    from edgen.errors import UsageError

    try:
        arrow()
    except UsageError:
        return "jsonl"
    return "parquet"
