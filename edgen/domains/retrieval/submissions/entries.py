"""The entries of a file, a JSON list or JSON Lines, one after the other.

A file of any length with one object a line, as edgen writes them, is read by lines. Any other file is read as
a whole, within the size limit of files of records; cutting it into entries reports its problems.
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from edgen.plugin.files import cut, read_data

_MAX_LINE = 1 << 24  # bytes of a line
_HEAD = 1 << 12


class _OtherwiseError(Exception):
    """The file does not have one object a line."""


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
        number = 0
        if self._data is None:
            try:
                with self.path.open("rb") as file:
                    for raw in _read_by_lines(file):
                        yield raw
                        number += 1
            except (_OtherwiseError, OSError):
                pass
            else:
                return
        data = read_data(self.path) if self._data is None else self._data
        yield from cut(data, self.source)[number:]


def holds_json(data: bytes) -> bool:
    """Return whether the contents of a file begin like a JSON list or object."""
    return data.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"[", b"{")


def _read_by_lines(file: IO[bytes]) -> Iterator[msgspec.Raw]:
    """Yield the entries of a file with one object a line. Raises _OtherwiseError for any other file."""
    lines = filter(None, map(bytes.strip, iter(lambda: file.readline(_MAX_LINE), b"")))
    first = next(lines, b"").removeprefix(codecs.BOM_UTF8)
    if not first.startswith(b"["):
        second = next(lines, None)
        if second is None:  # a single object may be a list by ids
            raise _OtherwiseError
        yield from map(_read_entry, itertools.chain((first, second), lines))
        return
    more, ended = False, False  # `more`: an entry must follow; `ended`: the list has ended
    begun = False
    for line in itertools.chain((first[1:].strip(),), lines):
        if ended:
            raise _OtherwiseError
        if ended := line.endswith(b"]") and not _is_entry(line):
            line = line[:-1].rstrip()
        if line.startswith(b","):
            line, more = line[1:].lstrip(), begun and not more
        if line:
            if begun and not more:
                raise _OtherwiseError
            more = line.endswith(b",")
            yield _read_entry(line.removesuffix(b","))
            begun = True
    if not ended or more:
        raise _OtherwiseError


def _is_entry(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")


def _read_entry(line: bytes) -> msgspec.Raw:
    try:
        if not line.isascii():
            line.decode()
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError):
        raise _OtherwiseError from None
    return msgspec.Raw(line)
