"""Streamed files of rows.

This module has JSON Lines, Parquet and the common parts; a format with its own layout has its own class. The
export syncs the finished files to disk.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec

from edgen.core.errors import UsageError
from edgen.core.extras import use_extra
from edgen.export.options import FormatOptions, OptionValues
from edgen.export.rows import DEFAULT, ColumnType, DataTable, Row, SplitName
from edgen.store.run_reader import RunReader

Patterns = dict[tuple[str, SplitName], str]  # the path pattern of each table's split, relative to the folder
WriteRow = Callable[[dict[str, Any]], object]
BATCH = 1000  # rows of a Parquet row group
_BUFFER = 1 << 18
_LONGEST_NAME = 200  # characters of an extra file's path


CARD = "README.md"
CROISSANT = "croissant.json"


@dataclass(frozen=True, slots=True)
class Staging:
    """The folder of an export in progress, and settings of its files."""

    folder: Path
    run: RunReader
    tables: tuple[DataTable, ...]
    options: OptionValues

    @property
    def own(self) -> FormatOptions | None:
        """The values of the format's own options."""
        return self.options.own


class RowFiles:
    """The files of one export. `sizes` are the bytes of each table's split in Arrow's memory, if known;
    `disarmed` counts the cells that a spreadsheet would run as formulas, if there are cells. `remarks` are
    sentences for the user."""

    disarmed: int | None = None
    remarks: tuple[str, ...] = ()

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self.folder = staging.folder
        self.sizes: dict[tuple[str, SplitName], int] = {}
        self._open = contextlib.ExitStack()
        self._row_files: set[str] = set()

    def add(self, row: Row) -> None:
        """Write a row."""
        raise NotImplementedError

    def write_row_files(self, row: Row) -> None:
        """Write the extra files of a row, unless an earlier row has written them. Raises ValueError for a
        path that leaves the export's folder, or is that of another file."""
        for name, content in row.files.items():
            if name not in self._row_files:
                self._row_files.add(name)
                path = self.folder / _require_inside(name)
                path.parent.mkdir(exist_ok=True)
                try:
                    with path.open("xb") as file:
                        file.write(content.encode() if isinstance(content, str) else content)
                except FileExistsError:
                    raise ValueError(f"{name!r} is another file of the export") from None

    def finish(self) -> Patterns:
        """Finish the files; return their path patterns."""
        raise NotImplementedError

    def notes(self) -> Iterator[str]:
        """Yield the card's notes on these files and their rows."""
        yield from ()

    def close(self) -> None:
        """Close the files in any state, also after an error."""
        with contextlib.suppress(OSError):
            self._open.close()

    def open(self, path: Path, mode: str = "xb", *, end: str | bytes | None = None, **how: Any) -> IO[Any]:
        """Open a file that is closed with the others, with `end` appended."""
        file = self._open.enter_context(path.open(mode, buffering=_BUFFER, **how))
        if end is not None:
            self._open.callback(file.write, end)
        return file

    def open_items(self, path: Path, begin: bytes, end: bytes) -> Callable[[bytes], object]:
        """Open a file of items with commas and line feeds between them; return the function that writes an
        item. `begin`: comes before the first item. `end`: comes after the last one, also without items."""
        file, before = self.open(path, end=end), begin

        def add(item: bytes) -> None:
            nonlocal before
            file.write(before + item)
            before = b",\n"

        return add


def _require_inside(name: str) -> str:
    """Return the path of an extra file: a name, or one in a folder. Raises ValueError for any other path."""
    parts = PurePosixPath(name).parts
    if not 1 <= len(parts) <= 2 or {"..", "/"} & {*parts} or "\\" in name or len(name) > _LONGEST_NAME:
        raise ValueError(f"{name!r} is not a path in the export's folder, such as pictures/one.svg")
    if name in (CARD, CROISSANT):
        raise ValueError(f"{name!r} is another file of the export")
    return name


