"""Forms of answers: the JSON Schema that a request carries, and the sentence that asks for the same in words.

A protocol states the form of each answer. Where the job and the service allow it, the schema is sent with the
request, and the sentence ends its last message; elsewhere the template's own words remain. Forms use the part
of JSON Schema that all services with structured answers have: objects whose properties are all required,
lists, texts, whole numbers, enumerations, and alternatives of these. If a service refuses bounds (BOUNDS),
they are left out; then all other optional keywords (EXTRAS).

An answer kind names the answer that a template requests. Protocols declare their kinds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.core import registry
from edgen.core.values import Message, Reply

Part = dict[str, Any]
"""The JSON Schema of a part of an answer."""

BOUNDS = frozenset(
    [
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]
)
EXTRAS = BOUNDS | {"additionalProperties", "anyOf"}
_MOST_NAMED = 12  # values of an enumeration that the sentence lists
_MOST_TEXT = 1_000  # characters of one text, unless a form says otherwise


class AnswerKind(msgspec.Struct, frozen=True):
    """A kind of answer."""

    name: str
    """Its name in templates."""
    says: str
    """A clause about the value that is read from an answer or made from a text."""
    variables: tuple[str, ...]
    """Variables of its templates besides those of a scenario."""
    spoken: bool = False
    """Whether an answer holds turns of the space's roles."""
    of_scenario: bool = False
    """Whether its templates also have a scenario's variables; if the space is unknown, those of layouts."""


def list_answer_kinds() -> dict[str, AnswerKind]:
    """Return every kind by its name, those of whole conversations first. If two protocols share one, the
    first describes it, and its templates may use the variables of both."""
    protocols = []
    for name in registry.list_names("protocol"):
        try:
            protocols.append(registry.find("protocol", name))
        except registry.PluginError:  # `edgen list plugins` reports the reason
            continue
    found: dict[str, AnswerKind] = {}
    for protocol in sorted(protocols, key=lambda one: -one.precedence):
        for kind in protocol.answers:
            known = found.setdefault(kind.name, kind)
            if known is not kind:
                both = tuple(dict.fromkeys((*known.variables, *kind.variables)))
                spoken, of_scenario = known.spoken or kind.spoken, known.of_scenario or kind.of_scenario
                found[kind.name] = AnswerKind(kind.name, known.says, both, spoken, of_scenario)
    return found


