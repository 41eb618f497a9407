"""Labelling of turns of a conversation in one request: one turn in its context, several, or the whole
conversation.

Every unit has a number, and the answer has the labels of each number. An answer with an unknown label,
without a label, or for another number of units is retried. The caller (a protocol, a layer of labels) runs
`label_units` within its own generator. The conversation is fenced as for a judge (see
`edgen.protocols.fence`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.config.label_set import LabelSet
from edgen.plugin import (
    Address,
    AnswerKind,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    SimulatedAnswers,
    Simulation,
    Template,
    Turn,
    ask,
)
from edgen.plugin.forms import Form, form_of, list_of, one_of
from edgen.plugin.protocols import Offer, Protocol, View, describe_ending, fence_turns, list_utterances
from edgen.reading.answers.unit_labels import LabelChoices, Labels, read_unit_labels

TEMPLATE = "label_turns"
# Variables of a labeller's template, which must show `SHOWN`.
SHOWN = ("guarded", "sets", "form")
VARIABLES = (*SHOWN, "fence", "alternatives")


class Unit(NamedTuple):
    """A unit to be labelled, and the labels that it can carry. `turn` None: everything shown. `alternative`:
    the unit is one of several possible responses at the same place."""

    labels: LabelSet
    turn: Turn | None = None
    alternative: bool = False


class Labelling(SimulatedAnswers, Protocol):
    """A labeller."""

    name = "labelling"
    precedence = 12
    answers = (AnswerKind("unit_labels", "the labels of numbered turns, as JSON or a line each", VARIABLES),)

    def simulated(self, request: Simulation) -> str | None:
        """Return the true labels of the turns, with mistakes at the rate of the backend's `confusion`."""
        from edgen.protocols.labelling_simulated import answer

        return answer(request)


LABELLING = Labelling()


def make_labelling_template(
    name: str | None, key: str, asked: str, sets: Sequence[LabelSet] = ()
) -> Template:
    """Return a labeller's template. `key` is the job's key for it, `asked` the role that answers, `sets` the
    label sets."""
    return Template(
        name=name or TEMPLATE,
        key=key,
        expects="unit_labels",
        variables=VARIABLES,
        shows=(SHOWN,),
        why="a labeller",
        asked=asked,
        stand_ins={
            "sets": [_set_shown(labels, [number]) for number, labels in enumerate(sets, start=1)],
            "form": '{"1": ["…"]}',
            "guarded": "(1) Student: …",
        },
    )


def label_units(
    shown: Sequence[Turn | Unit], address: Address, prompt: Prompting, rules: Rules, role: str
) -> Generator[Request, Reply, tuple[Labels, ...] | Rejection]:
    """Return the labels of the units among the shown content, in order; or a rejection. `role` is the role
    that answers."""
    units = [one for one in shown if isinstance(one, Unit)]
    choices = [LabelChoices(unit.labels.names, unit.labels.several) for unit in units]

    def read(reply: Reply) -> tuple[Labels, ...] | Rejection:
        return read_unit_labels(reply.text, choices, **describe_ending(reply))

    messages = prompt.messages(make_labelling_variables(shown, address, rules.seed))
    view = _make_view(shown) if rules.by_people(role) else None
    form = prompt.form(make_labels_form(choices))
    question = Question(address, messages, LABELLING.name, role, prompt.schema, form=form, view=view)
    return (yield from ask(question, rules, read))


def _make_view(shown: Sequence[Turn | Unit]) -> View:
    """Return what a person who labels sees: the conversation with its units numbered, and the definition of
    each label."""
    offers, questions = [], []
    for number, unit in enumerate((one for one in shown if isinstance(one, Unit)), start=1):
        names = unit.labels.definitions
        offers += [
            Offer(str(number), name, f"{name}: {meant}" if meant else name) for name, meant in names.items()
        ]
        asked = f"({number}) {unit.turn.role}" if unit.turn is not None else "The whole conversation"
        questions.append((str(number), asked))
    return View(turns=list_utterances(_number_units(shown)), offers=tuple(offers), questions=tuple(questions))


def _number_units(shown: Sequence[Turn | Unit]) -> list[Turn]:
    """Return the shown turns, with the number of each unit before its speaker."""
    lines, number = [], 0
    for one in shown:
        turn: Turn | None
        if isinstance(one, Turn):
            turn = one
        else:
            number += 1
            turn = one.turn and Turn(f"({number}) {one.turn.role}", one.turn.text)
        if turn is not None:
            lines.append(turn)
    return lines


def make_labels_form(choices: Sequence[LabelChoices]) -> Form:
    """Return the form of an answer with labels of several units."""
    parts = {}
    for number, choice in enumerate(choices, start=1):
        label = one_of(choice.labels)
        parts[str(number)] = list_of(label, 1, len(choice.labels)) if choice.several else label
    return form_of(parts)


def make_labelling_variables(shown: Sequence[Turn | Unit], address: Address, seed: int) -> dict[str, Any]:
    """Return the variables of a labeller's template."""
    units = [one for one in shown if isinstance(one, Unit)]
    by_set: dict[tuple[str, bool], tuple[LabelSet, list[int]]] = {}
    for number, unit in enumerate(units, start=1):
        by_set.setdefault((unit.labels.name, unit.turn is None), (unit.labels, []))[1].append(number)
    alternatives = [str(number) for number, unit in enumerate(units, start=1) if unit.alternative]
    form = {str(number): ["…"] if unit.labels.several else "…" for number, unit in enumerate(units, start=1)}
    return {
        **fence_turns(seed, address.scenario, f"{address.task}/{address.step}", _number_units(shown)),
        "sets": [
            _set_shown(labels, numbers, whole=whole) for (_, whole), (labels, numbers) in by_set.items()
        ],
        "alternatives": ", ".join(alternatives) if len(alternatives) > 1 else None,
        "form": msgspec.json.encode(form).decode(),
    }


def _set_shown(labels: LabelSet, numbers: Sequence[int], *, whole: bool = False) -> Mapping[str, Any]:
    return {
        "units": ", ".join(map(str, numbers)),
        "several": labels.several,
        "labels": labels.definitions,
        "examples": {name: list(labels.examples.get(name, ())) for name in labels.names},
        "whole": whole,
    }
