"""Find the conversation in parsed JSON: its most likely container, and the values around the turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from edgen.core.text import compile_later
from edgen.reading.loose_json.parser import is_object, list_members
from edgen.reading.loose_json.turns import (
    CONTAINERS,
    PROBABILITY,
    UNDERSTANDING,
    WHOLES,
    KeyMeaning,
    Keys,
    Shapes,
    is_numbered,
    read_parts,
    read_turns,
)
from edgen.reading.probability import parse_probability
from edgen.reading.roles import RoleWords
from edgen.reading.text.marker import find_marker
from edgen.reading.text.quotes import is_silent
from edgen.reading.text.surroundings import is_negated

MAX_DEPTH = 12
_LEAST = 4  # turns of a conversation that is missed where it is left out

_TITLES = WHOLES | {"turns", "messages"}
# The name of a value in another member: `{"type": "probability", "value": 0.2}`.
_NAMED_CHANCE = compile_later(
    r"(?i)(?:\w{1,20}[ ])?(?:\w{1,20}_)?(?:probability|likelihood)(?:[ _]\w{1,20}){0,4}"
)
_VALUES = frozenset({"value", "probability", "estimate", "score"})


@dataclass(slots=True)
class JsonConversation:
    """A conversation in JSON, before its texts are cleaned."""

    entries: list[tuple[str, str]] = field(default_factory=list)  # role and text of each turn
    probabilities: list[Any] = field(default_factory=list)  # values as they are given
    ended_by: str | None = None  # role that a key names as the speaker of the end marker; None without one
    named: bool = False  # a person's name or a note stands next to a role, or in its place
    aliased: bool = False  # another word stands for a role
    strangers: bool = False  # a speaker without a role says something
    unspoken: bool = False  # an end marker stands under no role
    others: bool = False  # there is more than one conversation
    texts: list[str] = field(default_factory=list)  # texts that may hold a conversation in lines
    percentages: list[Any] = field(default_factory=list)  # what was understood
    people: dict[str, str] = field(default_factory=dict)  # roles by the names of persons, in lower case


# A container to examine: its value, depth and key, and the probabilities next to it.
_Place = tuple[Any, int, str | None, list[Any]]
_LISTED, _TITLED, _COMPLETE = range(3)


def find_in_json(values: tuple[Any, ...], roles: RoleWords) -> JsonConversation:
    """Return the conversation in some JSON values, without entries if there is no conversation.

    Of several, the first in an object with a probability is returned; else the longest under a key such as
    `conversation`; else the longest.
    """
    result = JsonConversation()
    shapes = Shapes(Keys(roles))
    best: list[tuple[str, str]] = read_turns(values, shapes)
    most = (_LISTED, _count_named(best))
    best_given: list[Any] = []
    others: list[list[tuple[str, str]]] = []
    stack: list[_Place] = [(value, 0, None, []) for value in reversed(values)]
    while stack:
        value, depth, under, given = stack.pop()
        if depth > MAX_DEPTH:
            continue
        titled = under is not None and under.strip().lower() in _TITLES
        if is_object(value):
            named = shapes.said.roles.by_name.get((under or "").lower())
            if named is not None and isinstance(name := dict(list_members(value)).get("name"), str):
                result.people.setdefault(name.strip().lower(), named)
            stack += _look_into(value, depth, shapes.said, result)
        elif isinstance(value, list):
            if len(value) == 2 and type(value[0]) is str:  # such as ["probability", 0.2]
                said = shapes.said[value[0]]
                result.probabilities += (
                    _find_sole_number(value[1:]) if said.probable and not said.negated else []
                )
            own: list[Any] = []
            stack += [
                (child, depth + 1, None, own)
                for child in reversed(value)
                if _must_look_into(child, shapes, result)
            ]
        # Of objects, only one under a title can be more likely than the best of the lists.
        if isinstance(value, CONTAINERS) and (titled or not is_object(value) or is_numbered(value)):
            found = shapes.read_turns_of(value)
            if not found and (found := read_parts(value, shapes, under)):
                titled = True
            if found and (worth := _rank_turns(found, titled=titled, given=given)) > most:
                best, most, best_given = found, worth, given
            others += [found] if _is_whole(found, roles) else []
    if most[0] == _COMPLETE:
        result.probabilities = best_given
    if not result.probabilities and len(result.percentages) == 1:
        result.probabilities = [*result.percentages]
    if len(others) > 1:
        taken = {*best}
        result.others = any(taken.isdisjoint(other) for other in others)
    _resolve(best, result, roles)
    return result


def _is_whole(found: list[tuple[str, str]], roles: RoleWords) -> bool:
    """Return whether some turns are a conversation of two roles."""
    return len(found) >= _LEAST and len({roles.find_role_in(name) for name, _ in found} - {None}) > 1


def _must_look_into(child: Any, shapes: Shapes, result: JsonConversation) -> bool:
    """Return whether a member of a list may hold more than a turn; note the texts of a mere turn."""
    if type(child) is not dict:
        return isinstance(child, CONTAINERS)
    if not shapes[tuple(child)].quiet:
        return True
    for said in child.values():
        if type(said) is str:
            if "\n" in said and shapes.said.named in said:
                result.texts.append(said)
        elif isinstance(said, CONTAINERS) or type(said) is float:
            return True
    return False


def _look_into(value: Any, depth: int, keys: Keys, result: JsonConversation) -> list[_Place]:
    """Note the values of an object's members; return the containers among them in reverse order."""
    before, valued = len(result.probabilities), False
    own: list[Any] = []
    children: list[_Place] = []
    for key, child in list_members(value):
        contains = isinstance(child, CONTAINERS)
        said = keys[key]
        if said.probable:
            if not said.negated:
                result.probabilities += _find_sole_number(child) if contains else [child]
        elif isinstance(child, str):
            if child[-1:] == "%" or child[-4:] == "cent":
                result.percentages += [child] if UNDERSTANDING.fullmatch(key.strip()) else []
            _note(said, child, result, keys)
        elif type(child) is float and UNDERSTANDING.fullmatch(key.strip()):
            result.percentages.append(child)
        valued = valued or key in _VALUES
        if contains:
            if not said.probable and UNDERSTANDING.fullmatch(key.strip()):
                result.percentages += _find_sole_number(child)
            children.append((child, depth + 1, key, own))
    if valued and any(type(c) is str and _NAMED_CHANCE.fullmatch(c) for _, c in list_members(value)):
        result.probabilities += _find_sole_number(value)
    own += result.probabilities[before:]
    children.reverse()
    return children


