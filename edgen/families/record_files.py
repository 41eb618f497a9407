"""Files of records, with the reader of their layout: the first reader that recognises one of the first
records."""

from __future__ import annotations

import codecs
import dataclasses
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from edgen.core.errors import DataError
from edgen.core.registry import part_of
from edgen.core.text import join_list
from edgen.families.reader import (
    DataSetReader,
    TextLayout,
    find_reader_of_record,
    find_reader_of_text,
    list_known_titles,
)
from edgen.validation.reading import make_printable, open_data
from edgen.validation.stream import Piece, iterate_lines, iterate_pieces, make_not_utf8_error

ADVICE = (
    "Of the rows that `edgen export` writes for trainers, edgen reads only chat messages. It reads all files of "
    "`--to ed` and `--to hf --files jsonl`."
)
_LOOKED_AT = 100  # records searched, from the beginning, for one that is recognised
_HEAD = 1 << 16  # bytes of the head


@dataclass(frozen=True)
class RecordFile:
    """A file of records. `reader` is None if no reader recognises it. `is_empty`: it has no record."""

    path: Path
    reader: DataSetReader | None
    is_empty: bool = False
    is_text: bool = False
    is_table: bool = False

    def iterate_pieces(self) -> Iterator[Piece]:
        """Yield the records. Raises DataError with the place at which reading failed."""
        source = make_printable(self.path)
        if self.is_table:
            yield from iterate_rows(self.path, source)
            return
        with open_data(self.path) as file:
            if self.is_text and self.reader is not None:
                try:
                    yield from part_of(self.reader, TextLayout).cut_text(iterate_lines(file, source))
                except ValueError as problem:
                    raise DataError(source, f"{problem}.") from None
            else:
                yield from iterate_pieces(file, source, is_recognized)

    def refuse_other(self, record: Any, number: int) -> None:
        """Raise DataError if a record, which its reader cannot read, has another known layout."""
        other = find_reader_of_record(record)
        if self.reader is None or other is None or other.title == self.reader.title:
            return
        raise DataError(
            make_printable(self.path),
            f"record {number} has the layout of {other.title}, and earlier ones that of "
            f"{self.reader.title}; put them into separate files.",
        )


def is_recognized(record: Any) -> bool:
    """Return whether any reader recognises a decoded record."""
    return find_reader_of_record(record) is not None


def open_records(path: Path) -> RecordFile:
    """Return a file of records with its reader. Raises DataError if it cannot be read."""
    source = make_printable(path)
    if is_parquet(path):
        return _recognize_file(RecordFile(path, None, is_table=True), iterate_rows(path, source))
    with open_data(path) as file:
        head = _read_head(file, source)
        if head.lstrip("\ufeff \t\r\n")[:1] not in ("[", "{"):
            if not head.strip("\ufeff \t\r\n"):
                raise DataError(source, "it is empty; an empty list of records is written [].")
            reader = find_reader_of_text(head)
            return RecordFile(path, reader, is_text=True)
    with open_data(path) as file:
        return _recognize_file(RecordFile(path, None), iterate_pieces(file, source, is_recognized))


def _recognize_file(file: RecordFile, records: Iterator[Piece]) -> RecordFile:
    """Return a file with the reader of its first record that is recognised."""
    is_empty = True
    for piece in itertools.islice(records, _LOOKED_AT):
        is_empty = False
        if (found := find_reader_of_record(_decode_record(piece))) is not None:
            return dataclasses.replace(file, reader=found)
    return dataclasses.replace(file, is_empty=is_empty)


def make_unknown_layout_error(path: Path) -> DataError:
    """Return the error for a file or folder whose records no reader recognises."""
    titles = join_list(list_known_titles())
    return DataError(
        make_printable(path), f"its records have none of the layouts that edgen reads: {titles}. {ADVICE}"
    )


def _read_head(file: IO[bytes], source: str) -> str:
    """Return the first characters of a file, whole lines if possible."""
    try:
        data = file.read(_HEAD)
    except (OSError, EOFError, zlib.error) as problem:
        raise DataError(source, f"it cannot be read: {problem}.") from None
    try:
        head = codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) < _HEAD)
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise make_not_utf8_error(source, problem.start, line) from None
    return head if len(data) < _HEAD else head.rpartition("\n")[0] or head


def _decode_record(piece: Piece) -> Any:
    """Return a record; None if it cannot be decoded."""
    try:
        return msgspec.json.decode(piece.raw)
    except (ValueError, RecursionError):
        return None


MAGIC = b"PAR1"
_ROWS = 1_000  # rows read at once


def is_parquet(path: Path) -> bool:
    """Return whether a file begins like a Parquet file."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # its reader reports it
        return False


def iterate_rows(path: Path, source: str) -> Iterator[Piece]:
    """Yield the rows of a Parquet file, each with its number, from 1.

    Raises DataError without pyarrow, and for a damaged file.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            source, 'this is a Parquet file, which needs pyarrow: pip install "edgen-dialogues[parquet]".'
        ) from None
    number = 0
    try:
        # Buffered ahead, every row group would stay in memory until the end.
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield Piece(msgspec.Raw(msgspec.json.encode(row, enc_hook=str)), None, number)
    except (pyarrow.ArrowException, OSError, ValueError) as problem:
        said = " ".join(str(problem).split())[:300].rstrip(".")
        raise DataError(source, f"it cannot be read after row {number:,}: {said}.") from None
