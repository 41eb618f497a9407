"""Answers that fit a client's JSON Schema: structured outputs, and arguments of tools.

The answer follows from the schema and the request's own randomness, so the same request gets the same answer.
_KEYWORDS lists the supported keywords. Other constraints are refused, never ignored. Each answer is validated
before it is sent.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

import jsonschema_rs
import msgspec

from edgen.simulator.phrases.book import PhraseSpeaker
from edgen.simulator.schemas.schema_patterns import MOST_TEXT, UnfitSchema, make_match

MOST_BYTES = 256 * 1024  # of a schema
_MOST_VALUES = 10_000  # of one answer
_TERSE = 6  # depth from which an answer ends as soon as possible
_DEEPEST = 40
_TRIES = 8  # answers tried until one fits

_PARTS = frozenset({"items", "additionalProperties"})  # keywords whose value is a schema, or true or false
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS = frozenset({"properties", "$defs", "definitions"})
_KEYWORDS = _PARTS | _LISTS | _MAPS | frozenset(
    ["type", "enum", "const", "required", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength",
    "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "$ref"]
)  # fmt: skip
_NOTES = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "example",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
        "propertyOrdering",
        "$schema",
        "$id",
        "strict",
    ]
)
_FORMATS = {
    "date": "2026-0{d}-1{d}",
    "date-time": "2026-0{d}-1{d}T0{d}:00:00Z",
    "time": "0{d}:00:00Z",
    "duration": "P{d}D",
    "email": "student{d}@example.org",
    "hostname": "host{d}.example.org",
    "ipv4": "192.0.2.{d}",
    "ipv6": "2001:db8::{d}",
    "uuid": "00000000-0000-4000-8000-00000000000{d}",
    "uri": "https://example.org/{d}",
}


def read_schema(schema: Any) -> bytes:
    """Return the schema as JSON for `fit_to_schema`. Raises UnfitSchema for an invalid or unsupported one."""
    try:
        text = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError):
        raise UnfitSchema("the schema cannot be read") from None
    # A larger one, with annotations, is not kept.
    read = read_schema_text if len(text) <= MOST_BYTES else read_schema_text.__wrapped__
    return read(text)


@functools.lru_cache(maxsize=64)  # most requests of a run have the same
def read_schema_text(schema: bytes) -> bytes:
    """Return the same as `read_schema` for a schema given as JSON text."""
    try:
        text = msgspec.json.encode(_drop_annotations(json.loads(schema), 0))
    except (TypeError, ValueError, RecursionError):
        raise UnfitSchema("the schema cannot be read") from None
    if len(text) > MOST_BYTES:
        raise UnfitSchema(f"the schema has more than {MOST_BYTES} bytes")
    fit_to_schema("", text, Random(0))  # noqa: S311 - whether there is an answer at all
    return text


def fit_to_schema(text: str, schema: bytes, rng: Random) -> str:
    """Return `text` if it is JSON that fits the schema, else other JSON that fits. Raises UnfitSchema."""
    whole, validator = _compile_schema(schema)
    try:
        if validator.is_valid(msgspec.json.decode(text)):
            return text
    except (ValueError, RecursionError):
        pass
    for _ in range(_TRIES):
        made = _Maker(whole, rng).make(whole, 0)
        if validator.is_valid(made):
            return json.dumps(made, ensure_ascii=False)
    raise UnfitSchema("no value was found that fits the schema")


def accepts(schema: bytes, value: Any) -> bool:
    """Return whether a value fits a schema. Raises UnfitSchema."""
    return bool(_compile_schema(schema)[1].is_valid(value))


@functools.lru_cache(maxsize=64)
def _compile_schema(schema: bytes) -> tuple[Any, Any]:
    whole = json.loads(schema)
    try:
        return whole, jsonschema_rs.validator_for(whole)
    except (ValueError, jsonschema_rs.ValidationError) as problem:
        raise UnfitSchema(f"the schema is invalid: {str(problem).splitlines()[0]}") from None


def _drop_annotations(schema: Any, depth: int) -> Any:
    """Return a schema without annotations. Raises UnfitSchema for unknown keywords."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise UnfitSchema("a schema is an object")
    if depth > _DEEPEST:
        raise UnfitSchema(f"the schema is more than {_DEEPEST} deep")
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOTES:
            continue
        if key not in _KEYWORDS:
            raise UnfitSchema(f"'{key}' cannot be simulated")
        if key == "$ref" and not str(value).startswith("#"):
            raise UnfitSchema("a $ref leads out of the schema")
        if key in _PARTS:
            plain[key] = _drop_annotations(value, depth + 1)
        elif key in _LISTS and isinstance(value, list):
            plain[key] = [_drop_annotations(part, depth + 1) for part in value]
        elif key in _MAPS and isinstance(value, Mapping):
            plain[key] = {name: _drop_annotations(part, depth + 1) for name, part in value.items()}
        else:
            plain[key] = value
    return plain


