"""A bare name means the shipped file; if a local file has the same name, a note explains how to name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import load_plan, load_plans
from tests import ROOT

pytestmark = pytest.mark.unit

OWN = (
    "name: own\ndimensions:\n  topic: [a, b]\nroles:\n  Tutor: {sees: [topic]}\n  Learner: {sees: [topic]}\n"
)
LABELS = "name: own\nlabels:\n  good: it is good\n  bad: it is bad\n"


def doubts(folder: Path, **job: str) -> list[str]:
    lines = {
        "name": "j",
        "conversations": "2",
        "space": "math_misconceptions",
        "backends": "{default: {type: simulator}}",
        **job,
    }
    (folder / "job.yaml").write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))
    allowed = AllowedFiles.of(folder / "job.yaml")
    load_plans(folder / "job.yaml", (), allowed)
    return [*allowed.doubts]


@pytest.mark.parametrize("place", ["math_misconceptions.yaml", "preference_space/math_misconceptions.yaml"])
def test_a_space_next_to_the_job(place: str, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(OWN)
    assert doubts(tmp_path) == [
        f"`space: math_misconceptions` means the shipped file, not {tmp_path / place}; to use that one, write `space: ./{place}`"
    ]
    assert doubts(tmp_path, space=f"./{place}") == []
    (tmp_path / place).unlink()


def test_a_space_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (tmp_path / "math_misconceptions.yaml").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    (said,) = doubts(jobs)
    assert said.endswith("write `space: ../math_misconceptions.yaml`")


@pytest.mark.parametrize(
    ("file", "text", "job"),
    [
        ("plain_conversation.j2", "Tutor and Student. {{ topic }}", {"prompt": "plain_conversation"}),
        ("prompts/plain_turn.j2", "{{ topic }}", {"protocol": "selfplay", "prompts": "{tutor: plain_turn}"}),
        ("quality.yaml", LABELS, {"labels": "{quality: {set: quality, unit: conversation}}"}),
    ],
)
def test_templates_and_label_sets(file: str, text: str, job: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / file.replace("/", "_")
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text(text)
    said, *_ = doubts(folder, **job)
    assert "means the shipped file, not " in said


def test_a_job_that_is_called_like_its_space_is_no_other_space(tmp_path: Path) -> None:
    (tmp_path / "math_misconceptions.yaml").write_text(
        "name: math_misconceptions\nspace: math_misconceptions\n"
    )
    assert doubts(tmp_path) == []


def test_the_shipped_jobs_are_in_no_doubt() -> None:
    for path in (ROOT / "jobs").glob("*.yaml"):
        allowed = AllowedFiles.of(path)
        load_plan(path, [], allowed)
        assert not allowed.doubts, path
