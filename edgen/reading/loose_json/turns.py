"""Read turns out of JSON containers: speakers and texts, under the keys and in the shapes that models use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from edgen.core.text import compile_later
from edgen.reading.loose_json.parser import is_object, list_members
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.characters import are_spoken, split_camel_case
from edgen.reading.text.quotes import unwrap
from edgen.reading.text.surroundings import is_negated

_WHO = ("role", "speaker", "name", "who", "from", "author", "character", "participant", "actor", "person",
    "party", "by")  # fmt: skip
_WHAT = (
    "text", "content", "message", "utterance", "line", "dialogue", "dialog", "says", "said", "speech",
    "value", "statement", "response", "words", "turn", "body",
)  # fmt: skip
WHOLES = frozenset({"conversation", "dialogue", "dialog", "transcript", "chat"})
PROBABILITY = compile_later(
    r"(?i)probab|likelihood|chance|^p(?:rob)?(?:_(?:underst|learn|succ|solv|help)\w{0,20})?$"
)
# A key whose value may be a percentage of what was understood.
UNDERSTANDING = compile_later(
    r"(?i)(?:student[_ ]?)?(?:understanding|understood|comprehension|mastery|success|learning)"
    r"(?:[_ ](?:score|level|rate|estimate|percent(?:age)?))?"
)
# A key that is a person's name, not a fact about him (`student_emotion`).
_SPEAKER = RolePattern(
    r"(?i)(?:[\W_]|\d){0,16}(?:ROLE)[\W_]{0,3}(?:\d{1,4}|[a-z])?(?:_(?:says|said|(?:text|message|line|turn"
    r"|response|utterance)s?|repl(?:y|ies)|speech))?(?:[\W_]{0,16}|\s?[(\[].{1,80}[)\]][\W_]{0,8})\Z"
    r"|[^\n]{1,80}[(\[]\s?(?:ROLE)\s?[)\]]\W{0,8}\Z"
)
_NUMBERED = compile_later(r"[^\W\d]{0,20}[ _-]?\d{1,4}")
_STRING = compile_later(
    r"[\W_\d]{0,16}(?:([^\W\d_]{1,20})\s[-–—]\s|([^:：\n]{1,60}?)[*_\s\"']{0,4}[:：])(.*)", re.DOTALL
)
_ENDED = ("ended_by", "endedby")
_LONGEST_NAME = 20  # characters of a name that is no text


CONTAINERS = (dict, list)


class KeyMeaning(msgspec.Struct, frozen=True):
    """The meaning of a key."""

    probable: bool  # the value is a probability, or its complement if `negated`
    negated: bool  # the value is the complement of a probability
    ended: bool  # the value is who spoke the end marker
    person: str | None  # role whose person's name the value is; None for other keys
    speaks: bool  # the key is a speaker, and the value what is said
    who: int  # place among the words for who speaks, from 0; _NO_PLACE for other keys
    what: int  # place among the words for what is said, from 0; _NO_PLACE for other keys


_NO_PLACE = 99


class Keys(dict[str, KeyMeaning]):
    """The meaning of the keys of one reply."""

    def __init__(self, roles: RoleWords) -> None:
        super().__init__()
        self.roles = roles
        self.named = roles.names[0][1:]  # found in a text in which the first role is named, in either case

    def __missing__(self, key: str) -> KeyMeaning:
        self[key] = found = _explain_key(key, self.roles)
        return found


@lru_cache(maxsize=1024)  # most replies have the same keys
def _explain_key(key: str, roles: RoleWords) -> KeyMeaning:
    lowered = key.lower().replace(" ", "_")
    probable = PROBABILITY.search(key[:80]) is not None
    word = key.lower().strip()
    named = lowered.removesuffix("_name") if lowered.endswith("_name") else ""
    return KeyMeaning(
        probable,
        probable and is_negated(key[:80]),
        not probable and lowered in _ENDED,
        None if probable or not named else roles.by_name.get(named),
        _SPEAKER.of(roles).match(split_camel_case(key[:200])) is not None or roles.alias(key) is not None,
        _WHO.index(word) if word in _WHO else _NO_PLACE,
        _WHAT.index(word) if word in _WHAT else _NO_PLACE,
    )


class Shape(msgspec.Struct, frozen=True):
    """The meaning of dictionaries with the same keys.

    `who`, `what`: the keys of the speaker and of the text, the likeliest first. `speaks`: a key is a
    speaker's. `quiet`: no key says anything else that counts.
    """

    who: tuple[str, ...]
    what: tuple[str, ...]
    speaks: bool
    quiet: bool


class Shapes(dict[tuple[str, ...], Shape]):
    """The shapes of one reply's dictionaries: most turns have the same."""

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self.said = keys
        self._turns: dict[int, list[tuple[str, str]]] = {}  # by the id of a container, which stays alive

    def read_turns_of(self, value: Any) -> list[tuple[str, str]]:
        """Return `read_turns` of a container of the reply, which is read once."""
        found = self._turns.get(id(value))
        if found is None:
            found = self._turns[id(value)] = read_turns(value, self)
        return found

    def __missing__(self, names: tuple[str, ...]) -> Shape:
        self[names] = shape = _explain_keys(names, self.said.roles)
        return shape


