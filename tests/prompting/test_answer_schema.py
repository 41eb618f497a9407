"""The JSON Schema next to a template: accepted and refused schemas, and its part in the template's digest."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import TemplateError
from edgen.core.resources import find
from edgen.prompting import load_prompt
from edgen.prompting.answer_schema import MAX_SCHEMA, fits_schema
from edgen.prompting.prompt import read_answer_schema, render_schema
from edgen.prompting.token_bound import count_most_prompt_tokens, estimate_prompt_tokens
from tests.scenarios import DEFAULT_VARIABLES

SCHEMA = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}


def template(folder: Path, schema: Any = None, *, raw: str | None = None) -> Path:
    """Write a template and its schema next to it; return the template's path."""
    path = folder / "mine.j2"
    path.write_text("About {{ topic }}")
    if schema is not None or raw is not None:
        (folder / "mine.schema.json").write_text(json.dumps(schema, indent=4) if raw is None else raw)
    return path


def test_a_template_without_one_is_what_it_was(tmp_path: Path) -> None:
    prompt = load_prompt(template(tmp_path), ("topic",))
    assert prompt.schema is None
    assert prompt.sha256 == hashlib.sha256(b"About {{ topic }}").hexdigest()


def test_it_is_part_of_the_digest_and_its_white_space_is_not(tmp_path: Path) -> None:
    plain = load_prompt(template(tmp_path), ("topic",)).sha256
    first = load_prompt(template(tmp_path, SCHEMA), ("topic",))
    assert first.schema == json.dumps(SCHEMA, separators=(",", ":")).encode()
    compact = load_prompt(template(tmp_path, raw=json.dumps(SCHEMA)), ("topic",))
    other = load_prompt(template(tmp_path, SCHEMA | {"title": "Answer"}), ("topic",))
    assert first.sha256 == compact.sha256
    assert len({plain, first.sha256, other.sha256}) == 3
    assert len(first.sha256) == len(plain)


def test_what_names_its_draft_for_editors_is_not_sent(tmp_path: Path) -> None:
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMA}
    assert read_answer_schema(template(tmp_path, named)) == json.dumps(SCHEMA, separators=(",", ":")).encode()


def test_what_a_run_keeps_is_read_as_the_same(tmp_path: Path) -> None:
    schema = read_answer_schema(template(tmp_path, SCHEMA))
    assert schema is not None
    assert read_answer_schema(template(tmp_path, raw=render_schema(schema))) == schema


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[]", "it is not a JSON Schema object"),
        ("true", "it is not a JSON Schema object"),
        ('{"type": "text"}', "it is not a JSON Schema (draft 2020-12)"),
        ('{"type": "object", "properties": []}', "it is not a JSON Schema (draft 2020-12)"),
        ('{"$ref": "#/$defs/nowhere"}', "it is not a JSON Schema (draft 2020-12)"),
        ('{"$ref": "https://example.org/a.json"}', "'https://example.org/a.json' is outside of the schema"),
        ('{"items": {"$ref": "file:///etc/passwd"}}', "'file:///etc/passwd' is outside of the schema"),
        ('{"a": ' * 100 + "1" + "}" * 100, "nested more than 60 deep"),
        ("[" * 100_000, "it is larger than 0.0625 MiB"),
        ('{"a": ' * 9_000 + "1" + "}" * 9_000, "it is"),
        ('{"minimum": 1e400}', "it is not JSON"),
        ('{"a": "' + "x" * MAX_SCHEMA + '"}', "it is larger than 0.0625 MiB"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path: Path, raw: str, said: str) -> None:
    with pytest.raises(TemplateError) as refused:
        load_prompt(template(tmp_path, raw=raw), ("topic",))
    words = str(refused.value)
    assert words.startswith(f"schema {tmp_path / 'mine.schema.json'}: ")
    assert said in words
    assert len(words) < 600


def test_a_pipe_a_folder_and_a_link_that_leads_nowhere_are_refused(tmp_path: Path) -> None:
    path, beside = template(tmp_path), tmp_path / "mine.schema.json"
    os.mkfifo(beside)
    with pytest.raises(TemplateError, match="this is a pipe"):
        load_prompt(path, ("topic",))
    beside.unlink()
    beside.mkdir()
    with pytest.raises(TemplateError, match="this is a folder"):
        load_prompt(path, ("topic",))
    beside.rmdir()
    beside.symlink_to(tmp_path / "nowhere.schema.json")
    with pytest.raises(TemplateError, match="there is no such file"):
        load_prompt(path, ("topic",))


def test_whether_an_answer_fits(tmp_path: Path) -> None:
    schema = json.dumps(SCHEMA).encode()
    assert fits_schema('{"said": "hello"}', schema)
    for text in ("", "hello", "{}", '{"said": 1}', "[" * 100_000):
        assert not fits_schema(text, schema)


def test_a_budget_reckons_with_the_schema() -> None:
    schema = json.dumps(SCHEMA).encode()
    assert count_most_prompt_tokens((), schema) >= count_most_prompt_tokens(()) + len(schema)
    assert (
        estimate_prompt_tokens(()) < estimate_prompt_tokens((), schema) < count_most_prompt_tokens((), schema)
    )


def test_the_shipped_one_asks_what_the_template_without_asks() -> None:
    with_schema, without = (
        load_prompt(find("prompts", f"education_dialogue_{name}"), DEFAULT_VARIABLES)
        for name in ("schema", "json")
    )
    bodies = [prompt.text.partition("#}")[2] for prompt in (with_schema, without)]
    assert bodies[0] == bodies[1]
    assert without.schema is None
    assert with_schema.schema is not None
    layout = bodies[0].strip().splitlines()[-1].replace('"..."', '"Hi"')
    assert fits_schema(layout, with_schema.schema)
