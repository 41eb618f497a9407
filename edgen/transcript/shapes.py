"""JSON values to what was said: the shapes in which models put a conversation into JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from edgen.model import Role
from edgen.transcript.loosejson import Pairs
from edgen.transcript.marker import find_marker
from edgen.transcript.quotes import silent, unwrap
from edgen.transcript.roles import alias, plain, side

MAX_DEPTH = 12

_WHO = (
    "role",
    "speaker",
    "name",
    "who",
    "from",
    "author",
    "character",
    "participant",
    "actor",
    "person",
    "party",
    "by",
)
_WHAT = (
    "text", "content", "message", "utterance", "line", "dialogue", "dialog", "says", "said", "speech",
    "value", "statement", "response", "words", "turn", "body",
)  # fmt: skip
_PROBABILITY = re.compile(r"probab|likelihood|chance", re.IGNORECASE)
_STRING = re.compile(r"[\W_\d]{0,16}([^:：\n]{1,60}?)[*_\s\"']{0,4}[:：](.*)", re.DOTALL)
_ENDED = ("ended_by", "endedby")


@dataclass(slots=True)
class Spoken:
    """What a reply holds before it is cleaned: `entries` in their order, the probabilities given, and
    `texts` that may hold a conversation in lines."""

    entries: list[tuple[Role, str]] = field(default_factory=list)
    probabilities: list[Any] = field(default_factory=list)
    ended_by: Role | None = None
    named: bool = False
    aliased: bool = False
    strangers: bool = False
    unspoken: bool = False
    texts: list[str] = field(default_factory=list)


def spoken_in(values: tuple[Any, ...]) -> Spoken:
    """The conversation in some JSON values, the longest if there are several; no entries if none."""
    result = Spoken()
    best: list[tuple[str, str]] = _turns_of(values)
    most = _named(best)
    stack = [(value, 0) for value in reversed(values)]
    while stack:
        value, depth = stack.pop()
        if not isinstance(value, list) or depth > MAX_DEPTH:
            continue
        members = list(_members(value))
        for key, child in members:
            if key is not None and not isinstance(child, list):
                _note(key, child, result)
            elif isinstance(child, list):
                stack.append((child, depth + 1))
        found = _turns_of(value)
        if found and (named := _named(found)) > most:
            best, most = found, named
    _resolve(best, result)
    return result


def _named(found: list[tuple[str, str]]) -> int:
    return sum(1 for name, _ in found if name)


def _members(value: list[Any]) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, Pairs):
        yield from value
    else:
        yield from ((None, child) for child in value)


def _note(key: str, child: Any, result: Spoken) -> None:
    lowered = key.lower().replace(" ", "_")
    if _PROBABILITY.search(key[:80]):
        result.probabilities.append(child)
    elif lowered in _ENDED and isinstance(child, str):
        result.ended_by = side(child)
    elif isinstance(child, str) and "\n" in child and "eacher" in child:
        result.texts.append(child)


def _turns_of(value: Any) -> list[tuple[str, str]]:
    """The (name, text) pairs of a container, if its members are turns."""
    if isinstance(value, Pairs):
        return [t for key, child in value if (t := _keyed(key, child))]
    turns: list[tuple[str, str]] = []
    for item in value:
        turns += _turn(item)
    return turns


def _turn(item: Any) -> list[tuple[str, str]]:
    """The turns that one element of a list holds: mostly one, one without a name if it is a bare text,
    none if it is something else."""
    if isinstance(item, str):
        match = _STRING.match(item)
        return [(match[1], unwrap(match[2], ('"', "“"), []))] if match else [("", item)]
    if isinstance(item, Pairs):
        who = _first(item, _WHO)
        what = _first(item, _WHAT)
        if who is not None and what is not None:
            return [(who, what)]
        return [t for key, child in item if (t := _keyed(key, child))]
    if isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item):
        return [(item[0], item[1])]
    return []


def _keyed(key: str, child: Any) -> tuple[str, str] | None:
    """`{"Teacher": "…"}`, also `{"Teacher (Ms. R)": "…"}` and `{"Teacher": {"text": "…"}}`."""
    if isinstance(child, Pairs):
        child = _first(child, _WHAT)
    if isinstance(child, str) and (side(key) or alias(key)) and not _PROBABILITY.search(key[:80]):
        return key, child
    return None


def _first(item: Pairs, names: tuple[str, ...]) -> str | None:
    for name in names:
        for key, child in item:
            if isinstance(child, str) and key.lower().strip() == name:
                return child
    return None


def _resolve(found: list[tuple[str, str]], result: Spoken) -> None:
    """Names to sides; other words for them only where teacher and student are not both there."""
    sides = [side(name) for name, _ in found]
    both = {"Teacher", "Student"} <= set(sides)
    for (name, text), role in zip(found, sides, strict=True):
        if role is None and not both:
            role = alias(name)
            result.aliased = result.aliased or role is not None
        elif role is not None and not plain(name):
            result.named = True
        if role is not None:
            result.entries.append((role, text))
        elif find_marker(text) is not None:
            result.unspoken = True
        elif not silent(text):
            result.strangers = True
