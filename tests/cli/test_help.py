"""Help: sections, a sentence and an example for each command; old names work and report the new ones."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from edgen.cli import old_names
from edgen.cli.app import app, list_sections
from edgen.cli.options import read_first_sentence
from tests.cli.command import Command
from tests.cli.test_generate import job

WIDTH = 80


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command and group with its words."""
    if path:
        yield " ".join(path), command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


COMMANDS = dict(commands(get_command(app)))


def test_the_commands_are_in_sections_a_line_each(command: Command) -> None:
    out = command("--help").out
    for title, those in list_sections().items():
        section = out.split(f"\n{title}:\n")[1].split("\n\n")[0].splitlines()
        assert [line.split()[0] for line in section] == [*those]
    assert max(map(len, out.splitlines())) <= WIDTH


@pytest.mark.parametrize("words", COMMANDS)
def test_help_begins_with_one_sentence_and_ends_with_an_example(words: str) -> None:
    help_ = COMMANDS[words].help
    sentence = read_first_sentence(help_)
    assert re.fullmatch(r"[A-Z][a-z]+,? [^.]*\.", sentence), sentence
    assert len(sentence) <= WIDTH - 13
    examples = re.findall(r"Example: (edgen [^\n]*(?:\n +[^\n]+)*)", help_)
    assert examples
    assert help_.rstrip().endswith(examples[-1])
    for example in examples:
        assert example.startswith(f"edgen {words}")


@pytest.mark.parametrize("words", COMMANDS)
def test_examples_have_options_that_exist(words: str) -> None:
    command = COMMANDS[words]
    for example in re.findall(r"Example: (edgen [^\n&]*)", command.help):
        options = [word for word in shlex.split(example) if word.startswith("-")]
        if not hasattr(command, "commands"):
            context = command.context_class(command, **command.context_settings)
            known = {spelling for option in command.get_params(context) for spelling in option.opts}
            assert {*options} <= known


@pytest.mark.parametrize("old", old_names.COMMANDS)
def test_an_old_command_is_hidden_and_says_its_new_name(command: Command, old: str) -> None:
    new = " ".join(("edgen", *old_names.COMMANDS[old]))
    assert not re.search(rf"^  {old} ", command("--help").out, re.MULTILINE)
    ended = command(old, "--help")
    assert ended.code == 0
    assert f"`edgen {old}` is an old name of `{new}` and still works." in ended.out
    assert "old name" not in command(*old_names.COMMANDS[old], "--help").out


def test_old_commands_print_what_new_ones_print(command: Command, tmp_path: Path) -> None:
    (tmp_path / "reply.txt").write_text("Teacher: What is a cell?\nStudent: A tiny room?\nProbability: 0.2\n")
    (tmp_path / "lines.jsonl").write_text(
        '{"id": 1, "reply": "Teacher: Hi.\\nStudent: Hi!"}\n{"id": 2, "reply": ""}\n'
    )
    for old, new in (
        (("prompts",), ("list", "prompts")),
        (("prompts", tmp_path, "--json"), ("list", "prompts", tmp_path, "--json")),
        (("plugins", "--json"), ("list", "plugins", "--json")),
        (("parse", tmp_path / "reply.txt"), ("validate", "--replies", tmp_path / "reply.txt")),
        (
            ("parse", "--jsonl", tmp_path / "lines.jsonl", "--role", "Teacher=Tutor"),
            ("validate", tmp_path / "lines.jsonl", "--replies", "--jsonl", "--role", "Teacher=Tutor"),
        ),
    ):
        first, second = command(*old), command(*new)
        assert first == second
        assert first.out
    refused = command("validate", tmp_path / "lines.jsonl", "--jsonl")
    assert (refused.code, "--jsonl goes with --replies" in refused.err) == (2, True)


def test_candidates_are_written_by_annotate(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("generate", job(tmp_path), "-o", run).code == 0
    needs = command(
        "candidates", run, "--write", "wrong", "-n", "2", "--by", "default", "--dry-run", "--json"
    )
    assert needs.code == 0, needs.err
    assert needs == command(
        "annotate", run, "--write", "wrong", "--texts", "2", "--backend", "default", "--dry-run", "--json"
    )
    for words, said in (
        (("--write", "wrong", "--labels", "quality"), "--labels labels turns, and --write writes texts"),
        (("--labels", "quality", "--texts", "2"), "--texts goes with --write"),
        (("--write", "wrong", "--backend", "a", "--backend", "b"), "takes one --backend"),
    ):
        ended = command("annotate", run, *words)
        assert (ended.code, said in ended.err) == (2, True), ended.err


def test_generate_dry_run_prints_the_estimate_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    before = sorted(tmp_path.rglob("*"))
    for words in ((), ("--json",), ("-n", "3", "--via", "online"), ("--range", "0:2")):
        dry = command("generate", path, "-o", run, "--dry-run", *words)
        assert dry.code == 0
        assert dry == command("estimate", path, "-o", run, *words)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "kind", ["jobs", "spaces", "label-sets", "machines", "formats", "measures", "protocols", "askers"]
)
def test_each_kind_is_listed(command: Command, kind: str) -> None:
    names = json.loads(command("list", "--json").out)[kind]
    out = command("list", kind)
    assert out.code == 0
    assert "ERROR" not in out.out
    for name in names:
        assert re.search(rf"^{re.escape(name)} ", out.out, re.MULTILINE), name
