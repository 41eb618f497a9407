"""Layers of labels on a run: requests for missing labels, and the majority of the annotators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgen.annotation.label_files import PersonLabels, read_label_file
from edgen.annotation.layer import LayerFolder, LayerNotes, write_labels
from edgen.annotation.pages import is_people_file, read_page_labels
from edgen.annotation.people import Person, require_names, take_labels
from edgen.annotation.sheet import write_label_sheet
from edgen.asking.annotators import AnnotatorStart, find_annotator
from edgen.asking.ledger_paths import open_for_reading, open_for_work
from edgen.asking.options import AnnotateOptions
from edgen.asking.units import choose_conversations
from edgen.config.label_set import LabelSet, find_label_set
from edgen.core.errors import EdgenError, ShortError, UsageError
from edgen.core.text import describe_counts, quantity
from edgen.evaluation.layer_view import Gold, compute_layer_figures
from edgen.protocols.labelled_units import LabellingTask, UnitKind
from edgen.runtime.control import Control, explain_os_errors, run_in_own_loop
from edgen.runtime.status import AnnotatorStatus
from edgen.store.layers import read_layer
from edgen.store.run_folder import RunFolder

if TYPE_CHECKING:
    from edgen.evaluation.gold_agreement import GoldFigures
    from edgen.evaluation.layer_figures import LayerFigures
    from edgen.stats.annotators import AnnotatorAgreement


@dataclass(frozen=True, slots=True)
class AnnotatedRun:
    """The status of the annotators, and the people whose labels were read. Figures need the extra
    `analysis`."""

    run: Path  # folder of the run
    layer: str  # name of the layer
    labels: LabelSet  # the label set
    unit: UnitKind  # labelled unit
    file: Path  # labels.jsonl of the layer
    annotators: tuple[AnnotatorStatus, ...]  # status of each
    units: int | None = None
    """Units with labels in `file`; None if `ended` stopped the annotators, so that nothing was written."""
    figures: LayerFigures | None = None  # of the measure `labels`; None if `ended` stopped the annotators
    ended: EdgenError | None = None  # the error that stopped the annotators, if any
    people: tuple[Person, ...] = ()  # people whose labels were read
    gold: GoldFigures | None = None  # the layer against gold, if given

    @property
    def agreement(self) -> AnnotatorAgreement | None:
        """The agreement of the layer's annotators."""
        return None if self.figures is None else self.figures.agreement


def annotate_run(run: Path, options: AnnotateOptions, control: Control) -> AnnotatedRun:
    """Have a run's turns or conversations labelled, and write the labels to the layer's labels.jsonl. Without
    an annotator, only read the layer.

    Raises UsageError, LabelSetError, DataError, RunError and LockedError.
    """
    rundir = RunFolder(run).require()
    labels, options = resolve(rundir, options)
    if not (options.asks or options.people):
        with explain_os_errors(run), open_for_reading(run) as reader:
            return Annotating(reader, options, labels, control).summarize()
    with open_for_work(run, control, "labels") as reader:
        return Annotating(reader, options, labels, control).make()


def resolve(run: RunFolder, options: AnnotateOptions) -> tuple[LabelSet, AnnotateOptions]:
    """Return the label set, and the options of the existing layer. Raises the errors of `find_labels`."""
    if options.labels is not None or options.layer is None:
        return find_labels(options), options
    noted: LayerNotes | None = LayerFolder(run, options.layer).read_note()
    if noted is None:
        raise UsageError(
            f"{run.path}: there is no layer {options.layer}. To make it, name a label set, as in --labels "
            "teacher_moves, or your own file."
        )
    return noted.labels, msgspec.structs.replace(options, unit=noted.unit)


def find_labels(options: AnnotateOptions) -> LabelSet:
    """Return the label set. Raises UsageError for options that contradict each other, LabelSetError."""
    if options.sample is not None and options.sample < 1:
        raise UsageError("--sample: give the number of conversations, 1 or more.")
    if options.together and options.unit == "conversation":
        raise UsageError(
            "--together goes with --unit turn: it labels all turns of a conversation in one request."
        )
    if options.labels is None:
        raise UsageError(
            "--labels is missing: name a label set, as in --labels teacher_moves, or your own file, as in "
            "--labels "
            "./my_labels.yaml. --layer NAME shows a layer that exists; --write writes texts in place of "
            "labels."
        )
    return find_label_set(find_annotator(options.labels).labels or options.labels)


