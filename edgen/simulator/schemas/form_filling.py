"""The simulator's own answers, converted to the form that a request specifies.

The simulator answers in prose, as the prompts of edgen's templates request. `fill_form` converts such an
answer to an object of the specified form: the turns of a conversation, a number, a choice, a list. An answer
that cannot be converted stays as it is, and `structured` then invents one that fits.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from edgen.core.values import END_MARKER, Conversation
from edgen.reading.answer_body import object_in
from edgen.reading.conversation import read
from edgen.reading.roles import find_words
from edgen.simulator.schemas.schema_patterns import UnfitSchema
from edgen.simulator.schemas.structured import accepts

Part = Mapping[str, Any]  # a part of a JSON Schema
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_END = re.compile(r"(?<=[.!?])\s+")  # end of a sentence
_BULLET = re.compile(r"\A\s*(?:[-*•]|\d{1,4}[.)])\s+")


def fill_form(text: str, schema: bytes) -> str:
    """Return an answer's content as JSON of the form, or the unchanged answer if that is impossible."""
    described = _find_part(msgspec.json.decode(schema)).get("properties", {})
    properties = {name: _find_part(one) for name, one in described.items()}
    held = object_in(text)
    bounded = bool(_list_places(properties.get("conversation", {})))
    if held is not None and properties.keys() <= held.keys() and not bounded:
        return text
    if held is not None and isinstance(held.get("text"), str) and len(held) == 1:  # as JSON mode has it
        text, held = held["text"], None
    if "conversation" in properties:
        filled = _fill_conversation(text, properties)
    elif len(properties) == 1:
        (name, part), *_ = properties.items()
        filled = {name: _read_value(text, part)}
    else:
        filled = _fill_properties(text, properties, held)
    if any(value is None for value in filled.values()):
        return text
    return msgspec.json.encode(filled).decode()


def _fill_conversation(text: str, properties: Mapping[str, Part]) -> dict[str, Any]:
    part = properties["conversation"]
    bounded = _list_places(part)
    places = bounded or [_list_properties(part.get("items"))]
    roles = tuple(dict.fromkeys(role for place in places for role in _list_roles(place)))
    known = len(roles) > 1 and all("text" in place for place in places)
    made = read(text, roles=find_words(roles)) if known else None
    if not isinstance(made, Conversation):
        return {"conversation": None}
    turns = [{"role": turn.role, "text": turn.text} for turn in made.turns]
    if made.ended_by is not None:
        turns[-1]["text"] += f" {END_MARKER}"
    found: dict[str, Any] = {"conversation": _place_turns(turns, bounded) if bounded else turns}
    if "probability" in properties:
        said = 0.5 if made.probability is None else made.probability
        steps = properties["probability"].get("enum")
        found["probability"] = said if steps is None else _find_nearest(said, steps)
    return found


def _find_part(part: Any) -> Part:
    """Return a part of a schema, with true and false as an empty part."""
    return part if isinstance(part, Mapping) else {}


def _list_places(part: Part) -> Sequence[Part]:
    """Return the properties of each turn, for a list with one schema per turn; empty for other lists."""
    return [*map(_list_properties, part.get("prefixItems", ()))]


def _list_properties(part: Any) -> Part:
    properties: Part = _find_part(part).get("properties", {})
    return properties


def _list_roles(place: Part) -> Sequence[str]:
    role = _find_part(place.get("role"))
    named = [role["const"]] if "const" in role else role.get("enum", ())
    return [name for name in named if isinstance(name, str)]


def _place_turns(turns: Sequence[Mapping[str, str]], places: Sequence[Part]) -> list[dict[str, str]] | None:
    """Return a turn for each place, in order: the next turn of its role with fitting sentences, or else one
    that was passed over. None if a place gets no turn."""
    placed, left = [], [*turns]
    passed: list[Mapping[str, str]] = []
    for place in places:
        for turn in (*left, *passed):
            if turn["role"] in _list_roles(place) and (said := _choose_fitting(turn["text"], place["text"])):
                break
        else:
            return None
        placed.append({"role": turn["role"], "text": said})
        if turn in left:
            at = left.index(turn)
            passed, left = [*passed, *left[:at]], left[at + 1 :]
        else:
            passed.remove(turn)
    return placed


def _choose_fitting(text: str, part: Part) -> str | None:
    """Return the longest run of sentences of a text that fits a part; None if none fits, or if the part is
    not a complete schema."""
    schema = msgspec.json.encode(part)
    sentences = _END.split(text)
    for count in range(len(sentences), 0, -1):
        for first in range(len(sentences) - count + 1):
            with contextlib.suppress(UnfitSchema):
                if accepts(schema, run := " ".join(sentences[first : first + count])):
                    return run
    return None


def _fill_properties(
    text: str, properties: Mapping[str, Part], held: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the properties that an object or lines name, or else the first one that can hold the text. The
    others are empty."""
    said = held or dict(re.findall(r"(?m)^\W*(\w+)\s*:\s*(.+)$", text))
    named = {name: said[name] for name in properties if name in said}
    if not named:
        fits = ((name, _read_value(text, part)) for name, part in properties.items())
        named = dict([next(((name, value) for name, value in fits if value is not None), ("", None))])
    found = {}
    for name, part in properties.items():
        value = named.get(name)
        found[name] = (
            _make_empty(part)
            if value is None
            else _read_value(value, part)
            if isinstance(value, str)
            else value
        )
    return found


def _make_empty(part: Part) -> Any:
    """Return the smallest value of a part; None if it cannot be empty."""
    if part.get("type") == "array":
        return [] if not part.get("minItems") else None
    if part.get("type") == "string":
        return "" if not part.get("minLength") else None
    if part.get("type") == "integer":
        return part.get("minimum")
    return next(iter(part.get("enum", ())), None)


def _read_value(text: str, part: Part) -> Any:
    """Read a text as a value of a part; None if that is impossible."""
    text, part = text.strip(), _find_part(part)
    if "anyOf" in part:
        fitting = (
            one for one in part["anyOf"] if _find_part(one).get("type") != "integer" or text.isdecimal()
        )
        return next((value for one in fitting if (value := _read_value(text, one)) is not None), None)
    if "properties" in part:
        found = {name: _read_value(text, one) for name, one in part["properties"].items()}
        return None if None in found.values() else found
    if "enum" in part:
        return _choose_value(text, part["enum"])
    if part.get("type") == "integer":
        return next((int(float(found)) for found in _NUMBER.findall(text)), None)
    if part.get("type") == "array":
        return _list(text, _find_part(part.get("items")))
    return (text or None) if part.get("type") == "string" else None


def _choose_value(text: str, values: Sequence[Any]) -> Any:
    if all(isinstance(value, str) for value in values):
        return next((value for value in values if value.casefold() == text.casefold()), None)
    number = next((float(found) for found in _NUMBER.findall(text)), None)
    return None if number is None else _find_nearest(number, values)


def _list(text: str, part: Part) -> list[Any] | None:
    if part.get("type") == "integer":
        return [int(found) for found in re.findall(r"\d+", text)] or None
    if part.get("type") == "string":
        return [_BULLET.sub("", line).strip(' "') for line in text.splitlines() if line.strip()] or None
    return None


def _find_nearest(number: float, values: Sequence[Any]) -> float | None:
    """Return the nearest number among the values; None without numbers."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return min(numbers, key=lambda value: abs(value - number), default=None)
