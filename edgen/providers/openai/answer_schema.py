"""JSON Schemas of answers in OpenAI's APIs.

`strict` makes the service enforce the schema. It supports only a subset of JSON Schema, in which every object
requires all its properties and allows no others. Other schemas are sent without `strict`, as a wish. Source:
OpenAI's guide "Structured model outputs", section "Supported schemas".
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.plugin.forms import without_bounds

NAME = "answer"  # required by the APIs; the model may see it

_KEYWORDS = frozenset(
    [
        "type",
        "title",
        "description",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "definitions",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ]
)
_LENGTHS = frozenset(["minLength", "maxLength"])
_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])


def make_schema_settings(schema: bytes, *, hosted: bool = True) -> dict[str, Any]:
    """Return name, schema and strictness, as in both APIs.

    `hosted`: OpenAI answers. It does not support bounds on the length of texts; without these bounds it may
    enforce the rest of a schema. Other servers get the whole schema.
    """
    shorter = without_bounds(schema, _LENGTHS) if hosted and not is_strict(schema) else schema
    sent = shorter if is_strict(shorter) else schema
    return {"name": NAME, "schema": msgspec.Raw(sent), "strict": is_strict(sent)}


@functools.lru_cache(maxsize=64)
def is_strict(schema: bytes) -> bool:
    """Return whether the schema is in the subset of JSON Schema that `strict` supports."""
    whole = msgspec.json.decode(schema)
    return (
        whole.get("type") == "object" and "anyOf" not in whole and all(map(_is_taken, _iterate_parts(whole)))
    )


def _iterate_parts(schema: Any) -> Iterator[Any]:
    """Yield the schema and all schemas in it."""
    waiting = [schema]
    while waiting:
        yield (part := waiting.pop())
        if not isinstance(part, Mapping):
            continue
        for key in ("properties", "$defs", "definitions"):
            waiting += part.get(key, {}).values()
        waiting += part.get("anyOf", ())
        waiting += [part["items"]] if "items" in part else []


def _is_taken(part: Any) -> bool:
    if not isinstance(part, Mapping) or not part.keys() <= _KEYWORDS:
        return False
    if part.get("format", "date") not in _FORMATS:
        return False
    if "object" not in part.get("type", ()) and "properties" not in part:
        return True
    closed = part.get("additionalProperties") is False
    return closed and {*part.get("required", ())} == part.get("properties", {}).keys()
