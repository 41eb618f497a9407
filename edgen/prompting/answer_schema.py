"""The JSON Schema for a template's answers: NAME.schema.json next to NAME.j2.

It may have any origin, like templates: its size and depth are bounded, and it cannot refer to other files.
Its JSON is sent without white space and without the top-level `$schema`, which is for editors.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.digest import fingerprint, sha256
from edgen.core.errors import TemplateError
from edgen.core.yaml_values import read_text, shortened

SUFFIX = ".schema.json"
MAX_SCHEMA = 64 * 1024  # bytes of a file; it is sent with every call
DEEPEST = 60  # nested objects and lists; three form a level of a schema
_REFERENCES = ("$ref", "$dynamicRef")


class AnswerSchemaError(TemplateError):
    """An unusable schema next to a template."""

    what = "schema"


def schema_file(template: Path) -> Path:
    """Return the path of a template's schema, which may be missing."""
    return template.with_name(template.name.removesuffix(".j2") + SUFFIX)


def read_answer_schema(template: Path) -> bytes | None:
    """Return the schema next to a template, as the JSON to send; None if there is none.

    Raises AnswerSchemaError, a TemplateError, for a file that is not a JSON Schema object, or too large or
    too deep.
    """
    path = schema_file(template)
    if not os.path.lexists(path):
        return None
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
        _validator(made)
    except Exception as problem:
        if not isinstance(problem, ValueError | OverflowError | RecursionError | _refusals()):
            raise
        said = (str(problem).splitlines() or ["it cannot be read"])[0]
        raise AnswerSchemaError(
            source, f"it is not a JSON Schema (draft 2020-12): {shortened(said)}."
        ) from None
    return made


def template_digest(text: str | bytes, schema: bytes | None) -> str:
    """Return the hex digest of a template: of its text in UTF-8, and of its schema if it has one."""
    return sha256(text) if schema is None else fingerprint((sha256(text), sha256(schema)), 64)


def schema_text(schema: bytes) -> str:
    """Return a schema as the text of a file."""
    return msgspec.json.format(schema, indent=2).decode() + "\n"


def fits_schema(text: str, schema: bytes) -> bool:
    """Return whether a text is JSON that fits the schema. Never raises."""
    try:
        return bool(_validator(schema).is_valid(msgspec.json.decode(text)))
    except (ValueError, RecursionError):
        return False


def _check_reach(schema: Any, source: str) -> None:
    """Raise for a schema that is too deep, or that refers to something outside of it."""
    for value, depth in _nested(schema):
        if depth > DEEPEST:
            raise AnswerSchemaError(
                source, f"it is nested more than {DEEPEST} deep; that is more than an answer needs."
            )
        for key in _REFERENCES if isinstance(value, dict) else ():
            if isinstance(target := value.get(key), str) and not target.startswith("#"):
                raise AnswerSchemaError(
                    source,
                    f"{key} {shortened(target)!r} leads out of it; put what it means under $defs, and refer to that: "
                    '{"$ref": "#/$defs/NAME"}.',
                )


def _nested(schema: Any) -> Iterator[tuple[Any, int]]:
    """Yield every object and list, with its nesting depth."""
    waiting = [(schema, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        inner = value.values() if isinstance(value, dict) else value
        waiting += [(one, depth + 1) for one in inner if isinstance(one, dict | list)]


@functools.lru_cache(maxsize=64)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(msgspec.json.decode(schema), retriever=_retrieve_nothing)


def _retrieve_nothing(address: str) -> Any:
    raise ValueError(f"{address} leads out of it")


def _refusals() -> Any:
    import jsonschema_rs

    return jsonschema_rs.ValidationError | jsonschema_rs.ReferencingError
