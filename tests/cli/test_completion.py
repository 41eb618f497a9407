"""Completion in shells: the words that the real scripts get. It is fast, silent, and safe for
any file names."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgen.cli import complete
from tests import ROOT
from tests.cli.command import Command
from tests.cli.test_generate import job

ARMS = {"published": {"asks": 2}, "short": {"asks": 4}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with an `edgen` for PATH, a run with arms and a layer, a job, a template and a space."""
    from tests.cli.command import call

    here = tmp_path_factory.mktemp("completion")
    program = here / "bin" / "edgen"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m edgen "$@"\n')
    program.chmod(0o755)
    script = subprocess.run(
        [program, "--show-completion", "bash"],
        env={**environment(here), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    (here / "completion.bash").write_bytes(script.stdout)
    backends = {"default": {"type": "simulator"}, "judge": {"type": "simulator"}}
    assert call("generate", job(here, arms=ARMS, backends=backends), "-o", here / "outputs" / "nightly") == 0
    (here / "outputs" / "nightly" / "layers" / "moves").mkdir(parents=True)
    (here / "mine.j2").write_text("{{ topic }}")
    (here / "mine.yaml").write_text("name: mine\ndimensions:\n  topic: [a, b]\n")
    for name in (
        "$(touch pwned)",
        "`touch pwned`",
        "a;touch pwned",
        "*",
        "\x1b[31m",
        "-rf",
        "two words",
        'q"uote',
    ):
        (here / "outputs" / name).mkdir()
        (here / "outputs" / name / "run.lock").touch()
    return here


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def bash(folder: Path, *words: str) -> list[str]:
    """Return the words that bash offers for the last word, by the script of `edgen --show-completion`."""
    script = (
        "source ./completion.bash\n"
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _edgen_completion edgen\n'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words],
        cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def shell(folder: Path, kind: str, line: str) -> subprocess.CompletedProcess[str]:
    """Return the program's answer to another shell's script for a line."""
    asked = {
        "_EDGEN_COMPLETE": f"complete_{kind}", "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    return subprocess.run(
        [folder / "bin" / "edgen"],
        cwd=folder, env={**environment(folder), **asked}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.integration
def test_bash_offers_what_there_is(folder: Path) -> None:
    run = "outputs/nightly"
    for words, offered in (
        (("ge",), ["generate"]),
        (("export", run, "--to", "trl-d"), ["trl-dpo"]),
        (("annotate", run, "--labels", "teacher"), ["teacher_moves"]),
        (("generate", "jo"), ["job.yaml"]),
        (("status", "outputs/n"), [run]),
        (("show", "outputs/ni"), [run]),
        (("annotate", run, "--prompt", "./m"), ["./mine.j2"]),
        (("space", "show", "m"), ["math_misconceptions", "mine.yaml"]),
        (("export", run, "--layer", ""), ["moves"]),
        (("compare", run, "--arms", ""), [*ARMS]),
        (("pairs", run, "--backend", "ju"), ["judge"]),
        (("stats", run, "--only", "leak"), ["leakage", "leaks"]),
        (("candidates", run, "--write", ""), ["paraphrases", "wrong"]),
        (("list", "f"), ["formats", "families"]),
        (("list", "as"), ["askers"]),
    ):
        assert bash(folder, "edgen", *words) == offered, words


@pytest.mark.integration
def test_no_name_of_a_file_reaches_a_shell_that_could_do_harm(folder: Path) -> None:
    assert bash(folder, "edgen", "status", "") == ["outputs/-rf", "outputs/nightly"]
    zsh, fish = (shell(folder, kind, "edgen status ") for kind in ("zsh", "fish"))
    assert (zsh.stdout, zsh.stderr) == ('_arguments \'*: :(("outputs/-rf"\n"outputs/nightly"))\'\n', "")
    assert (fish.stdout, fish.stderr) == ("outputs/-rf\noutputs/nightly\n", "")
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-c", f"_arguments() {{ }}; {zsh.stdout}"], cwd=folder, check=True, timeout=60)
    assert not [*folder.rglob("pwned")]


@pytest.mark.integration
def test_what_cannot_be_read_is_silence(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "layers").mkdir(parents=True)
    (broken / "job.yaml").write_bytes(b"\xff{")
    for words in (
        ("edgen", "pairs", str(broken), "--backend", ""),
        ("edgen", "compare", str(broken), "--arms", ""),
        ("edgen", "export", str(tmp_path / "none"), "--layer", ""),
        ("edgen", "export", "x", "--to", "none", "--no"),
    ):
        assert bash(folder, *words) == []


@pytest.mark.integration
def test_a_word_is_completed_without_heavy_imports(folder: Path) -> None:
    """Completion takes about 0.2 s of CPU, mostly for the start of Python and typer."""
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        shell(folder, "fish", "edgen export outputs/nightly --to ")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 0.8


def test_words_of_harmless_characters_are_offered(command: Command, tmp_path: Path) -> None:
    offer = complete._offer(
        lambda _ctx, _incomplete: ["a/b-1.yaml", "a b", "-x", "a$b", "a\nb", "ä_é", "a'b", "~x", "a=b"]
    )
    assert offer(None, "") == ["a/b-1.yaml", "ä_é", "a=b"]  # type: ignore[arg-type] - it uses no context
