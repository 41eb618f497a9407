"""Reader of a run's layers: annotators' labels of its turns or conversations, stored apart from the
conversations.

    layers/<layer>/labels.jsonl    one line per labelled unit, by scenario, arm, replicate and turn

An arm has its run's layers as well as its own. Labels of a text that has changed since are left out and
counted. Memory: the labels of one scenario.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from edgen.core.digest import compute_sha256
from edgen.core.errors import DataError, RunError, UsageError
from edgen.core.files import open_regular
from edgen.core.kept_files import require_kept
from edgen.core.values import Role, Turn
from edgen.core.yaml_values import suggest_name
from edgen.families.base import Recorded, read_record_id
from edgen.protocols.base import transcript_of
from edgen.reading.answers.unit_labels import Labels
from edgen.store.ordered_lines import iterate_lines_between
from edgen.store.run_folder import RunFolder

_FILE = "labels.jsonl"
_NAME = re.compile(r"[^\W_][\w .:@+-]{0,99}")  # layers and annotators, for columns and cards
_MAX_LINE = 1 << 24  # bytes
_MAX_SCENARIO = 1 << 28  # bytes of the lines about one scenario
_MAX_LAYERS = _MAX_ANNOTATORS = 200
_AGAIN = "`edgen annotate` with the same labels writes the file again from its annotators' answers."


class UnitLabels(msgspec.Struct, frozen=True, kw_only=True):
    """A line of labels.jsonl."""

    id: str  # the conversation's id
    turn: int | None  # from 0; None if the whole conversation is labelled
    role: Role | None  # the speaker; None if the whole conversation is labelled
    labels: Labels  # the majority's labels; empty if `tie`
    annotators: dict[str, Labels]  # labels by annotator
    tie: bool  # no labels have a majority
    agreement: float | None
    """Mean overlap (Jaccard) of the label sets over all pairs of annotators; None for one annotator."""
    text_sha256: str  # digest of the unit's text


class LayerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a layer: whether its units are whole conversations, the number of units, and its
    annotators."""

    name: str
    whole: bool
    units: int
    annotators: tuple[str, ...]


Cell = list[str] | list[list[str] | None] | None
"""Labels of a conversation, or of each of its turns; None if unlabelled."""

LabelsByLayer = Mapping[str, tuple[UnitLabels, ...]]
"""A conversation's labelled units, in order, by layer, without layers that have none."""

_unit = msgspec.json.Decoder(UnitLabels).decode


def find_layer_file(run: RunFolder, name: str) -> Path:
    """Return the path of a run's labels in a layer."""
    return run.layers / name / _FILE


def find_layer_files(run: RunFolder) -> dict[str, Path]:
    """Return the label file of every layer of a run, by name; folders with invalid names are ignored. Raises
    RunError for too many layers."""
    whole = run.whole
    found = {} if whole is None else find_layer_files(whole)
    own = ((path.parent.name, path) for path in run.layers.glob(f"*/{_FILE}"))
    found |= {name: path for name, path in own if _NAME.fullmatch(name)}
    if len(found) > _MAX_LAYERS:
        raise RunError(f"{run.layers}: there are {len(found):,} layers; at most {_MAX_LAYERS} are allowed.")
    return dict(sorted(found.items()))


def list_layer_names(run: RunFolder) -> list[str]:
    """Return the names of a run's layers."""
    return [*find_layer_files(run)]


def describe_layers(run: RunFolder) -> tuple[LayerFacts, ...]:
    """Return facts about the layers of a run, by name. Raises DataError for a layer that cannot be read or
    that mixes turns and conversations."""
    return tuple(_describe(name, path) for name, path in find_layer_files(run).items())


