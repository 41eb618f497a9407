"""The layers of labels added during generation: those under the job's `labels`, and those named both in a
gate and as a shipped label set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgen.config import ANNOTATOR, Job, LabelsAsked
from edgen.config.label_set import LabelSet, load_label_set
from edgen.core.errors import JobError, Problem
from edgen.core.resources import shipped
from edgen.expressions.conversation import layers_named
from edgen.expressions.language import Expression, ExpressionError, Named
from edgen.planning.allowed_files import Reach
from edgen.protocols.base import Template
from edgen.protocols.labelled_units import Asking, Layer
from edgen.protocols.labelling import labelling_template


def with_label_sets(job: Job, reach: Reach) -> Job:
    """Return the job with every layer that its gates name, each with its full label set and unit. Raises
    LabelSetError."""
    asked = {name: _resolved(name, one, reach) for name, one in job.labels.items()}
    for name in _named_in(job.gates.values()):
        if name not in asked and name in shipped("label_sets"):
            asked[name] = _resolved(name, LabelsAsked(), reach)
    return msgspec.structs.replace(job, labels=asked) if asked else job


def _resolved(name: str, asked: LabelsAsked, reach: Reach) -> LabelsAsked:
    found = asked.set
    if not isinstance(found, LabelSet):
        found = load_label_set(reach.require("label_sets", found or name, f"labels.{name}.set"))
    unit = asked.unit or ("conversation" if found.is_scale and not asked.together else "turn")
    return msgspec.structs.replace(asked, set=found, unit=unit)


class _Anything:
    """A vocabulary that contains every name."""

    def find(self, path: tuple[str, ...]) -> Named:  # noqa: ARG002
        return Named("any", lambda _: None)

    def known(self) -> Sequence[str]:
        return ()


def _named_in(gates: Any) -> Iterator[str]:
    """Yield the layers in readable gates; invalid gates are reported where they are used."""
    for text in gates:
        try:
            yield from layers_named(Expression(text, _Anything()).names)
        except ExpressionError:
            continue


def layers_of(job: Job) -> tuple[Layer, ...]:
    """Return the layers of a job with resolved label sets. Raises JobError if one has no annotator."""
    found, problems = [], []
    for place, (name, asked) in enumerate(job.labels.items()):
        assert isinstance(asked.set, LabelSet), "the label sets are read first"
        asking = Asking(labels=asked.set, unit=asked.unit or "turn", together=asked.together)
        if asking.unit == "turn" and not any(asked.set.asks_for(role) for role in job.speakers):
            message = (
                f"the labels {asked.set.name} are for turns of {', '.join(asked.set.roles)}, and the job's space has the roles "
                f"{', '.join(job.speakers)}; copy the label set with other `roles`, or say `unit: conversation`"
            )
            problems.append(Problem(f"$.labels.{name}", message))
        found.append(Layer(name, place, asking, asked.annotators))
    if problems:
        raise JobError.of(job.name, problems)
    return tuple(found)


def annotator_templates(job: Job) -> Mapping[str, Template]:
    """Return the annotator's template; empty without annotator."""
    if not job.labels:
        return {}
    sets = [asked.set for asked in job.labels.values() if isinstance(asked.set, LabelSet)]
    return {
        ANNOTATOR: labelling_template(job.prompts.get(ANNOTATOR), f"prompts.{ANNOTATOR}", ANNOTATOR, sets)
    }
