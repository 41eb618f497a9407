"""How OpenAI's APIs are told of the JSON Schema that an answer has to fit.

`strict` makes the service hold the model to it, and takes a part of JSON Schema alone: every object names all its
properties as required and has no others. A schema beyond that is sent without `strict`, as a wish. What is in the part
is as of OpenAI's guide "Structured model outputs", section "Supported schemas".
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

NAME = "answer"  # the APIs want one; the model may see it

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
_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])


def schema_settings(schema: bytes) -> dict[str, Any]:
    """Name, schema and strictness, as both APIs have them."""
    return {"name": NAME, "schema": msgspec.Raw(schema), "strict": is_strict(schema)}


@functools.lru_cache(maxsize=64)
def is_strict(schema: bytes) -> bool:
    """Whether the schema is in the part of JSON Schema that `strict` takes."""
    whole = msgspec.json.decode(schema)
    return whole.get("type") == "object" and "anyOf" not in whole and all(map(_is_taken, _parts(whole)))


def _parts(schema: Any) -> Iterator[Any]:
    """The schema and all schemas in it."""
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
