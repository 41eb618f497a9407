"""The examples of the layout with any roles and dimensions: each result is the one that its file states."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from edgen.core import resources
from edgen.families.base import Provenance
from edgen.families.dialogue import DIALOGUE, DialogueRecord
from edgen.validation.checker import find_problems

pytestmark = pytest.mark.unit

EXAMPLES = resources.find_folder("validators") / "dialogue_examples"
SCHEMA = json.loads(resources.find("validators", DIALOGUE.schema).read_bytes())


@pytest.mark.parametrize("path", sorted((EXAMPLES / "valid").glob("*.json")), ids=lambda path: path.stem)
def test_valid(path: Path) -> None:
    record = json.loads(path.read_bytes())
    assert find_problems(record, schema=DIALOGUE.schema) == []
    if "provenance" in record:
        assert json.loads(DIALOGUE.record(DIALOGUE.read(path.read_bytes()))) == record


@pytest.mark.parametrize("path", sorted((EXAMPLES / "invalid").glob("*.json")), ids=lambda path: path.stem)
def test_invalid(path: Path) -> None:
    example = json.loads(path.read_bytes())
    found = [
        finding
        for finding in find_problems(example["record"], schema=DIALOGUE.schema)
        if finding.severity == "error"
    ]
    for expected in example["expect"]:
        assert any(one.path == expected["path"] and expected["contains"] in one.problem for one in found), (
            found
        )


def test_the_schema_knows_the_keys_that_records_have() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert {*DialogueRecord.__struct_fields__} <= {*SCHEMA["properties"]}
    assert list(SCHEMA["properties"]["provenance"]["properties"]) == list(Provenance.__struct_fields__)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "no object"),
        ("x", "no object"),
        ({"roles": ["A", "B"]}, "no scenario"),
        ({"scenario": "x"}, "no scenario"),
        ({"scenario": {}}, "no list of turns"),
    ],
)
def test_what_is_no_record_is_refused_with_a_reason(record: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DIALOGUE.read_file(record)


@pytest.mark.parametrize(
    ("turn", "anew"),
    [({"data": {"time": 3}}, True), ({"data": {"time": "3"}}, False), ({"data": []}, False), ("x", False)],
)
def test_only_a_turn_with_a_time_may_follow_one_of_the_same_role(turn: object, anew: bool) -> None:
    assert DIALOGUE.begins_anew(turn) is anew
