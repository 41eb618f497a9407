"""Names of expressions about one conversation: its scenario, size, outcome, measures, and labels of layers.

turns  turns.Teacher  words  words.Student  text  text.Teacher counts; the text; also by role participants
number of roles that spoke probability  ended_by  flags  repairs                      as in the record actions
actions.Tutor                                     labels of turns; also by role events  events.<key>
data.<key>                           kinds of events, values of events and turns outcome.<key>
the outcome, if its protocol has one scenario.<dimension>  scenario.<dimension>.<field>  scenario.index the
scenario; `scenario.` is optional near_duplicate                                             nearly equal to
an earlier kept conversation labels.<layer>  labels.<layer>.<role>                      labels of layers
measures.<measure>.<figure>  measures.<measure>  <measure> a measure of one conversation

A dimension with one of these names needs `scenario.`; a dimension with a measure's name takes precedence over
the measure. The registry finds measures; `Measure.figures` has the names of their figures.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from edgen.config.label_set import LabelSet, read_number
from edgen.core import registry
from edgen.core.values import Conversation, Role, Scenario, Turn
from edgen.expressions.language import Expression, Kind, NamedTerm, Value, find_kind
from edgen.reading.detect import words
from edgen.space.model import Space

NEAR_DUPLICATE = "near_duplicate"
LABELS = "labels"
_MEASURED = "measures"
_BY_ROLE = ("turns", "words", "text", "actions")
PARTICIPANTS = "participants"
_OWN: dict[str, Kind] = {"probability": "number", "ended_by": "text", "flags": "list", "repairs": "list"}
_UNDER_KEYS = ("outcome", "data")  # only their keys have values
_TAKEN = (
    *_BY_ROLE,
    PARTICIPANTS,
    *_OWN,
    "events",
    *_UNDER_KEYS,
    "scenario",
    NEAR_DUPLICATE,
    LABELS,
    _MEASURED,
)

Labels = Callable[[str, str], Sequence[tuple[Role, str]] | float | None]
"""Takes a layer and a conversation's id. Returns its labels as (role of the turn, label), with "" as the role
for the whole conversation; or a number, if the only label of the whole conversation is a number; or None
without labels."""


class LabelledWith(NamedTuple):
    """A layer's label set, and whether it labels whole conversations instead of turns."""

    labels: LabelSet
    whole: bool

    @property
    def kind(self) -> Kind:
        """The kind of a conversation's labels in expressions; see `make_label_value`."""
        if not self.whole or self.labels.several:
            return "list"
        numbers = [read_number(name) is not None for name in self.labels.names]
        return "number" if all(numbers) else "any" if any(numbers) else "list"


Layers = Mapping[str, LabelledWith | None]


