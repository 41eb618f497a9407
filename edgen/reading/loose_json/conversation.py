"""JSON values to what was said: the shapes in which models put a conversation into JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from edgen.reading.answers.probability import parse_probability
from edgen.reading.loose_json.parser import is_object, members
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
_PROBABILITY = re.compile(r"(?i)probab|likelihood|chance|^p(?:_(?:underst|learn|succ|solv|help)\w{0,20})?$")
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


# A container still to be looked at: its depth, the key it is under, the probabilities given with it.
_Place = tuple[Any, int, str | None, list[Any]]
_LISTED, _TITLED, _COMPLETE = range(3)
_CONTAINERS = (dict, list)


class _Key(msgspec.Struct, frozen=True):
    """What a key says: that a probability follows, or its contrary, who spoke the end marker, somebody's name, or that
    somebody speaks."""

    probable: bool
    negated: bool
    ended: bool
    person: str | None
    speaks: bool
    who: int  # its place among the words for who speaks, and for what is said
    what: int


_NO_PLACE = 99


class _Keys(dict[str, _Key]):
    """What the keys of one reply say, each looked at once."""

    def __init__(self, roles: RoleWords) -> None:
        super().__init__()
        self.roles = roles
        self.named = roles.names[0][1:]  # found in a text in which the first role is named, in either case

    def __missing__(self, key: str) -> _Key:
        roles, lowered = self.roles, key.lower().replace(" ", "_")
        probable = _PROBABILITY.search(key[:80]) is not None
        word = key.lower().strip()
        named = lowered.removesuffix("_name") if lowered.endswith("_name") else ""
        self[key] = found = _Key(
            probable,
            probable and is_negated(key[:80]),
            not probable and lowered in _ENDED,
            None if probable or not named else roles.by_name.get(named),
            _SPEAKER.of(roles).match(key[:200]) is not None or roles.alias(key) is not None,
            _WHO.index(word) if word in _WHO else _NO_PLACE,
            _WHAT.index(word) if word in _WHAT else _NO_PLACE,
        )
        return found


class _Shape(msgspec.Struct, frozen=True):
    """What dictionaries with the same keys hold: the keys of who speaks and of what is said, the likeliest first; whether
    a key is a speaker's; and whether no key says anything else that counts."""

    who: tuple[str, ...]
    what: tuple[str, ...]
    speaks: bool
    quiet: bool


class _Shapes(dict[tuple[str, ...], _Shape]):
    """The shapes of one reply's dictionaries, each looked at once: most turns are alike."""

    def __init__(self, keys: _Keys) -> None:
        super().__init__()
        self.said = keys

    def __missing__(self, names: tuple[str, ...]) -> _Shape:
        said = [(name, self.said[name]) for name in names]
        self[names] = shape = _Shape(
            tuple([name for place, name in sorted((k.who, n) for n, k in said) if place < _NO_PLACE]),
            tuple([name for place, name in sorted((k.what, n) for n, k in said) if place < _NO_PLACE]),
            any(key.speaks for _, key in said),
            not any(key.probable or key.ended or key.person for _, key in said),
        )
        return shape


def find_in_json(values: tuple[Any, ...], roles: RoleWords) -> JsonConversation:
    """Return the conversation in some JSON values; no entries if none. Of several, the first in an object
    that gives its probability is taken, then one under a key that says so, then a list before an object, then
    the longer."""
    result = JsonConversation()
    shapes = _Shapes(_Keys(roles))
    best: list[tuple[str, str]] = _turns_of(values, shapes)
    most = (_LISTED, _named(best))
    beside: list[Any] = []
    stack: list[_Place] = [(value, 0, None, []) for value in reversed(values)]
    while stack:
        value, depth, under, given = stack.pop()
        if depth > MAX_DEPTH:
            continue
        titled = under is not None and under.strip().lower() in _TITLES
        if is_object(value):
            stack += _look_into(value, depth, shapes.said, result)
        elif isinstance(value, list):
            own: list[Any] = []
            stack += [
                (child, depth + 1, None, own) for child in reversed(value) if _counts(child, shapes, result)
            ]
        # Of objects, only one under a title can be more likely than the best of the lists.
        if isinstance(value, _CONTAINERS) and (titled or not is_object(value)):
            found = _turns_of(value, shapes)
            if found and (worth := _worth(found, titled=titled, given=given)) > most:
                best, most, beside = found, worth, given
    if most[0] == _COMPLETE:
        result.probabilities = beside
    _resolve(best, result, roles)
    return result


