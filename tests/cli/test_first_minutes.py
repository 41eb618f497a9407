"""What somebody meets who has just installed edgen: a job that is not there, a model's name, the shell's completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgen.api.doctor import find_model as listed
from tests.cli.command import Command


@pytest.mark.parametrize(("name", "option"), [("quickstart", ""), ("selfplay", " --protocol selfplay")])
def test_a_shipped_job_that_is_not_here_points_to_init(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = command("generate", f"jobs/{name}.yaml")
    assert ended.code == 2
    assert f"there is no such file. `edgen init my-project{option}` makes" in ended.err
    assert command("init", "my-project", *option.split()).code == 0
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
