"""The section `phrases` of a space file: sentences of the simulator about a scenario.

A space needs none: its values, their fields and its knowledge file are said as they are. Phrases shape no
prompt and no scenario, so they are not part of a space's content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.core.errors import Problem
from edgen.core.text import compile_later
from edgen.core.yaml_values import suggest_name

if TYPE_CHECKING:
    from edgen.space.model import Space

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


NAME = "phrases"  # the key of the section
NOTHING = Phrases()


def phrases_of(space: Space) -> Phrases:
    """Return a space's phrases; empty ones if it has none."""
    found: Phrases = space.sections.get(NAME, NOTHING)
    return found


def with_lists(value: Any) -> Any:
    """Return the section with a list wherever one text may stand for it, and without empty keys."""
    if not isinstance(value, dict):
        return value
    found = {key: one for key, one in value.items() if one is not None}
    if isinstance(said := found.get("said"), dict):
        found["said"] = {
            name: {text: _ways(ways) for text, ways in of.items()} if isinstance(of, dict) else of
            for name, of in said.items()
        }
    if isinstance(roles := found.get("roles"), dict):
        found["roles"] = {name: _role(one) for name, one in roles.items()}
    return found


def _ways(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _role(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found = {key: _ways(one) for key, one in value.items() if one is not None}
    if isinstance(steps := found.get("says"), list):
        found["says"] = [_ways(step) for step in steps]
    if isinstance(answers := found.get("answers"), list):
        found["answers"] = [
            {key: _list_ways(key, said) for key, said in one.items()} if isinstance(one, dict) else one
            for one in answers
        ]
    return found


def _list_ways(key: str, value: Any) -> Any:
    if key == "when" and isinstance(value, dict):
        return {name: _ways(values) for name, values in value.items()}
    return _ways(value)


def find_problems(found: Phrases, space: Space) -> Iterator[Problem]:
    for name, said in found.said.items():
        yield from _find_unknown_values(f"$.phrases.said.{name}", said, space[name].values)
        yield from _find_empty_ways(f"$.phrases.said.{name}", said.values())
        yield from _find_unfilled(f"$.phrases.said.{name}", said.values(), space)
    roles = [role.name for role in space.roles]
    for name, one in found.roles.items():
        path = f"$.phrases.roles.{name}"
        if name not in roles:
            yield Problem(path, f"there is no role {name}{suggest_name(name, roles)}")
        steps = [one.opens, *one.says, one.closes]
        yield from _find_empty_ways(f"{path}.says", one.says)
        for answer in one.answers:
            steps += [answer.to, answer.says]
            yield from _find_empty_ways(f"{path}.answers", [answer.to, answer.says])
            yield from _impossible(f"{path}.answers", answer.when, space)
        yield from _find_unfilled(path, steps, space)


def find_unused_facts(found: Phrases, space: Space) -> list[str]:
    """Return the values that facts are about and that no dimension has: a copy of a space may have lost
    them."""
    return [
        f"{name}: {value}"
        for name, facts in found.facts.items()
        for value in facts
        if value not in space[name].values
    ]


def _find_unknown_values(path: str, named: Iterable[str], values: Iterable[str]) -> Iterator[Problem]:
    """Yield the values that a dimension lacks."""
    known = [*values]
    return (
        Problem(path, f"there is no value {value!r}{suggest_name(value, known)}")
        for value in named
        if value not in known
    )


def _impossible(path: str, when: Mapping[str, Ways], space: Space) -> Iterator[Problem]:
    """Yield the conditions that no scenario fulfils."""
    for name, values in when.items():
        if name not in space.names:
            yield Problem(
                path, f"`when` names {name}, and there is no such dimension{suggest_name(name, space.names)}"
            )
            continue
        yield from _find_unknown_values(f"{path}.when.{name}", values, space[name].values)


def _find_unfilled(path: str, lists: Iterable[Ways], space: Space) -> Iterator[Problem]:
    return (
        Problem(path, f"nothing fills {{{slot}}} in {way!r}")
        for ways in lists
        for way in ways
        for slot in SLOT.findall(way)
        if not _fills(slot.partition(":")[0], space)
    )


def _find_empty_ways(path: str, lists: Iterable[Ways]) -> Iterator[Problem]:
    if not all(ways and all(way.strip() for way in ways) for ways in lists):
        yield Problem(path, "a list of ways, or a way in it, is empty; write at least one")


def _fills(slot: str, space: Space) -> bool:
    name, _, field = slot.partition(".")
    if slot in (HEARD, KNOWLEDGE):
        return True
    name = name if name in space.names else name[:1].lower() + name[1:]
    if name not in space.names:
        return False
    facts = phrases_of(space).facts.get(name, {}).values()
    return not field or field in space[name].fields or any(field in one for one in facts)


# ---- personas

_TRAIT = r"(?:persona|personality|manner|mood|tone|temper|temperament|attitude|behaviou?r|style)s?"
_TRAITS = compile_later(
    rf"\b{_TRAIT}\b|\b(?:how|who)(?: much| well)? you (?:are|write|talk|speak|behave|feel|know|react|learn"
    r"|teach)\b"
)
_OF_ROLE = compile_later(rf"(?:{_TRAIT}|moves?|preferences?|prefrences?|reactions?|type|kind)\Z")
_PEOPLE = ("learner", "student", "pupil", "teacher", "tutor", "speaker")


def persona_of(space: Space) -> frozenset[str]:
    """Return the dimensions that say how a role is or behaves: the space's own list, else those whose name or
    label says so: `tone`, `manner`, "How you write", a role as in `learner`, or its trait as in
    `tutor_move`."""
    declared = phrases_of(space).persona
    if declared is not None:
        return frozenset(declared)
    labels = {one.name: one.label or "" for one in space.dimensions}
    return persona_among(labels, [role.name for role in space.roles])


def persona_among(labels: Mapping[str, str], roles: Iterable[str]) -> frozenset[str]:
    """Return those of the dimensions, given with their labels, that say how one of the roles is."""
    people = {*_PEOPLE, *(role.lower() for role in roles)}
    return frozenset(name for name, label in labels.items() if _is_persona(name.lower(), label, people))


def _is_persona(name: str, label: str, people: Collection[str]) -> bool:
    whose, _, what = name.partition("_")
    if name in people or (whose in people and _OF_ROLE.match(what)):
        return True
    return _TRAITS.search(f"{name.replace('_', ' ')} {label.lower()}") is not None