@lru_cache(maxsize=1024)
def _explain_keys(names: tuple[str, ...], roles: RoleWords) -> Shape:
    said = [(name, _explain_key(name, roles)) for name in names]
    return Shape(
        tuple([name for place, name in sorted((k.who, n) for n, k in said) if place < _NO_PLACE]),
        tuple([name for place, name in sorted((k.what, n) for n, k in said) if place < _NO_PLACE]),
        any(key.speaks for _, key in said),
        not any(key.probable or key.ended or key.person for _, key in said),
    )


def read_turns(value: Any, shapes: Shapes) -> list[tuple[str, str]]:
    """Return the (name, text) pairs of a container, if its members are turns."""
    if is_object(value):
        keyed = [
            t
            for key, child in list_members(value)
            if shapes.said[key].speaks and (t := _read_keyed_turn(key, child, shapes.said))
        ]
        if not keyed and (
            columns := _read_columns(value, shapes.said) or _read_turns_in_columns(value, shapes.said)
        ):
            return columns
        numbered = [
            child for key, child in list_members(value) if is_object(child) and _NUMBERED.fullmatch(key)
        ]
        return keyed if keyed or not numbered else read_turns(numbered, shapes)
    turns: list[tuple[str, str]] = []
    for item in value:
        if type(item) is dict:
            shape = shapes[tuple(item)]
            if shape.who and shape.what:
                who, what = item[shape.who[0]], item[shape.what[0]]
                if type(who) is str and type(what) is str:
                    turns.append((who, what))
                    continue
            turns += _read_turn_in_object(item, shapes)
        else:
            turns += _read_element(item, shapes)
    names = {name for name, _ in turns}
    # If the keys of speaker and text are `s` and `t`, the values `T` and `S` show which one is the speaker's.
    if (len(names) > 1 and len(turns) <= len(value)) or len(value) < 2:
        return turns
    by_values = _read_turns_by_values(value, shapes.said.roles)
    short = all(len(name) <= _LONGEST_NAME for name, _ in by_values) and are_spoken(
        [said for _, said in by_values]
    )
    return by_values if by_values and (short or names <= {""}) else turns


def _read_columns(value: Any, keys: Keys) -> list[tuple[str, str]]:
    """Return the turns of an object that lists what each of two sides says, in turn: `{"teacher": […],
    "student": […]}`."""
    columns = [
        (split_camel_case(key), child)
        for key, child in list_members(value)
        if keys[key].speaks and isinstance(child, list) and child and all(type(said) is str for said in child)
    ]
    if len(columns) != 2 or len(columns[0][1]) - len(columns[1][1]) not in (0, 1):
        return []
    if not are_spoken([said for _, child in columns for said in child]):
        return []
    return [
        (key, child[place])
        for place in range(len(columns[0][1]))
        for key, child in columns
        if place < len(child)
    ]


def _read_turns_in_columns(value: Any, keys: Keys) -> list[tuple[str, str]]:
    """Return the turns of an object that lists who speaks and, elsewhere, what they say: `{"speakers": […],
    "texts": […]}`."""
    columns = [
        child
        for _, member in list_members(value)
        for child in (
            [said for key, said in list_members(member) if key.isdigit()] if is_object(member) else member,
        )
        if isinstance(child, list) and len(child) > 1 and all(type(said) is str for said in child)
    ]
    who = next(
        (
            c
            for c in columns
            if len({keys.roles.find_role_in(name) for name in c} - {None}) > 1
            and all(map(keys.roles.find_role_in, c))
        ),
        None,
    )
    texts = [
        column for column in columns if column is not who and who is not None and len(column) == len(who)
    ]
    return (
        list(zip(who, texts[0], strict=True))
        if who is not None and len(texts) == 1 and are_spoken(texts[0])
        else []
    )


def read_parts(items: Any, shapes: Shapes, under: str | None) -> list[tuple[str, str]]:
    """Return the turns of a conversation in parts: lists of turns, or objects that have a list of turns each
    under the same key. The key names no conversation of its own, and no object gives a probability."""
    if is_object(items) or len(items) < 2:
        return []
    if under is not None and all(type(item) is list for item in items):
        parts = [] if any(map(under.lower().__contains__, WHOLES)) else [*map(shapes.read_turns_of, items)]
        whole = all(parts) and all(name for part in parts for name, _ in part)
        return [turn for part in parts for turn in part] if whole else []
    if not all(type(item) is dict and shapes[(*item,)].quiet for item in items):
        return []
    for key in items[0]:
        if key.strip().lower() in WHOLES or not all(type(item.get(key)) is list for item in items):
            continue
        parts = [shapes.read_turns_of(item[key]) for item in items]
        if all(parts) and all(name for part in parts for name, _ in part):
            return [turn for part in parts for turn in part]
    return []


