"""The schema's examples: each result is the one that its file states, and every keyword has an example."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgen.core import resources
from edgen.validation.checker import find_problems
from edgen.validation.findings import KINDS
from edgen.validation.schema import conforms

EXAMPLES = resources.find_folder("validators") / "examples"
VALID = sorted((EXAMPLES / "valid").glob("*.json"))
INVALID = sorted((EXAMPLES / "invalid").glob("*.json"))
SCHEMA = json.loads((resources.find_folder("validators") / "conversation.schema.json").read_bytes())
# Kinds about more than one record, about bytes that are no record, or of one family; and those about a run.
BEYOND_ONE_RECORD = {
    "unreadable", "mixed", "duplicate_id", "vocabulary", "manifest", "stray", "layout",
    "missing", "ledger", "linked", "damaged", "no_digest", "no_tally", "unreadable_file",
}  # fmt: skip
ASSERTIONS = {
    "type", "required", "additionalProperties", "enum", "contains", "minItems", "uniqueItems",
    "minLength", "maxLength", "pattern", "minimum", "maximum",
}  # fmt: skip
ANNOTATIONS = {"$schema", "$id", "title", "description"}
APPLICATORS = {"properties", "items", "allOf"}


def names(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", VALID, ids=names)
def test_valid(path: Path) -> None:
    record = json.loads(path.read_bytes())
    assert conforms(record)
    assert [f for f in find_problems(record) if f.severity == "error"] == []


@pytest.mark.parametrize("path", INVALID, ids=names)
def test_invalid(path: Path) -> None:
    example = json.loads(path.read_bytes())
    found = find_problems(example["record"])
    assert any(f.severity == "error" for f in found)
    assert sorted(f.path for f in found) == sorted(expected["path"] for expected in example["expect"])
    for expected in example["expect"]:
        assert any(f.path == expected["path"] and expected["contains"] in f.problem for f in found), found


def test_every_keyword_of_the_schema_has_an_example_that_it_refuses() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    refused = {
        error.validator
        for path in INVALID
        for error in validator.iter_errors(json.loads(path.read_bytes())["record"])
    }
    assert refused == keywords(SCHEMA)


def test_every_kind_that_one_record_can_show_has_an_example() -> None:
    invalid = [json.loads(path.read_bytes())["record"] for path in INVALID]
    valid = [json.loads(path.read_bytes()) for path in VALID]
    found = {finding.kind for record in invalid + valid for finding in find_problems(record)}
    assert found == KINDS.keys() - BEYOND_ONE_RECORD


def keywords(schema: dict[str, Any]) -> set[str]:
    return set(_keywords(schema))


def _keywords(schema: dict[str, Any]) -> Iterator[str]:
    for key, value in schema.items():
        assert key in ASSERTIONS | ANNOTATIONS | APPLICATORS, f"{key}: what is it?"
        if key in ASSERTIONS:
            yield key
        elif key == "properties":
            for child in value.values():
                yield from _keywords(child)
        elif key == "items":
            yield from _keywords(value)
        elif key == "allOf":
            for child in value:
                yield from _keywords(child)


def test_the_schema_is_itself_valid_and_describes_what_it_holds() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["title"]
    assert SCHEMA["$id"]
    for name, part in SCHEMA["properties"].items():
        assert part["description"], name
    for name, part in SCHEMA["properties"]["provenance"]["properties"].items():
        assert part["description"], name


def test_the_schema_knows_the_keys_that_records_have() -> None:
    from edgen.domains.education import family as records
    from edgen.families.base import Provenance

    def fields(struct: Any) -> list[str]:
        return list(struct.__struct_fields__)

    top = SCHEMA["properties"]
    assert list(top) == fields(records.EducationRecord)
    assert list(top["background_info"]["properties"]) == fields(records.BackgroundInfo)
    assert top["background_info"]["required"] == fields(records.BackgroundInfo)
    assert list(top["provenance"]["properties"]) == fields(Provenance)
    always = fields(Provenance)[: -len(Provenance.__struct_defaults__)]
    assert top["provenance"]["required"] == always
    assert tuple(SCHEMA["required"]) == ("background_info", "conversation")
