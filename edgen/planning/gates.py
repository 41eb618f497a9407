"""A job's gates, read: what a conversation has to meet to be accepted.

Most are decided as a conversation ends, and one that fails is asked for again. Those about near-duplicates are decided
in the order of scenarios, once all before are there (`execution/ordered_gates`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from edgen.config import Job
from edgen.core.errors import JobError, Problem, UsageError
from edgen.core.values import Rejection, RejectionReason
from edgen.expressions.conversation import (
    NEAR_DUPLICATE,
    ConversationNames,
    Facts,
    is_ordered,
    layers_named,
)
from edgen.expressions.language import Expression, ExpressionError
from edgen.space.model import Space

_ABOUT_DUPLICATES = re.compile(rf"\b{NEAR_DUPLICATE}\b")
_LAYERS = (
    "labels are put on conversations afterwards, so a gate cannot use a layer yet; `edgen select RUN --where` takes "
    "this when the run is labelled"
)
_ROUNDS = (
    "this job is made in rounds, and what a later round is made with must not change when a conversation that failed is "
    "made later; leave near-duplicates out afterwards (`edgen select RUN --where 'not near_duplicate'`)"
)


class Gate(NamedTuple):
    """An expression that has to hold, under the name that the job gives it."""

    name: str
    expression: Expression

    @property
    def reason(self) -> str:
        """What those that fail it are rejected for."""
        return Rejection(RejectionReason.GATE, "", self.name).code

    def is_open_to(self, facts: Facts) -> bool:
        """Whether a conversation meets it. Raises UsageError where its values do not go together."""
        try:
            return self.expression.holds(facts)
        except ExpressionError as problem:
            raise UsageError(f"gates.{self.name}, of conversation {facts.id}, {problem}") from None


class Gates(NamedTuple):
    """`plain` ask about a conversation alone, `ordered` about those before it, too; each in the job's order."""

    plain: tuple[Gate, ...] = ()
    ordered: tuple[Gate, ...] = ()

    def refuse(self, facts: Facts) -> Rejection | None:
        """Why a conversation by itself is not accepted; None where it is."""
        failed = next((gate for gate in self.plain if not gate.is_open_to(facts)), None)
        return None if failed is None else rejection(failed)


def rejection(gate: Gate) -> Rejection:
    """Why a conversation that fails the gate is none."""
    return Rejection(RejectionReason.GATE, gate.expression.text, gate.name)


def read_gates(gates: Mapping[str, str], space: Space, source: str, *, in_rounds: bool = False) -> Gates:
    """The gates of a job about a space; `in_rounds`: some of its conversations are made with what others came to. Raises JobError with every problem found."""
    problems: list[Problem] = []
    found: list[Gate] = []
    for name, text in gates.items():
        try:
            gate = Gate(name, Expression(text, ConversationNames(space, None)))
        except ExpressionError as problem:
            problems.append(Problem(f"$.gates.{name}", str(problem)))
            continue
        found.append(gate)
        if layers_named(gate.expression.names):
            problems.append(Problem(f"$.gates.{name}", _LAYERS))
        if in_rounds and is_ordered(gate.expression):
            problems.append(Problem(f"$.gates.{name}", _ROUNDS))
    if problems:
        raise JobError.of(source, problems)
    ordered = tuple(gate for gate in found if is_ordered(gate.expression))
    return Gates(tuple(gate for gate in found if gate not in ordered), ordered)


def asks_for_near_duplicates(jobs: Iterable[Job]) -> bool:
    """Whether any of these jobs has a gate about near-duplicates."""
    return any(_ABOUT_DUPLICATES.search(text) for job in jobs for text in job.gates.values())
