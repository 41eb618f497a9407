"""One meaning an option: a name has the same kind of value and the same first sentence of
help in every command."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest

from edgen.cli import old_names
from tests import options_table
from tests.cli.command import Command
from tests.cli.test_generate import job
from tests.cli.test_help import COMMANDS

USES = options_table.uses()
OF = {command: {use.name for use in USES if use.command == command} for command in COMMANDS}
# `play` is a conversation with a person and prints nothing for machines.
SINGLE = [name for name in COMMANDS if name != "play" and not hasattr(COMMANDS[name], "commands")]
# These call models by a job's backends, and so may spend money.
SPENDING = ["generate", "pairs", "annotate", "baseline", "space expand", "stats", "doctor"]


@pytest.mark.parametrize("name", dict.fromkeys(use.name for use in USES))
def test_an_option_means_the_same_everywhere(name: str) -> None:
    # `edgen play` takes a job's role; elsewhere --role translates names of roles.
    those = [use for use in USES if use.name == name and (use.command, name) != ("play", "--role")]
    assert len({use.meaning for use in those}) == 1, those
    assert len({use.spellings for use in those}) == 1, those
    kinds = {use.kind.removesuffix(" range") for use in those}
    assert len(kinds - {"str"}) <= 1, those  # formats declare their options as text at first
    assert all(use.meaning.endswith(".") for use in those), those


def test_the_table_in_contributing_is_what_the_commands_have() -> None:
    assert options_table.PAGE.read_text() == options_table.page(), "`make docs` rewrites the table"


@pytest.mark.parametrize("command", SINGLE)
def test_every_command_prints_json(command: str) -> None:
    assert "--json" in OF[command]


def test_whatever_spends_money_has_a_dry_run() -> None:
    assert {command for command in OF if "--trust-host" in OF[command]} == {*SPENDING, "batch cancel"}
    assert all("--dry-run" in OF[command] for command in SPENDING)


def test_an_old_option_has_a_new_one_and_no_other_meaning() -> None:
    for name, options in old_names.OPTIONS.items():
        command = " ".join(old_names.COMMANDS.get(name, (name,)))
        spelled = {each for use in USES if use.command == command for each in use.spellings}
        assert {*options.values()} <= spelled
        assert not {*options} & spelled


def test_old_options_are_read_in_every_form(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("generate", job(tmp_path, replicates=2), "-o", run, "--force").code == 0
    for words in (
        ("pairs", run, "--by", "oracle", "--judge", "default", "--dry-run", "--json"),
        ("pairs", run, "--by=oracle", "--judge=default", "--dry-run", "--json"),
        ("pairs", run, "--signal", "oracle", "--backend", "default", "--dry-run", "--json"),
    ):
        ended = command(*words)
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["judged"]["to_judge"] == 5
    # -n is a number of conversations; only the old command `candidates` uses it for texts.
    refused = command("annotate", run, "--labels", "quality", "-n", "4")
    assert (refused.code, "No such option: -n" in refused.err) == (2, True)
    refused = command("show", run, "1", "--by", "oracle")
    assert (refused.code, "No such option: --by" in refused.err) == (2, True)


def test_every_dry_run_calls_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    judge = ("--set", "backends.judge={type: simulator}")
    examples = tmp_path / "test.json"
    candidates = [{"candidate-id": str(n), "utterance": f"word {n}"} for n in range(25)]
    said = [{"speaker": "participant_1", "utterance": "word 3"}]
    examples.write_text(
        json.dumps(
            [
                {
                    "example-id": 1,
                    "messages-so-far": said,
                    "options-for-next": candidates,
                    "options-for-correct-answers": [],
                }
            ]
        )
    )
    before = {
        path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".db-shm"
    }
    for words, expected in (
        (("stats", run, "--adherence", "3", *judge), 3),
        (("baseline", examples, "-o", tmp_path / "out.json", "--method", "model"), 2),
        (
            (
                "space",
                "expand",
                "fractions",
                "--dimension",
                "learner",
                "--count",
                "120",
                "-o",
                tmp_path / "s.yaml",
            ),
            3,
        ),
    ):
        ended = command(*words, "--dry-run", "--json")
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["expected"] == expected
        assert "none was made, and nothing was written" in command(*words, "--dry-run").out
    assert command("doctor", path, "--dry-run", "--json").code == 0
    after = {
        path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".db-shm"
    }
    assert after == before


def test_the_names_of_options_are_sorted_in_the_table() -> None:
    names = [name for name, _ in groupby(use.name for use in USES)]
    assert len(names) == len({*names})
