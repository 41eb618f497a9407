"""Annotators: models that label the units of a run.

An annotator is a backend with a template, a label set and a unique name in the layer. A task is one turn,
shown with the turns before it, or a conversation, whose units are labelled in one request. Its record has the
labels of each unit with a digest of the text up to the unit. Annotators of one backend send seeds of their
own if the service takes seeds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec

from edgen.annotation.annotator import StoredLabels, is_name
from edgen.annotation.identical import SEEDS
from edgen.annotation.layer import LayerFolder
from edgen.asking.answering import Answerer, ChosenBackend, choose_backend
from edgen.asking.options import AnnotateOptions
from edgen.asking.registered import find_named_asker
from edgen.asking.runner import RunStart
from edgen.asking.units import AskedUnit, UnitAsker, grow_sample
from edgen.config import ANNOTATOR, Job
from edgen.config.label_set import LabelSet, find_label_set
from edgen.core.digest import compute_fingerprint, hash64
from edgen.core.errors import EdgenError, UsageError
from edgen.core.values import Rejection, Reply, Request
from edgen.prompting import Prompt
from edgen.protocols.labelled_units import LabelledUnit, LabellingTask, digest_said
from edgen.protocols.labelling import LABELLING, SHOWN, TEMPLATE, VARIABLES, label_units
from edgen.protocols.parts import Spent
from edgen.providers import Backend
from edgen.reading.answers.unit_labels import Labels
from edgen.runtime.control import Control
from edgen.store.run_folder import SAMPLE
from edgen.store.run_reader import RunReader

_MOST = 50  # annotators in one command
# Length of an answer relative to the bare object with mean labels (short labels; expected; with spaces, a
# fence or a remark).
_LONGER = (0.8, 1.0, 2.0)
_LABELS = (1.0, 1.25, 2.0)  # labels of a unit that can carry several: low, expected, high


def make_annotator(
    name: str,
    backend: Backend,
    prompt: Prompt,
    asking: LabellingTask,
    sample: int | None = None,
    *,
    kind: type[AnnotatorAsker],
    seeded: bool = False,
) -> Answerer:
    """Return a backend with a template as the annotator of that name. Its facts are everything that shapes
    its answers except the run, and the sample size. `kind`: the asker's class. `seeded`: its calls carry
    seeds although the job states none."""
    facts = Answerer.of(backend, prompt).facts
    way = {"annotator": name, "labels": msgspec.to_builtins(asking.labels), "unit": asking.unit}
    own = {SEEDS: "auto"} if seeded else {}
    facts = {**way, **kind.name_in_facts(), "together": asking.together, **facts, **own, SAMPLE: sample}
    return Answerer(id=name, model=backend.model, prompt=prompt, facts=facts)


class AnnotatorAsker(UnitAsker):
    """An asker about the units that one annotator labels, in a sample of each arm's conversations or in all.

    A subclass sets `name`, which is also the layer's, and `labels`. It can override `template`, `variables`,
    `expects` (as in the template) and `ask`.
    """

    labels: ClassVar[str | None] = None  # a shipped label set's name, or a file; None: the user chooses
    taken_by = "edgen annotate --labels"
    template, variables, expects, shows = TEMPLATE, VARIABLES, "unit_labels", (SHOWN,)
    protocol, why = LABELLING.name, "a labeller"
    role = ANNOTATOR
    of_what = "annotators of an existing run"
    nothing = "there is nothing to label"
    outcomes = ("labelled", "without labels")
    useless_help = (
        "A labeller answers with one JSON object of numbers and labels: see that its max_tokens leaves room "
        "for it, or name another backend with --backend."
    )

    def __init__(
        self,
        reader: RunReader,
        job: Job,
        annotator: Answerer,
        asking: LabellingTask,
        layer: str,
        like: AnnotatorAsker | None = None,
    ) -> None:
        """`like`: an asker about the same units, whose counts are reused if the samples are equal."""
        super().__init__(reader, job, annotator, f"{layer} {annotator.id}", annotator.facts[SAMPLE])
        self.part = annotator.id
        # Two annotators with the same backend and template must not give copies of one answer.
        seed = hash64(f"annotator/{job.seed}/{annotator.id}") >> 1
        self.rules = msgspec.structs.replace(self.rules, seed=seed, several=SEEDS in annotator.facts)
        facts = {key: fact for key, fact in annotator.facts.items() if key != SAMPLE}
        self.shaping |= {"annotator": compute_fingerprint(facts)}
        self._asking = asking
        several = _LABELS if asking.labels.several else (1.0, 1.0, 1.0)
        self.answer_sizes = (
            _LONGER[0] * several[0], _LONGER[1] * several[1], _LONGER[2] * several[2],
        )  # fmt: skip
        if like is not None and like.answerer.facts[SAMPLE] == annotator.facts[SAMPLE]:
            self.planned, self.scenarios = like.planned, like.scenarios
        else:
            self.count()

    def list_places(self, index: int, name: str) -> Sequence[int | None]:
        """Return the places of the turns to label; [None] if one request labels the whole conversation."""
        units = self._asking.list_units(self.find_candidate(index, name).turns)
        if self._asking.unit == "conversation" or self._asking.together:
            return [None] if units else []
        return units

    def ask(self, unit: AskedUnit) -> Generator[Request, Reply, tuple[Labels, ...] | Rejection]:
        """Ask for the labels of one turn or one conversation."""
        shown = self._asking.select_content(unit.turns, self.find_units(unit))
        return label_units(shown, unit.address, self.prompt, self.rules, self.role)

    def keep(self, answer: tuple[Labels, ...], unit: AskedUnit, spent: Spent) -> StoredLabels:
        """Return the labels of each unit with a digest of the text up to the unit."""
        labelled = (
            LabelledUnit(place, digest_said(unit.turns, place), labels)
            for place, labels in zip(self.find_units(unit), answer, strict=True)
        )
        return StoredLabels(units=tuple(labelled), simulated=spent.simulated)

    def guess_answers(self, unit: AskedUnit) -> Iterator[str]:
        """Yield an answer for each label: the bare object that gives it to every unit."""
        numbers = range(1, 1 + len(self.find_units(unit)))
        for name in self._asking.labels.names:
            yield msgspec.json.encode({str(number): name for number in numbers}).decode()

    def find_units(self, unit: AskedUnit) -> list[int | None]:
        """Return the units that a request labels."""
        return self._asking.list_units(unit.turns) if unit.place is None else [unit.place]


class Labeller(AnnotatorAsker):
    """An annotator with any label set; the option takes the label set's name."""

    name, in_facts = "labelling", False


