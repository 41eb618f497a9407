"""Texts that models wrote beside a run, by the turns that they are about: `candidates/<kind>.jsonl`.

A line a turn: `{"id": conversation, "turn": its place from 0, "role", "texts", "writer", "text_sha256": of the turn's text}`.
In memory is the place of each conversation's lines in the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from edgen.core.digest import sha256
from edgen.core.errors import DataError, Problem, UsageError
from edgen.core.files import open_regular


class WrittenLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was written about one turn."""

    id: str
    turn: int
    texts: tuple[str, ...]
    text_sha256: str


class WrittenTexts:
    """The texts of a file, looked up as they are needed. `stale` counts turns that say something else now than when the
    texts were written: theirs are not used."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where there is no such file, DataError for lines that cannot be read."""
        self.path, self.stale = path, 0
        self._places: dict[str, int] = {}
        self._last: tuple[str, dict[int, WrittenLine]] = ("", {})
        self._decoder = msgspec.json.Decoder(WrittenLine)
        try:
            file = open_regular(path)
        except OSError:
            raise UsageError(
                f"{path}: there is no such file; `edgen candidates {path.parents[1]} --kind {path.stem}` makes it."
            ) from None
        with file:
            self._note_places(file)

    def _note_places(self, lines: Iterable[bytes]) -> None:
        before, at = None, 0
        for number, line in enumerate(lines, 1):
            try:
                name = self._decoder.decode(line).id
            except (ValueError, RecursionError) as problem:
                raise DataError.of(str(self.path), [Problem(f"line {number}", str(problem))]) from None
            if name != before and name in self._places:
                raise DataError.of(
                    str(self.path), [Problem(f"line {number}", f"the lines of {name} do not stand together")]
                )
            before = name
            self._places.setdefault(name, at)
            at += len(line)

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
        if (place := self._places.get(conversation)) is None:
            return found
        with open_regular(self.path) as file:
            file.seek(place)
            for raw in file:
                if (line := self._decoder.decode(raw)).id != conversation:
                    break
                found[line.turn] = line
        return found
