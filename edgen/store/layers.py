"""The layers of a run, read: what annotators said of its turns or conversations, beside the conversations themselves.

    layers/<layer>/labels.jsonl    a line a unit that has labels, by scenario, arm, replicate and turn

An arm has its run's layers as well as its own. Labels of a text that is another one now are left out and counted. Memory: the
labels of one scenario.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from edgen.core.digest import sha256
from edgen.core.errors import DataError, RunError, UsageError
from edgen.core.files import open_regular
from edgen.core.values import Role, Turn
from edgen.core.yaml_values import nearest
from edgen.families.base import read_record_id
from edgen.protocols.base import transcript_of
from edgen.reading.answers.unit_labels import Labels
from edgen.store.run_folder import RunFolder

_FILE = "labels.jsonl"
_NAME = re.compile(
    r"[^\W_][\w .:@+-]{0,99}"
)  # of a layer and of an annotator, as columns and cards have them
_MAX_LINE = 1 << 24  # bytes
_MAX_SCENARIO = 1 << 28  # bytes of lines about one scenario
_MAX_LAYERS = _MAX_ANNOTATORS = 200
_AGAIN = "`edgen annotate` with the same labels writes the file anew from what its annotators said."


class UnitLabels(msgspec.Struct, frozen=True, kw_only=True):
    """A line of labels.jsonl. `turn`, from 0, and `role` are None where the whole conversation is labelled. `labels`: those that
    most annotators give, none where `tie`. `agreement`: over all pairs of annotators, the mean share that their sets have
    in common (Jaccard), None where there is one annotator."""

    id: str
    turn: int | None
    role: Role | None
    labels: Labels
    annotators: dict[str, Labels]
    tie: bool
    agreement: float | None
    text_sha256: str


class LayerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A layer: whether its units are whole conversations, how many there are, and who labelled any."""

    name: str
    whole: bool
    units: int
    annotators: tuple[str, ...]


Cell = list[str] | list[list[str] | None] | None
"""Labels of a conversation, or of each of its turns; None for what was not labelled."""

LabelsByLayer = Mapping[str, tuple[UnitLabels, ...]]
"""Of one conversation: its labelled units, in order, by layer; a layer that says nothing of it is not there."""

_unit = msgspec.json.Decoder(UnitLabels).decode


def layer_file(run: RunFolder, name: str) -> Path:
    """Where a run's layer of that name has its labels."""
    return run.layers / name / _FILE


def layer_files(run: RunFolder) -> dict[str, Path]:
    """The labels of every layer of a run, by name; a folder that is called as no layer can be is none. Raises RunError for more layers than are read."""
    whole = _run_of(run)
    found = {} if whole is None else layer_files(whole)
    own = ((path.parent.name, path) for path in run.layers.glob(f"*/{_FILE}"))
    found |= {name: path for name, path in own if _NAME.fullmatch(name)}
    if len(found) > _MAX_LAYERS:
        raise RunError(f"{run.layers}: there are {len(found):,} layers, and {_MAX_LAYERS} are the most.")
    return dict(sorted(found.items()))


def layer_names(run: RunFolder) -> list[str]:
    """The layers that a run has."""
    return [*layer_files(run)]


def describe_layers(run: RunFolder) -> tuple[LayerFacts, ...]:
    """The layers of a run, by name. Raises DataError for one that cannot be read, or is of turns and of conversations."""
    return tuple(_describe(name, path) for name, path in layer_files(run).items())


def _describe(name: str, path: Path) -> LayerFacts:
    annotators: set[str] = set()
    kinds: Counter[bool] = Counter()
    for unit in read_layer(path):
        kinds[unit.turn is None] += 1
        if new := unit.annotators.keys() - annotators:
            annotators |= new
            if len(annotators) > _MAX_ANNOTATORS or not all(map(_NAME.fullmatch, new)):
                names = "begin with a letter or a digit, have letters, digits, '_', '-', '.', ':', '@', '+' and blanks"
                raise DataError(
                    str(path),
                    f"it has more than {_MAX_ANNOTATORS} annotators, or names of theirs that do not {names}. {_AGAIN}",
                )
        if len(kinds) > 1:
            raise DataError(
                str(path), f"some of its lines are of turns, others of whole conversations. {_AGAIN}"
            )
    return LayerFacts(
        name=name, whole=kinds[True] > 0, units=kinds.total(), annotators=tuple(sorted(annotators))
    )


