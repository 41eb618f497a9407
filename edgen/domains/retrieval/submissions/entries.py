"""The entries of a file of any length, a JSON list or JSON Lines, one after the other."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.plugin.files import cut, read_data, read_records

_HEAD = 1 << 12


class Entries:
    """The entries of a file, which can be iterated several times. The data of a pipe is kept in memory."""

    def __init__(self, path: Path) -> None:
        """Keep the path of a file, or the data of anything else, such as a pipe. Raises DataError if that
        data cannot be read."""
        self.path, self.source = path, str(path)
        self._data = None if path.is_file() else read_data(path)

    @property
    def are_json(self) -> bool:
        """True if the file begins like a JSON list or object."""
        begin = self._data
        if begin is None:
            try:
                with self.path.open("rb") as file:
                    begin = file.read(_HEAD)
            except OSError:
                begin = read_data(self.path)
        return holds_json(begin[:_HEAD])

    def __iter__(self) -> Iterator[msgspec.Raw]:
        """Yield every entry, not decoded. Raises DataError if the file cannot be cut into entries."""
        if self._data is not None:
            return iter(cut(self._data, self.source))
        return (piece.raw for piece in read_records(self.path))


def holds_json(data: bytes) -> bool:
    """Return whether the contents of a file begin like a JSON list or object."""
    return data.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"[", b"{")
