"""Layers of labels on a run: annotators asked what they were not asked before, and what most of them say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.annotation.annotator import ROLE, AnnotatorTasks, annotator_of, is_name
from edgen.annotation.given import Given, read_given
from edgen.annotation.layer import LayerFolder, Noted, write_labels
from edgen.annotation.people import Person, require_names, take_labels
from edgen.annotation.unit_tasks import SAMPLE
from edgen.api.judging import (
    JudgeAtWork,
    find_backend,
    find_function,
    job_with,
    judge_ledger,
    load_judged_job,
    open_for_reading,
    open_for_work,
    run_judges,
)
from edgen.api.layer_view import Gold, look_at
from edgen.api.status import AnnotatorStatus, annotator_status
from edgen.api.supervision.backends import Via, open_backends, open_scheduler
from edgen.api.supervision.control import Control, explain_os_errors
from edgen.api.supervision.snapshot import Title
from edgen.api.supervision.trust import Trust
from edgen.config import BackendConfig
from edgen.config.label_set import LabelSet, find_label_set
from edgen.core.errors import EdgenError, RunError, ShortError, UsageError
from edgen.core.figures import describe_counts
from edgen.core.text import quantity
from edgen.planning.allowed_files import unlimited
from edgen.planning.load import load_template
from edgen.preferences.judge import Judge
from edgen.prompting import Prompt
from edgen.protocols.labelled_units import Asking, UnitKind
from edgen.protocols.labelling import labelling_template
from edgen.providers import Backend
from edgen.store.layers import read_layer
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

if TYPE_CHECKING:
    from edgen.evaluation.gold import GoldFigures
    from edgen.evaluation.layer_figures import LayerFigures
    from edgen.stats.annotators import AnnotatorAgreement

_SETTABLE = ("backends", "limits", "batch", "asks")
_MOST = 50  # annotators of one command
Named = Mapping[
    str, tuple[BackendConfig, Any]
]  # annotators: the backend of each, and the function where it is one


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateOptions:
    """`labels`: the name or the file of a label set, None for those of a layer that is there; `layer`: what the layer is called,
    None as the set; `by`: `[NAME=][JOB:]ROLE` of the backends that label; `annotators`: how many each of them is; `sample`:
    conversations of each arm, None for all; `prompt`: the template; `people`: files of labels that people give; `gold`: a
    layer, or a file of labels that are right; `overrides` are as `--set` takes them."""

    labels: str | None = None
    layer: str | None = None
    by: tuple[str, ...] = ()
    annotators: int = 1
    unit: UnitKind = "turn"
    together: bool = False
    sample: int | None = None
    prompt: str | None = None
    people: tuple[Path, ...] = ()
    gold: str | None = None
    overrides: tuple[str, ...] = ()
    via: Via = "online"

    @property
    def asks(self) -> bool:
        """Whether models are asked: with people's labels, only those that are named."""
        return bool(self.by) or self.annotators > 1 or (self.labels is not None and not self.people)


@dataclass(frozen=True, slots=True)
class AnnotatedRun:
    """How the annotators that were asked stand, and whose labels were taken from `people`. `units` have labels in `file`, of which the `figures` tell as the measure
    `labels` does: both None where it was not written, since `ended` stopped them. `gold`: the layer against gold.
    Figures need the extra `analysis`."""

    run: Path
    layer: str
    labels: LabelSet
    unit: UnitKind
    file: Path
    annotators: tuple[AnnotatorStatus, ...]
    units: int | None = None
    figures: LayerFigures | None = None
    ended: EdgenError | None = None
    people: tuple[Person, ...] = ()
    gold: GoldFigures | None = None

    @property
    def agreement(self) -> AnnotatorAgreement | None:
        """How far the annotators of the layer agree."""
        return None if self.figures is None else self.figures.agreement


def annotate_run(run: Path, options: AnnotateOptions, control: Control) -> AnnotatedRun:
    """Have a run's turns or conversations labelled, and write what was said to the layer's labels.jsonl. Where nobody is to label,
    the layer is only looked at.

    Raises UsageError, LabelSetError, DataError, RunError and LockedError.
    """
    rundir = RunFolder(run)
    rundir.require()
    labels, options = resolve(rundir, options)
    if not (options.asks or options.people):
        with explain_os_errors(run), open_for_reading(run) as reader:
            return Annotating(reader, options, labels, control).look()
    with open_for_work(run, control, "labels") as reader:
        return Annotating(reader, options, labels, control).make()


def resolve(run: RunFolder, options: AnnotateOptions) -> tuple[LabelSet, AnnotateOptions]:
    """The label set, and the options as a layer that is there has them. Raises what `find_labels` does."""
    if options.labels is not None or options.layer is None:
        return find_labels(options), options
    noted: Noted | None = LayerFolder(run, options.layer).asked()
    if noted is None:
        raise UsageError(
            f"{run.path}: there is no layer {options.layer} to look at. To make it, say with which labels: --labels "
            "teacher_moves, or a file of your own."
        )
    return noted.labels, replace(options, unit=noted.unit)