def require_turns_labelled(run: RunFolder, name: str, layers: Sequence[LayerFacts]) -> None:
    """Raise UsageError unless there is a layer of that name, and it is of turns."""
    found = {layer.name: layer for layer in layers}
    if name not in found:
        there = nearest(name, found) if found else ": it has none yet, and `edgen annotate` makes one"
        raise UsageError(f"--layer {name}: {run.path} has no layer of that name{there}.")
    if found[name].whole:
        raise UsageError(
            f"--layer {name}: this layer labels whole conversations, and the labels of turns are asked for. Name a layer of turns."
        )


def label_turns(turns: Sequence[Turn], layers: Sequence[Sequence[UnitLabels]]) -> tuple[Turn, ...]:
    """The turns with the majority's labels in these layers in place of their own. What else could have been said there has no
    labels in a layer, and is not there."""
    labels: defaultdict[int | None, dict[str, None]] = defaultdict(dict)
    for unit in (unit for units in layers for unit in units):
        labels[unit.turn].update(dict.fromkeys(unit.labels))
    return tuple(
        msgspec.structs.replace(turn, labels=tuple(labels.get(place, ())), alternatives=())
        for place, turn in enumerate(turns)
    )


def name_column(layer: str, annotator: str | None = None) -> str:
    """What the majority's labels in a layer, or an annotator's, are called."""
    return f"labels.{layer}" if annotator is None else f"labels.{layer}.by.{annotator}"


def cell_of(units: Sequence[UnitLabels], turns: int, annotator: str | None = None) -> Cell:
    """What the units of a conversation of so many turns say: its labels, or those of each turn."""
    each = ((unit, unit.labels if annotator is None else unit.annotators.get(annotator)) for unit in units)
    said = {unit.turn: list(labels) for unit, labels in each if labels is not None}
    if None in said:
        return said[None]
    return [said.get(place) for place in range(turns)] if said else None


def text_digest(turns: Sequence[Turn], place: int | None) -> str:
    """The sha256 of a unit's text: a turn's, or a conversation's with who says what."""
    return sha256((transcript_of(turns) if place is None else turns[place].text).encode())


def read_layer(path: Path) -> Iterator[UnitLabels]:
    """Every line of a labels.jsonl. Raises DataError for one that is none."""
    return (unit for _, _, unit in _read(path))


class LayerJoin(contextlib.AbstractContextManager["LayerJoin"]):
    """The labels of a run beside its conversations, which are asked for by scenario. Use as a context manager. `names`: of these
    layers alone. `left_out` counts what is not there, by layer and why, and is complete after `finish`.

    Raises DataError for a file whose lines are none, or are not in order.
    """

    def __init__(self, run: RunFolder, names: Sequence[str] | None = None) -> None:
        self.left_out: Counter[str] = Counter()
        self._is_arm = _run_of(run) is not None  # its run's layers have units of other arms
        files = layer_files(run).items()
        self._cursors = {name: _Cursor(path) for name, path in files if names is None or name in names}

    def __exit__(self, *_: object) -> None:
        for cursor in self._cursors.values():
            cursor.close()

    def of(self, scenario: int, identifier: str, turns: Sequence[Turn]) -> LabelsByLayer:
        """The labels of a conversation, whose `turns` have no end marker. Scenarios only ascend."""
        found = {}
        for name, cursor in self._cursors.items():
            if units := cursor.take(scenario, identifier):
                good = tuple(unit for unit in units if _holds(unit, turns))
                if good:
                    found[name] = good
                if len(good) < len(units):
                    self.left_out[f"{name}: the text is another one now"] += len(units) - len(good)
        return found

    def finish(self) -> None:
        """Read to the end, so that all that is left out is counted."""
        for name, cursor in self._cursors.items():
            cursor.skip()
            if cursor.unasked and not self._is_arm:
                self.left_out[f"{name}: the conversation is not in the run"] += cursor.unasked