def _counts(child: Any, shapes: _Shapes, result: JsonConversation) -> bool:
    """Return whether a member of a list has to be looked into: most are turns, of which only the texts are
    noted."""
    if type(child) is not dict:
        return isinstance(child, _CONTAINERS)
    if not shapes[tuple(child)].quiet:
        return True
    for said in child.values():
        if type(said) is str:
            if "\n" in said and shapes.said.named in said:
                result.texts.append(said)
        elif isinstance(said, _CONTAINERS):
            return True
    return False


def _look_into(value: Any, depth: int, keys: _Keys, result: JsonConversation) -> list[_Place]:
    """Note what the members of an object say; the containers among them, the first last."""
    before = len(result.probabilities)
    own: list[Any] = []
    children: list[_Place] = []
    for key, child in members(value):
        contains = isinstance(child, _CONTAINERS)
        said = keys[key]
        if said.probable:
            if not said.negated:
                result.probabilities += _sole(child) if contains else [child]
        elif isinstance(child, str):
            _note(said, child, result, keys)
        if contains:
            children.append((child, depth + 1, key, own))
    own += result.probabilities[before:]
    children.reverse()
    return children


def _note(said: _Key, child: str, result: JsonConversation, keys: _Keys) -> None:
    """Note a text that is no turn: who ended it, somebody's name, or what may be a conversation in lines."""
    if said.ended:
        result.ended_by = keys.roles.named_in(child)
    elif "\n" in child and keys.named in child:
        result.texts.append(child)
    elif said.person is not None and len(child) <= 40:
        result.people.setdefault(child.strip().lower(), said.person)


def _worth(found: list[tuple[str, str]], *, titled: bool, given: list[Any]) -> tuple[int, int]:
    """How likely the turns of a container are the conversation: where it stands, and how many they are."""
    named = _named(found)
    if titled and named > 1:
        return (_COMPLETE, 0) if given else (_TITLED, named)
    return _LISTED, named


def _named(found: list[tuple[str, str]]) -> int:
    return len([name for name, _ in found if name])


def _sole(value: Any) -> list[Any]:
    """Return the one number of a probability that is given as an object or a list: `{"value": 0.2}`,
    `[0.2]`."""
    pairs: Iterable[tuple[str | None, Any]] = (
        members(value) if is_object(value) else [(None, v) for v in value]
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


def _turns_of(value: Any, shapes: _Shapes) -> list[tuple[str, str]]:
    """Return the (name, text) pairs of a container, if its members are turns."""
    if is_object(value):
        keyed = [
            t
            for key, child in members(value)
            if shapes.said[key].speaks and (t := _keyed(key, child, shapes.said))
        ]
        numbered = [
            child for key, child in members(value) if is_object(child) and key.strip("turn_ ").isdigit()
        ]
        return keyed if keyed or not numbered else _turns_of(numbered, shapes)
    turns: list[tuple[str, str]] = []
    for item in value:
        if type(item) is dict:
            shape = shapes[tuple(item)]
            if shape.who and shape.what:
                who, what = item[shape.who[0]], item[shape.what[0]]
                if type(who) is str and type(what) is str:
                    turns.append((who, what))
                    continue
            turns += _turn_in(item, shapes)
        else:
            turns += _turn(item, shapes)
    return turns if any(name for name, _ in turns) else _turns_by_values(value, shapes.said.roles) or turns


def _turns_by_values(items: list[Any], roles: RoleWords) -> list[tuple[str, str]]:
    """Return the turns of a list of objects under keys that nobody knows: all values under one are roles, of which two
    speak, and the longest texts stand under another."""
    objects = [dict(members(item)) for item in items if is_object(item)]
    objects = [item for item in objects if len(item) > 1]
    shared = set.intersection(*map(set, objects)) if len(objects) > 1 else set()
    texts = {key: [item[key] for item in objects] for key in shared}
    texts = {key: some for key, some in texts.items() if all(isinstance(text, str) for text in some)}
    named = {key: {roles.named_in(name) for name in said} for key, said in texts.items()}
    who = next((key for key, spoken in named.items() if None not in spoken and len(spoken) > 1), None)
    said = [(sum(map(len, some)), some) for key, some in texts.items() if key != who]
    return list(zip(texts[who], max(said)[1], strict=True)) if who is not None and said else []


def _turn(item: Any, shapes: _Shapes) -> list[tuple[str, str]]:
    """Return the turns that one element of a list holds, mostly one; a bare text is a turn without a name."""
    if isinstance(item, str):
        match = _STRING.match(item)
        if match is None:
            return [("", item)]
        said = match[2]
        mark = next((m for m in ("**", "__", "*", "_") if item.lstrip().startswith(m)), "")
        return [(match[1], unwrap(said.removeprefix(mark), ('"', "“"), []))]
    if is_object(item):
        return _turn_in(item, shapes)
    if isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item):
        return [(item[0], item[1])]
    return []


