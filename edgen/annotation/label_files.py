"""Label files: labels by people, as annotators or as gold.

JSON Lines, or CSV with these columns (commas, semicolons or tabs between them, UTF-8):

    {"id": "algebra-000003-r0", "turn": 2, "labels": ["Probing"], "annotator": "rater"}

`turn` counts from 0, as in labels.jsonl; where whole conversations are labelled it is null or left out.
`labels` is a list, or a text with commas. A unit without labels is skipped. `text_sha256`, if present, must
be the text's. A file is read completely, or refused with every problem and its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen.annotation.annotator import is_name
from edgen.core.errors import DataError, refuse_lines
from edgen.core.pair import Candidate
from edgen.core.people.sheets import is_sheet, read_sheet
from edgen.core.yaml_values import read_text, shorten_word, suggest_name
from edgen.protocols.labelled_units import LabellingTask, digest_said
from edgen.reading.answers.unit_labels import LabelChoices, Labels, choose_labels
from edgen.store.layers import digest_text
from edgen.store.run_reader import RunReader

MAX_BYTES = 1 << 28
_NEEDED = ("id", "labels")
_KNOWN = (*_NEEDED, "turn", "annotator", "text_sha256")
# Columns of sheets and layers that are ignored, and a column for remarks.
_PASSED_OVER = ("role", "before", "text", "annotators", "tie", "agreement", "comment")
_EXPECTED = (
    "Expected the columns id, turn and labels (and annotator if there are several people), or one JSON object "
    "per line."
)

_NO_NAME = (
    "is not a valid name; a name has letters, digits, '_', '-' and '.', and begins with a letter or a digit"
)

Key = tuple[str, int | None]  # conversation, turn


class PersonLabels(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's labels of a unit. `turn` is None for a whole conversation. `said` is the digest of the
    text up to the unit. Without `annotator`, the labels are by the person whose file holds them."""

    id: str
    turn: int | None
    labels: Labels
    annotator: str = ""
    said: str


class LabelFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a label file, in its order. `without` counts the units without labels."""

    labels: tuple[PersonLabels, ...]
    without: int


def read_label_file(path: Path, reader: RunReader, asking: LabellingTask, *, gold: bool = False) -> LabelFile:
    """Read a file of labels for a run's units. Lines without an annotator belong to the file's name, except
    in `gold`, which has no annotators. Each annotator labels a unit at most once.

    Raises DataError with every problem and its line, counted from 1, or for a file whose name is needed and
    invalid.
    """
    source = str(path)
    read = _Reading(reader, asking, path, gold=gold)
    text = read_text(path, DataError, max_bytes=MAX_BYTES)
    lines = _read_table(text, source) if is_sheet(text) else _read_objects(text)
    for number, value in lines:
        read.read_line(number, value)
    refuse_lines(source, "file of labels", read.problems)
    if not read.labels:
        passed = f"; {read.without:,} units in it have none yet" if read.without else ""
        raise DataError(source, f"it holds no labels{passed}. Expected lines with id, turn and labels.")
    return LabelFile(labels=tuple(read.labels), without=read.without)


def _read_objects(text: str) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for every line. For invalid JSON the value is the error."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line)
            except (ValueError, RecursionError):
                yield number, f"this is not valid JSON: {shorten_word(line.strip())}"


def _read_table(text: str, source: str) -> Iterator[tuple[int, Any]]:
    """Yield (line number, object) for every row. Empty cells are None."""
    for number, row in read_sheet(text, source, _NEEDED, _EXPECTED):
        yield number, row if isinstance(row, str) else _as_object(row)


def _as_object(row: Mapping[str, str]) -> dict[str, Any]:
    value: dict[str, Any] = {key: cell.strip() or None for key, cell in row.items() if key}
    turn = value.get("turn")
    if isinstance(turn, str) and turn.isascii() and turn.isdigit() and len(turn) < 10:
        value["turn"] = int(turn)
    return value


class _NoLabelsError(ValueError):
    """A line without valid labels. Its arguments are the problems."""


class _Reading:
    """The content read so far."""

    def __init__(self, reader: RunReader, asking: LabellingTask, path: Path, *, gold: bool) -> None:
        self._reader = reader
        self._asking = asking
        self._choice = LabelChoices(asking.labels.names, asking.labels.several)
        self._path, self._gold = path, gold
        self._last: Candidate | None = None
        self._seen: dict[tuple[str, Key], int] = {}
        self.labels: list[PersonLabels] = []
        self.without = 0
        self.problems: list[tuple[int, str]] = []

    def read_line(self, number: int, value: Any) -> None:
        try:
            found = self._read(value)
        except _NoLabelsError as wrong:
            self.problems += [(number, message) for message in wrong.args]
            return
        key = (found.annotator, (found.id, found.turn))
        if (first := self._seen.setdefault(key, number)) != number:
            self.problems.append((number, f"this unit is already in line {first}"))
        elif found.labels:
            self.labels.append(found)
        else:
            self.without += 1

    def _read(self, value: Any) -> PersonLabels:
        if isinstance(value, str):
            raise _NoLabelsError(value)
        if not isinstance(value, dict):
            raise _NoLabelsError(f"expected an object with the keys {', '.join(_NEEDED)} and turn")
        known = (*_KNOWN, *_PASSED_OVER)
        wrong = [f"the key {key} is missing" for key in _NEEDED if key not in value]
        wrong += [
            f"unknown key {shorten_word(repr(key))}{suggest_name(key, known)}"
            for key in value
            if key not in known
        ]
        annotator = "gold" if self._gold else value.get("annotator")
        annotator = self._name_by_file() if annotator is None else annotator
        if not isinstance(annotator, str) or not is_name(annotator):
            wrong.append(f"annotator: {shorten_word(repr(annotator))} {_NO_NAME}")
        if wrong:
            raise _NoLabelsError(*wrong)
        conversation = self._find_conversation(value["id"])
        turn = self._read_turn(value.get("turn"), conversation)
        if value.get("text_sha256") not in (None, digest_text(conversation.turns, turn)):
            raise _NoLabelsError("the run's text differs now from the labelled one (text_sha256)")
        said = digest_said(conversation.turns, turn)
        labels = self._read_labels(value["labels"])
        return PersonLabels(id=conversation.id, turn=turn, labels=labels, annotator=str(annotator), said=said)

    def _name_by_file(self) -> str:
        """Return the file's name as that of the annotator. Raises DataError if it is invalid."""
        if is_name(name := self._path.stem):
            return name
        raise DataError(
            str(self._path),
            f"its lines name no annotator, and its own name, {name!r}, {_NO_NAME}. Rename the file, or add a "
            "column annotator.",
        )

    def _find_conversation(self, identifier: Any) -> Candidate:
        if self._last is None or self._last.id != identifier:
            if not isinstance(identifier, str) or self._reader.scenario_of(identifier) is None:
                shown = shorten_word(repr(identifier))
                raise _NoLabelsError(f"id: this run has no accepted conversation with the id {shown}")
            self._last = self._reader.named(identifier)
        return self._last

    def _read_turn(self, turn: Any, conversation: Candidate) -> int | None:
        if self._asking.unit == "conversation":
            if turn is not None:
                raise _NoLabelsError("turn: whole conversations are labelled here; leave it out")
            return None
        if not isinstance(turn, int) or isinstance(turn, bool):
            raise _NoLabelsError(f"turn: expected its number, from 0 on, got {shorten_word(repr(turn))}")
        turns = conversation.turns
        if not 0 <= turn < len(turns):
            raise _NoLabelsError(
                f"turn: there is no turn {turn}; this conversation has 0 to {len(turns) - 1}"
            )
        if not self._asking.labels.asks_for(role := turns[turn].role):
            roles = ", ".join(self._asking.labels.roles)
            raise _NoLabelsError(f"turn: {turn} is {role}'s, and the labels are for turns of {roles}")
        return turn

    def _read_labels(self, named: Any) -> Labels:
        if named is None or named == [] or (isinstance(named, str) and not named.strip()):
            return ()
        found = choose_labels(named, self._choice)
        if isinstance(found, str):
            raise _NoLabelsError(f"labels: {found}")
        return found