def _note(said: KeyMeaning, child: str, result: JsonConversation, keys: Keys) -> None:
    """Note a text that is not a turn: who ended it all, a person's name, or a possible conversation."""
    if said.ended:
        result.ended_by = keys.roles.find_role_in(child)
    elif ("\n" in child or child[:1] == "{") and keys.named in child:
        result.texts.append(child)
    elif said.person is not None and len(child) <= 40:
        result.people.setdefault(child.strip().lower(), said.person)


def _rank_turns(found: list[tuple[str, str]], *, titled: bool, given: list[Any]) -> tuple[int, int]:
    """Return the rank of a container's turns as the conversation: by its place, then by their number."""
    named = _count_named(found)
    if titled and named > 1:
        return (_COMPLETE, 0) if given else (_TITLED, named)
    return _LISTED, named


def _count_named(found: list[tuple[str, str]]) -> int:
    return len([name for name, _ in found if name])


def _find_sole_number(value: Any) -> list[Any]:
    """Return the one number of a probability that is given as an object or a list: `{"value": 0.2}`,
    `[0.2]`."""
    pairs: Iterable[tuple[str | None, Any]] = (
        list_members(value) if is_object(value) else [(None, v) for v in value]
    )
    inside = [
        (key, child)
        for key, child in pairs
        if isinstance(child, float | int | str)
        and len(str(child)) < 20
        and parse_probability(child) is not None
    ]
    numbers = [child for key, child in inside if key is None or not is_negated(key)]
    titled = [child for key, child in inside if key is not None and key.lower() in _VALUES]
    return titled[:1] or (numbers if len(numbers) == 1 else [])


def _resolve(found: list[tuple[str, str]], result: JsonConversation, roles: RoleWords) -> None:
    """Add the entries to `result`, with roles for names.

    Other words for the roles count only if fewer than two roles are named.
    """
    names = {name for name, _ in found}
    by_name = {name: roles.find_role_in(name) for name in names}
    few = len({role for role in by_name.values() if role is not None}) < 2
    bare = {name for name, role in by_name.items() if role is not None and roles.is_bare(name)}
    for name, text in found:
        role = by_name[name]
        if role is None and few:
            role = result.people.get(name.strip().lower())
            result.named = result.named or role is not None
        if role is None and few:
            role = roles.alias(name)
            result.aliased = result.aliased or role is not None
        elif role is not None and name not in bare:
            result.named = True
        if role is not None:
            result.entries.append((role, text))
        elif PROBABILITY.search(name) and parse_probability(text) is not None:
            result.probabilities.append(text)
        elif find_marker(text) is not None:
            result.unspoken = True
        elif not is_silent(text):
            result.strangers = True