class _Maker:
    """A maker of one value for a schema. All randomness comes from `rng`."""

    def __init__(self, whole: Any, rng: Random) -> None:
        self._whole = whole
        self._rng = rng
        self._phrases = PhraseSpeaker(rng, {})
        self._made = 0

    def make(self, schema: Any, depth: int) -> Any:
        self._made += 1
        if self._made > _MOST_VALUES or depth > _DEEPEST or schema is False:
            raise UnfitSchema("every value that fits the schema is too large, or there is none")
        schema = self._resolve_schema({} if schema is True else schema)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self._make_one_of(schema, choice, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            if not schema["enum"]:
                raise UnfitSchema("no value is in an enum of the schema")
            return self._rng.choice(schema["enum"])
        return self._KINDS[self._choose_type(schema)](self, schema, depth)

    def _resolve_schema(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a schema merged with its $ref and its allOf."""
        for _ in range(_DEEPEST):
            if "$ref" in schema:
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = _merge_schemas(self._find_target(schema["$ref"]), rest)
            elif "allOf" in schema:
                rest = {key: value for key, value in schema.items() if key != "allOf"}
                schema = functools.reduce(_merge_schemas, schema["allOf"], rest)
            else:
                return schema
        raise UnfitSchema("a $ref of the schema leads round in a circle")

    def _find_target(self, ref: str) -> Any:
        found = self._whole
        for step in ref.removeprefix("#").split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def _make_one_of(self, schema: Mapping[str, Any], choice: str, depth: int) -> Any:
        """Return a value for one of several schemas: any, or at depth the first that terminates."""
        rest = {key: value for key, value in schema.items() if key != choice}
        parts = list(schema[choice])
        if depth < _TERSE:
            self._rng.shuffle(parts)
        else:
            parts.sort(key=lambda part: part is not True and "$ref" in part)
        for part in parts:
            try:
                return self.make(_merge_schemas(rest, part), depth + 1)
            except UnfitSchema:
                continue
        raise UnfitSchema(f"none of the schemas of an {choice} can be met")

    def _choose_type(self, schema: Mapping[str, Any]) -> str:
        said = schema.get("type")
        if said is None:
            hints = {"properties": "object", "items": "array", "prefixItems": "array", "minimum": "number"}
            return next((kind for key, kind in hints.items() if key in schema), "string")
        kinds = [said] if isinstance(said, str) else [kind for kind in said if kind != "null"] or ["null"]
        kind = self._rng.choice(kinds)
        if kind not in self._KINDS:
            raise UnfitSchema(f"there is no type {str(kind)[:40]!r}")
        return str(kind)

    def _make_object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        more = schema.get("additionalProperties", True)
        names = [name for name in properties if depth < _TERSE or name in required]
        made = {name: self.make(properties[name], depth + 1) for name in names}
        made |= {name: self.make(more, depth + 1) for name in required if name not in made}
        if not properties and isinstance(more, Mapping) and depth < _TERSE:
            made.setdefault("answer", self.make(more, depth + 1))
        return made

    def _make_array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        first, items = schema.get("prefixItems", []), schema.get("items", True)
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        wanted = max(len(first), least, 0 if depth >= _TERSE or items is False else self._rng.randint(1, 3))
        made: list[Any] = []
        for number in range(min(wanted, most)):
            part = first[number] if number < len(first) else items
            value = self.make(part, depth + 1)
            for _ in range(20):
                if not schema.get("uniqueItems") or value not in made:
                    made.append(value)
                    break
                value = self.make(part, depth + 1)
        return made

    def _make_string(self, schema: Mapping[str, Any], _depth: int) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        if least > MOST_TEXT:
            raise UnfitSchema(f"a text of {least} characters is longer than any that is made")
        if "pattern" in schema:
            return make_match(schema["pattern"], self._rng)
        if (form := schema.get("format")) in _FORMATS:
            return _FORMATS[form].format(d=self._rng.randint(1, 9))
        text = self._phrases.say("plain")
        while len(text) < least:
            text += " " + self._phrases.say("plain")
        return text if len(text) <= most else text[: int(most)].strip().ljust(int(least), ".")

    def _make_number(self, schema: Mapping[str, Any], _depth: int) -> float:
        low, high = _find_bounds(schema, 1e-6)
        step = schema.get("multipleOf")
        if step:
            return float(
                step
                * self._rng.randint(
                    math.ceil(low / step), max(math.ceil(low / step), math.floor(high / step))
                )
            )
        return round(self._rng.uniform(low, high), 2) if high - low > 0.1 else self._rng.uniform(low, high)

    def _make_integer(self, schema: Mapping[str, Any], _depth: int) -> int:
        low, high = _find_bounds(schema, 1)
        step = int(schema.get("multipleOf", 1)) or 1
        first, last = math.ceil(low / step), math.floor(high / step)
        if first > last:
            raise UnfitSchema("no whole number is between the bounds of the schema")
        return step * self._rng.randint(first, last)

    def _make_boolean(self, _schema: Mapping[str, Any], _depth: int) -> bool:
        return self._rng.random() < 0.5

    def _make_null(self, _schema: Mapping[str, Any], _depth: int) -> None:
        return None

    _KINDS: ClassVar[dict[str, Callable[[_Maker, Mapping[str, Any], int], Any]]] = {
        "object": _make_object,
        "array": _make_array,
        "string": _make_string,
        "number": _make_number,
        "integer": _make_integer,
        "boolean": _make_boolean,
        "null": _make_null,
    }


def _find_bounds(schema: Mapping[str, Any], apart: float) -> tuple[float, float]:
    """Return the least and the greatest number. An open end is ten away from the other end."""
    low = [schema["minimum"]] if "minimum" in schema else []
    low += [schema["exclusiveMinimum"] + apart] if "exclusiveMinimum" in schema else []
    high = [schema["maximum"]] if "maximum" in schema else []
    high += [schema["exclusiveMaximum"] - apart] if "exclusiveMaximum" in schema else []
    least = max(low) if low else min(0, min(high) - 10) if high else 0
    greatest = min(high) if high else least + 10
    if least > greatest:
        raise UnfitSchema("no number is between the bounds of the schema")
    return least, greatest


_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minItems", "minLength"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxItems", "maxLength"), min),
    "required": lambda one, other: [*one, *(name for name in other if name not in one)],
    "enum": lambda one, other: [value for value in one if value in other],
}


def _merge_schemas(one: Any, other: Any) -> dict[str, Any]:
    """Merge two schemas into one for values that fit both. If that cannot be expressed, values that do not
    fit are discarded later."""
    if one is False or other is False:
        raise UnfitSchema("nothing fits the schema")
    merged = {} if one is True else dict(one)
    for key, value in ({} if other is True else other).items():
        if key not in merged or merged[key] == value:
            merged[key] = value
        elif key in _TIGHTER:
            merged[key] = _TIGHTER[key](merged[key], value)
        elif key in _MAPS:
            merged[key] = merged[key] | {
                name: _merge_schemas(merged[key][name], part) if name in merged[key] else part
                for name, part in value.items()
            }
        elif key in _PARTS:
            merged[key] = _merge_schemas(merged[key], value)
        elif key == "type" and isinstance(merged[key], list):
            merged[key] = value if isinstance(value, str) else [kind for kind in merged[key] if kind in value]
        elif key not in ("type", "format"):
            merged.setdefault("allOf", []).append({key: value})
    return merged
