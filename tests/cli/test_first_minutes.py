"""The first minutes with edgen: a missing job, a model's name, the shell's completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgen.api.doctor import find_model as listed
from tests.cli.command import Command


@pytest.mark.parametrize("name", ["quickstart", "selfplay", "course_advising"])
def test_a_shipped_job_that_is_not_here_points_to_init(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = command("generate", f"jobs/{name}.yaml")
    assert ended.code == 2
    assert f"there is no such file. `edgen init my-project --job {name}` makes" in ended.err
    assert command("init", "my-project", "--job", name).code == 0
    assert command("generate", "my-project/job.yaml", "-n", "2").code == 0


def test_a_job_of_ones_own_with_a_typing_error(command: Command, tmp_path: Path) -> None:
    (tmp_path / "nightly.yaml").write_text("")
    assert f"Did you mean {tmp_path / 'nightly.yaml'}?" in command("generate", tmp_path / "nigthly.yaml").err


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gpt-5-mini", "gpt-5-mini is listed, one of 3"),
        ("gpt5-mini", "gpt5-mini is not listed; did you mean gpt-5-mini, gpt-5?"),
        ("qwen3-8b", "qwen3-8b is not listed; did you mean Qwen/Qwen3-8B?"),
        ("zzz", "zzz is not listed, nor anything like it (listed: gpt-5-mini, gpt-5, Qwen/Qwen3-8B)"),
    ],
)
def test_doctor_suggests_names_that_the_service_has(model: str, said: str) -> None:
    assert listed(model, ["gpt-5-mini", "gpt-5", "Qwen/Qwen3-8B"]) == said


@pytest.mark.parametrize(
    ("words", "completed"),
    [("edgen gen", "generate"), ("edgen batch ca", "cancel"), ("edgen estimate --vi", "--via")],
)
def test_the_shell_completes(words: str, completed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "edgen"], capture_output=True, text=True, timeout=60,
        env={**os.environ, "_EDGEN_COMPLETE": "complete_bash", "COMP_WORDS": words,
             "COMP_CWORD": str(len(words.split()) - 1)},
    )  # fmt: skip
    assert done.stdout.split() == [completed], done.stderr


class TestMistakesOfTheFirstHour:
    """Each message names the intended command or value."""

    @pytest.fixture
    def project(self, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        assert command("init", "my-project").code == 0
        assert command("generate", "my-project/job.yaml", "-n", "2").code == 0
        return tmp_path

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ("preview my-project", "Did you mean my-project/job.yaml?"),
            ("estimate my-project/job.yaml --set space=./spaces.yaml", "Did you mean my-project/space.yaml?"),
            ("estimate my-project/job.yaml --set space=space", "no such space; did you mean the file ./space.yaml?"),
            ("estimate my-project/job.yaml --set prompt=promt.j2", "Did you mean my-project/prompt.j2?"),
            ("init talks --space my-project/spaec.yaml", "my-project/space.yaml?"),
            ("init talks --space spaec.yaml", "spaec.yaml: there is no such file."),
            ("status my-project", "this is a project, not a run"),
            ("show my-project 0", "`edgen generate my-project/job.yaml` makes it."),
            ("status outputs/my-projct", "Did you mean outputs/my-project?"),
            ("show outputs/my-project", "as in `edgen show outputs/my-project 0`"),
            ("show outputs", "there is no run here; `edgen generate JOB -o outputs` makes one. Did you mean outputs/my-project?"),
            ("report outputs/my-project/shards", "Did you mean outputs/my-project?"),
        ],
    )  # fmt: skip
    def test_a_wrong_name_is_answered_by_the_right_one(
        self, command: Command, project: Path, words: str, said: str
    ) -> None:
        ended = command(*words.split())
        assert (ended.code, said in ended.err) == (2, True), ended.err

    def test_a_lost_ledger_makes_a_run_invalid(self, command: Command, project: Path) -> None:
        run = project / "outputs" / "my-project"
        assert command("validate", run).code == 0
        (run / "run.db").unlink()
        ended = command("validate", run)
        assert ended.code == 3
        assert "the ledger is missing" in ended.out
        assert f"repair: Restore {run / 'run.db'} from a copy" in ended.out

    def test_a_damaged_shard_names_the_repair(self, command: Command, project: Path) -> None:
        run = project / "outputs" / "my-project"
        shard = max((run / "shards").glob("conversations_*.json"), key=lambda path: path.stat().st_size)
        shard.write_text(shard.read_text().replace("Teacher", "Taecher"))
        ended = command("validate", run)
        assert ended.code == 3
        assert f"repair: `edgen generate` the job of {run} again" in ended.out
        assert command("generate", "my-project/job.yaml", "-n", "2").code == 0
        assert command("validate", run).code == 0

    def test_a_damaged_page_of_the_ledger_is_one_line(self, command: Command, project: Path) -> None:
        ledger = project / "outputs" / "my-project" / "run.db"
        with ledger.open("r+b") as file:
            file.seek(2 * 4096)
            file.write(bytes(4096))
        ended = command("validate", ledger.parent)
        assert ended.code == 3
        (line,) = [line for line in ended.out.splitlines() if "the ledger is damaged" in line]
        assert "***" not in line
        assert line.endswith("or use another run folder.")
