"""A layer of labels in a run's folder. Its labels.jsonl has each annotator's labels of each unit, and the
majority.

    layers/<layer>/layer.json                       the label set and the unit
    layers/<layer>/annotators/<annotator>.db .json  an annotator's answers; its backend, template and settings
    layers/<layer>/annotators/<person>.jsonl        a person's labels (see `edgen.annotation.people`)
    layers/<layer>/labels.jsonl                     a line for each unit, by scenario, arm, replicate and turn

Labels made during generation are in the run's own ledger, and belong to the layer. Labels of texts that have
changed since do not count.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from edgen.annotation.annotator import StoredLabels, is_name
from edgen.annotation.people import Told, read_person
from edgen.config import list_arm_jobs, load_job
from edgen.config.label_set import LabelSet, find_majority
from edgen.core.errors import DamagedError, EdgenError, RunError, UsageError
from edgen.core.files import read_regular
from edgen.core.kept_files import is_kept, require_kept
from edgen.core.pair import Candidate
from edgen.core.values import Status
from edgen.protocols.labelled_units import JobLayer, LabellingTask, UnitKind, digest_said, read_said_layers
from edgen.reading.answers.unit_labels import Labels
from edgen.store.layers import UnitLabels, digest_text, find_layer_file, find_layer_files
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import SAMPLE, RunFolder
from edgen.store.run_reader import RunReader

T = TypeVar("T")
_MOST_NOTED = 4_000_000  # bytes: a label set, and a template
_REMAKE = (
    "Move it away, and run the command that made it again with the same options; it writes the file again."
)
_record = msgspec.json.Decoder(StoredLabels).decode
_encode = msgspec.json.Encoder().encode


class LayerNotes(msgspec.Struct, frozen=True, kw_only=True):
    """The content of layer.json."""

    labels: LabelSet
    unit: UnitKind


class LayerFolder:
    """The folder of a layer in a run. Raises UsageError for an invalid name."""

    def __init__(self, run: RunFolder, name: str) -> None:
        if not is_name(name):
            raise UsageError(
                f"--layer {name}: a layer's name has letters, digits, '_', '-' and '.', begins with a "
                "letter or a digit, and has at most 60 characters."
            )
        self.run = run
        self.name = name
        self.path = run.layers / name
        self.annotators = self.path / "annotators"
        self.labels = find_layer_file(run, name)
        self.noted = self.path / "layer.json"

    def list_ledgers(self) -> dict[str, Path]:
        """Return the ledger of each annotator that has started, by name."""
        return {path.stem: path for path in self.run.annotator_ledgers() if path.parent == self.annotators}

    def list_people(self) -> dict[str, Path]:
        """Return the file of each person with labels, by name."""
        return {path.stem: path for path in sorted(self.annotators.glob("*.jsonl")) if is_name(path.stem)}

    def read_note(self) -> LayerNotes | None:
        """Return the layer's label set and unit; None before the first start. Raises RunError."""
        return read_noted(self.noted, LayerNotes)

    def require_same(
        self, asking: LabellingTask, advice: str = "Name another with --layer; this one stays unchanged."
    ) -> None:
        """Raise UsageError, which ends with `advice`, if the layer has another label set or unit."""
        before, now = self.read_note(), LayerNotes(labels=asking.labels, unit=asking.unit)
        if before not in (None, now):
            raise UsageError(f"{self.path}: this layer has other labels or units. {advice}")

    def note(self, asking: LabellingTask) -> None:
        """Store the label set and the unit."""
        now = LayerNotes(labels=asking.labels, unit=asking.unit)
        self.run.note(self.noted, msgspec.to_builtins(now))

    def read_facts(self, name: str) -> dict[str, Any] | None:
        """Return the notes on an annotator; None if it was never asked."""
        path = self.annotators / f"{name}.json"
        return read_noted(path, dict[str, Any]) if name in self.list_ledgers() else None

    def require_same_annotator(self, name: str, facts: Mapping[str, Any]) -> None:
        """Raise UsageError if the layer's annotator of that name has another backend, template or setting."""
        if (before := self.read_facts(name)) is None:
            return
        plain = msgspec.json.decode(_encode(facts))  # tuples become lists, as in the file
        told = plain.keys() - {SAMPLE, "judge"}  # "judge" follows from backend and template
        if changed := [key for key in plain if key in told and before.get(key) != plain[key]]:
            raise UsageError(
                f"the annotator '{name}' of the layer {self.name} had other settings (different: "
                f"{', '.join(changed)}), and its labels are kept. Give this one another name, as "
                "in --backend NAME=ROLE, or use another layer: --layer NAME."
            )


def read_noted(path: Path, kind: type[T], remedy: str = _REMAKE) -> T | None:
    """Return the content of a run's JSON file; None if it is missing. Raises RunError."""
    if not path.exists():
        return None
    require_kept(path, remedy)
    try:
        return msgspec.json.decode(read_regular(path, _MOST_NOTED), type=kind)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise RunError(f"{path}: it cannot be read ({problem}).") from None


def find_readers(run: RunFolder) -> tuple[tuple[Path, str, Callable[[Path], object]], ...]:
    """Return (folder, file pattern, reader) for each kind of file in layers."""
    return (
        (run.layers, "*/layer.json", lambda path: read_noted(path, LayerNotes)),
        (run.layers, "*/annotators/*.jsonl", read_person),
    )


def read_label_sets(run: RunFolder) -> dict[str, LabelSet]:
    """Return the label set of each layer of a run, by the layer's name. Missing and unreadable ones are left
    out."""
    found = {}
    for name, file in find_layer_files(run).items():
        try:
            noted = read_noted(file.with_name("layer.json"), LayerNotes)
        except DamagedError:
            raise
        except RunError:
            continue
        if noted is not None:
            found[name] = noted.labels
    return found


