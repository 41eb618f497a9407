"""A scenario as the simulator knows it besides its prompt: values, labels, roles and phrases of the space.

A model never sees it. A request of a role holds what that role sees.

The section `phrases` of a space file holds sentences of the simulator. A space needs none: its values, their
fields and its knowledge file are said as they are. Phrases shape no prompt and no scenario, so they are not
part of a space's content.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from edgen.core.pictures import pictures_in
from edgen.core.space_layouts import find_layout
from edgen.core.text import compile_later
from edgen.core.values import Scenario
from edgen.space.model import PICTURE, Space

Ways = tuple[str, ...]
SLOT = compile_later(r"\{([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)?(?::lower|:new)?)\}")
HEARD, KNOWLEDGE = "heard", "knowledge"


class PhraseAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer of a role to a turn that holds certain words."""

    to: Ways
    """Words of the other's turn, one or several; they may have slots, such as `{topic.question}`."""
    says: Ways
    """Ways to answer; one is drawn."""
    when: Mapping[str, Ways] = msgspec.field(default_factory=dict)
    """Values, by dimension: the answer is for scenarios that have one of them; empty: for all."""


class RolePhrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Steps of one role in order: one per turn, each with one or several ways to say it."""

    opens: Ways = ()
    """Ways to say its first turn."""
    says: tuple[Ways, ...] = ()
    """The steps after it; each is a text, or a list of texts of which one is drawn."""
    closes: Ways = ()
    """Ways to say its last turn."""
    answers: tuple[PhraseAnswer, ...] = ()
    """Answers to certain words, which come before the next step."""


class Phrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Sentences of the simulator about a space's values.

    A way may have slots: `{topic}`, `{topic:lower}`, a field as `{topic.example}`, `{topic.examples:new}` for
    an item that nobody has said yet, `{heard}` for the example that the other gave last, `{knowledge}` for a
    fact of the knowledge file. A way with a slot that the role cannot fill is left out.
    """

    persona: Ways | None = None
    """Dimensions that say how a role behaves, which nobody says of oneself; null: recognised by their
    names."""
    wrong: Ways = ()
    """Dimensions whose values are not true, and are rarely believed."""
    right: Ways = ()
    """Dimensions whose values answer what is asked. Without any, all that is not `wrong` may be an
    answer."""
    said: dict[str, dict[str, Ways]] = {}
    """By dimension and value: ways to say that value in speech."""
    facts: dict[str, dict[str, dict[str, str | Ways]]] = {}
    """By dimension and value: further facts by name, for slots such as `{topic.answer}`. No prompt has
    them."""
    roles: dict[str, RolePhrases] = {}
    """Steps of each role, by role."""


PHRASES = "phrases"  # the key of the section
NOTHING = Phrases()


def find_phrases(space: Space) -> Phrases:
    """Return a space's phrases; empty ones if it has none."""
    found: Phrases = space.sections.get(PHRASES, NOTHING)
    return found


# ---- personas

_TRAIT = r"(?:persona|personality|manner|mood|tone|temper|temperament|attitude|behaviou?r|style)s?"
_TRAITS = compile_later(
    rf"\b{_TRAIT}\b|\b(?:how|who)(?: much| well)? you (?:are|write|talk|speak|behave|feel|know|react|learn"
    r"|teach)\b"
)
_OF_ROLE = compile_later(rf"(?:{_TRAIT}|moves?|preferences?|prefrences?|reactions?|type|kind)\Z")
_PEOPLE = ("learner", "student", "pupil", "teacher", "tutor", "speaker")


def find_persona(space: Space) -> frozenset[str]:
    """Return the dimensions that say how a role is or behaves: the space's own list, else those whose name or
    label says so: `tone`, `manner`, "How you write", a role as in `learner`, or its trait as in
    `tutor_move`."""
    declared = find_phrases(space).persona
    if declared is not None:
        return frozenset(declared)
    labels = {one.name: one.label or "" for one in space.dimensions}
    return find_persona_among(labels, [role.name for role in space.roles])