def _describe(name: str, path: Path) -> LayerFacts:
    annotators: set[str] = set()
    kinds: Counter[bool] = Counter()
    for unit in read_layer(path):
        kinds[unit.turn is None] += 1
        if new := unit.annotators.keys() - annotators:
            annotators |= new
            if len(annotators) > _MAX_ANNOTATORS or not all(map(_NAME.fullmatch, new)):
                names = (
                    "begin with a letter or a digit, have letters, digits, '_', '-', '.', ':', '@', '+' and "
                    "blanks"
                )
                raise DataError(
                    str(path),
                    f"it has more than {_MAX_ANNOTATORS} annotators, or names that do not {names}. {_AGAIN}",
                )
        if len(kinds) > 1:
            raise DataError(
                str(path), f"it mixes lines for turns and lines for whole conversations. {_AGAIN}"
            )
    return LayerFacts(
        name=name, whole=kinds[True] > 0, units=kinds.total(), annotators=tuple(sorted(annotators))
    )


def require_turns_labelled(run: RunFolder, name: str, layers: Sequence[LayerFacts]) -> None:
    """Raise UsageError unless a layer of turns has that name."""
    found = {layer.name: layer for layer in layers}
    if name not in found:
        there = suggest_name(name, found) if found else ": it has none yet, and `edgen annotate` makes one"
        raise UsageError(f"--layer {name}: {run.path} has no layer of that name{there}.")
    if found[name].whole:
        raise UsageError(
            f"--layer {name}: this layer labels whole conversations; name a layer that labels turns."
        )


def label_record(recorded: Recorded, layers: Sequence[Sequence[UnitLabels]]) -> Recorded:
    """Return a record whose turns have the majority's labels of these layers instead of their own.
    Alternatives are dropped, since layers do not label them."""
    labels: defaultdict[int | None, dict[str, None]] = defaultdict(dict)
    for unit in (unit for units in layers for unit in units):
        labels[unit.turn].update(dict.fromkeys(unit.labels))
    replace = msgspec.structs.replace
    turns = tuple(
        replace(turn, labels=tuple(labels.get(place, ())), alternatives=())
        for place, turn in enumerate(recorded.turns)
    )
    return replace(recorded, conversation=replace(recorded.conversation, turns=turns))


def name_column(layer: str, annotator: str | None = None) -> str:
    """Return the column name of a layer's majority or of an annotator."""
    return f"labels.{layer}" if annotator is None else f"labels.{layer}.by.{annotator}"


def make_cell(units: Sequence[UnitLabels], turns: int, annotator: str | None = None) -> Cell:
    """Return the labels of a conversation, or of each of its turns, from its units."""
    each = ((unit, unit.labels if annotator is None else unit.annotators.get(annotator)) for unit in units)
    said = {unit.turn: list(labels) for unit, labels in each if labels is not None}
    if None in said:
        return said[None]
    return [said.get(place) for place in range(turns)] if said else None


def digest_text(turns: Sequence[Turn], place: int | None) -> str:
    """Return the sha256 of a unit's text: a turn's, or a conversation's with roles."""
    return compute_sha256((transcript_of(turns) if place is None else turns[place].text).encode())


def read_layer(path: Path) -> Iterator[UnitLabels]:
    """Yield every line of a labels.jsonl. Raises DataError for an invalid line."""
    return (unit for _, _, unit in _read(path))


class LayerJoin(contextlib.AbstractContextManager["LayerJoin"]):
    """The labels of a run, joined with its conversations by scenario. Use as a context manager. `names`: only
    these layers. `within`: only the labels of these scenarios; the digests of the files are then not checked,
    so the files must be unchanged. `left_out` counts skipped labels by layer and reason; it is complete after
    `finish`.

    Raises DataError for a file with invalid or unordered lines.
    """

    def __init__(
        self, run: RunFolder, names: Sequence[str] | None = None, within: range | None = None
    ) -> None:
        self.left_out: Counter[str] = Counter()
        self._is_arm = run.whole is not None  # layers of the whole run also have units of other arms
        files = find_layer_files(run).items()
        self._cursors = {
            name: _Cursor(path, within) for name, path in files if names is None or name in names
        }

    def __exit__(self, *_: object) -> None:
        for cursor in self._cursors.values():
            cursor.close()

    def of(self, scenario: int, identifier: str, turns: Sequence[Turn]) -> LabelsByLayer:
        """Return the labels of a conversation, whose `turns` have no end marker. Scenarios must ascend."""
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
        """Read to the end, so that all skipped labels are counted."""
        for name, cursor in self._cursors.items():
            cursor.skip()
            if cursor.unasked and not self._is_arm:
                self.left_out[f"{name}: the conversation is not in the run"] += cursor.unasked


