"""`edgen init`: what an editor finds in the folder."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from edgen.core import resources
from edgen.core.errors import JobError
from edgen.core.yaml_values import read_yaml
from edgen.space import content_sha256, load_space
from tests.cli.command import Command

SPACES = {
    "oneshot": "education_dialogue",
    "selfplay": "education_dialogue",
    "tutoring": "italian_prepositions",
    "guided": "incident_response",
    "forum": "homework_help",
}


@pytest.mark.parametrize("protocol", SPACES)
def test_job_and_space_name_a_schema_beside_them_that_takes_them(
    command: Command, tmp_path: Path, protocol: str
) -> None:
    folder = tmp_path / "mine"
    assert command("init", folder, "--protocol", protocol).code == 0
    for kind in ("job", "space"):
        text = (folder / f"{kind}.yaml").read_text(encoding="utf-8")
        first = text.split("\n")[0]
        assert first.startswith("# yaml-language-server: $schema=./")
        assert text.count("yaml-language-server") == 1
        schema = json.loads((folder / first.partition("=")[2]).read_bytes())
        assert schema == json.loads(resources.find("validators", kind).read_bytes())
        jsonschema.Draft7Validator(schema).validate(read_yaml(text, kind, JobError))
    shipped = load_space(resources.find("preference_space", SPACES[protocol]))
    assert content_sha256(load_space(folder / "space.yaml")) == content_sha256(shipped)


@pytest.mark.parametrize("protocol", SPACES)
def test_what_it_makes_is_ready_to_generate(command: Command, tmp_path: Path, protocol: str) -> None:
    folder = tmp_path / "mine"
    assert command("init", folder, "--protocol", protocol).code == 0
    ended = command("generate", folder / "job.yaml", "-n", "2", "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    job = (folder / "job.yaml").read_text(encoding="utf-8")
    assert all(f"./{path.name}" in job for path in folder.glob("*.j2"))