class Form(NamedTuple):
    """The form of one answer. `words` asks for it in a sentence. `required`: a service that takes no schema
    cannot answer. `holds`: the property that is read in place of the whole answer; empty: the reader takes
    the object. `spoken`: the answer is a turn; the last message may be the partner's turn, which stays
    unchanged."""

    schema: bytes
    words: str
    required: bool = False
    holds: str = ""
    spoken: bool = False

    def content(self, reply: Reply) -> Reply:
        """Return the reply with the text of the property `holds` if the reply is the object that the form
        asks for; else unchanged."""
        if not self.holds or reply.finish_reason == "length":
            return reply
        try:
            value = msgspec.json.decode(reply.text)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return reply
        held = value.get(self.holds) if isinstance(value, dict) else None
        return msgspec.structs.replace(reply, text=held) if isinstance(held, str) else reply

    def add_to(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages with the sentence at the end of the last one, or for a `spoken` form at the end
        of the system message: small models talk about the sentence if it ends the partner's turn."""
        if self.spoken and len(messages) > 1 and messages[0].role == "system":
            brief, *said = messages
            return Message("system", f"{brief.content}\n\n{self.words}"), *said
        *before, last = messages
        return *before, Message(last.role, f"{last.content}\n\n{self.words}")


AnyForm = Form | Callable[[], Form]
"""The form of an answer, or a function that makes it, called only where the form is requested."""


def form(**parts: Part) -> Form:
    """Return the form of a JSON object with these properties, all required, in this order."""
    return form_of(parts)


def form_of(parts: Mapping[str, Part]) -> Form:
    """Return the form of a JSON object with properties of any name."""
    return _make_form(msgspec.json.encode(_make_object(parts)))


@functools.lru_cache(maxsize=256)
def _make_form(schema: bytes) -> Form:
    shown = _describe(msgspec.json.decode(schema))
    return Form(schema, f"Answer with one JSON object and nothing else. It has {shown}.")


def turn_form(longest: int = _MOST_TEXT) -> Form:
    """Return the form of one turn: an object with its text."""
    return form(text=text(longest))._replace(holds="text", spoken=True)


def text(most: int = _MOST_TEXT, *, least: int = 1) -> Part:
    """Return the schema of a text of `least` to `most` characters."""
    return {"type": "string", "minLength": least, "maxLength": most}


def one_of(values: Iterable[str | int | float]) -> Part:
    """Return the schema of one of these values, which are all texts or all numbers."""
    return {"enum": [*values]}


def whole_number(least: int, most: int) -> Part:
    """Return the schema of a whole number from `least` to `most`."""
    return {"type": "integer", "minimum": least, "maximum": most}


def either(*parts: Part) -> Part:
    """Return the schema of a value that fits any of these parts. An answer can leave out a property only by
    such a choice, since services that enforce schemas require each property."""
    return {"anyOf": [*parts]}


def probability() -> Part:
    """Return the schema of a probability in steps of 0.05, as an enumeration: grammars cannot bound
    fractions."""
    return one_of([step / 20 for step in range(21)])


def list_of(part: Part, least: int, most: int) -> Part:
    """Return the schema of a list of `least` to `most` parts of one kind."""
    return {"type": "array", "items": part, "minItems": least, "maxItems": most}


def parts(**properties: Part) -> Part:
    """Return the schema of an object inside of an answer, with these properties, all required."""
    return _make_object(properties)


def turns(roles: Sequence[str], least: int, most: int, longest: int) -> Part:
    """Return the schema of a list of turns, each with its role and a text of at most `longest` characters."""
    return list_of(_make_object({"role": one_of(roles), "text": text(longest)}), least, most)


def _make_object(parts: Mapping[str, Part]) -> Part:
    return {
        "type": "object",
        "properties": dict(parts),
        "required": [*parts],
        "additionalProperties": False,
    }


def _describe(part: Part) -> str:
    """Describe a part in words. Small models would copy an example, with its dots."""
    if "enum" in part:
        return _describe_choice(part["enum"])
    if "anyOf" in part:
        return ", or ".join(
            f"an object with {_describe(way)}" if "properties" in way else _describe(way)
            for way in part["anyOf"]
        )
    kind = part.get("type")
    if kind == "object":
        return ", ".join(
            f"{_encode_value(name)} ({_describe(one)})" for name, one in part["properties"].items()
        )
    if kind == "array":
        inside = _describe(part["items"])
        return f"a list of objects with {inside}" if "properties" in part["items"] else f"a list of {inside}"
    if kind == "integer":
        return f"a whole number from {part['minimum']} to {part['maximum']}"
    return "true or false" if kind == "boolean" else "a text"


def _describe_choice(values: Sequence[str | int | float]) -> str:
    if len(values) > _MOST_NAMED:
        return "one of those" if isinstance(values[0], str) else f"a number from {values[0]} to {values[-1]}"
    return " or ".join(map(_encode_value, values))


def _encode_value(value: str | int | float) -> str:
    return msgspec.json.encode(value).decode()


@functools.lru_cache(maxsize=256)
def without_bounds(schema: bytes, bounds: frozenset[str] = BOUNDS) -> bytes:
    """Return a schema without its bounds on lengths and numbers, or without some of them."""
    return msgspec.json.encode(_drop_bounds(msgspec.json.decode(schema), bounds))


def _drop_bounds(part: Any, bounds: frozenset[str]) -> Any:
    if isinstance(part, list):
        return [_drop_bounds(one, bounds) for one in part]
    if not isinstance(part, dict):
        return part
    named = {name: _drop_bounds(one, bounds) for name, one in part.get("properties", {}).items()}
    rest = {
        key: _drop_bounds(one, bounds)
        for key, one in part.items()
        if key != "properties" and key not in bounds
    }
    return rest | ({"properties": named} if named else {})
