"""Model-written texts on a run's turns: `candidates/<kind>.jsonl`.

The file has one line per turn, grouped by conversation. Memory holds the position of each conversation's
lines in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.core.digest import compute_sha256
from edgen.core.errors import DataError, UsageError
from edgen.core.files import open_regular
from edgen.core.kept_files import require_kept
from edgen.core.values import Role

_MAX_LINE = 1 << 24  # bytes


class WrittenLine(msgspec.Struct, frozen=True, kw_only=True):
    """The texts on one turn."""

    id: str  # the conversation's id
    turn: int  # number of the turn, from 0
    role: Role  # the speaker
    texts: tuple[str, ...]  # in the order of the answer
    writer: str  # identifies the author in 16 hex digits
    text_sha256: str  # digest of the turn's own text


_line = msgspec.json.Decoder(WrittenLine).decode


def read_written(path: Path) -> Iterator[WrittenLine]:
    """Yield every line of such a file. Raises DataError for an invalid line, DamagedError for a changed file,
    UsageError for a missing one."""
    require_kept(path, _make_rewrite_command(path))
    return (line for _, line in _read(path))


class WrittenTexts:
    """The texts of a file, read on demand. `stale` counts turns that have changed since, whose texts are not
    used."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises UsageError if it is missing, DataError for unreadable lines."""
        self.path, self.stale = path, 0
        require_kept(path, _make_rewrite_command(path))
        self._places: dict[str, int] = {}
        self._last: tuple[str, dict[int, WrittenLine]] = ("", {})
        before = None
        for number, (place, line) in enumerate(_read(path), 1):
            if line.id != before and line.id in self._places:
                raise DataError(str(path), f"line {number}: the lines of {line.id} do not stand together.")
            before = line.id
            self._places.setdefault(line.id, place)

    def of(self, conversation: str, turn: int, text: str) -> tuple[str, ...]:
        """Return the texts for a turn with the words `text`; empty without any."""
        if self._last[0] != conversation:
            self._last = (conversation, self._read_lines(conversation))
        line = self._last[1].get(turn)
        if line is None:
            return ()
        if line.text_sha256 != compute_sha256(text):
            self.stale += 1
            return ()
        return line.texts

    def _read_lines(self, conversation: str) -> dict[int, WrittenLine]:
        found: dict[int, WrittenLine] = {}
        if (place := self._places.get(conversation)) is not None:
            for _, line in _read(self.path, place):
                if line.id != conversation:
                    break
                found[line.turn] = line
        return found


def _read(path: Path, place: int = 0) -> Iterator[tuple[int, WrittenLine]]:
    """Yield (place in the file, line) of every line from a place on."""
    try:
        file = open_regular(path)
    except OSError:
        raise UsageError(
            f"{path}: there is no such file; `edgen annotate {path.parents[1]} --write {path.stem}` makes it."
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
                    f"line {number}: these are not written texts ({problem}). {_make_rewrite_command(path)}",
                ) from None
            place += len(data)


def _make_rewrite_command(path: Path) -> str:
    """Return the command that writes the file again."""
    return (
        f"`edgen annotate {path.parents[1]} --write {path.stem}` with the same options writes it again from "
        "the stored answers."
    )