class Annotating(AnnotatorStart):
    """One call of `annotate_run`, while the run is locked."""

    def make(self) -> AnnotatedRun:
        """Take people's labels, ask the models, and write the layer. A problem of a file is reported before
        any request or change."""
        given = self._read_people_labels()
        gold = self._read_gold()
        annotators = self.check()
        require_names(self.layer.name, {*self.layer.list_ledgers(), *annotators}, given)
        if given:
            self.layer.note(self.asking)
        people = take_labels(self.reader.rundir, self.layer.annotators, given)
        _, ledgers, ended = run_in_own_loop(self.ask()) if annotators else ((), (), None)
        if ended is not None:
            return self._make_result(ledgers, people, ended)
        write_labels(self.reader, self.layer, self.asking)
        return replace(self.summarize(gold), annotators=_read_statuses(ledgers), people=people)

    def summarize(self, gold: Gold | None = None) -> AnnotatedRun:
        """Return the present content of the layer."""
        if not self.layer.labels.exists():
            raise UsageError(f"{self.layer.path}: this layer has no labels yet.")
        gold = gold or self._read_gold()
        figures, against = compute_layer_figures(self.reader, self.layer, self.asking, gold, self.control)
        units = sum(1 for _ in read_layer(self.layer.labels))
        return replace(self._make_result((), ()), units=units, figures=figures, gold=against)

    def _make_result(
        self, ledgers: Sequence[Path], people: tuple[Person, ...], ended: EdgenError | None = None
    ) -> AnnotatedRun:
        about = (self.reader.rundir.path, self.layer.name, self.asking.labels, self.asking.unit)
        return AnnotatedRun(*about, self.layer.labels, _read_statuses(ledgers), people=people, ended=ended)

    def _read_people_labels(self) -> list[PersonLabels]:
        """Return people's labels, file by file. Raises DataError."""
        given: list[PersonLabels] = []
        for path in self.options.people:
            read = (read_page_labels if is_people_file(path) else read_label_file)(
                path, self.reader, self.asking
            )
            given += read.labels
            if read.without:
                self.control.note(f"{path}: {quantity(read.without, 'unit')} without labels were skipped.")
        return given

    def _read_gold(self) -> Gold | None:
        named = self.options.gold
        return None if named is None else Gold(named, self.reader, self.layer, self.asking)


def _read_statuses(ledgers: Sequence[Path]) -> tuple[AnnotatorStatus, ...]:
    return tuple(AnnotatorStatus.read_from(ledger) for ledger in ledgers if ledger.exists())


def require_labels(made: AnnotatedRun) -> None:
    """Raise the error that ended the work, or ShortError if labels are missing."""
    if made.ended is not None:
        raise made.ended
    for one in made.annotators:
        one.require_answers(f"requests to {one.annotator}")
    if not made.units and made.annotators:
        rejected = describe_counts(made.annotators[0].rejected)
        raise ShortError(f"Nothing could be labelled: {rejected}. Another template or backend may help.")


class LabelSheet(msgspec.Struct, frozen=True, kw_only=True):
    """A sheet that was written."""

    file: str  # path of the sheet
    unit: str  # labelled unit
    units: int  # number of units
    conversations: int  # number of conversations
    labels: tuple[str, ...]  # labels that a unit can have
    several: bool  # True if a unit can have several labels


def make_sheet(run: Path, options: AnnotateOptions, path: Path) -> LabelSheet:
    """Write an empty sheet of a run's units, or of a sample, to a new file: JSON Lines by its suffix, else
    CSV.

    Models get the same sample. Raises UsageError, LabelSetError and RunError.
    """
    if options.by or options.people or options.gold is not None:
        raise UsageError("--sheet labels nothing; leave out --backend, --people and --gold.")
    rundir = RunFolder(run).require()
    labels, options = resolve(rundir, options)
    asking = LabellingTask(labels=labels, unit=options.unit)
    with explain_os_errors(run), open_for_reading(run) as reader:
        sample = options.sample
        chosen = None if sample is None else choose_conversations(reader, reader.job.seed, sample)
        conversations = (
            reader.candidate(index, name)
            for index, names in reader.scenarios()
            for name in names
            if chosen is None or (index, name) in chosen
        )
        units, called = write_label_sheet(conversations, asking, path)
    return LabelSheet(
        file=str(path), unit=options.unit, units=units, conversations=called, labels=labels.names,
        several=labels.several,
    )  # fmt: skip
