"""The editor schemas of jobs and spaces, and docs/job.md: made from types, as strict as the loader."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from edgen.config import load_job, parse_job
from edgen.config.label_set import load_label_set
from edgen.core import resources
from edgen.core.errors import FileError, JobError
from edgen.core.yaml_values import read_yaml
from edgen.space import load_space
from tests import job_page, schemas

KINDS = ("job", "space", "label_set")
FOLDERS: dict[str, resources.Folder] = {"job": "jobs", "space": "preference_space", "label_set": "label_sets"}
FILES = {
    kind: [resources.find(folder, name) for name in resources.list_shipped(folder)]
    for kind, folder in FOLDERS.items()
}
VALIDATORS = resources.find_folder("validators")
LOAD = {"job": load_job, "space": load_space, "label_set": load_label_set}


def examples(outcome: str) -> list[Any]:
    return [
        pytest.param(kind, path, id=f"{kind}-{path.stem}")
        for kind in KINDS
        for path in sorted(VALIDATORS.glob(f"**/{kind}_examples/{outcome}/*.yaml"))
    ]


SHIPPED = [pytest.param(kind, path, id=f"{kind}-{path.stem}") for kind in KINDS for path in FILES[kind]]


@functools.cache
def schema(kind: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(resources.find("validators", kind).read_bytes())
    return decoded


@functools.cache
def _validator(kind: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(schema(kind))


def values(path: Path) -> Any:
    return read_yaml(path.read_text(encoding="utf-8"), path.name, JobError)


def errors(kind: str, value: Any) -> list[jsonschema.ValidationError]:
    """Return the innermost errors of the schema: why each alternative of an anyOf is invalid."""
    found, left = [], list(_validator(kind).iter_errors(value))
    while left:
        error = left.pop()
        found += [] if error.context else [error]
        left += error.context or ()
    return found


@pytest.mark.parametrize("path", schemas.MADE, ids=lambda path: path.name)
def test_what_is_committed_is_what_the_types_say(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == schemas.made(path), (
        "`python -m tests.schemas` (make docs) rewrites it"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_one_that_editors_read(kind: str) -> None:
    jsonschema.Draft7Validator.check_schema(schema(kind))
    text = json.dumps(schema(kind))
    assert r"\\Z" not in text  # Python's alone
    assert "discriminator" not in text
    for found in re.findall(r'"\$ref": "([^"]+)"', text):
        assert found.removeprefix("#/definitions/") in schema(kind)["definitions"]


@pytest.mark.parametrize(("kind", "path"), [*SHIPPED, *examples("valid")])
def test_what_ships_is_valid_and_names_its_schema(kind: str, path: Path) -> None:
    assert errors(kind, values(path)) == []
    LOAD[kind](path)
    found = re.fullmatch(
        r"# yaml-language-server: \$schema=(\S+)", path.read_text(encoding="utf-8").split("\n")[0]
    )
    assert found, f"{path}: the first line names no schema"
    assert (path.parent / found[1]).resolve() == (VALIDATORS / f"{kind}.schema.json").resolve()


@pytest.mark.parametrize(("kind", "path"), examples("invalid"))
def test_what_is_invalid_is_refused_by_schema_and_loader(kind: str, path: Path) -> None:
    expected = re.findall(r"^# refused: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert expected
    assert errors(kind, values(path))
    with pytest.raises(FileError) as caught:
        LOAD[kind](path)
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) == len(expected)
    for one in expected:
        assert any(problem.startswith(one) for problem in found), found


@pytest.mark.parametrize("kind", KINDS)
def test_every_keyword_of_a_schema_has_an_example_that_it_refuses(kind: str) -> None:
    refused = {error.validator for _, path in (e.values for e in examples("invalid") if e.values[0] == kind)
               for error in errors(kind, values(path))}  # fmt: skip
    about = {"$schema", "$id", "$ref", "title", "description", "default", "definitions", "properties", "items", "anyOf",
             "allOf", "if", "then", "else", "const", "propertyNames", "minProperties"}  # fmt: skip
    # Very long texts and lists are refused in the same way, and need no file each.
    assert set(_keywords(schema(kind))) - about - {"maxLength", "maxItems", "maxProperties"} <= refused


def _keywords(part: dict[str, Any]) -> Iterator[str]:
    for key, value in part.items():
        yield key
        inner = value if isinstance(value, list) else [value]
        if key in ("properties", "definitions"):
            inner = list(value.values())
        if key not in ("default", "enum", "required"):
            for child in inner:
                if isinstance(child, dict):
                    yield from _keywords(child)


GOOD = {"name": "x", "conversations": 1, "space": "education_dialogue", "prompt": "education_dialogue",
        "backends": {"default": {"type": "simulator"}}}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": {"max_cost": 1}},
        {"arms": {"a": {}, "A": {}}},
        {"protocol": "selfplay", "prompt": None, "branch": {"at": 3}},
    ],
)
def test_what_does_not_go_together_is_for_the_loader_alone(changes: dict[str, Any]) -> None:
    assert errors("job", GOOD | changes) == []
    with pytest.raises(JobError):
        parse_job(GOOD | changes, "job.yaml")


def test_a_run_folders_copy_of_its_job_is_valid_too() -> None:
    from edgen.config import resolve_values

    noted = {"edgen": "1", "space": "s", "space_sha256": "0", "template_sha256": "0", "fingerprint": "0"}
    for path in FILES["job"]:
        plain = msgspec.json.decode(msgspec.json.encode(resolve_values(load_job(path)) | {"resolved": noted}))
        assert errors("job", plain) == []


@pytest.mark.parametrize("section", job_page.SECTIONS, ids=lambda section: section.title)
def test_every_key_has_a_sentence_a_row_and_a_place_in_an_example(section: job_page.Section) -> None:
    page = (schemas.PAGE.parent / (section.elsewhere or schemas.PAGE.name)).read_text(encoding="utf-8")
    assert not section.shown or section.example in page
    told = schemas.sentences(section.struct)
    for field in job_page.own_fields(section.struct, schemas.sentences):
        sentence = told.get(field.name)
        assert sentence, (
            f"{section.struct.__name__}.{field.name}: a sentence under the field says what it means"
        )
        assert sentence.endswith(".")
        row = rf"^- `{field.encode_name}`(?: \(.*\))?: {re.escape(job_page.meaning(sentence))}$"
        assert re.search(rf"\b{field.encode_name}:\s" if section.elsewhere else row, page, re.MULTILINE)
        if field.name not in ("prompt", "arms", "resolved"):  # of another protocol, and reported below
            assert re.search(rf"\b{field.encode_name}:\s", section.example), field.name


@pytest.mark.parametrize(
    "section", [s for s in job_page.SECTIONS if s.example], ids=lambda section: section.title
)
def test_every_example_of_the_page_is_taken(section: job_page.Section) -> None:
    value = read_yaml(section.example, "example", JobError)
    if section.title.startswith("price"):
        value = {"backends": {"default": {"type": "openai", "model": "m", **value}}}
    if section.title in ("selfplay", "branch"):
        value |= {"protocol": "selfplay", "prompt": None, "replicates": 2}
    if section.title == "limits":
        value["backends"] = {
            "default": {"type": "simulator", "max_tokens": 9, "price": {"prompt": 0, "completion": 0}}
        }
    whole = value if "name" in value else GOOD | value
    assert errors("job", whole) == []
    parse_job(whole, "example")


def test_the_page_has_every_struct_of_a_job() -> None:
    parts = set(msgspec.json.schema_components([job_page.Job])[1])
    assert parts <= {struct.__name__ for struct in job_page.STRUCTS}