def _read_turns_by_values(items: list[Any], roles: RoleWords) -> list[tuple[str, str]]:
    """Return the turns of a list of objects with unknown keys, or of rows.

    All values under the speaker's key are roles, of which two speak. The longest texts are the turns.
    """
    objects = [_flatten(item) for item in items if isinstance(item, CONTAINERS)]
    objects = [item for item in objects if len(item) > 1]
    if len(objects) < 2:
        return []
    shared = [key for key in objects[0] if all(key in item for item in objects)]
    texts = {key: [item[key] for item in objects] for key in shared}
    texts = {key: some for key, some in texts.items() if all(isinstance(text, str) for text in some)}
    who = next((key for key, said in texts.items() if len(_find_speakers(said, roles)) > 1), None)
    said = [(sum(map(len, some)), some) for key, some in texts.items() if key != who]
    return list(zip(texts[who], max(said)[1], strict=True)) if who is not None and said else []


def _find_speakers(names: Iterable[str], roles: RoleWords) -> set[str]:
    """Return the roles that some names mean; an empty set if a name means no role."""
    found: set[str] = set()
    for name in {*names}:
        role = roles.find_role_in(name) or roles.alias(name)
        if role is None:
            return set()
        found.add(role)
    return found


def _flatten(item: Any) -> dict[str, Any]:
    """Return the members of an object and of the objects in it, under keys such as `actor.kind`.

    The members of a list are under their places.
    """
    flat: dict[str, Any] = {}
    for key, child in list_members(item) if is_object(item) else ((str(i), v) for i, v in enumerate(item)):
        if is_object(child):
            flat.update({f"{key}.{name}": inner for name, inner in list_members(child)})
        else:
            flat[key] = child
    for key, child in flat.items():
        if isinstance(child, list) and len(child) == 1 and isinstance(child[0], str):
            flat[key] = child[0]
    return flat


def is_numbered(value: Any) -> bool:
    """Return whether an object is a list: two objects or more, each under a key with a number."""
    return (
        is_object(value)
        and len(value) > 1
        and all(is_object(child) and _NUMBERED.fullmatch(key) for key, child in list_members(value))
    )


def _read_element(item: Any, shapes: Shapes) -> list[tuple[str, str]]:
    """Return the turns of one element of a list, usually one; a bare text is a turn without a name."""
    if isinstance(item, str):
        match = _STRING.match(item)
        if match is None:
            return [("", item)]
        said = match[3]
        mark = next((m for m in ("**", "__", "*", "_") if item.lstrip().startswith(m)), "")
        return [(match[1] or match[2], unwrap(said.removeprefix(mark), ('"', "“"), []))]
    if is_object(item):
        return _read_turn_in_object(item, shapes)
    if isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item):
        return [(item[0], item[1])]
    return []


def _read_turn_in_object(item: Any, shapes: Shapes) -> list[tuple[str, str]]:
    """Return the turns of an object: one turn with a speaker's and a text's key, or a turn for each key."""
    said = [(shapes.said[key], child) for key, child in list_members(item)]
    texts = [
        (key, text)
        for key, child in said
        if (text := child if isinstance(child, str) else _find_leaf(key, child, shapes.said)) is not None
    ]
    who = min([(key.who, place) for place, (key, _) in enumerate(texts)], default=(_NO_PLACE, 0))
    what = min([(key.what, place) for place, (key, _) in enumerate(texts)], default=(_NO_PLACE, 0))
    if who[0] < _NO_PLACE and what[0] < _NO_PLACE:
        return [(texts[who[1]][1], texts[what[1]][1])]
    return shapes.read_turns_of(item)


def _find_leaf(key: KeyMeaning, value: Any, keys: Keys) -> str | None:
    """Return the text one level below the key of a speaker or a text; None for any other key.

    Examples are `{"speaker": {"name": "Ann"}}` and `{"content": [{"type": "text", "text": "…"}]}`.
    """
    if min(key.who, key.what) == _NO_PLACE or not isinstance(value, CONTAINERS):
        return None
    if isinstance(value, list) and not is_object(value):
        parts = [part if isinstance(part, str) else _find_leaf(key, part, keys) for part in value]
        return "\n".join(map(str, parts)) if parts and None not in parts else None
    named = [(keys[name], child) for name, child in list_members(value) if isinstance(child, str)]
    places = [(each.what if key.what < _NO_PLACE else each.who, text) for each, text in named]
    place, text = min(places, default=(_NO_PLACE, ""), key=lambda found: found[0])
    return text if place < _NO_PLACE else None


def _read_keyed_turn(key: str, child: Any, keys: Keys) -> tuple[str, str] | None:
    """`{"Teacher": "…"}`, also `{"Teacher (Ms. R)": "…"}` and `{"Teacher": {"text": "…"}}`."""
    if is_object(child):
        texts = [
            (keys[name].what, place, said)
            for place, (name, said) in enumerate(list_members(child))
            if isinstance(said, str) and keys[name].what < _NO_PLACE
        ]
        child = min(texts)[2] if texts else None
    return (split_camel_case(key), child) if isinstance(child, str) else None