class Facts:
    """One conversation as expressions see it. `near_duplicate` is None until decided."""

    def __init__(
        self,
        scenario: Scenario,
        conversation: Conversation,
        identifier: str = "",
        labels: Labels | None = None,
    ) -> None:
        self.scenario = scenario
        self.conversation = conversation
        self.id = identifier
        self.labels = labels
        self.near_duplicate: bool | None = None
        self._measured: dict[str, Mapping[str, Value]] = {}

    def compute_figures(self, measure: Any, space: Space) -> Mapping[str, Value]:
        """Return the figures of a measure; they are computed once."""
        if measure.name not in self._measured:
            self._measured[measure.name] = measure.of_facts(self, space)
        return self._measured[measure.name]

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each turn, split as for measures."""
        return [words(turn.text) for turn in self.conversation.turns]

    def list_turns(self, role: Role | None) -> list[Turn]:
        return [turn for turn in self.conversation.turns if role is None or turn.role == role]

    def count_words(self, role: Role | None) -> int:
        turns = zip(self.conversation.turns, self.words, strict=True)
        return sum(len(said) for turn, said in turns if role is None or turn.role == role)


class ConversationNames:
    """The vocabulary for conversations about a space. `layers`: existing layers with their label sets, None
    if unknown. `label_sets`: shipped label sets, for suggestions. `own_measures`: names of functions that a
    job names as measures."""

    def __init__(
        self,
        space: Space,
        layers: Layers | None = None,
        label_sets: Iterable[str] = (),
        own_measures: Iterable[str] = (),
    ) -> None:
        self._space = space
        self._own_measures = [*own_measures]
        self._layers = layers or {}
        self._label_sets = label_sets
        self._roles = {role.name.lower(): role.name for role in space.roles}

    def find(self, path: tuple[str, ...]) -> NamedTerm | None:
        """See Vocabulary."""
        first, *rest = path
        if first in _BY_ROLE:
            return self._find_by_role(first, rest)
        if first == PARTICIPANTS and not rest:
            return NamedTerm("number", lambda facts: len({turn.role for turn in facts.conversation.turns}))
        if first in _OWN and not rest:
            return NamedTerm(_OWN[first], lambda facts: getattr(facts.conversation, first))
        if first == "outcome" and rest:
            return NamedTerm("any", lambda facts: _look_up(facts.conversation.outcome, rest))
        if first == "events":
            keys = rest or ["event"]
            return NamedTerm("list", lambda facts: _look_up([*facts.conversation.events], keys))
        if first == "data" and rest:
            return NamedTerm(
                "list", lambda facts: _look_up([turn.data for turn in facts.conversation.turns], rest)
            )
        if first == NEAR_DUPLICATE and not rest:
            return NamedTerm("truth", lambda facts: facts.near_duplicate)
        if first == LABELS and rest:
            return self._find_labels(rest)
        if first == "scenario":
            return self._of_scenario(rest)
        if first == _MEASURED:
            return self._of_measure(rest)
        if first in _TAKEN:
            return None
        return self._of_scenario([*path]) or self._of_measure([*path])

    def list_names(self) -> Iterator[str]:
        """See Vocabulary."""
        groups = (*_UNDER_KEYS, "scenario", LABELS, _MEASURED)
        yield from (name for name in _TAKEN if name not in groups)
        for name in self._space.names:
            yield from (name, f"scenario.{name}") if name not in _TAKEN else (f"scenario.{name}",)
            yield from (f"scenario.{name}.{field}" for field in self._space[name].fields)
        yield from (f"{LABELS}.{layer}" for layer in dict.fromkeys((*self._layers, *self._label_sets)))
        yield from (f"{name}.{role}" for name in _BY_ROLE for role in self._roles.values())
        for name in registry.list_names("measure"):
            with contextlib.suppress(registry.PluginError):
                for figure in registry.find("measure", name).figures:
                    yield f"{_MEASURED}.{name}.{figure}" if figure else name

    def _find_role(self, rest: list[str]) -> Role | None:
        """Return the role that a name ends in; None without one."""
        return self._roles.get(rest[0].lower()) if len(rest) == 1 else None

    def _find_by_role(self, first: str, rest: list[str]) -> NamedTerm | None:
        role = self._find_role(rest)
        if rest and role is None:
            return None
        match first:
            case "turns":
                return NamedTerm("number", lambda facts: len(facts.list_turns(role)))
            case "words":
                return NamedTerm("number", lambda facts: facts.count_words(role))
            case "text":
                return NamedTerm(
                    "text", lambda facts: "\n".join(turn.text for turn in facts.list_turns(role))
                )
        return NamedTerm(
            "list", lambda facts: tuple(label for turn in facts.list_turns(role) for label in turn.labels)
        )

    def _of_scenario(self, rest: list[str]) -> NamedTerm | None:
        if rest == ["index"] and "index" not in self._space.names:
            return NamedTerm("number", lambda facts: facts.scenario.index)
        if not rest or rest[0] not in self._space.names:
            return None
        name, *fields = rest
        if not fields:
            return NamedTerm("text", lambda facts: facts.scenario.values.get(name))
        known = (entry.fields[fields[0]] for entry in self._space[name].entries if fields[0] in entry.fields)
        if (first := next(known, None)) is None:
            return None
        # A field has the same kind in all entries of its dimension.
        kind = find_kind(first) if len(fields) == 1 and isinstance(first, bool | int | float | str) else "any"
        return NamedTerm(kind, lambda facts: _look_up(facts.scenario.fields.get(name), fields))

    def _find_labels(self, rest: list[str]) -> NamedTerm | None:
        layer, role = rest[0], self._find_role(rest[1:])
        if layer not in self._layers or (rest[1:] and role is None):
            return None
        known = self._layers[layer]

        def get(facts: Facts) -> Value:
            found = None if facts.labels is None else facts.labels(layer, facts.id)
            if found is None or isinstance(found, int | float):
                return found
            return tuple(label for speaker, label in found if role is None or speaker == role)

        return NamedTerm("any", get) if known is None else NamedTerm(known.kind, get, known.labels.names)

    def _of_measure(self, rest: list[str]) -> NamedTerm | None:
        """Return the term of a measure's figure for one conversation; None if there is none."""
        if not rest or len(rest) > 2:
            return None
        if (
            rest[0] in self._own_measures
        ):  # looked up at run time: reading a job must not run code that it names
            return NamedTerm(
                "any", partial(_compute_own_figure, rest[0], rest[1] if rest[1:] else "", self._space)
            )
        if rest[0] not in registry.list_names("measure"):
            return None
        measure, figure = registry.find("measure", rest[0]), rest[1] if rest[1:] else ""
        if (kind := measure.figures.get(figure)) is None:
            return None
        return NamedTerm(kind, partial(_find_figure, measure, figure, self._space))


def _compute_own_figure(name: str, figure: str, space: Space, facts: Facts) -> Value:
    return _find_figure(registry.find("measure", name), figure, space, facts)


def _find_figure(measure: Any, figure: str, space: Space, facts: Facts) -> Value:
    value = facts.compute_figures(measure, space).get(figure)
    return tuple(value) if isinstance(value, list | tuple) else value


def make_label_value(
    units: Iterable[tuple[int | None, Role | None, Sequence[str]]],
) -> Sequence[tuple[Role, str]] | float | None:
    """Return the labels of one conversation as a value of an expression; see Labels. `units`: (turn, speaker,
    labels) of each unit; turn None is the whole conversation."""
    found: list[tuple[Role, str]] = []
    whole = False
    for turn, role, labels in units:
        whole |= turn is None
        if turn is None and len(labels) == 1 and (value := read_number(labels[0])) is not None:
            return value
        found += [((role or "") if turn is not None else "", label) for label in labels]
    return None if whole and not found else found


def _look_up(value: Any, path: Sequence[str]) -> Value:
    """Return the value under a path in JSON values; for a list, the values under the path in each item.
    Objects and null are no values."""
    for place, key in enumerate(path):
        if isinstance(value, list):
            found = (_look_up(one, path[place:]) for one in value)
            return tuple(one for one in found if isinstance(one, bool | int | float | str))
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, list | tuple):
        return tuple(one for one in value if isinstance(one, bool | int | float | str))
    return value if isinstance(value, bool | int | float | str) else None


def list_named_layers(names: Iterable[str]) -> tuple[str, ...]:
    """Return the layers that these names refer to."""
    parts = (name.split(".") for name in names)
    return tuple(dict.fromkeys(path[1] for path in parts if path[0] == LABELS))


def is_ordered(expression: Expression) -> bool:
    """Return whether the expression's value depends on earlier conversations."""
    return NEAR_DUPLICATE in expression.names
