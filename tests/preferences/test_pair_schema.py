"""The schema of pairs.jsonl: written pairs satisfy it, and each of its rules refuses something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings

from edgen.core import resources
from edgen.core.pair import Pair
from edgen.preferences.labels import UNLABELLED, LabelRules, label_scenario
from tests.preferences.values import STRUCTS, oracle, pair, pairs

FOLDER = resources.find_folder("validators")
SCHEMA = json.loads(resources.find("validators", "pair").read_bytes())
VALID = sorted((FOLDER / "pair_examples" / "valid").glob("*.json"))
INVALID = sorted((FOLDER / "pair_examples" / "invalid").glob("*.json"))
REFERENCE = jsonschema.Draft202012Validator(SCHEMA)
QUICK = jsonschema_rs.Draft202012Validator(SCHEMA)
ANNOTATIONS = {"$schema", "$id", "$ref", "title", "description"}
MAY_BE_MISSING = {
    "Signals": {"judge_directed", "flag", "judged", "rollouts"},
    "Side": {"response"},
    "Label": {"k", "se"},
    "Oracle's signal": {"logprobs"},
    "Verdict": {"logprob_p", "logprob_gap", "logprob_bounds"},
    "Log probabilities' signal": {"bounds"},
}  # present only if they have a value
# Keywords under which other schemas stand.
APPLICATORS = {"properties", "items", "$defs"}


def names(path: Path) -> str:
    return path.stem


@given(pairs())
@settings(max_examples=30, deadline=None)
def test_what_is_written_satisfies_the_schema_and_reads_back(written: Pair) -> None:
    line = msgspec.json.encode(written)
    assert msgspec.json.decode(line, type=Pair) == written
    assert QUICK.is_valid(json.loads(line)), list(REFERENCE.iter_errors(json.loads(line)))


def test_what_labelling_makes_satisfies_the_schema() -> None:
    made = [
        pair(0, 1, oracle("a", "a")),
        pair(1, 2, oracle("a", "?")),
        pair(0, 2, oracle("aa", "ab")),
        pair(0, 3),
    ]
    for labelled in label_scenario(made, LabelRules(by="oracle")) + label_scenario(
        made, LabelRules(by="human")
    ):
        assert list(REFERENCE.iter_errors(json.loads(msgspec.json.encode(labelled)))) == []


def test_there_are_examples() -> None:
    assert len(VALID) >= 5
    assert len(INVALID) >= 20


@pytest.mark.parametrize("path", VALID, ids=names)
def test_valid(path: Path) -> None:
    record = json.loads(path.read_bytes())
    assert list(REFERENCE.iter_errors(record)) == []
    assert QUICK.is_valid(record)
    assert json.loads(msgspec.json.encode(msgspec.convert(record, Pair))) == record


@pytest.mark.parametrize("path", INVALID, ids=names)
def test_invalid(path: Path) -> None:
    example = json.loads(path.read_bytes())
    found = [
        {"path": error.json_path, "keyword": error.validator}
        for error in REFERENCE.iter_errors(example["record"])
    ]
    for expected in example["expect"]:
        assert expected in found
    # oneOf accepts no alternative for a label that is invalid in itself; no other error may be found
    assert all(error in example["expect"] or error["keyword"] == "oneOf" for error in found)
    assert not QUICK.is_valid(example["record"])


def test_every_keyword_has_an_example_that_it_refuses() -> None:
    refused = {
        error.validator
        for path in INVALID
        for error in REFERENCE.iter_errors(json.loads(path.read_bytes())["record"])
    }
    assert refused == {key for key in keywords(SCHEMA) if key not in ANNOTATIONS | APPLICATORS}


def keywords(schema: dict[str, Any]) -> Iterator[str]:
    for key, value in schema.items():
        yield key
        if key in ("properties", "$defs"):
            for child in value.values():
                yield from keywords(child)
        elif key == "items":
            yield from keywords(value)


def objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "properties" in schema:
        yield schema
    for child in (*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()):
        yield from objects(child)
    if "items" in schema:
        yield from objects(schema["items"])


def test_the_schema_knows_the_keys_that_pairs_have_and_lets_no_other_in() -> None:
    found = {tuple(each["properties"]) for each in objects(SCHEMA)}
    assert found == {struct.__struct_fields__ for struct in STRUCTS}
    for each in objects(SCHEMA):
        missing = MAY_BE_MISSING.get(each["title"], set())
        assert each["required"] == [key for key in each["properties"] if key not in missing]
        assert each["additionalProperties"] is False
        assert all("description" in child or "$ref" in child for child in each["properties"].values())


def test_the_schema_is_itself_valid_and_knows_every_reason() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]["left_out"]["enum"]) == {*UNLABELLED, None}
