"""Texts that models wrote beside a run's turns, by the turns that they are about: `candidates/<kind>.jsonl`.

A line a turn, those of a conversation one after the other. In memory is the place of each conversation's lines in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.core.digest import sha256
from edgen.core.errors import DataError, UsageError
from edgen.core.files import open_regular
from edgen.core.values import Role

_MAX_LINE = 1 << 24  # bytes


class WrittenLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was written about one turn, counted from 0. `writer` names in 16 hex digits who wrote it, `text_sha256` is the digest of
    the turn's own text."""

    id: str
    turn: int
    role: Role
    texts: tuple[str, ...]
    writer: str
    text_sha256: str


_line = msgspec.json.Decoder(WrittenLine).decode


def read_written(path: Path) -> Iterator[WrittenLine]:
    """Every line of such a file. Raises DataError for one that is none, UsageError where there is no file."""
    return (line for _, line in _read(path))


class WrittenTexts:
    """The texts of a file, looked up as they are needed. `stale` counts turns that say something else now than when the
    texts were written: theirs are not used."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where there is no such file, DataError for lines that cannot be read."""
        self.path, self.stale = path, 0
        self._places: dict[str, int] = {}
        self._last: tuple[str, dict[int, WrittenLine]] = ("", {})
        before = None
        for number, (place, line) in enumerate(_read(path), 1):
            if line.id != before and line.id in self._places:
                raise DataError(str(path), f"line {number}: the lines of {line.id} do not stand together.")
            before = line.id
            self._places.setdefault(line.id, place)

    def of(self, conversation: str, turn: int, text: str) -> tuple[str, ...]:
        """The texts about a turn, of which `text` is what it says; none where nothing was written."""
        if self._last[0] != conversation:
            self._last = (conversation, self._lines(conversation))
        line = self._last[1].get(turn)
        if line is None:
            return ()
        if line.text_sha256 != sha256(text):
            self.stale += 1
            return ()
        return line.texts

    def _lines(self, conversation: str) -> dict[int, WrittenLine]:
        found: dict[int, WrittenLine] = {}
        if (place := self._places.get(conversation)) is not None:
            for _, line in _read(self.path, place):
                if line.id != conversation:
                    break
                found[line.turn] = line
        return found


def _read(path: Path, place: int = 0) -> Iterator[tuple[int, WrittenLine]]:
    """(place in the file, line) of every line from a place on."""
    try:
        file = open_regular(path)
    except OSError:
        raise UsageError(
            f"{path}: there is no such file; `edgen candidates {path.parents[1]} --write {path.stem}` makes it."
        ) from None
    with file:
        file.seek(place)
        number = 0
        while data := file.readline(_MAX_LINE + 1):
            number += 1
            try:
                if len(data) > _MAX_LINE:
                    raise ValueError("it is longer than 16 MB")
                yield place, _line(data)
            except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
                raise DataError(
                    str(path),
                    f"line {number}: these are no written texts ({problem}). `edgen candidates` with the same options writes "
                    "the file anew from what its writer said.",
                ) from None
            place += len(data)
