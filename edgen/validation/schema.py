"""Application of a JSON Schema of `validators/` to one decoded record, in two ways.

jsonschema-rs answers yes or no (3 µs, and as much for decoding); jsonschema, the reference, is used only for
failed records, and its errors are reworded here. Both are imported at first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from edgen.core import resources
from edgen.core.text import shorten
from edgen.validation.findings import Finding, make_json_path, quote

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError


CONVERSATION = "conversation"  # the file with Education Dialogue's layout


@functools.cache
def read_schema(name: str = CONVERSATION) -> dict[str, Any]:
    """Return a shipped schema by name, or the schema in a file by path, decoded."""
    decoded: dict[str, Any] = msgspec.json.decode(resources.find("validators", name).read_bytes())
    return decoded


def is_json(data: bytes) -> bool:
    """Return whether the bytes are one JSON value. Never raises."""
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return False
    return True


def is_valid(data: bytes, schema: str = CONVERSATION) -> bool:
    """Return whether the bytes are one JSON record that satisfies the schema. Never raises."""
    try:
        return conforms(msgspec.json.decode(data), schema)
    except (ValueError, RecursionError):
        return False


def explain_invalid(data: bytes, schema: str) -> str:
    """Return why `is_valid` is false, as a clause such as "breaks its schema: …"."""
    try:
        found = find_schema_violations(msgspec.json.decode(data), schema=schema)
    except (ValueError, RecursionError) as error:
        return f"is not JSON ({error}): {shorten(repr(data), 80)}"
    first = f"{found[0].path}: {found[0].problem}" if found else "the record is invalid"
    return f"breaks its schema {schema}: {first}"


def conforms(record: Any, schema: str = CONVERSATION) -> bool:
    """Return whether a decoded JSON value satisfies the schema."""
    return _compile(schema)(record)


def find_schema_flaw(name: str) -> str | None:
    """Return why records cannot be checked by a schema, as a clause about its family; None if they can."""
    path = resources.find("validators", name)
    if not path.is_file():
        return f"has the schema {path}, and there is no such file"
    try:
        _compile(name)
    except (OSError, ValueError, RecursionError) as error:
        return f"has the schema {path}, which is not a JSON Schema ({shorten(' '.join(str(error).split()), 200)})"
    return None


@functools.cache
def _compile(name: str) -> Callable[[Any], bool]:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(read_schema(name)).is_valid


@functools.cache
def _make_reference(name: str) -> Draft202012Validator:
    import jsonschema

    return jsonschema.Draft202012Validator(read_schema(name))


def find_schema_violations(
    record: Any, number: int | None = None, schema: str = CONVERSATION
) -> list[Finding]:
    """Return the schema violations of a decoded record, by the reference implementation, in order of path."""
    errors = sorted(
        _make_reference(schema).iter_errors(record), key=lambda error: list(map(str, error.absolute_path))
    )
    found: dict[tuple[str, str], Finding] = {}
    for error in errors:
        for path, problem in _word_error(error):
            found.setdefault((path, problem), Finding.of(number, path, problem, "schema"))
    return list(found.values())


def _word_error(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for one error; several if it concerns several keys."""
    where = list(error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    if error.validator == "required":
        for key in wanted:
            if key not in value:
                yield make_json_path([*where, key]), "this key is missing"
    elif error.validator == "additionalProperties":
        known = cast("dict[str, Any]", error.schema).get("properties", {})
        for key in value:
            if key not in known:
                yield make_json_path([*where, key]), f"unknown key (known: {', '.join(known)})"
    else:
        try:
            yield make_json_path(where), _WORDING[str(error.validator)](value, wanted)
        # errors that edgen's own schemas never cause keep the library's sentence
        except (KeyError, TypeError):
            yield make_json_path(where), shorten(error.message, 200)


_PATTERNS = {"^[0-9a-f]{64}$": "64 lower-case hexadecimal digits"}
_WORDING: dict[str, Callable[[Any, Any], str]] = {
    "type": lambda value, wanted: f"expected {_name_types(wanted)}, got {_describe_value(value)}",
    "enum": lambda value, wanted: f"expected {_describe_choice(map(quote, wanted))}, got {quote(value)}",
    "contains": lambda _, wanted: f"no turn is spoken by the {wanted['properties']['role']['const']}",
    "minItems": lambda value, wanted: (
        f"expected at least {wanted} {_describe_elements(value)}, got {len(value)}"
    ),
    "minProperties": lambda _value, _wanted: "this mapping is empty",
    "uniqueItems": lambda _value, _wanted: "an element occurs more than once",
    "minLength": lambda _value, _wanted: "this text is empty",
    "maxLength": lambda value, wanted: f"expected at most {wanted} characters, got {len(value)}",
    "pattern": lambda value, wanted: f"expected {_PATTERNS.get(wanted, wanted)}, got {quote(value)}",
    "minimum": lambda value, wanted: f"expected {wanted} or more, got {quote(value)}",
    "maximum": lambda value, wanted: f"expected {wanted} or less, got {quote(value)}",
}

_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def _describe_elements(value: list[Any]) -> str:
    return "turns" if all(isinstance(one, dict) for one in value) else "elements"


def _name_types(wanted: str | list[str]) -> str:
    return _TYPES[wanted] if isinstance(wanted, str) else _describe_choice(_TYPES[name] for name in wanted)


def _describe_choice(names: Any) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"


def _describe_value(value: Any) -> str:
    """Describe a decoded JSON value, with the value itself if it is short."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return f"the text {quote(value)}"
        case None | bool():
            return quote(value)
        case _:
            return f"the number {quote(value)}"