def _turn_in(item: Any, shapes: _Shapes) -> list[tuple[str, str]]:
    """Return the turns of an object: one by who speaks and what is said, or one a key."""
    said = [(shapes.said[key], child) for key, child in members(item)]
    texts = [
        (key, text)
        for key, child in said
        if (text := child if isinstance(child, str) else _leaf(key, child, shapes.said)) is not None
    ]
    who = min([(key.who, place) for place, (key, _) in enumerate(texts)], default=(_NO_PLACE, 0))
    what = min([(key.what, place) for place, (key, _) in enumerate(texts)], default=(_NO_PLACE, 0))
    if who[0] < _NO_PLACE and what[0] < _NO_PLACE:
        return [(texts[who[1]][1], texts[what[1]][1])]
    return _turns_of(item, shapes)


def _leaf(key: _Key, value: Any, keys: _Keys) -> str | None:
    """Return the text under a key of who speaks or of what is said that stands one level deeper: `{"speaker": {"name":
    "Ann"}}`, `{"content": [{"type": "text", "text": "…"}]}`; None under any other key."""
    if min(key.who, key.what) == _NO_PLACE or not isinstance(value, _CONTAINERS):
        return None
    if isinstance(value, list) and not is_object(value):
        parts = [part if isinstance(part, str) else _leaf(key, part, keys) for part in value]
        return "\n".join(map(str, parts)) if parts and None not in parts else None
    named = [(keys[name], child) for name, child in members(value) if isinstance(child, str)]
    places = [(each.what if key.what < _NO_PLACE else each.who, text) for each, text in named]
    place, text = min(places, default=(_NO_PLACE, ""), key=lambda found: found[0])
    return text if place < _NO_PLACE else None


def _keyed(key: str, child: Any, keys: _Keys) -> tuple[str, str] | None:
    """`{"Teacher": "…"}`, also `{"Teacher (Ms. R)": "…"}` and `{"Teacher": {"text": "…"}}`."""
    if is_object(child):
        texts = [
            (keys[name].what, place, said)
            for place, (name, said) in enumerate(members(child))
            if isinstance(said, str) and keys[name].what < _NO_PLACE
        ]
        child = min(texts)[2] if texts else None
    return (key, child) if isinstance(child, str) else None


def _resolve(found: list[tuple[str, str]], result: JsonConversation, roles: RoleWords) -> None:
    """Names to roles; other words for them only where fewer than two are named."""
    names = {name for name, _ in found}
    by_name = {name: roles.named_in(name) for name in names}
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
        elif _PROBABILITY.search(name) and parse_probability(text) is not None:
            result.probabilities.append(text)
        elif find_marker(text) is not None:
            result.unspoken = True
        elif not is_silent(text):
            result.strangers = True
