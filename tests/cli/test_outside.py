"""Files outside a job's project, with every command that loads a job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from edgen.core import resources
from edgen.store.run_reader import RunReader
from tests.cli.command import Command

SECRET = "the-words-of-another-file"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an untrusted folder as the working directory; the user's private files are next to it."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / "edgen.yaml").touch()
    shipped = resources.find("prompts", "education_dialogue").read_text()
    (tmp_path / "private.j2").write_text(f"{shipped}\n{SECRET}\n")
    (tmp_path / "private.json").write_text(SECRET)
    monkeypatch.chdir(folder)
    return folder


def job(here: Path, **changes: object) -> str:
    base = {
        "name": "t", "conversations": 3, "space": "education_dialogue", "prompt": "education_dialogue",
        "split": {"test": 0}, "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    (here / "job.yaml").write_text(yaml.safe_dump({**base, **changes}))
    return "job.yaml"


COMMANDS = [["generate", "-o", "run"], ["preview"], ["estimate"], ["doctor", "--no-call"]]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_no_command_reads_what_a_stranger_names(command: Command, here: Path, words: list[str]) -> None:
    (here / "link.j2").symlink_to("../private.j2")
    os.mkfifo(here / "pipe.j2")
    for name in ("../private.j2", "./link.j2", str(here.parent / "private.j2"), "/proc/self/environ"):
        ended = command(words[0], job(here, prompt=name), *words[1:])
        assert ended.code == 2
        assert "outside of the job's project" in ended.err
        assert "add --allow-outside, or type its path yourself: --set prompt=" in ended.err
        assert SECRET not in ended.err + ended.out
    ended = command(words[0], job(here, prompt="./pipe.j2"), *words[1:], "--allow-outside")
    assert ended.code == 2
    assert "a pipe or a device" in ended.err
    assert not (here / "run").exists()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_the_person_may_have_it_read(command: Command, here: Path, words: list[str]) -> None:
    ended = command(words[0], job(here, prompt="../private.j2"), *words[1:], "--allow-outside")
    assert ended.code == 0, ended.err
    more = ["--yes"] if words[0] == "generate" else []
    ended = command(words[0], job(here), *words[1:], "--set", "prompt=../private.j2", *more)
    assert ended.code == 0, ended.err


def test_a_runs_own_job_goes_on_working_by_itself(command: Command, here: Path, tmp_path: Path) -> None:
    arms = {"a": {}, "b": {"prompt": "education_dialogue_json"}}
    for name, changes in (("plain", {}), ("arms", {"arms": arms})):
        path = job(here, prompt="../private.j2", **changes)
        assert command("generate", path, "-o", name, "--allow-outside").code == 0
        moved = tmp_path / f"elsewhere-{name}"
        (here / name).rename(moved)
        for words in (
            ["generate", str(moved / "job.yaml"), "-o", str(moved)],
            ["preview", str(moved / "job.yaml")],
        ):
            ended = command(*words)
            assert ended.code == 0, ended.err
    assert command("compare", tmp_path / "elsewhere-arms", "--json").code in (0, 3)


def test_a_template_that_was_typed_for_a_look_may_be_anywhere(command: Command, here: Path) -> None:
    ended = command("preview", job(here), "--diff", "../private.j2", "-n", "1")
    assert ended.code == 0, ended.err
    assert SECRET in ended.out
    (here / "other.yaml").write_text((here / "job.yaml").read_text())
    other = yaml.safe_load((here / "other.yaml").read_text())
    (here / "other.yaml").write_text(yaml.safe_dump({**other, "prompt": "../private.j2"}))
    ended = command("preview", job(here), "--diff", "other.yaml")
    assert ended.code == 2
    assert "outside of the job's project" in ended.err


def test_a_tokenizer_is_held_to_it_too(command: Command, here: Path) -> None:
    backend = {
        "type": "openai",
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
        "tokenizer": "../private.json",
    }
    ended = command("estimate", job(here, backends={"default": backend}))
    assert ended.code == 2
    assert "outside of the job's project" in ended.err
    assert "--set backends.default.tokenizer=../private.json" in ended.err
    ended = command("estimate", job(here, backends={"default": backend}), "--allow-outside")
    assert "not a tokenizer.json" in ended.err
    assert SECRET not in ended.err


def test_a_judges_template_of_a_run_is_held_to_it(command: Command, here: Path) -> None:
    assert command("generate", job(here, replicates=2), "-o", "run").code == 0
    (here / "run" / "digests.json").unlink()  # as after an older edgen: the copy is accepted without a check
    run = yaml.safe_load((here / "run" / "job.yaml").read_text())
    (here / "run" / "job.yaml").write_text(yaml.safe_dump({**run, "prompts": {"oracle": "../../private.j2"}}))
    ended = command("pairs", "run", "--by", "oracle")
    assert ended.code == 2
    assert "outside of the job's project" in ended.err
    ended = command("pairs", "run", "--by", "oracle", "--prompt", "../private.j2")
    assert "outside" not in ended.err


def test_a_pipe_among_the_templates_here_holds_up_no_list(command: Command, here: Path) -> None:
    os.mkfifo(here / "pipe.j2")
    assert command("prompts").code == 0


def test_what_is_said_of_a_run_holds_no_digest_of_a_file_that_it_only_names(
    command: Command, here: Path
) -> None:
    assert command("generate", job(here), "-o", "run").code == 0
    (here / "run" / "digests.json").unlink()  # as after an older edgen: the copy is accepted without a check
    for name in (str(here.parent / "private.j2"), "../../private.j2", "inputs/../../../private.j2"):
        run = yaml.safe_load((here / "run" / "job.yaml").read_text())
        (here / "run" / "job.yaml").write_text(yaml.safe_dump({**run, "prompts": {"oracle": name}}))
        with RunReader(Path("run")) as reader:
            templates = reader.describe()["job"]["resolved"]["templates"]
        assert list(templates) == ["default"]
