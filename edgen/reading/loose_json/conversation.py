"""JSON values to what was said: the shapes in which models put a conversation into JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from edgen.reading.answers.probability import parse_probability
from edgen.reading.loose_json.parser import Pairs
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.marker import find_marker
from edgen.reading.text.quotes import is_silent, unwrap
from edgen.reading.text.surroundings import is_negated

MAX_DEPTH = 12

_WHO = ("role", "speaker", "name", "who", "from", "author", "character", "participant", "actor", "person", "party", "by")  # fmt: skip
_WHAT = (
    "text", "content", "message", "utterance", "line", "dialogue", "dialog", "says", "said", "speech",
    "value", "statement", "response", "words", "turn", "body",
)  # fmt: skip
_TITLES = frozenset({"conversation", "dialogue", "dialog", "transcript", "turns", "messages", "chat"})
_VALUES = frozenset({"value", "probability", "estimate", "score"})
_PROBABILITY = re.compile(r"(?i)probab|likelihood|chance")
# A key that is somebody's name, not a fact about him (`student_emotion`).
_SPEAKER = RolePattern(
    r"(?i)(?:[\W_]|\d){0,16}(?:ROLE)[\W_]{0,3}(?:\d{1,4}|[a-z])?(?:[\W_]{0,16}|\s?[(\[].{1,80}[)\]][\W_]{0,8})\Z"
    r"|[^\n]{1,80}[(\[]\s?(?:ROLE)\s?[)\]]\W{0,8}\Z"
)
_STRING = re.compile(r"[\W_\d]{0,16}([^:：\n]{1,60}?)[*_\s\"']{0,4}[:：](.*)", re.DOTALL)
_ENDED = ("ended_by", "endedby")


@dataclass(slots=True)
class JsonConversation:
    """What a reply holds before it is cleaned. `texts` may hold a conversation in lines."""

    entries: list[tuple[str, str]] = field(default_factory=list)
    probabilities: list[Any] = field(default_factory=list)
    ended_by: str | None = None
    named: bool = False
    aliased: bool = False
    strangers: bool = False
    unspoken: bool = False
    texts: list[str] = field(default_factory=list)
    people: dict[str, str] = field(default_factory=dict)


# A container still to be looked at: its depth, the key it is under, the probabilities given beside it.
_Place = tuple[Any, int, str | None, list[Any]]
_OBJECT, _LISTED, _TITLED, _COMPLETE = range(4)


def find_in_json(values: tuple[Any, ...], roles: RoleWords) -> JsonConversation:
    """The conversation in some JSON values; no entries if none. Of several, the first in an object that gives its
    probability is taken, then one under a key that says so, then a list before an object, then the longer."""
    result = JsonConversation()
    best: list[tuple[str, str]] = _turns_of(values, roles)
    most = (_LISTED, _named(best))
    beside: list[Any] = []
    stack: list[_Place] = [(value, 0, None, []) for value in reversed(values)]
    while stack:
        value, depth, under, given = stack.pop()
        if not isinstance(value, list) or depth > MAX_DEPTH:
            continue
        children: list[_Place] = []
        before = len(result.probabilities)
        own: list[Any] = []
        for key, child in _members(value):
            if key is not None and (not isinstance(child, list) or _PROBABILITY.search(key[:80])):
                _note(key, child, result, roles)
            if isinstance(child, list):
                children.append((child, depth + 1, key, own))
        own += result.probabilities[before:]
        stack += reversed(children)
        found = _turns_of(value, roles)
        if found and (worth := _worth(value, found, under, given)) > most:
            best, most, beside = found, worth, given
    if most[0] == _COMPLETE:
        result.probabilities = beside
    _resolve(best, result, roles)
    return result


def _worth(
    value: list[Any], found: list[tuple[str, str]], under: str | None, given: list[Any]
) -> tuple[int, int]:
    """How likely the turns of a container are the conversation: where it stands, and how many they are."""
    named = _named(found)
    titled = under is not None and under.strip().lower() in _TITLES and named > 1
    if titled and given:
        return _COMPLETE, 0
    return (_TITLED if titled else _OBJECT if isinstance(value, Pairs) else _LISTED), named


def _named(found: list[tuple[str, str]]) -> int:
    return sum(1 for name, _ in found if name)


def _members(value: list[Any]) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, Pairs):
        yield from value
    else:
        yield from ((None, child) for child in value)


def _note(key: str, child: Any, result: JsonConversation, roles: RoleWords) -> None:
    lowered = key.lower().replace(" ", "_")
    if _PROBABILITY.search(key[:80]):
        if not is_negated(key[:80]):
            result.probabilities += _sole(child) if isinstance(child, list) else [child]
    elif lowered in _ENDED and isinstance(child, str):
        result.ended_by = roles.named_in(child)
    elif isinstance(child, str) and "\n" in child and roles.names[0][1:] in child:
        result.texts.append(child)
    elif isinstance(child, str) and len(child) <= 40 and lowered.endswith("_name"):
        role = roles.by_name.get(lowered.removesuffix("_name"))
        if role is not None:
            result.people.setdefault(child.strip().lower(), role)


def _sole(value: list[Any]) -> list[Any]:
    """The one number of a probability that is given as an object or a list: `{"value": 0.2}`, `[0.2]`."""
    members = [
        (key, child)
        for key, child in _members(value)
        if isinstance(child, float | int | str)
        and len(str(child)) < 20
        and parse_probability(child) is not None
    ]
    numbers = [child for key, child in members if key is None or not is_negated(key)]
    titled = [child for key, child in members if key is not None and key.lower() in _VALUES]
    return titled[:1] or (numbers if len(numbers) == 1 else [])


def _turns_of(value: Any, roles: RoleWords) -> list[tuple[str, str]]:
    """The (name, text) pairs of a container, if its members are turns."""
    if isinstance(value, Pairs):
        return [t for key, child in value if (t := _keyed(key, child, roles))]
    turns: list[tuple[str, str]] = []
    for item in value:
        turns += _turn(item, roles)
    return turns


def _turn(item: Any, roles: RoleWords) -> list[tuple[str, str]]:
    """The turns that one element of a list holds, mostly one; a bare text is a turn without a name."""
    if isinstance(item, str):
        match = _STRING.match(item)
        if match is None:
            return [("", item)]
        said = match[2]
        mark = next((m for m in ("**", "__", "*", "_") if item.lstrip().startswith(m)), "")
        return [(match[1], unwrap(said.removeprefix(mark), ('"', "“"), []))]
    if isinstance(item, Pairs):
        who = _first(item, _WHO)
        what = _first(item, _WHAT)
        if who is not None and what is not None:
            return [(who, what)]
        return [t for key, child in item if (t := _keyed(key, child, roles))]
    if isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item):
        return [(item[0], item[1])]
    return []


def _keyed(key: str, child: Any, roles: RoleWords) -> tuple[str, str] | None:
    """`{"Teacher": "…"}`, also `{"Teacher (Ms. R)": "…"}` and `{"Teacher": {"text": "…"}}`."""
    if isinstance(child, Pairs):
        child = _first(child, _WHAT)
    if isinstance(child, str) and (_SPEAKER.of(roles).match(key[:200]) or roles.alias(key)):
        return key, child
    return None


def _first(item: Pairs, names: tuple[str, ...]) -> str | None:
    for name in names:
        for key, child in item:
            if isinstance(child, str) and key.lower().strip() == name:
                return child
    return None


def _resolve(found: list[tuple[str, str]], result: JsonConversation, roles: RoleWords) -> None:
    """Names to roles; other words for them only where fewer than two are named."""
    named = [roles.named_in(name) for name, _ in found]
    few = len({role for role in named if role is not None}) < 2
    for (name, text), role in zip(found, named, strict=True):
        if role is None and few:
            role = result.people.get(name.strip().lower())
            result.named = result.named or role is not None
        if role is None and few:
            role = roles.alias(name)
            result.aliased = result.aliased or role is not None
        elif role is not None and not roles.is_bare(name):
            result.named = True
        if role is not None:
            result.entries.append((role, text))
        elif find_marker(text) is not None:
            result.unspoken = True
        elif not is_silent(text):
            result.strangers = True
