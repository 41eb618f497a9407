"""The mistakes of a first hour: each ends with a sentence that names the file, the place and what to do."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from edgen.cli import output
from edgen.core import registry
from edgen.core.yaml_text import PARSERS, YamlError, read_values
from edgen.evaluation.terminal import SUMMARY_HEAD, render_summary
from edgen.report.page import _mark_code
from edgen.stats.distributions import summarize_counts
from tests.cli.command import Command
from tests.installing import install

SPACE = """\
name: radio_repair
dimensions:
  part: [a fuse, an antenna]
roles:
  Mentor: {sees: [part]}
  Apprentice: {sees: [part]}
"""
JOB = """\
name: night
seed: 3
conversations: 4
space: ./space.yaml
prompt: ./ask.j2
backends:
  default: {type: simulator}
"""
PROMPT = 'Write a dialogue about {{ part }}. Write each line as "Mentor: ..." or "Apprentice: ...".\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"space.yaml": SPACE, "job.yaml": JOB, "ask.j2": PROMPT}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", [".", "..", "/"])
@pytest.mark.parametrize("key", ["prompt", "space", "limits.budget"])
def test_a_folder_in_place_of_a_file(command: Command, here: Path, key: str, path: str) -> None:
    ended = command("estimate", "job.yaml", "--set", f"{key}={path}")
    assert ended.code == 2
    assert "this is a folder, not a file" in ended.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("limits.in_flight=", "$.limits.in_flight: expected a whole number, got nothing\n"),
        ("family=educational", "$.family: unknown family 'educational' (did you mean 'education'?)"),
        ("role_words={Learner: [kid]}", "$.role_words.Learner: unknown role (known: Mentor, Apprentice)"),
        ("split.by=topic", "$.split.by: the space has no dimension topic (known: scenario, part)"),
    ],
)
def test_a_problem_of_the_job_names_its_file(command: Command, here: Path, change: str, said: str) -> None:
    ended = command("preview", "job.yaml", "--set", change)
    assert ended.code == 2
    assert ended.err.startswith("edgen: job job.yaml: 1 problem:\n")
    assert said in ended.err


def test_a_problem_of_an_arm_names_the_jobs_file(command: Command, here: Path) -> None:
    ended = command("preview", "job.yaml", "--set", "arms={a: {}, b: {role_words: {Learner: [kid]}}}")
    assert ended.err.startswith("edgen: job job.yaml: 1 problem:\n")
    assert "needed by: arm b" in ended.err


def test_no_list_of_known_names_is_empty(command: Command, here: Path) -> None:
    (here / "space.yaml").write_text(SPACE.replace("dimensions:", "dimension:"))
    ended = command("preview", "job.yaml")
    assert "$.dimension: unknown key (did you mean 'dimensions'?)" in ended.err
    assert "known: )" not in ended.err


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("text", ["limits: 1\n\tx: 1", "limits:\n\tx: 1", "x: @home", "\tx: 1"])
def test_a_tab_or_a_sign_that_yaml_keeps(parser: object, text: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_values(text, parser)  # type: ignore[arg-type]
    assert "token" not in str(caught.value)
    assert "indent with spaces" in str(caught.value)


@pytest.mark.parametrize("name", ["space.yaml", "ask.j2"])
def test_a_file_that_is_no_run(command: Command, here: Path, name: str) -> None:
    ended = command("status", name)
    assert ended.code == 2
    assert f"{name}: this is a file, not a run. A job's run is the folder outputs/<name>" in ended.err


def test_turns_begin_in_one_column(command: Command, here: Path) -> None:
    assert command("generate", "job.yaml").code == 0
    shown = command("show", "outputs/night", "0").out
    starts = [re.match(r"(?:Mentor|Apprentice) +", line) for line in shown.splitlines()]
    assert {start.end() for start in starts if start} == {len("Apprentice ")}


def test_numbers_stand_below_their_heads() -> None:
    found = summarize_counts({3: 1, 8: 2, 11: 1})
    for label in ("  turns", "  words a turn, Apprentice"):
        line = render_summary(label, found)
        assert len(line) == len(SUMMARY_HEAD), line


def test_results_fit_a_narrow_terminal(command: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = command("preview", "job.yaml", "-n", "1").out
    monkeypatch.setattr(output, "_find_terminal_width", lambda _: 60)
    narrow = command("preview", "job.yaml", "-n", "1").out
    assert max(map(len, wide.splitlines())) > 60
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.split() == wide.split()


def test_misspelt_dimensions(command: Command, here: Path) -> None:
    (here / "space.yaml").write_text(SPACE.replace("dimensions:", "dimensons:"))
    ended = command("generate", "job.yaml")
    assert ended.code == 2
    assert "$.dimensons: unknown key (did you mean 'dimensions'?)" in ended.err
    assert "topics" not in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("generate", "job.yaml", "-n", "ten"), "'ten' is not a whole number."),
        (("estimate", "job.yaml", "--pass-rate", "half"), "'half' is not a number."),
        (("generate", "job.yaml", "--via", "bach"), "'batch'. Did you mean 'batch'?"),
        (("list", "prompt"), "Did you mean 'prompts'?"),
        (("generate", "job.yaml", "--set", "seed=yes"), "got true or false (it is true)"),
        (("generate", "job.yaml", "--set", "limits.timeout=10m"), "write 600, in seconds (it is '10m')"),
        (("generate", "job.yaml", "--set", "limits.timeout=soon"), "write seconds, as in 600 (it is 'soon')"),
    ],
)
def test_a_value_of_the_wrong_kind(command: Command, here: Path, words: tuple[str, ...], said: str) -> None:
    ended = command(*words)
    assert (ended.code, said in ended.err) == (2, True), ended.err


def test_sides_without_scenarios_are_measured(command: Command, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Good morning."}]
    for side in ("train", "test"):
        (tmp_path / f"{side}.jsonl").write_text(2 * f"{json.dumps({'messages': turns})}\n")
    assert command("stats", tmp_path, "--only", "leakage").code == 0


def test_backquotes_are_code_on_a_page() -> None:
    assert _mark_code("`edgen stats` of <b>") == "<code>edgen stats</code> of &lt;b&gt;"
    assert _mark_code("a lone ` stays") == "a lone ` stays"


def test_a_service_that_is_not_there_has_not_refused(command: Command, here: Path) -> None:
    there = "backends.default={type: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}"
    ended = command("doctor", "job.yaml", "--set", there)
    assert ended.code == 5
    assert "The call failed: connection" in ended.out
    assert "refused:" not in ended.out


def test_a_misspelt_group_of_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, "odd-pack", "[edgen.format]\nscript = odd_pack:FORMAT\n[edgenwise.x]\na = b:C\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with caplog.at_level(logging.WARNING, "edgen"):
        registry.list_names("format")
    (said,) = (one.getMessage() for one in caplog.records)
    assert "the group edgen.format of entry points is unknown (did you mean edgen.formats?)" in said


@pytest.mark.parametrize("words", [("stats",), ("validate",), ("show",), ("report",), ("compare",)])
def test_a_misspelt_run_or_file(command: Command, here: Path, words: tuple[str, ...]) -> None:
    assert command("generate", "job.yaml").code == 0
    ended = command(*words, "outputs/nigth")
    assert ended.code == 2
    assert ended.err.endswith(" Did you mean outputs/night?\n")


def test_a_protocol_for_init_is_one_for_jobs(command: Command, here: Path) -> None:
    ended = command("init", "talks", "--protocol", "selfpaly")
    assert "--protocol: there is no protocol 'selfpaly' (did you mean 'selfplay'?)" in ended.err
    assert "labelling" not in command("init", "talks", "--protocol", "x").err
