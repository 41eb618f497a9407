"""Rows of Parquet files as records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.core.errors import DataError
from edgen.validation.stream import Piece

MAGIC = b"PAR1"
_ROWS = 1_000  # that are read at once


def is_parquet(path: Path) -> bool:
    """Return whether a file begins as a Parquet file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # its reader reports it
        return False


def rows_of(path: Path, source: str) -> Iterator[Piece]:
    """Yield the rows of a Parquet file, each with its number, from 1.

    Raises DataError without pyarrow, and for a damaged file.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]
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
