"""A record as it should have been written, without a word that was not in it.

Each turn is cleaned, turns that then say nothing are dropped, and the end marker becomes the
suffix of the last turn, with what came behind it dropped. The result has no errors; a record for
which that cannot be reached is left out with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from edgen.model import END_MARKER, ROLES
from edgen.validation.checking import Ids, decode, problems
from edgen.validation.findings import Vocabulary

# A turn's text -> the text without debris and marker, whether it held the marker, names of repairs.
Clean = Callable[[str], tuple[str, bool, tuple[str, ...]]]


class Change(msgspec.Struct, frozen=True):
    """One change. `after` is None where a turn was dropped; `path` is the one in the input."""

    path: str
    repairs: tuple[str, ...]
    before: Any
    after: Any


class Fixed(msgspec.Struct, frozen=True):
    """A record without errors, and what was done to it (nothing: `changes` is empty)."""

    record: dict[str, Any]
    changes: tuple[Change, ...]


class LeftOut(msgspec.Struct, frozen=True):
    """A record that cannot be repaired, and why."""

    reason: str


class Fixer:
    """Fixes the files of one data set, one after the other; of two records with one id the first stays."""

    def __init__(self, clean: Clean) -> None:
        self._clean = clean
        self._ids = Ids()

    def file(
        self, path: str, records: Iterable[msgspec.Raw], vocabulary: Vocabulary | None = None
    ) -> Iterator[Fixed | LeftOut]:
        """For each record of a file, in order, what becomes of it."""
        for number, raw in enumerate(records):
            try:
                result = fix(decode(raw), self._clean, vocabulary)
            except ValueError as problem:
                result = LeftOut(str(problem))
            if isinstance(result, Fixed) and (repeated := self._ids.repeated(result.record, path, number)):
                result = LeftOut(f"$.id: {repeated}")
            yield result


def fix(record: Any, clean: Clean, vocabulary: Vocabulary | None = None) -> Fixed | LeftOut:
    """The repaired copy of one decoded record. Applied to its own result it changes nothing."""
    if not _has_turns(record):
        reason = _first_error(record, vocabulary)
        return LeftOut(reason or "it has no list of turns with a role and a text")
    turns, changes = _turns(record["conversation"], clean)
    fixed = {**record, "conversation": turns}
    if "ended_by" in record and turns:
        marked = turns[-1]["text"].endswith(END_MARKER)
        if not marked:
            fixed["ended_by"] = None
        elif record["ended_by"] not in ROLES:
            fixed["ended_by"] = turns[-1]["role"]
        if fixed["ended_by"] != record["ended_by"]:
            changes.append(Change("$.ended_by", ("ended_by",), record["ended_by"], fixed["ended_by"]))
    reason = _first_error(fixed, vocabulary)
    return LeftOut(reason) if reason else Fixed(fixed, tuple(changes))


def _has_turns(record: Any) -> bool:
    turns = record.get("conversation") if isinstance(record, dict) else None
    return isinstance(turns, list) and all(
        isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("text"), str)
        for turn in turns
    )


def _first_error(record: Any, vocabulary: Vocabulary | None) -> str | None:
    """What is still wrong with `record`, in short; None if it has no errors."""
    errors = [f for f in problems(record, vocabulary=vocabulary) if f.severity == "error"]
    if not errors:
        return None
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0].path}: {errors[0].problem}{more}"


def _turns(turns: list[dict[str, Any]], clean: Clean) -> tuple[list[dict[str, Any]], list[Change]]:
    """The turns as they should be, and what was changed on the way."""
    kept: list[tuple[int, dict[str, Any]]] = []
    repairs: dict[int, tuple[str, ...]] = {}
    marked = False
    for i, turn in enumerate(turns):
        if marked:
            repairs[i] = ("after_end_marker",)
            continue
        text, marked, repairs[i] = _settled(turn["text"], clean)
        if text:
            kept.append((i, {**turn, "text": text}))
    if marked and kept:
        i, last = kept[-1]
        kept[-1] = i, {**last, "text": f"{last['text']} {END_MARKER}"}
    after = dict(kept)
    changes = [
        Change(
            f"$.conversation[{i}]",
            repairs[i] or (("moved_marker",) if i in after else ("empty_turn",)),
            turn["text"],
            after[i]["text"] if i in after else None,
        )
        for i, turn in enumerate(turns)
        if i not in after or after[i]["text"] != turn["text"]
    ]
    return [turn for _, turn in kept], changes


def _settled(text: str, clean: Clean) -> tuple[str, bool, tuple[str, ...]]:
    """What `clean` makes of a text, and of that, until nothing changes: debris can hide debris."""
    marked = False
    repairs: dict[str, None] = {}
    for _ in range(10):
        before = text
        text, held, names = clean(before)
        marked = marked or held
        repairs |= dict.fromkeys(names)
        if text == before:
            break
    return text, marked, tuple(repairs)
