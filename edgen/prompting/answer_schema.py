"""JSON Schemas next to templates: the required form of answers. A schema refers to nothing outside of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import TemplateError
from edgen.core.yaml_values import read_text, shorten_word

MAX_SCHEMA = 64 * 1024  # bytes of a file: every call sends the schema
DEEPEST = 60  # nested objects and lists; a level of a schema takes three
_REFERENCES = ("$ref", "$dynamicRef")


class AnswerSchemaError(TemplateError):
    """An unusable schema next to a template."""

    what = "schema"


def read_schema_file(path: Path) -> bytes:
    """Return the schema in a file, as the JSON to send.

    Raises AnswerSchemaError for a file that is not a JSON Schema object, or too large or too deep.
    """
    source = str(path)
    text = read_text(path, AnswerSchemaError, max_bytes=MAX_SCHEMA)
    try:
        schema = msgspec.json.decode(text)
    except (ValueError, RecursionError) as problem:
        raise AnswerSchemaError(source, f"it is not JSON: {problem}.") from None
    if not isinstance(schema, dict):
        raise AnswerSchemaError(source, 'it is not a JSON Schema object, such as {"type": "object", …}.')
    schema.pop("$schema", None)
    _check_reach(schema, source)
    try:
        made: bytes = msgspec.json.encode(schema)
        _make_validator(made)
    except Exception as problem:
        if not isinstance(problem, ValueError | OverflowError | RecursionError | _find_refusals()):
            raise
        said = (str(problem).splitlines() or ["it cannot be read"])[0]
        raise AnswerSchemaError(
            source, f"it is not a JSON Schema (draft 2020-12): {shorten_word(said)}."
        ) from None
    return made


def fits_schema(text: str, schema: bytes) -> bool:
    """Return whether a text is JSON that fits the schema. Never raises."""
    try:
        return bool(_make_validator(schema).is_valid(msgspec.json.decode(text)))
    except (ValueError, RecursionError):
        return False


def _check_reach(schema: Any, source: str) -> None:
    """Raise for a schema that is too deep, or that refers to something outside of it."""
    for value, depth in _iterate_nested(schema):
        if depth > DEEPEST:
            raise AnswerSchemaError(
                source, f"it is nested more than {DEEPEST} deep; that is more than an answer needs."
            )
        for key in _REFERENCES if isinstance(value, dict) else ():
            if isinstance(target := value.get(key), str) and not target.startswith("#"):
                raise AnswerSchemaError(
                    source,
                    f"{key} {shorten_word(target)!r} is outside of the schema; put a copy under $defs and "
                    "refer to it: "
                    '{"$ref": "#/$defs/NAME"}.',
                )


def _iterate_nested(schema: Any) -> Iterator[tuple[Any, int]]:
    """Yield every object and list, with its nesting depth."""
    waiting = [(schema, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        inner = value.values() if isinstance(value, dict) else value
        waiting += [(one, depth + 1) for one in inner if isinstance(one, dict | list)]


@functools.lru_cache(maxsize=64)
def _make_validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(msgspec.json.decode(schema), retriever=_retrieve_nothing)


def _retrieve_nothing(address: str) -> Any:
    raise ValueError(f"{address} is outside of the schema")


def _find_refusals() -> Any:
    import jsonschema_rs

    return jsonschema_rs.ValidationError | jsonschema_rs.ReferencingError