class _Cursor:
    """One labels.jsonl, read along with the scenarios of a run. `unasked` counts the units of conversations that nobody
    asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = _read(path)
        self._found: dict[str, list[UnitLabels]] = {}
        self._scenario = self._place = -1  # of what was found, and of the next unit
        self._next: tuple[int, int, UnitLabels] | None = None
        self.unasked = 0
        self._advance()

    def close(self) -> None:
        self._lines.close()

    def take(self, scenario: int, identifier: str) -> list[UnitLabels]:
        """The units of a conversation, once."""
        if scenario != self._scenario:
            self._read_to(scenario)
        return self._found.pop(identifier, [])

    def skip(self) -> None:
        """Read what is left."""
        while self._next is not None:
            self._read_to(self._place)
        self._read_to(self._place + 1)

    def _read_to(self, scenario: int) -> None:
        """Have the units of a scenario, and none of those before."""
        self.unasked += sum(map(len, self._found.values()))
        self._found, self._scenario, size = {}, scenario, 0
        while self._next is not None and self._place <= scenario:
            number, length, unit = self._next
            if self._place < scenario:
                self.unasked += 1
            else:
                size += length
                units = self._found.setdefault(unit.id, [])
                if size > _MAX_SCENARIO or (units and _order(units[-1]) >= _order(unit)):
                    too_much = "there are more than 256 MB about one scenario"
                    raise self._wrong(
                        number, too_much if size > _MAX_SCENARIO else "this unit was there before"
                    )
                units.append(unit)
            self._advance()

    def _advance(self) -> None:
        """Take the next unit of a conversation that a run can have; its scenario is none before that of the last."""
        while (line := next(self._lines, None)) is not None:
            if (place := read_record_id(line[2].id)) is not None:
                if place[1] < self._place:
                    raise self._wrong(line[0], "it is of an earlier scenario than the line before it")
                self._place = place[1]
                break
            self.unasked += 1
        self._next = line

    def _wrong(self, number: int, what: str) -> DataError:
        order = "units stand once each, by scenario, arm, replicate and turn"
        return DataError(str(self._path), f"line {number}: {what}; {order}. {_AGAIN}")


def _order(unit: UnitLabels) -> int:
    return -1 if unit.turn is None else unit.turn


def _holds(unit: UnitLabels, turns: Sequence[Turn]) -> bool:
    """Whether the text is still the one that was labelled."""
    if unit.turn is not None and not (0 <= unit.turn < len(turns) and turns[unit.turn].role == unit.role):
        return False
    return text_digest(turns, unit.turn) == unit.text_sha256


def _run_of(run: RunFolder) -> RunFolder | None:
    """The run that a folder is an arm of; None where it is none."""
    real = run.path.resolve()
    whole = RunFolder(real.parent.parent)
    return whole if real.parent == whole.arms_folder and whole.job.exists() else None


def _read(path: Path) -> Generator[tuple[int, int, UnitLabels], None, None]:
    """(number, bytes, labels) of every line."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open_regular(path))
        except OSError as problem:
            raise DataError(str(path), f"it cannot be read ({problem.strerror}).") from None
        number = 0
        while line := file.readline(_MAX_LINE + 1):
            number += 1
            try:
                if len(line) > _MAX_LINE:
                    raise ValueError("it is longer than 16 MB")
                unit = _unit(line)
            except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
                raise DataError(
                    str(path), f"line {number}: these are no labels ({problem}). {_AGAIN}"
                ) from None
            yield number, len(line), unit
