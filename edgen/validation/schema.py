"""`validators/conversation.schema.json` applied to one decoded record, twice over.

jsonschema-rs answers yes or no (3 µs, and as much for decoding); jsonschema, the reference, is asked only about records
that failed, and its errors are put into plain words here. Both are imported at the first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from edgen import resources
from edgen.validation.findings import Finding, json_path, shown

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError


@functools.cache
def schema() -> dict[str, Any]:
    """The shipped schema, decoded."""
    decoded: dict[str, Any] = msgspec.json.decode(resources.find("validators", "conversation").read_bytes())
    return decoded


def is_valid(data: bytes) -> bool:
    """Whether the bytes are one record, as JSON, that satisfies the schema. Never raises."""
    try:
        return conforms(msgspec.json.decode(data))
    except (ValueError, RecursionError):
        return False


def conforms(record: Any) -> bool:
    """Whether a decoded JSON value satisfies the schema."""
    return _compiled()(record)


@functools.cache
def _compiled() -> Callable[[Any], bool]:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(schema()).is_valid


@functools.cache
def _reference() -> Draft202012Validator:
    import jsonschema

    return jsonschema.Draft202012Validator(schema())


def schema_findings(record: Any, number: int | None = None) -> list[Finding]:
    """What in a decoded record breaks the schema, by the reference implementation, in order of path."""
    errors = sorted(_reference().iter_errors(record), key=lambda error: list(map(str, error.absolute_path)))
    found: dict[tuple[str, str], Finding] = {}
    for error in errors:
        for path, problem in _worded(error):
            found.setdefault((path, problem), Finding(number, path, problem, "schema"))
    return list(found.values())


def _worded(error: ValidationError) -> Iterator[tuple[str, str]]:
    """(path, problem) for one error; several where it is about several keys."""
    where = list(error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    if error.validator == "required":
        for key in wanted:
            if key not in value:
                yield json_path([*where, key]), "this key is missing"
    elif error.validator == "additionalProperties":
        known = cast("dict[str, Any]", error.schema)["properties"]
        for key in value:
            if key not in known:
                yield json_path([*where, key]), f"unknown key (known: {', '.join(known)})"
    else:
        # a keyword that is not in the table keeps the library's sentence
        wording = _WORDING.get(str(error.validator), lambda _value, _wanted: error.message)
        yield json_path(where), wording(value, wanted)


_WORDING: dict[str, Callable[[Any, Any], str]] = {
    "type": lambda value, wanted: f"expected {_expected(wanted)}, got {_name(value)}",
    "enum": lambda value, wanted: f"expected {_choice(map(shown, wanted))}, got {shown(value)}",
    "contains": lambda _, wanted: f"no turn is spoken by the {wanted['properties']['role']['const']}",
    "minItems": lambda value, wanted: f"expected at least {wanted} turns, got {len(value)}",
    "uniqueItems": lambda _value, _wanted: "an element occurs more than once",
    "minLength": lambda _value, _wanted: "this text is empty",
    "maxLength": lambda value, wanted: f"expected at most {wanted} characters, got {len(value)}",
    "pattern": lambda value, _: f"expected 64 lower-case hexadecimal digits, got {shown(value)}",
    "minimum": lambda value, wanted: f"expected {wanted} or more, got {shown(value)}",
    "maximum": lambda value, wanted: f"expected {wanted} or less, got {shown(value)}",
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


def _expected(wanted: str | list[str]) -> str:
    return _TYPES[wanted] if isinstance(wanted, str) else _choice(_TYPES[name] for name in wanted)


def _choice(names: Any) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"


def _name(value: Any) -> str:
    """What a decoded JSON value is, with the value itself where it is short."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return f"the text {shown(value)}"
        case None | bool():
            return shown(value)
        case _:
            return f"the number {shown(value)}"
