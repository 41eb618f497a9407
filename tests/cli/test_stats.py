"""`edgen stats` on the command line, mistakes included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from edgen.core.digest import compute_sha256
from edgen.domains.education.family import EDUCATION
from edgen.evaluation.measuring import find_measures_of_other_families, list_measures
from edgen.store.run_folder import RunFolder
from tests import ROOT
from tests.cli.command import Command

NAMES = [one.name for one in list_measures() if one.name not in find_measures_of_other_families(EDUCATION)]


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Path:
    ended = command("generate", ROOT / "jobs" / "quickstart.yaml", "-n", "40", "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    return tmp_path / "run"


def test_for_people(command: Command, run: Path) -> None:
    ended = command("stats", run)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "quickstart: 40 conversations"
    others = {one.name for one in list_measures() if one.section in ("task", "labels")}
    assert {name for name in NAMES if name in lines} == {*NAMES} - {"calibration"} - others
    assert all(len(line) <= 80 for line in lines), max(lines, key=len)
    assert "A simulator wrote all or part of this data" in ended.out


def test_for_programs(command: Command, run: Path) -> None:
    ended = command("stats", run, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["overview"]["records"] == 40
    assert found["coverage"]["planned"] == 40
    assert set(found["definitions"]) == set(NAMES)
    assert set(NAMES) <= set(found)


def test_only_some(command: Command, run: Path) -> None:
    found = json.loads(command("stats", run, "--json", "--only", "lengths,balance", "--only", "leaks").out)
    assert set(found) & set(NAMES) == {"lengths", "balance", "leaks"}
    assert found["lengths"]["turns"]["n"] == 40
    text = command("stats", run, "--only", "lengths").out
    assert text.startswith("quickstart: 40 conversations\n\nlengths\n")
    assert "balance" not in text


@pytest.mark.parametrize(
    "words",
    [
        ("RUN", "--only", "overview", "lengths", "coverage"),
        ("--only", "overview", "lengths", "coverage", "RUN"),
        ("RUN", "--only", "overview,lengths", "coverage", "--json"),
        ("RUN", "--only=overview", "--only", "lengths,", "coverage"),
    ],
)
def test_several_words_behind_only(command: Command, run: Path, words: tuple[str, ...]) -> None:
    arguments = [str(run) if word == "RUN" else word for word in words]
    ended = command("stats", *arguments, *([] if "--json" in words else ["--json"]))
    assert ended.code == 0, ended.err
    assert set(json.loads(ended.out)) & set(NAMES) == {"overview", "lengths", "coverage"}


def test_where_nothing_was_accepted_only_the_plan_is_told(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    faults = ("--set", "backends.default={type: simulator, faults: 'refusal=1.0'}", "--set", "asks=1")
    made = command("generate", ROOT / "jobs" / "quickstart.yaml", "-n", "10", "-o", folder, *faults)
    assert made.code == 3
    ended = command("stats", folder)
    assert ended.code == 0, ended.err
    assert "Nothing was accepted of 10 planned (10 refused)." in ended.out
    assert [name for name in NAMES if name in ended.out.splitlines()] == ["coverage"]
    assert "lowest shares" not in ended.out
    short = command("stats", folder, "--only", "lengths").out
    assert "Nothing was accepted. There is nothing to measure." in short
    assert "lengths" not in short


def test_calibration_without_pairs_is_a_sentence(command: Command, run: Path) -> None:
    ended = command("stats", run, "--only", "calibration")
    assert "There are no judged pairs" in ended.out


def test_what_was_exported(command: Command, run: Path, tmp_path: Path) -> None:
    for name, more, code, said in (
        ("hf", ("--files", "jsonl"), 0, "40 (34 train, 6 test)"),
        ("ed", (), 0, "40 (34 train, 6 test)"),
        ("trl-sft", (), 0, "40 (34 train, 6 test)"),
        ("convokit", (), 2, "none of the layouts that edgen reads: chat messages, CIMA, CRWIZ"),
        ("trl-prompts", (), 2, "It reads all files of `--to ed` and `--to hf --files jsonl`"),
    ):
        assert command("export", run, "--to", name, "-o", tmp_path / name, *more).code == 0
        ended = command("stats", tmp_path / name, "--only", "overview")
        assert ended.code == code, ended
        assert said in ended.out + ended.err
    assert command("export", run, "--to", "hf", "-o", tmp_path / "table", "--files", "parquet").code == 0
    ended = command("stats", tmp_path / "table", "--only", "overview")
    assert (ended.code, "40 (34 train, 6 test)" in ended.out) == (0, True), ended


def test_arms_a_block_each(command: Command, tmp_path: Path) -> None:
    base = yaml.safe_load((ROOT / "jobs" / "quickstart.yaml").read_text())
    arms = {"one": {}, "two": {"prompt": "education_dialogue_json"}}
    (tmp_path / "job.yaml").write_text(
        yaml.safe_dump(base | {"conversations": 8, "arms": arms}, sort_keys=False)
    )
    assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
    found = json.loads(command("stats", tmp_path / "run", "--json").out)
    assert list(found["arms"]) == ["one", "two"]
    assert found["arms"]["two"]["overview"]["records"] == 8
    text = command("stats", tmp_path / "run", "--only", "overview").out
    assert "one: 8 conversations" in text
    assert "two: 8 conversations" in text


def test_pairs_give_calibration(command: Command, tmp_path: Path) -> None:
    job = ROOT / "jobs" / "quickstart.yaml"
    folder = tmp_path / "run"
    assert command("generate", job, "-n", "20", "--set", "replicates=2", "-o", folder).code == 0
    assert command("pairs", folder, "--by", "oracle").code == 0
    report = json.loads(command("pairs", folder, "--report", "--json").out)
    found = json.loads(command("stats", folder, "--json", "--only", "calibration").out)
    assert found["calibration"]["judges"][0]["calibration"] == report["judges"][0]["calibration"]
    assert "Brier score" in command("stats", folder, "--only", "calibration").out


def test_a_judge_is_asked_and_not_asked_again(command: Command, run: Path) -> None:
    settings = ("--judge", "5", "--set", "backends.judge={type: simulator}")
    ended = command("stats", run, "--json", "--only", "adherence", *settings)
    assert ended.code == 0, ended.err
    by = [found["by"] for found in json.loads(ended.out)["adherence"]]
    assert by[0] == "keywords"
    assert len(by) == 2
    assert json.loads(ended.out)["adherence"][1]["n"] == 5
    text = command("stats", run, "--only", "adherence", *settings).out
    assert all(len(line) <= 80 for line in text.splitlines()), text
    again = command("stats", run, "--json", "--only", "adherence", *settings)
    assert json.loads(again.out) == json.loads(ended.out)


def test_a_judge_is_asked_with_the_template_that_is_named(
    command: Command, run: Path, tmp_path: Path
) -> None:
    settings = ("--only", "adherence", "--adherence", "5", "--set", "backends.judge={type: simulator}")

    def templates() -> set[str]:
        """Return the digests of the templates that the run's judges used."""
        return {
            json.loads(path.read_text())["template"]["sha256"] for path in (run / "adherence").glob("*.json")
        }

    def digest(name: str) -> str:
        return compute_sha256((ROOT / "prompts" / name).read_bytes())

    assert command("stats", run, *settings).code == 0
    assert templates() == {digest("adherence_guarded.j2")}
    needs = command("stats", run, *settings, "--prompt", "adherence", "--dry-run", "--json")
    assert json.loads(needs.out)["missing"] == 5
    assert command("stats", run, *settings, "--prompt", "adherence").code == 0
    assert templates() == {digest("adherence_guarded.j2"), digest("adherence.j2")}
    own = tmp_path / "own.j2"
    own.write_text("Is it about {{ topic }}?")
    wrong = command("stats", run, *settings, "--prompt", own)
    assert (wrong.code, wrong.out) == (2, "")
    assert "it does not show the conversation" in wrong.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[{"a": 1}]', "none of the layouts that edgen reads: chat messages, CIMA, CRWIZ"),
        ("[]", "it holds no records"),
        ("Hello", "none of the layouts that edgen reads"),
        ("", "it is empty"),
    ],
)
def test_files_that_are_no_data(command: Command, tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(content)
    ended = command("stats", path)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_mistakes(command: Command, run: Path, tmp_path: Path) -> None:
    for arguments, code, said in (
        ((tmp_path / "nowhere",), 2, "there is no such file"),
        ((tmp_path,), 2, "no .json, .jsonl or .parquet file"),
        ((run, "--only", "lenghts"), 2, "did you mean 'lengths'"),
        ((run, "--set", "asks=2"), 2, "--set goes with --adherence"),
        ((run, "--prompt", "adherence"), 2, "--prompt goes with --adherence"),
        ((run, run, "--judge", "3"), 2, "name one run"),
        ((run, "--judge", "3"), 2, "no judge backend"),
        ((run, "--judge", "0"), 2, "1 or more"),
        ((run, "--judge", "3", "--only", "lengths"), 2, "with --only adherence"),
    ):
        ended = command("stats", *map(str, arguments))
        assert (ended.code, ended.out) == (code, ""), ended
        assert said in ended.err, ended.err


def test_a_run_that_somebody_works_on(command: Command, run: Path) -> None:
    with RunFolder(run).lock_for_writing():
        ended = command("stats", run)
    assert ended.code == 6
    assert "works on this run" in ended.err


def test_a_run_in_which_nothing_is_settled(command: Command, tmp_path: Path) -> None:
    settings = (
        *("--set", "backends.default={type: simulator, max_tokens: 1000, price: {prompt: 1, completion: 1}}"),
        *("--set", "limits.max_cost=0.0000001"),
    )
    folder = tmp_path / "run"
    made = command("generate", ROOT / "jobs" / "quickstart.yaml", "-n", "5", "-o", folder, *settings)
    assert made.code == 4
    ended = command("stats", folder)
    assert ended.code == 3, (made, ended)
    assert "no conversation of this run has ended yet" in ended.err


def test_hostile_text_is_shown_not_obeyed(command: Command, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J"
    record = {
        "background_info": dict.fromkeys(
            ("topic", "student_prefrences", "teacher_prefrences", "student_reactions", "teacher_reactions"),
            evil,
        ),
        "conversation": [
            {"role": "Teacher", "text": evil + " hello there"},
            {"role": "Student", "text": evil},
        ],
        "id": evil,
    }
    path = tmp_path / "data.json"
    path.write_text(json.dumps([record, record]))
    ended = command("stats", path)
    assert ended.code == 0, ended.err
    assert "\x1b" not in ended.out


def test_a_file_name_that_is_no_text(command: Command, run: Path, tmp_path: Path) -> None:
    path = tmp_path / b"a\xff.json".decode("utf-8", "surrogateescape")
    (shard,) = (run / "shards").glob("conversations_eval*.json")
    path.write_bytes(shard.read_bytes())
    ended = command("stats", path, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["name"] == "a?.json"


def test_half_a_character_is_no_record(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text('[{"background_info": {}, "conversation": [{"role": "Teacher", "text": "\\ud800"}]}]')
    ended = command("stats", path)
    assert ended.code == 2
    assert "Traceback" not in ended.err