def find_annotator(named: str | None, labels: LabelSet | None = None) -> type[AnnotatorAsker]:
    """Return the asker that `--labels`, or else `--layer`, names. Return the general one if there is no such
    asker, or if `labels` are not its label set."""
    kind = find_named_asker(named, AnnotatorAsker)
    if kind is None or kind.labels is None:
        return Labeller
    return kind if labels is None or find_label_set(kind.labels) == labels else Labeller


class AnnotatorStart(RunStart[AnnotatorAsker]):
    """A start of the annotators of a layer, which run concurrently."""

    def __init__(
        self, reader: RunReader, options: AnnotateOptions, labels: LabelSet, control: Control
    ) -> None:
        self.options = options
        self.asking = LabellingTask(labels=labels, unit=options.unit, together=options.together)
        kind = find_annotator(options.labels or options.layer, labels)
        self.layer = LayerFolder(
            reader.rundir, options.layer or (labels.name if kind.labels is None else kind.name)
        )
        super().__init__(kind, reader, options, self.layer.annotators, control)
        self._first: AnnotatorAsker | None = None

    def check(self) -> Mapping[str, ChosenBackend]:
        """Return the annotators by name; empty if only people label. Raises errors before any request or
        change."""
        self.kind.require(self.reader, self.job)
        labels, roles = self.asking.labels, [role.name for role in self.reader.space.roles]
        if self.asking.unit == "turn" and not any(labels.asks_for(role) for role in roles):
            raise UsageError(
                f"the labels {labels.name} are for turns of {', '.join(labels.roles)}, and this run has the "
                "roles "
                f"{', '.join(roles)}. Copy the label set with other `roles`, or use --unit conversation."
            )
        self.note_pending("only the finished ones are labelled.")
        annotators = self.choose() if self.options.asks else {}
        if annotators:
            self.read_prompt()
        self.layer.require_same(self.asking)
        return annotators

    def choose(self) -> Mapping[str, ChosenBackend]:
        """Return the backend of each annotator, by the annotator's name."""
        chosen: dict[str, ChosenBackend] = {}
        if len(self.options.by or ("",)) * self.options.annotators > _MOST:
            raise UsageError(f"--annotators: at most {_MOST} in all.")
        for named in self.options.by or ("",):
            name, equals, where = named.rpartition("=")
            backend = choose_backend(self.job, where, ANNOTATOR, self.control)
            own = (
                name
                if equals
                else where.rpartition(":")[2] or (ANNOTATOR if ANNOTATOR in self.job.backends else "default")
            )
            for number in range(1, self.options.annotators + 1):
                called = own if number == 1 else f"{own}-{number}"
                if called in self.layer.list_people():
                    raise UsageError(
                        f"--backend {named}: '{called}' is a person in the layer {self.layer.name}; choose "
                        "another name, as in --backend strict=judge."
                    )
                if not is_name(called) or called in chosen:
                    raise UsageError(
                        f"--backend {named}: '{called}' is not a valid name for an annotator, or "
                        "is taken; choose another, as in --backend strict=judge."
                    )
                chosen[called] = backend
        return chosen

    async def prepare(self) -> EdgenError | None:
        """Store the layer's label set and unit. This waits until the backends are open, so a missing key
        leaves no layer."""
        self.layer.note(self.asking)
        return None

    def make_asker(self, name: str, job: Job, backend: Backend, prompt: Prompt) -> AnnotatorAsker:
        """Return an annotator of the layer. Raises UsageError if the one of that name has other settings.

        Its calls carry seeds if the service takes seeds, since further annotators may follow at any time. An
        annotator that started earlier continues with its own settings.
        """
        before = self.layer.read_facts(name)
        seeded = job.backends[ANNOTATOR].seeds_several if before is None else SEEDS in before
        sample = grow_sample(before, self.options.sample)
        # An annotator that started before forms existed continues without them.
        if prompt.forms == "auto" and before is not None and "forms" not in before:
            prompt = dataclasses.replace(prompt, forms="prose")
        annotator = make_annotator(name, backend, prompt, self.asking, sample, kind=self.kind, seeded=seeded)
        self.layer.require_same_annotator(name, annotator.facts)
        made = self.kind(self.reader, job, annotator, self.asking, self.layer.name, self._first)
        self._first = self._first or made
        return made
