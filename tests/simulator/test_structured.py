"""Answers to foreign schemas: they fit, they are reproducible, and unsupported schemas are refused."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.simulator.schemas.schema_patterns import UnfitSchema
from edgen.simulator.schemas.structured import fit_to_schema, read_schema


def made(schema: Any, seed: int = 0, text: str = "no JSON") -> Any:
    return json.loads(fit_to_schema(text, read_schema(schema), Random(seed)))


LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"type": "boolean"}), st.just({"type": "null"}), st.just({}),
    st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more}, st.integers(-50, 50), st.integers(0, 9)),
    st.builds(lambda low, more: {"type": "number", "minimum": low, "exclusiveMaximum": low + more}, st.floats(-50, 50), st.floats(0.5, 9)),
    st.builds(lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more}, st.integers(0, 40), st.integers(0, 40)),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers() | st.text(), min_size=1, max_size=4)),
    st.sampled_from([{"type": "string", "format": name} for name in ("date", "date-time", "uuid", "email", "uri")]),
    st.sampled_from([{"type": "string", "pattern": p} for p in (r"^[A-Z]{2}\d{3}$", r"^(a|bc)+\.x?$", r"^[^a-z]\w*$")]),
)  # fmt: skip


def larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["topic", "turns", "role", "a b", "ö"])
    return st.one_of(
        st.builds(
            lambda properties, closed: {
                "type": "object", "properties": properties, "required": list(properties)[:2],
                "additionalProperties": not closed,
            },
            st.dictionaries(names, inner, max_size=3), st.booleans(),
        ),
        st.builds(lambda items, low: {"type": "array", "items": items, "minItems": low, "maxItems": low + 1}, inner, st.integers(0, 3)),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"allOf": [part, {}]}, inner),
    )  # fmt: skip


@given(st.recursive(LEAVES, larger, max_leaves=8), st.integers(0, 1000))
def test_an_answer_fits_any_schema_and_is_the_same_again(schema: dict[str, Any], seed: int) -> None:
    value = made(schema, seed)
    jsonschema.Draft202012Validator(schema).validate(value)
    assert made(schema, seed) == value


TREE = {
    "$defs": {
        "Node": {
            "type": "object", "required": ["value", "children"], "additionalProperties": False,
            "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        }
    },
    "$ref": "#/$defs/Node",
}  # fmt: skip
LIST = {
    "type": "object", "required": ["next"], "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
}  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        LIST,
        {"type": "array", "prefixItems": [{"const": "a"}, {"type": "number"}], "items": False},
        {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
        {"type": ["string", "null"]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                   {"properties": {"b": {"type": "integer", "minimum": 3}}, "required": ["b"]}]},
        {"type": "integer", "multipleOf": 7, "minimum": 8, "maximum": 15},
        {"type": "object", "title": "T", "description": "D", "$schema": "https://json-schema.org/draft/2020-12/schema"},
        True,
    ],
    ids=repr,
)  # fmt: skip
def test_shapes_that_clients_send(schema: Any) -> None:
    for seed in range(20):
        jsonschema.Draft202012Validator(schema).validate(made(schema, seed))


def test_an_answer_that_fits_already_stays() -> None:
    schema = read_schema({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
    assert fit_to_schema('{"text": "mine"}', schema, Random(1)) == '{"text": "mine"}'


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"not": {"type": "string"}}, "'not' cannot be simulated"),
        ({"properties": {"a": {"if": {}}}}, "'if' cannot be simulated"),
        ({"$ref": "https://example.org/schema"}, "leads out of the schema"),
        ({"$ref": "#/$defs/Gone"}, "does not exist"),
        ({"$ref": "#"}, "circle"),
        ({"type": "text"}, "the schema is invalid"),
        ({"type": "string", "minLength": 10**9}, "longer than any"),
        ({"type": "array", "minItems": 10**6}, "too large"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "no number"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "nothing fits|none|no value"),
        ({"type": "string", "pattern": "("}, "the schema is invalid"),
        ({"type": "string", "pattern": "(?=a)b"}, "ASSERT|none"),
        (False, "there is none"),
        ([], "is an object"),
        ("text", "is an object"),
        (json.loads('{"items":' * 60 + "{}" + "}" * 60), "deep"),
        ({"enum": ["x" * 300_000]}, "more than"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "too large"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_obeyed_is_a_sentence(schema: Any, said: str) -> None:
    with pytest.raises(UnfitSchema, match=said):
        read_schema(schema)
