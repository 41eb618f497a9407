"""The labels of a run's layers, as expressions ask for them: `layers/<name>/labels.jsonl`, a line a unit.

In memory are the labels of the layers that are asked for, each text once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from edgen.core.errors import DataError
from edgen.core.files import open_regular
from edgen.store.run_folder import RunFolder

_MAX_LINE = 1 << 24


class _Line(msgspec.Struct):
    """What is read of a line: a conversation, the turn that was labelled (None: all of it), who spoke it, and what most
    annotators say."""

    id: str
    labels: list[str]
    turn: int | None = None
    role: str | None = None


_decode = msgspec.json.Decoder(_Line).decode
Found = tuple[tuple[str, str], ...] | float


class Layers:
    """The layers of these names, read. Raises DataError for a file that is none."""

    def __init__(self, run: RunFolder, names: Iterable[str]) -> None:
        self._found = {name: _read(_file(run, name)) for name in names}

    def __call__(self, layer: str, identifier: str) -> Sequence[tuple[str, str]] | float | None:
        """See Labels."""
        return self._found[layer].get(identifier)


def layer_names(run: RunFolder) -> list[str]:
    """The layers that a run has."""
    return sorted(path.parent.name for path in (run.path / "layers").glob("*/labels.jsonl"))


def _file(run: RunFolder, name: str) -> Path:
    return run.path / "layers" / name / "labels.jsonl"


def _read(path: Path) -> dict[str, Found]:
    """By conversation: its labels with who spoke them; a number where one label of all of it is one. Of a conversation
    of which no unit has a label nothing is known, unless its turns were labelled."""
    found: dict[str, Found] = {}
    pairs: dict[tuple[str, str], tuple[str, str]] = {}  # each once
    with open_regular(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                if len(line) > _MAX_LINE:
                    raise ValueError("it is too long")
                one = _decode(line)
            except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
                raise DataError(str(path), f"line {number}: these are no labels ({problem}).") from None
            role = sys.intern(one.role or "") if one.turn is not None else ""
            labels = tuple(pairs.setdefault(pair, pair) for pair in ((role, label) for label in one.labels))
            if one.turn is None and not labels:
                continue
            before = found.get(sys.intern(one.id), ())
            if (
                one.turn is None
                and not before
                and len(labels) == 1
                and (value := _number(labels[0][1])) is not None
            ):
                found[one.id] = value
                continue
            found[one.id] = (*before, *labels) if isinstance(before, tuple) else labels
    return found


def _number(label: str) -> float | None:
    """The number that a label is, as on a scale."""
    try:
        return float(label) if len(label) < 20 and label.isascii() and label[0] in "+-.0123456789" else None
    except ValueError:
        return None
