"""A layer of labels in a run's folder, and its labels.jsonl: what every annotator says of each unit, and what most of them say.

    layers/<layer>/layer.json                       the label set, and what is labelled
    layers/<layer>/annotators/<annotator>.db .json  its answers; who it is and how it is asked
    layers/<layer>/labels.jsonl                     a line a unit, by scenario, arm, replicate and turn

Labels of what is not said any more as it was, since the run was made anew, count for nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from edgen.annotation.annotator import Asking, Labelled, UnitKind, is_name
from edgen.annotation.unit_tasks import SAMPLE, said_digest
from edgen.config.label_set import LabelSet
from edgen.core.errors import RunError, UsageError
from edgen.core.files import read_regular, update_text, write_lines
from edgen.core.pair import Candidate
from edgen.core.values import Status
from edgen.reading.answers.unit_labels import Labels
from edgen.store.layers import UnitLabels, layer_file, layer_files, text_digest
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

T = TypeVar("T")
_MOST_NOTED = 4_000_000  # bytes: a label set, and a template
_record = msgspec.json.Decoder(Labelled).decode
_encode = msgspec.json.Encoder().encode


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What layer.json notes."""

    labels: LabelSet
    unit: UnitKind


class LayerFolder:
    """Where a layer is in a run's folder. Raises UsageError for a name that none can have."""

    def __init__(self, run: RunFolder, name: str) -> None:
        if not is_name(name):
            raise UsageError(
                f"--layer {name}: a layer's name has letters, digits, '_', '-' and '.', begins with a letter or a digit, and has "
                "at most 60 characters."
            )
        self._run = run
        self.name = name
        self.path = run.layers / name
        self.annotators = self.path / "annotators"
        self.labels = layer_file(run, name)
        self.noted = self.path / "layer.json"

    def ledgers(self) -> dict[str, Path]:
        """The ledger of each annotator that was begun, by name."""
        return {path.stem: path for path in self._run.annotator_ledgers() if path.parent == self.annotators}

    def asked(self) -> Noted | None:
        """What is labelled, and with which labels; None where nothing was begun. Raises RunError."""
        return read_noted(self.noted, Noted)

    def require_same(self, asking: Asking) -> None:
        """Note what is labelled. Raises UsageError where the layer is of something else."""
        before, now = self.asked(), Noted(labels=asking.labels, unit=asking.unit)
        if before not in (None, now):
            raise UsageError(
                f"{self.path}: this layer is of other labels, or of other units. Name another with --layer; this one stays "
                "as it is."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        plain = msgspec.to_builtins(now)
        update_text(self.noted, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")

    def facts_of(self, name: str) -> dict[str, Any] | None:
        """What is noted of an annotator; None where it was never asked."""
        path = self.annotators / f"{name}.json"
        return read_noted(path, dict[str, Any]) if name in self.ledgers() else None

    def require_same_annotator(self, name: str, facts: Mapping[str, Any]) -> None:
        """Raise UsageError where the layer's annotator of that name is another one."""
        if (before := self.facts_of(name)) is None:
            return
        plain = msgspec.json.decode(_encode(facts))  # lists for tuples, as in the file
        if changed := [key for key in plain if before.get(key) != plain[key] and key != SAMPLE]:
            raise UsageError(
                f"the annotator '{name}' of the layer {self.name} was another one ({', '.join(changed)}: not the same), and what "
                "it said is kept. Give this one a name of its own, as in --by NAME=ROLE, or take another layer: --layer NAME."
            )


def read_noted(path: Path, kind: type[T]) -> T | None:
    """What a file of a run notes; None where there is no file. Raises RunError."""
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(read_regular(path, _MOST_NOTED), type=kind)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise RunError(f"{path}: it cannot be read ({problem}).") from None


def noted_sets(run: RunFolder) -> dict[str, LabelSet]:
    """The label set of each layer of a run, by the layer's name; of one that nobody noted, or that cannot be read, nothing."""
    found = {}
    for name, file in layer_files(run).items():
        with contextlib.suppress(RunError):
            if (noted := read_noted(file.with_name("layer.json"), Noted)) is not None:
                found[name] = noted.labels
    return found


def write_labels(reader: RunReader, layer: LayerFolder, asking: Asking) -> int:
    """Write the layer's labels.jsonl from all its annotators' ledgers; returns how many units have labels."""
    return write_lines(layer.labels, map(_encode, units_of(reader, layer, asking)))


def units_of(reader: RunReader, layer: LayerFolder, asking: Asking) -> Iterator[UnitLabels]:
    """Every unit with labels, in order. Memory: that of one scenario."""
    with contextlib.ExitStack() as stack:
        views = {name: stack.enter_context(LedgerReader(path)) for name, path in layer.ledgers().items()}
        for index, names in reader.scenarios():
            said = {name: _labels_in(view, index) for name, view in views.items()}
            if any(said.values()):
                for name in names:
                    yield from _units(reader.candidate(index, name), said, asking)


def _units(
    candidate: Candidate, said: Mapping[str, Mapping[tuple[str, int | None, str], Labels]], asking: Asking
) -> Iterator[UnitLabels]:
    for place in asking.units(candidate.turns):
        key = (candidate.name, place, said_digest(candidate.turns, place))
        annotators = {name: found[key] for name, found in said.items() if key in found}
        if annotators:
            labels, tie = majority([*annotators.values()], asking.labels)
            yield UnitLabels(
                id=candidate.id,
                turn=place,
                role=None if place is None else candidate.turns[place].role,
                labels=labels,
                annotators=annotators,
                tie=tie,
                agreement=_agreement([*annotators.values()]),
                text_sha256=text_digest(candidate.turns, place),
            )


def _labels_in(view: LedgerReader, index: int) -> dict[tuple[str, int | None, str], Labels]:
    """An annotator's labels in a scenario, by conversation, turn and digest."""
    found = {}
    for task, (status, _, data) in view.outcomes(index).items():
        if status is Status.ACCEPTED and data is not None:
            name = str(task).partition("@")[0]
            found.update({(name, unit.turn, unit.said): unit.labels for unit in _record(data).units})
    return found


def majority(given: Sequence[Labels], labels: LabelSet) -> tuple[Labels, bool]:
    """What most annotators say, in the order of the set, and whether it is a tie: then nothing. Where a unit carries one label,
    the one that more give than any other; where it can carry several, those that more than half give, and it is a tie
    where exactly half give one, or none has so many."""
    counts = Counter(label for one in given for label in one)
    if labels.several:
        found = tuple(name for name in labels.names if 2 * counts[name] > len(given))
        tie = not found or any(2 * count == len(given) for count in counts.values())
    else:
        most = max(counts.values(), default=0)
        found = tuple(name for name in labels.names if counts[name] == most)
        tie = len(found) != 1
    return ((), True) if tie else (found, False)


def _agreement(given: Sequence[Labels]) -> float | None:
    shares = [len({*a} & {*b}) / len({*a} | {*b}) for a, b in itertools.combinations(given, 2)]
    return round(sum(shares) / len(shares), 6) if shares else None
