"""Repair of records without adding words.

Each turn is cleaned, empty turns are dropped, and the end marker becomes the suffix of the last turn; text
after it is dropped. If the marker was a separate turn of the other side, `ended_by` keeps its speaker. The
result has no errors. Irreparable records are left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from edgen.core.values import END_MARKER, ROLES
from edgen.validation.checker import SeenIds, decode, find_problems
from edgen.validation.findings import Vocabulary
from edgen.validation.layout import read_own_id
from edgen.validation.schema import CONVERSATION
from edgen.validation.speech import clean_fully
from edgen.validation.stream import Piece


class Change(msgspec.Struct, frozen=True):
    """One change. `after` is None if a turn was dropped; `path` is the path in the input.

    `before` is None if the key was missing.
    """

    path: str
    repairs: tuple[str, ...]
    before: Any
    after: Any


class Fixed(msgspec.Struct, frozen=True):
    """A record without errors, and its changes (empty: none)."""

    record: dict[str, Any]
    changes: tuple[Change, ...]


class IrreparableRecord(msgspec.Struct, frozen=True):
    """An irreparable record, and the reason."""

    reason: str


class Fixer:
    """A fixer of a data set's files. Of two records with one id, it keeps the first."""

    def __init__(self, schema_of: Callable[[Any], str]) -> None:
        """Set up the fixer: `schema_of` names the schema of a decoded record."""
        self._schema_of = schema_of
        self._ids = SeenIds()

    def fix_file(
        self, path: str, records: Iterable[Piece], vocabulary: Vocabulary | None = None
    ) -> Iterator[Fixed | IrreparableRecord]:
        """Yield the result for each record of a file, in order."""
        for number, piece in enumerate(records):
            try:
                record = decode(piece.raw)
                result = fix(record, vocabulary, self._schema_of(record))
            except ValueError as problem:
                result = IrreparableRecord(str(problem))
            if isinstance(result, Fixed) and (
                repeated := self._ids.find_repeated_id(read_own_id(result.record), path, number)
            ):
                result = IrreparableRecord(f"$.id: {repeated}")
            yield result


def fix(
    record: Any, vocabulary: Vocabulary | None = None, schema: str = CONVERSATION
) -> Fixed | IrreparableRecord:
    """Return the repaired copy of one decoded record. This is idempotent."""
    if not _has_turns(record):
        reason = _describe_first_error(record, vocabulary, schema)
        return IrreparableRecord(reason or "it has no list of turns with a role and a text")
    turns, changes, speaker = _repair_turns(record["conversation"])
    fixed = {**record, "conversation": turns}
    if turns:
        before = record.get("ended_by")
        after = before if speaker and before in ROLES else speaker
        if "ended_by" in record or after not in (None, turns[-1]["role"]):
            fixed["ended_by"] = after
            if after != before:
                changes.append(Change("$.ended_by", ("ended_by",), before, after))
    reason = _describe_first_error(fixed, vocabulary, schema)
    return IrreparableRecord(reason) if reason else Fixed(fixed, tuple(changes))


def _has_turns(record: Any) -> bool:
    turns = record.get("conversation") if isinstance(record, dict) else None
    return isinstance(turns, list) and all(
        isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("text"), str)
        for turn in turns
    )


def _describe_first_error(record: Any, vocabulary: Vocabulary | None, schema: str) -> str | None:
    """Describe the remaining error of `record` in short; None if it has none."""
    errors = [f for f in find_problems(record, None, vocabulary, schema) if f.severity == "error"]
    if not errors:
        return None
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0].path}: {errors[0].problem}{more}"


def _repair_turns(turns: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Change], str | None]:
    """Return the repaired turns, the changes, and the role that spoke the marker."""
    kept: dict[int, dict[str, Any]] = {}
    repairs: dict[int, tuple[str, ...]] = {}
    marker: int | None = None
    for i, turn in enumerate(turns):
        if marker is not None:
            repairs[i] = ("after_end_marker",)
            continue
        text, marked, repairs[i] = clean_fully(turn["text"])
        if marked:
            marker = i
        if text:
            kept[i] = {**turn, "text": text}
    speaker = None
    if marker is not None and kept:
        last = max(kept)
        kept[last]["text"] += f" {END_MARKER}"
        role = turns[marker]["role"]
        speaker = role if role in ROLES else kept[last]["role"]
        if marker != last:
            for i in (last, marker):
                repairs[i] = (*repairs[i], "moved_marker")
    changes = []
    for i, turn in enumerate(turns):
        before, after = turn["text"], kept[i]["text"] if i in kept else None
        if after != before:
            names = repairs[i] or (_name_change(before, after),)
            changes.append(Change(f"$.conversation[{i}]", names, before, after))
    return list(kept.values()), changes, speaker


def _name_change(before: str, after: str | None) -> str:
    """Name a change that cleaning does not report: of white space, or of the marker's form."""
    if after is None:
        return "empty_turn"
    respelled = after.endswith(END_MARKER) and not before.rstrip().endswith(END_MARKER)
    return "marker_form" if respelled else "white_space"
