"""The JSON Schema beside a template, which its answers have to fit: NAME.schema.json beside NAME.j2.

It comes from anybody, as templates do: its size and depth are bounded, and nothing outside of it is ever read. What is
sent is its JSON without white space and without the `$schema` at its top, which is there for editors.
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
DEEPEST = 60  # objects and lists within each other; three make a level of a schema
_REFERENCES = ("$ref", "$dynamicRef")


class AnswerSchemaError(TemplateError):
    """A schema beside a template that cannot be used."""

    what = "schema"


def schema_file(template: Path) -> Path:
    """Where a template's schema is, if it has one."""
    return template.with_name(template.name.removesuffix(".j2") + SUFFIX)


def read_answer_schema(template: Path) -> bytes | None:
    """The schema beside a template, as the JSON that is sent; None where there is none.

    Raises AnswerSchemaError, a TemplateError, for a file that is no JSON Schema object, or too large or too deep.
    """
    path = schema_file(template)
    if not os.path.lexists(path):
        return None
    source = str(path)
    text = read_text(path, AnswerSchemaError, max_bytes=MAX_SCHEMA)
    try:
        schema = msgspec.json.decode(text)
    except (ValueError, RecursionError) as problem:
        raise AnswerSchemaError(source, f"it is no JSON: {problem}.") from None
    if not isinstance(schema, dict):
        raise AnswerSchemaError(source, 'it is no JSON Schema object, as {"type": "object", …} is one.')
    schema.pop("$schema", None)
    _check_reach(schema, source)
    try:
        made: bytes = msgspec.json.encode(schema)
        _validator(made)
    except Exception as problem:
        if not isinstance(problem, ValueError | OverflowError | RecursionError | _refusals()):
            raise
        said = (str(problem).splitlines() or ["it cannot be read"])[0]
        raise AnswerSchemaError(source, f"it is no JSON Schema (draft 2020-12): {shortened(said)}.") from None
    return made


def template_digest(text: str | bytes, schema: bytes | None) -> str:
    """The hex digest of a template: of its text in UTF-8, and of its schema where it has one."""
    return sha256(text) if schema is None else fingerprint((sha256(text), sha256(schema)), 64)


def schema_text(schema: bytes) -> str:
    """A schema as a file holds it."""
    return msgspec.json.format(schema, indent=2).decode() + "\n"


def fits_schema(text: str, schema: bytes) -> bool:
    """Whether a text is JSON that fits the schema. Never raises."""
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
    """Every object and list, with how many it stands in."""
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
