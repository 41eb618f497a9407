"""A job's gates: conditions for accepting a conversation.

Most gates are decided when a conversation ends, and a conversation that fails is retried. Labels are
requested only if all gates without labels hold; gates with the fewest requests come first. Near-duplicate
gates are decided in the order of scenarios, after earlier ones are made (`execution/ordered_gates`).

`resolve_layers` returns the layers of labels that a job adds to its conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.config import ANNOTATOR, Job, LabelsAsked
from edgen.config.label_set import LabelSet, load_label_set
from edgen.core.errors import JobError, Problem, UsageError
from edgen.core.resources import list_shipped
from edgen.core.text import compile_later
from edgen.core.values import Rejection, RejectionReason, Reply, Request, Role, Turn
from edgen.expressions.conversation import (
    NEAR_DUPLICATE,
    ConversationNames,
    Facts,
    LabelledWith,
    is_ordered,
    list_named_layers,
    make_label_value,
)
from edgen.expressions.language import Expression, ExpressionError, NamedTerm
from edgen.planning.allowed_files import AllowedFiles
from edgen.protocols.base import Template
from edgen.protocols.labelled_units import JobLayer, LabellingTask, Said
from edgen.protocols.labelling import make_labelling_template
from edgen.space.model import Space

_ABOUT_DUPLICATES = compile_later(rf"\b{NEAR_DUPLICATE}\b")
_BY_TURN = 100  # requests assumed for labelling turn by turn
Label = Callable[[JobLayer], Generator[Request, Reply, Said | Rejection]]
_ROUNDS = (
    "this job is made in rounds, and later rounds must not change when a failed conversation is made later; "
    "leave near-duplicates out afterwards (`edgen select RUN --where 'not near_duplicate'`)"
)


class Gate(NamedTuple):
    """An expression that must hold, with its name in the job."""

    name: str
    expression: Expression

    @property
    def reason(self) -> str:
        """The reason for rejecting conversations that fail the gate."""
        return Rejection(RejectionReason.GATE, "", self.name).code

    def asks_of(self, layers: Iterable[JobLayer]) -> list[JobLayer]:
        """Return the layers whose labels the gate needs."""
        named = list_named_layers(self.expression.names)
        return [layer for layer in layers if layer.name in named]

    def count_requests(self, layers: Iterable[JobLayer]) -> int:
        """Estimate the number of requests for the gate's labels."""
        return sum(
            layer.annotators
            * (1 if layer.asking.unit == "conversation" or layer.asking.together else _BY_TURN)
            for layer in self.asks_of(layers)
        )

    def is_open_to(self, facts: Facts) -> bool:
        """Return whether a conversation passes the gate. Raises UsageError if the expression cannot be
        evaluated."""
        try:
            return self.expression.holds(facts)
        except ExpressionError as problem:
            raise UsageError(f"gates.{self.name}, of conversation {facts.id}, {problem}") from None


