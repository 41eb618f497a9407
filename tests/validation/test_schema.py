"""Two libraries, one schema: they agree, and the findings of one are in plain words."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core import resources
from edgen.validation.checker import find_problems
from edgen.validation.schema import conforms, find_schema_violations, is_valid, read_schema
from tests.dose import dose

RECORD = json.loads((resources.find_folder("validators") / "examples" / "valid" / "edgen.json").read_bytes())

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "Teacher", "Student", "teacher", "stop", "a" * 64, "a" * 64 + "\n", "é" * 201]),
    st.text(max_size=5),
)
values = st.recursive(
    leaves,
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.dictionaries(st.sampled_from(["role", "text", "topic", "id", "x"]), children, max_size=3),
    ),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """Draw the example with up to three of its nodes replaced, removed, repeated or given a new key."""
    record = copy.deepcopy(RECORD)
    for _ in range(draw(st.integers(1, 3))):
        node: Any = {"": record}
        key: Any = ""
        while isinstance(node[key], dict | list) and node[key] and draw(st.integers(0, 4)):
            node = node[key]
            key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        match draw(st.sampled_from(["replace", "remove", "repeat", "add"])):
            case "remove" if key != "":
                del node[key]
            case "repeat" if isinstance(node, list):
                node.append(copy.deepcopy(node[key]))
            case "add" if isinstance(node[key], dict):
                node[key][draw(st.text(max_size=5))] = draw(values)
            case _:
                node[key] = draw(values)
        record = node[key] if key == "" else record
    return record


@given(mutated())
@settings(max_examples=dose(12, 120), deadline=None)
def test_both_libraries_agree(record: Any) -> None:
    reference = jsonschema.Draft202012Validator(read_schema()).is_valid(record)
    assert conforms(record) == reference
    assert is_valid(json.dumps(record).encode()) == reference
    assert bool(find_schema_violations(record)) != reference
    assert any(f.kind == "schema" for f in find_problems(record)) != reference


@given(mutated())
@settings(max_examples=dose(10, 60), deadline=None)
def test_findings_point_at_something_and_are_worded(record: Any) -> None:
    for finding in find_problems(record, 4):
        assert finding.record == 4
        assert finding.path.startswith("$")
        assert "{'" not in finding.problem, "a library's sentence, with Python's repr in it"
        assert len(finding.problem) < 300


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"\xff\xfe",
        b'{"background_info": NaN}',
        b"[" * 100_000,
        b'{"background_info":"\\ud800 alone", "conversation": []}',
        json.dumps(RECORD).replace("0.8", "1e999").encode(),
        json.dumps(RECORD).replace("0.8", "9" * 6000).encode(),
    ],
)
def test_bytes_that_are_no_record_are_invalid_and_raise_nothing(data: bytes) -> None:
    assert is_valid(data) is False


def test_every_missing_key_is_found_once() -> None:
    found = find_problems({"background_info": {}, "conversation": RECORD["conversation"], "provenance": {}})
    missing = [f.path for f in found if f.problem == "this key is missing"]
    assert len(missing) == len(set(missing)) == 5 + 13


def test_long_and_strange_values_are_shortened_and_quoted() -> None:
    record = copy.deepcopy(RECORD)
    record["probability"] = "x\x1b[31m" * 100
    record['a "key"'] = 1
    by_path = {f.path: f.problem for f in find_problems(record)}
    assert len(by_path["$.probability"]) < 200
    assert "\x1b" not in by_path["$.probability"]
    assert '$["a \\"key\\""]' in by_path


def test_a_schema_of_anybody_is_worded_too(tmp_path: Path) -> None:
    listed = {"type": "array", "minItems": 2, "contains": {"const": "z"}}
    named = {"type": "string", "pattern": "^x", "format": "date", "not": {"const": "y"}}
    (tmp_path / "own.json").write_text(
        json.dumps({"properties": {"list": listed, "name": named}, "additionalProperties": False})
    )
    found = find_problems({"list": ["y"], "name": "y", "other": 1}, schema=str(tmp_path / "own.json"))
    assert [(one.path, one.problem) for one in found] == [
        ("$.other", "unknown key (known: list, name)"),
        ("$.list", "expected at least 2 elements, got 1"),
        ("$.list", "['y'] does not contain items matching the given schema"),
        ("$.name", 'expected ^x, got "y"'),
        ("$.name", "'y' should not be valid under {'const': 'y'}"),
    ]


@pytest.mark.integration
def test_neither_library_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, edgen.validation.schema as v\n"
        "assert not {'jsonschema', 'jsonschema_rs'} & set(sys.modules), 'too early'\n"
        "assert not v.is_valid(b'{}')\n"
        "assert 'jsonschema_rs' in sys.modules and 'jsonschema' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