class _Cursor:
    """A reader of one labels.jsonl, in step with a run's scenarios. `unasked` counts the units of
    conversations that were not requested."""

    def __init__(self, path: Path, within: range | None) -> None:
        self._path = path
        self._lines = _read(path, within)
        self._found: dict[str, list[UnitLabels]] = {}
        self._scenario = self._place = -1  # scenario of the last result, and of the next unit
        self._next: tuple[int, int, UnitLabels] | None = None
        self.unasked = 0
        self._advance()

    def close(self) -> None:
        self._lines.close()

    def take(self, scenario: int, identifier: str) -> list[UnitLabels]:
        """Return the units of a conversation; empty at the second call."""
        if scenario != self._scenario:
            self._read_to(scenario)
        return self._found.pop(identifier, [])

    def skip(self) -> None:
        """Read the rest of the file."""
        while self._next is not None:
            self._read_to(self._place)
        self._read_to(self._place + 1)

    def _read_to(self, scenario: int) -> None:
        """Read on to a scenario's units, and drop earlier ones."""
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
                    raise self._make_order_error(
                        number, too_much if size > _MAX_SCENARIO else "this unit occurs twice"
                    )
                units.append(unit)
            self._advance()

    def _advance(self) -> None:
        """Read the next unit of a valid conversation. Raises DataError if the scenarios descend."""
        while (line := next(self._lines, None)) is not None:
            if (place := read_record_id(line[2].id)) is not None:
                if place[1] < self._place:
                    raise self._make_order_error(
                        line[0], "its scenario is earlier than that of the line before it"
                    )
                self._place = place[1]
                break
            self.unasked += 1
        self._next = line

    def _make_order_error(self, number: int, what: str) -> DataError:
        order = "each unit occurs once, in the order of scenario, arm, replicate and turn"
        return DataError(str(self._path), f"line {number}: {what}; {order}. {_AGAIN}")


def _order(unit: UnitLabels) -> int:
    return -1 if unit.turn is None else unit.turn


def _holds(unit: UnitLabels, turns: Sequence[Turn]) -> bool:
    """Return whether the labelled text is unchanged."""
    if unit.turn is not None and not (0 <= unit.turn < len(turns) and turns[unit.turn].role == unit.role):
        return False
    return digest_text(turns, unit.turn) == unit.text_sha256


def _read(path: Path, within: range | None = None) -> Generator[tuple[int, int, UnitLabels], None, None]:
    """Yield (number, bytes, labels) of every line, after a check of the whole file's digest. With `within`,
    yield only the lines of these scenarios, unchecked, numbered from the first of them."""
    if within is None:
        require_kept(path, _AGAIN)
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open_regular(path))
        except OSError as problem:
            raise DataError(str(path), f"it cannot be read ({problem.strerror}).") from None
        lines: Iterator[bytes] = iter(lambda: file.readline(_MAX_LINE + 1), b"")
        if within is not None:
            lines = iterate_lines_between(
                file, path.stat().st_size, within, lambda line: _read_scenario(path, line)
            )
        for number, line in enumerate(lines, 1):
            yield number, len(line), _decode(path, number, line)


def _decode(path: Path, number: int, line: bytes) -> UnitLabels:
    """Return the labels of a line. Raises DataError."""
    try:
        if len(line) > _MAX_LINE:
            raise ValueError("it is longer than 16 MB")
        return _unit(line)
    except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise DataError(
            str(path), f"line {number}: this is not a line of labels ({problem}). {_AGAIN}"
        ) from None


def _read_scenario(path: Path, line: bytes) -> int | None:
    place = read_record_id(_decode(path, 0, line).id)
    return None if place is None else place[1]