class Gates(NamedTuple):
    """The gates of a job. `plain` gates depend only on the conversation, `labelled` gates also on its labels,
    and `ordered` gates on earlier conversations; `plain` and `ordered` are in the job's order. `layers`: the
    layers added to conversations."""

    plain: tuple[Gate, ...] = ()
    labelled: tuple[Gate, ...] = ()
    ordered: tuple[Gate, ...] = ()
    layers: tuple[JobLayer, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Warnings about possible mistakes in the gates."""
        gates = (*self.plain, *self.labelled, *self.ordered)
        return [f"gates.{gate.name}, {note}" for gate in gates for note in gate.expression.notes]

    def refuse(self, facts: Facts) -> Rejection | None:
        """Return the rejection by the first plain gate that fails; None if all hold."""
        failed = next((gate for gate in self.plain if not gate.is_open_to(facts)), None)
        return None if failed is None else make_rejection(failed)

    def decide(self, facts: Facts, label: Label) -> Generator[Request, Reply, Mapping[str, Said] | Rejection]:
        """Apply the plain and labelled gates to one conversation. Return the rejection, or the labels by
        layer. `label`: requests a layer's labels; gates on missing ones fail with that reason."""
        if (refused := self.refuse(facts)) is not None:
            return refused
        said: dict[str, Said] = {}
        missing: dict[str, Rejection] = {}
        facts.labels = self.make_label_lookup(facts.conversation.turns, said)
        for gate in (*self.labelled, None):
            for layer in self.layers if gate is None else gate.asks_of(self.layers):
                if layer.name not in said and layer.name not in missing:
                    given = yield from label(layer)
                    if isinstance(given, Rejection):
                        missing[layer.name] = given
                    else:
                        said[layer.name] = given
            if gate is not None and not gate.is_open_to(facts):
                lacks = (missing[layer.name] for layer in gate.asks_of(self.layers) if layer.name in missing)
                return next(lacks, make_rejection(gate))
        return said

    def make_label_lookup(
        self, turns: Sequence[Turn], said: Mapping[str, Said]
    ) -> Callable[[str, str], Labels]:
        """Return the function that looks up a conversation's labels in expressions. `said`: the annotators'
        answers by layer."""
        layers = {layer.name: layer for layer in self.layers}

        def find_labels(name: str, _: str) -> Labels:
            if name not in said:
                return None
            most = layers[name].find_majority_labels(turns, said[name])
            return make_label_value((at, None if at is None else turns[at].role, found) for at, found in most)

        return find_labels


Labels = Sequence[tuple[Role, str]] | float | None  # as in `expressions.conversation`


def make_rejection(gate: Gate) -> Rejection:
    """Return the rejection of a conversation that fails the gate."""
    return Rejection(RejectionReason.GATE, gate.expression.text, gate.name)


def read_gates(
    gates: Mapping[str, str],
    space: Space,
    source: str,
    layers: Sequence[JobLayer] = (),
    measures: Sequence[str] = (),
    *,
    in_rounds: bool = False,
) -> Gates:
    """Parse the gates of a job. `source`: its name in errors. `measures`: names of its own functions.
    `in_rounds`: later rounds depend on earlier results. Raises JobError with all problems."""
    if not gates:
        return Gates((), (), (), tuple(layers))
    problems: list[Problem] = []
    found: list[Gate] = []
    known = {one.name: LabelledWith(one.asking.labels, one.asking.unit == "conversation") for one in layers}
    names = ConversationNames(space, known, list_shipped("label_sets"), measures)
    for name, text in gates.items():
        try:
            gate = Gate(name, Expression(text, names))
        except ExpressionError as problem:
            problems.append(Problem(f"$.gates.{name}", str(problem)))
            continue
        found.append(gate)
        if in_rounds and is_ordered(gate.expression):
            problems.append(Problem(f"$.gates.{name}", _ROUNDS))
    if problems:
        raise JobError.of(source, problems)
    ordered = tuple(gate for gate in found if is_ordered(gate.expression))
    alone = [gate for gate in found if gate not in ordered]
    labelled = sorted(
        (gate for gate in alone if gate.asks_of(layers)), key=lambda gate: gate.count_requests(layers)
    )
    plain = tuple(gate for gate in alone if gate not in labelled)
    return Gates(plain, tuple(labelled), ordered, tuple(layers))


def asks_for_near_duplicates(jobs: Iterable[Job]) -> bool:
    """Return whether any of these jobs has a near-duplicate gate."""
    return any(_ABOUT_DUPLICATES.search(text) for job in jobs for text in job.gates.values())


def with_label_sets(job: Job, allowed: AllowedFiles) -> Job:
    """Return the job with resolved label sets and units, including layers that only its gates name. Raises
    LabelSetError."""
    asked = {name: _resolve_labels(name, one, allowed) for name, one in job.labels.items()}
    for name in _find_named_layers(job.gates.values()):
        if name not in asked and name in list_shipped("label_sets"):
            asked[name] = _resolve_labels(name, LabelsAsked(), allowed)
    return msgspec.structs.replace(job, labels=asked) if asked else job


def _resolve_labels(name: str, asked: LabelsAsked, allowed: AllowedFiles) -> LabelsAsked:
    found = asked.set
    if not isinstance(found, LabelSet):
        found = load_label_set(allowed.require("label_sets", found or name, f"labels.{name}.set"))
    unit = asked.unit or ("conversation" if found.is_scale and not asked.together else "turn")
    return msgspec.structs.replace(asked, set=found, unit=unit)


class _Anything:
    """A vocabulary that contains every name."""

    def find(self, path: tuple[str, ...]) -> NamedTerm:  # noqa: ARG002
        return NamedTerm("any", lambda _: None)

    def list_names(self) -> Sequence[str]:
        return ()


def _find_named_layers(gates: Any) -> Iterator[str]:
    """Yield the layers that valid gates name; `read_gates` reports invalid gates."""
    for text in gates:
        try:
            yield from list_named_layers(Expression(text, _Anything()).names)
        except ExpressionError:
            continue


def resolve_layers(job: Job) -> tuple[JobLayer, ...]:
    """Return the layers of a job with resolved label sets. Raises JobError if one has no annotator."""
    found, problems = [], []
    for place, (name, asked) in enumerate(job.labels.items()):
        assert isinstance(asked.set, LabelSet), "the label sets are read first"
        asking = LabellingTask(labels=asked.set, unit=asked.unit or "turn", together=asked.together)
        if asking.unit == "turn" and not any(asked.set.asks_for(role) for role in job.speakers):
            message = (
                f"the labels {asked.set.name} are for turns of {', '.join(asked.set.roles)}, and the job's "
                "space has the roles "
                f"{', '.join(job.speakers)}; copy the label set with other `roles`, or say `unit: "
                "conversation`"
            )
            problems.append(Problem(f"$.labels.{name}", message))
        found.append(JobLayer(name, place, asking, asked.annotators))
    if problems:
        raise JobError.of(job.name, problems)
    return tuple(found)


def find_annotator_templates(job: Job) -> Mapping[str, Template]:
    """Return the annotator's template by use; empty without labels."""
    if not job.labels:
        return {}
    sets = [asked.set for asked in job.labels.values() if isinstance(asked.set, LabelSet)]
    return {
        ANNOTATOR: make_labelling_template(
            job.prompts.get(ANNOTATOR), f"prompts.{ANNOTATOR}", ANNOTATOR, sets
        )
    }