def find_persona_among(labels: Mapping[str, str], roles: Iterable[str]) -> frozenset[str]:
    """Return those of the dimensions, given with their labels, that say how one of the roles is."""
    people = {*_PEOPLE, *(role.lower() for role in roles)}
    return frozenset(name for name, label in labels.items() if _is_persona(name.lower(), label, people))


def _is_persona(name: str, label: str, people: Collection[str]) -> bool:
    whose, _, what = name.partition("_")
    if name in people or (whose in people and _OF_ROLE.match(what)):
        return True
    return _TRAITS.search(f"{name.replace('_', ' ')} {label.lower()}") is not None


class SpaceBook:
    """A space as the simulator speaks of it, made once for a job."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @cached_property
    def phrases(self) -> Phrases:
        """The space's phrases."""
        return find_phrases(self.space)

    @cached_property
    def persona(self) -> frozenset[str]:
        """The dimensions that say how a role is."""
        return find_persona(self.space)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of each dimension, as it stands inside a sentence."""
        return {one.name: _fit_inside_sentence(one.name, one.label) for one in self.space.dimensions}

    @cached_property
    def persona_labels(self) -> frozenset[str]:
        """The labels of these, as briefs have them."""
        return frozenset(self.space[name].label or name.replace("_", " ") for name in self.persona)

    @cached_property
    def sees(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each role."""
        return {role.name: role.sees for role in self.space.roles}

    @cached_property
    def speaks(self) -> bool:
        """True if talk follows the space's values: not where the simulator has another one for its layout."""
        layout = find_layout(self.space.names)
        if layout is None or not layout.simulated:
            return True
        return PHRASES in self.space.sections and bool(self.phrases.roles)

    @cached_property
    def facts(self) -> dict[str, str]:
        """A sentence of the knowledge file for each of its entries, by the entry's first text."""
        known = self.space.knowledge
        if known is None or not known.text:
            return {}
        value = known.value
        entries = (
            value if isinstance(value, list) else [{"key": key, "about": one} for key, one in value.items()]
        )
        return dict(_list_facts(entries))


def _list_facts(entries: Collection[Any]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        texts = (
            [one for one in entry.values() if isinstance(one, str) and one] if isinstance(entry, dict) else []
        )
        if len(texts) > 1:
            about = max(texts[1:], key=len)
            yield texts[0], f"{texts[0]}: {about}"


_CLAUSE = compile_later(r"(?:how|what|who|which|why|when|where|whether)\b", re.IGNORECASE)


def _fit_inside_sentence(name: str, label: str | None) -> str:
    """Return a label for the middle of a sentence, after an article: a clause gives way to the dimension's
    name, and an abbreviation keeps its capitals."""
    if label is None or _CLAUSE.match(label):
        return name.replace("_", " ")
    label = re.sub(r"(?i)^(?:the|an?) ", "", label)
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


def _without_pictures(scenario: Scenario) -> Scenario:
    """Return the scenario without the fields that are pictures, which nobody can say."""
    fields = {
        name: {key: said for key, said in own.items() if key != PICTURE or not pictures_in(str(said))}
        for name, own in scenario.fields.items()
    }
    return msgspec.structs.replace(scenario, fields=fields)


class Scene:
    """A scenario, and the role that speaks; None: one writer speaks for all roles. Two are equal if they are
    of the same space, scenario and role, so that requests can be keys."""

    __slots__ = ("book", "role", "scenario")

    def __init__(self, book: SpaceBook, scenario: Scenario, role: str | None = None) -> None:
        self.book, self.role = book, role
        self.scenario = _without_pictures(scenario) if book.space.pictures else scenario

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, int, str | None]:
        return self.book.space.name, self.scenario.index, self.role

    def list_visible(self, role: str) -> tuple[str, ...]:
        """Return the dimensions of which this role may speak: all that it sees."""
        return self.book.sees.get(role, tuple(self.scenario.values))