def write_labels(reader: RunReader, layer: LayerFolder, asking: LabellingTask) -> int:
    """Write the layer's labels.jsonl from the ledgers of its annotators and the files of people. Return the
    number of units with labels."""
    return layer.run.write_lines(layer.labels, map(_encode, list_units(reader, layer, asking)))


def list_units(reader: RunReader, layer: LayerFolder, asking: LabellingTask) -> Iterator[UnitLabels]:
    """Yield every unit with labels, in order. Memory: one scenario, and all labels by people."""
    people = {name: read_person(path) for name, path in layer.list_people().items()}
    with contextlib.ExitStack() as stack:
        views = {name: stack.enter_context(LedgerReader(path)) for name, path in layer.list_ledgers().items()}
        for index, names in reader.scenarios():
            said = {**_find_labels_in_run(reader, index, names, layer.name)}
            said |= {name: _find_labels(view, index) for name, view in views.items()}
            if any(said.values()) or people:
                for name in names:
                    yield from _join_units(reader.candidate(index, name), said, people, asking)


def _join_units(
    candidate: Candidate, said: Mapping[str, Told], people: Mapping[str, Told], asking: LabellingTask
) -> Iterator[UnitLabels]:
    """Yield the units of a conversation. Models' labels are keyed by its name in the scenario, people's by
    its id."""
    for place in asking.list_units(candidate.turns):
        at = (place, digest_said(candidate.turns, place))
        annotators = {
            name: found[candidate.name, *at] for name, found in said.items() if (candidate.name, *at) in found
        }
        annotators |= {
            name: found[candidate.id, *at] for name, found in people.items() if (candidate.id, *at) in found
        }
        if annotators:
            labels, tie = find_majority([*annotators.values()], asking.labels)
            yield UnitLabels(
                id=candidate.id,
                turn=place,
                role=None if place is None else candidate.turns[place].role,
                labels=labels,
                annotators=annotators,
                tie=tie,
                agreement=_compute_agreement([*annotators.values()]),
                text_sha256=digest_text(candidate.turns, place),
            )


def write_job_layers(run: RunFolder) -> None:
    """Write every layer that the run's job labels, with the labels that annotators added later. Raises
    RunError."""
    for own, layers in _find_job_layers(run):
        with RunReader(own.path) as reader:
            for name, asking in layers.items():
                layer = LayerFolder(own, name)
                layer.note(asking)
                write_labels(reader, layer, asking)


def require_job_layers(run: RunFolder, layers: Iterable[JobLayer]) -> None:
    """Raise UsageError if a layer of the job would replace a layer of the run with other annotators or
    labels. Labels that the job itself made earlier are written again."""
    for one in layers:
        layer = LayerFolder(run, one.name)
        if layer.list_ledgers():
            layer.require_same(one.asking)
        elif layer.labels.exists() and not layer.noted.exists():
            raise UsageError(
                f"{layer.labels}: these labels are not the job's, and its layer {one.name} would "
                f"replace them. Rename the job's layer, as in `labels: {{my_{one.name}: {{set: "
                f"{one.asking.labels.name}}}}}`."
            )


def has_job_layers(run: RunFolder) -> bool:
    """Return whether every layer that the run's job labels is written and unchanged."""
    return all(
        is_kept(file)
        for own, layers in _find_job_layers(run)
        for layer in (LayerFolder(own, name) for name in layers)
        for file in (layer.labels, layer.noted)
    )


def _find_job_layers(run: RunFolder) -> Iterator[tuple[RunFolder, dict[str, LabellingTask]]]:
    """Yield each folder with the layers that the run's job labels there.

    The folder is the run's, or each arm's if the arms weigh the space differently and are not read together.
    Yields nothing if the job cannot be read.
    """
    try:
        job = load_job(run.job)
        arms = list_arm_jobs(job, job.name)
    except EdgenError:
        return
    apart = any("space" in changes for changes in job.arms.values())
    for group in [[arm] for arm in arms] if apart else [[*arms]]:
        asked = {name: one for arm in group for name, one in arms[arm].labels.items()}
        layers = {
            name: LabellingTask(labels=one.set, unit=one.unit or "turn", together=one.together)
            for name, one in asked.items()
            if isinstance(one.set, LabelSet)
        }
        if layers:
            yield (run.arm(group[0]) if apart else run), layers


def _find_labels_in_run(reader: RunReader, index: int, names: Sequence[str], layer: str) -> dict[str, Told]:
    """Return the labels made during generation for a scenario, by annotator, each in the form of
    `_find_labels`."""
    found: dict[str, Told] = {}
    for name in names:
        if (data := reader.read_additional_values(index, name).get(layer)) is not None:
            for annotator, units in read_said_layers({layer: data})[layer].items():
                own = found.setdefault(annotator, {})
                own.update({(name, unit.turn, unit.said): unit.labels for unit in units})
    return found


def _find_labels(view: LedgerReader, index: int) -> Told:
    """Return an annotator's labels in a scenario, by conversation, turn and digest of the text."""
    found = {}
    for task, (status, _, data) in view.read_outcomes(index).items():
        if status is Status.ACCEPTED and data is not None:
            name = str(task).partition("@")[0]
            found.update({(name, unit.turn, unit.said): unit.labels for unit in _record(data).units})
    return found


def _compute_agreement(given: Sequence[Labels]) -> float | None:
    shares = [len({*a} & {*b}) / len({*a} | {*b}) for a, b in itertools.combinations(given, 2)]
    return round(sum(shares) / len(shares), 6) if shares else None
