"""`edgen init`: editor settings and schemas in the folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgen.api import projects
from edgen.config import load_job
from edgen.config.loading import list_conversation_protocols
from edgen.core import resources
from edgen.core.errors import JobError
from edgen.core.registry import find, part_of
from edgen.core.yaml_values import read_yaml
from edgen.protocols.base import SelfDescription
from edgen.space import digest_content, load_space
from tests.cli.command import Command

STARTERS = {
    name: starter.job
    for name in list_conversation_protocols()
    if (starter := part_of(find("protocol", name), SelfDescription).starter) is not None
}
SPACES = {name: load_job(resources.find("jobs", job)).space for name, job in STARTERS.items()}


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
    assert digest_content(load_space(folder / "space.yaml")) == digest_content(shipped)


@pytest.mark.parametrize("protocol", SPACES)
def test_what_it_makes_is_ready_to_generate(command: Command, tmp_path: Path, protocol: str) -> None:
    folder = tmp_path / "mine"
    assert command("init", folder, "--protocol", protocol).code == 0
    ended = command("generate", folder / "job.yaml", "-n", "2", "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    job = (folder / "job.yaml").read_text(encoding="utf-8")
    assert all(f"./{path.name}" in job for path in folder.glob("*.j2"))


@pytest.mark.parametrize("protocol", ["oneshot", "selfplay"])
def test_a_job_that_names_no_template_names_the_copies(
    command: Command, tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_without_templates(folder: Any, name: str) -> str:
        return re.sub(r"(?m)^prompts?: .*\n", "", read_shipped(folder, name))

    read_shipped = projects._read_shipped
    monkeypatch.setattr(projects, "_read_shipped", read_without_templates)
    folder = tmp_path / "mine"
    assert command("init", folder, "--protocol", protocol).code == 0
    job = (folder / "job.yaml").read_text(encoding="utf-8")
    assert all(f"./{path.name}" in job for path in folder.glob("*.j2"))
    assert command("preview", folder / "job.yaml", "-n", "1").code == 0


@pytest.mark.parametrize("job", resources.list_shipped("jobs"))
def test_any_shipped_job_is_copied_with_the_files_that_it_names(
    command: Command, tmp_path: Path, job: str
) -> None:
    folder = tmp_path / "mine"
    assert command("init", folder, "--job", job).code == 0
    assert "../" not in (folder / "job.yaml").read_text(encoding="utf-8")
    ended = command("preview", folder / "job.yaml", "-n", "1")
    assert ended.code == 0, ended.err
    shipped = load_job(resources.find("jobs", job))
    copied = load_job(folder / "job.yaml")
    assert copied.name == "mine"
    assert (copied.space, copied.protocol, copied.arms) == (shipped.space, shipped.protocol, shipped.arms)
    assert command("init", folder, "--job", job).code == 2  # the file exists


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--job", "persn_wizard"), "did you mean 'person_wizard'?"),
        (("--job", "quickstart", "--space", "broad"), "leave the other option out"),
        (("--job", "quickstart", "--protocol", "oneshot"), "leave the other option out"),
    ],
)
def test_a_job_that_is_not_there_or_not_alone_is_refused(
    command: Command, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ended = command("init", tmp_path / "mine", *words)
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "mine").exists()


OWN = """name: talks
dimensions:
  topic: [{value: Adding fractions, grade: 4}, {value: Comparing fractions}]
  learner: [shy, talkative]
  secret: [likes cats, likes dogs]
roles:
  Tutor: {sees: [topic]}
  Learner: {sees: [topic, learner]}
"""


@pytest.mark.parametrize("protocol", ["oneshot", "selfplay"])
def test_a_space_of_ones_own_gets_templates_with_its_dimensions(
    command: Command, tmp_path: Path, protocol: str
) -> None:
    own, folder = tmp_path / "own.yaml", tmp_path / "mine"
    own.write_text(OWN)
    assert command("init", folder, "--protocol", protocol, "--space", own).code == 0
    names = ["prompt"] if protocol == "oneshot" else ["tutor", "learner"]
    texts = {name: (folder / f"{name}.j2").read_text() for name in names}
    assert "{{ topic }}" in texts[names[-1]]
    assert "{{ learner }}" in texts[names[-1]]
    assert all(("{{ secret }}" in text) == (protocol == "oneshot") for text in texts.values())
    assert protocol == "oneshot" or "learner }}" not in texts["tutor"]
    shown = command("preview", folder / "job.yaml", "-n", "2")
    assert "grade: 4" in shown.out
    assert "never used" not in shown.err.replace("`secret`", "")
    ended = command("generate", folder / "job.yaml", "-n", "6", "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    # The written template makes the same requests as the plain one.
    plain = tmp_path / "plain.yaml"
    plain.write_text(
        (folder / "job.yaml").read_text().replace("./space.yaml", "./own.yaml").replace("prompt", "# prompt")
    )
    assert command("preview", plain, "-n", "2").out.splitlines()[:12] == shown.out.splitlines()[:12]


def test_a_space_is_written_with_dimensions(command: Command, tmp_path: Path) -> None:
    assert command("init", tmp_path / "mine").code == 0
    text = (tmp_path / "mine" / "space.yaml").read_text(encoding="utf-8")
    assert "\ndimensions:\n  topic:\n" in text
    assert "\nroles:\n" in text


def test_a_protocol_that_needs_more_than_a_space_says_so(command: Command, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    ended = command("init", tmp_path / "mine", "--protocol", "guided", "--space", tmp_path / "own.yaml")
    assert ended.code == 2
    assert "guided.machine" in ended.err
    assert not (tmp_path / "mine").exists()