def find_labels(options: AnnotateOptions) -> LabelSet:
    """The label set. Raises UsageError for options that contradict each other, LabelSetError."""
    if options.sample is not None and options.sample < 1:
        raise UsageError("--sample: expected how many conversations, 1 or more.")
    if options.together and options.unit == "conversation":
        raise UsageError(
            "--together goes with --unit turn: it labels all turns of a conversation in one request."
        )
    if options.labels is None:
        raise UsageError(
            "say with which labels: --labels teacher_moves, or a file of your own, --labels ./my_labels.yaml. A layer that is "
            "there is looked at with --layer NAME."
        )
    return find_label_set(options.labels)


class Annotating:
    """One start of `annotate_run`, while the run is held."""

    def __init__(
        self, reader: RunReader, options: AnnotateOptions, labels: LabelSet, control: Control
    ) -> None:
        self.reader, self.options, self.control = reader, options, control
        self.asking = Asking(labels=labels, unit=options.unit, together=options.together)
        self.layer = LayerFolder(reader.rundir, options.layer or labels.name)
        what = "annotators, who are asked about what the run holds"
        self.job = load_judged_job(reader.rundir, options.overrides, _SETTABLE, what)

    def make(self) -> AnnotatedRun:
        """Take what people give, ask the models, and write the layer. What is wrong with a file is told before anything is
        asked or written."""
        given = self._given()
        gold = self._gold()
        annotators, prompt = self.prepare() if self.options.asks else self._prepare_people()
        require_names(self.layer.name, {*self.layer.ledgers(), *annotators}, given)
        if given:
            self.layer.note(self.asking)
        people = take_labels(self.layer.annotators, given)
        ledgers: list[Path] = []
        try:
            if prompt is not None:
                asyncio.run(self._ask(annotators, prompt, ledgers))
        except EdgenError as error:
            if not any(ledger.exists() for ledger in ledgers):  # what is wrong is told by itself
                raise
            return self._made(ledgers, people, error)
        write_labels(self.reader, self.layer, self.asking)
        return replace(self.look(gold), annotators=_statuses(ledgers), people=people)

    def look(self, gold: Gold | None = None) -> AnnotatedRun:
        """What the layer says as it is."""
        if not self.layer.labels.exists():
            raise UsageError(
                f"{self.layer.path}: this layer has no labels yet, so there is nothing to look at."
            )
        gold = gold or self._gold()
        figures, against = look_at(self.reader, self.layer, self.asking, gold, self.control)
        units = sum(1 for _ in read_layer(self.layer.labels))
        return replace(self._made([], ()), units=units, figures=figures, gold=against)

    def _made(
        self, ledgers: list[Path], people: tuple[Person, ...], ended: EdgenError | None = None
    ) -> AnnotatedRun:
        about = (self.reader.rundir.path, self.layer.name, self.asking.labels, self.asking.unit)
        return AnnotatedRun(*about, self.layer.labels, _statuses(ledgers), people=people, ended=ended)

    def _given(self) -> list[Given]:
        """What people give, file by file. Raises DataError."""
        given: list[Given] = []
        for path in self.options.people:
            read = read_given(path, self.reader, self.asking)
            given += read.given
            if read.without:
                self.control.note(f"{path}: {quantity(read.without, 'unit')} without labels passed over.")
        return given

    def _gold(self) -> Gold | None:
        named = self.options.gold
        return None if named is None else Gold(named, self.reader, self.layer, self.asking)

    def _prepare_people(self) -> tuple[Named, None]:
        self._require_units()
        self.layer.require_same(self.asking)
        return {}, None

    def prepare(self) -> tuple[Named, Prompt]:
        """Who is asked, and with which template. Raises what is wrong before anything is asked or written."""
        self._require_units()
        annotators = dict(self._annotators())
        template = labelling_template(self.options.prompt, "--prompt", ROLE, (self.asking.labels,))
        prompt = load_template(template, unlimited(), self.reader.space)
        self.layer.require_same(self.asking)
        return annotators, prompt

    def _require_units(self) -> None:
        reader, labels = self.reader, self.asking.labels
        if not reader.accepted:
            raise RunError(
                f"{reader.rundir.path}: no conversation was accepted in this run, so there is nothing to label."
            )
        roles = [role.name for role in reader.space.roles]
        if self.asking.unit == "turn" and not any(labels.asks_for(role) for role in roles):
            raise UsageError(
                f"the labels {labels.name} are for turns of {', '.join(labels.roles)}, and the roles here are "
                f"{', '.join(roles)}. Copy the label set with other `roles`, or take --unit conversation."
            )
        if reader.pending:
            self.control.note(
                f"{reader.pending} conversations of this run are still to be made; labels are put on those that are there."
            )

    def _annotators(self) -> Iterator[tuple[str, tuple[BackendConfig, Any]]]:
        """The annotators by name, each with its backend, and with the function where that is one."""
        seen: set[str] = set()
        if len(self.options.by or ("",)) * self.options.annotators > _MOST:
            raise UsageError(f"--annotators: {_MOST} at once are the most.")
        for named in self.options.by or ("",):
            name, equals, where = named.rpartition("=")
            config = find_backend(self.job, where, ROLE)
            own = (
                name
                if equals
                else where.rpartition(":")[2] or (ROLE if ROLE in self.job.backends else "default")
            )
            function = find_function(self.job, config, self.control)
            for number in range(1, self.options.annotators + 1):
                called = own if number == 1 else f"{own}-{number}"
                if called in self.layer.people():
                    raise UsageError(
                        f"--by {named}: '{called}' is a person in the layer {self.layer.name}; name it otherwise, as in --by "
                        "strict=judge."
                    )
                if not is_name(called) or called in seen:
                    raise UsageError(
                        f"--by {named}: there can be no annotator '{called}', or there is one already; name it, as in "
                        "--by strict=judge."
                    )
                seen.add(called)
                yield called, (config, function)

    async def _ask(self, annotators: Named, prompt: Prompt, ledgers: list[Path]) -> None:
        """Ask the annotators, side by side, what they were not asked before. `ledgers`: where their answers are, once they
        are asked. Raises what stopped them."""
        folder = self.layer.annotators
        async with contextlib.AsyncExitStack() as stack:
            at_work = []
            for tasks, backends in await self.equip(annotators, prompt, stack, self.control.trust):
                scheduler = await stack.enter_async_context(
                    open_scheduler(tasks.job, backends, self.options.via)
                )
                called = f"{self.reader.name} {self.layer.name} {tasks.id}"
                title = Title(called, tasks.id, outcomes=("labelled", "without labels"))
                at_work.append(JudgeAtWork(tasks, backends, title, scheduler))
            ledgers += [judge_ledger(one.tasks, folder) for one in at_work]
            self.layer.note(self.asking)  # not before: a key that is missing leaves nothing behind
            await run_judges(at_work, folder, self.control)

    async def equip(
        self, annotators: Named, prompt: Prompt, stack: contextlib.AsyncExitStack, trust: Trust | None
    ) -> list[tuple[AnnotatorTasks, dict[str, Backend]]]:
        """What each annotator is asked, and the backend that answers. `trust`: None where nothing will be sent. Raises
        UsageError where the layer's annotator of that name is another one."""
        path = self.reader.rundir.job
        jobs = {
            name: job_with(self.job, ROLE, config, prompt, path) for name, (config, _) in annotators.items()
        }
        backends = await self._open(annotators, stack, trust)
        asked = [self._annotator(name, backends[name], prompt) for name in annotators]
        found: list[tuple[AnnotatorTasks, dict[str, Backend]]] = []
        for one in asked:
            like = found[0][0] if found else None
            tasks = AnnotatorTasks(self.reader, jobs[one.id], one, self.asking, like)
            found.append((tasks, {ROLE: backends[one.id]}))
        return found

    async def _open(
        self, annotators: Named, stack: contextlib.AsyncExitStack, trust: Trust | None
    ) -> dict[str, Backend]:
        """The backend of each annotator; those with the same settings share one, and its connections."""
        first: dict[str, str] = {}  # the annotator whose backend it is, by annotator
        for name, given in annotators.items():
            first[name] = next((other for other in first if annotators[other] == given), name)
        configs = {name: annotators[name][0] for name in first.values()}
        functions = {name: annotators[name][1] for name in configs}
        opened = await stack.enter_async_context(
            open_backends(configs, self.job.limits, trust, arms=len(annotators), functions=functions)
        )
        return {name: opened[shared] for name, shared in first.items()}

    def _annotator(self, name: str, backend: Backend, prompt: Prompt) -> Judge:
        """An annotator of the layer. Raises UsageError where the one of that name is another."""
        sample, before = self.options.sample, self.layer.facts_of(name)
        if before is not None and sample is not None:  # it only grows: what was labelled stays
            sample = None if before[SAMPLE] is None else max(before[SAMPLE], sample)
        annotator = annotator_of(name, backend, prompt, self.asking, sample)
        self.layer.require_same_annotator(name, annotator.facts)
        return annotator


def _statuses(ledgers: list[Path]) -> tuple[AnnotatorStatus, ...]:
    return tuple(annotator_status(ledger) for ledger in ledgers if ledger.exists())


def require_labels(made: AnnotatedRun) -> None:
    """Raise what ended it, and ShortError if something is short."""
    if made.ended is not None:
        raise made.ended
    for one in made.annotators:
        one.require_answers(f"requests to {one.annotator}")
    if not made.units and made.annotators:
        rejected = describe_counts(made.annotators[0].rejected)
        raise ShortError(f"Nothing could be labelled: {rejected}. Another template or backend may help.")