class SplitFiles(RowFiles):
    """One file per split of each table, opened at its first row. `is_table`: `datasets` can load them."""

    suffix: str
    is_table = True

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self._write: dict[tuple[str, SplitName], WriteRow] = {}
        self._patterns: Patterns = {}

    def begin(self, path: Path) -> WriteRow:
        """Open a file; return a function that writes a row to it."""
        raise NotImplementedError

    def add(self, row: Row) -> None:
        key = (row.table, row.split)
        if key not in self._write:
            place = self.folder if row.table == DEFAULT else self.folder / row.table
            place.mkdir(exist_ok=True)
            path = place / f"{row.split}.{self.suffix}"
            self._patterns[key] = str(path.relative_to(self.folder))
            self._write[key] = self.begin(path)
        self._write[key](row.value)
        self.write_row_files(row)

    def finish(self) -> Patterns:
        self._open.close()
        return self._patterns if self.is_table else {}


class JsonLines(SplitFiles):
    """Files with one JSON object per line."""

    suffix = "jsonl"

    def begin(self, path: Path) -> WriteRow:
        write, encode = self.open(path).write, msgspec.json.Encoder().encode
        return lambda value: write(encode(value) + b"\n")


class ParquetFiles(SplitFiles):
    """Parquet files with the types of the first rows. Raises UsageError at once if pyarrow is missing."""

    suffix = "parquet"

    def __init__(self, staging: Staging) -> None:
        import_arrow()
        super().__init__(staging)
        self._tables: list[ParquetFile] = []

    def begin(self, path: Path) -> WriteRow:
        table = ParquetFile(path)
        self._tables.append(table)
        self._open.callback(table.abandon)
        return table.add

    def finish(self) -> Patterns:
        for table in self._tables:
            table.close()
        return super().finish()


class ParquetFile:
    """One Parquet file, with a row group every BATCH rows. `schema` is an Arrow schema; by default, the first
    rows define it. `nbytes` is the size of the rows in Arrow's memory."""

    def __init__(self, path: Path, schema: Any = None) -> None:
        self.nbytes = 0
        self._arrow, self._parquet = import_arrow()
        self._path = path
        self._schema = schema
        self._writer: Any = None
        self._pending: list[dict[str, Any]] = []

    def add(self, value: dict[str, Any]) -> None:
        self._pending.append(value)
        if len(self._pending) >= BATCH:
            self._write()

    def close(self) -> None:
        if self._pending:
            self._write()
        self.abandon()

    def abandon(self) -> None:
        """Close the file without the rows still in memory."""
        if self._writer is not None:
            self._writer.close()
            self._file.close()

    def _write(self) -> None:
        rows = self._arrow.Table.from_pylist(self._pending, schema=self._schema)
        if self._writer is None:
            self._schema = rows.schema
            self._file = self._path.open("wb")  # pyarrow accepts only names in UTF-8
            self._writer = self._parquet.ParquetWriter(self._file, rows.schema)
        self._writer.write_table(rows)
        self.nbytes += rows.nbytes
        self._pending = []


def arrow_schema(types: Mapping[str, ColumnType]) -> Any:
    """Return the columns as an Arrow schema. Raises UsageError if pyarrow is not installed."""
    pa, _ = import_arrow()
    known = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        "labels": pa.list_(pa.string()),
        "turn_labels": pa.list_(pa.list_(pa.string())),
        "turns": pa.list_(pa.struct([("role", pa.string()), ("text", pa.string())])),
    }
    return pa.schema([(name, known[kind]) for name, kind in types.items()])


def has_arrow() -> bool:
    """Return whether pyarrow is installed."""
    try:
        import_arrow()
    except UsageError:
        return False
    return True


def import_arrow() -> tuple[Any, Any]:
    """Import pyarrow and pyarrow.parquet. Raises UsageError if they are not installed, or of an unsupported
    version."""
    with use_extra("parquet", "this format is written as Parquet, which needs pyarrow:"):
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
