"""Commands that would reduce finished files, or pay again for answers, need the user's consent."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT, fork_server
from tests.cli.command import Command
from tests.cli.terminal import at_terminal
from tests.cli.test_generate import job

PROMPT = (ROOT / "prompts" / "education_dialogue_json.j2").read_text()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Run a simulator of the test's own; yield its address."""
    process = fork_server.Popen("simulator", "--port", "0", stderr=subprocess.PIPE)
    assert process.stderr is not None
    found = re.search(r"http://127\.0\.0\.1:\d+/v1", process.stderr.readline())
    assert found is not None
    yield found[0]
    process.terminate()
    process.wait()


def paid(folder: Path, server: str, **more: Any) -> Path:
    """Write a job with a service that costs money."""
    price = {"prompt": 1.0, "completion": 2.0}
    backend = {"type": "openai", "model": "m", "base_url": server, "price": price, "seed": "auto"}
    (folder / "mine.j2").write_text(PROMPT)
    return job(folder, **{"backends": {"default": backend}, "prompt": "./mine.j2", **more})


def made(command: Command, path: Path, run: Path, *more: str) -> dict[str, Any]:
    ended = command("generate", path, "-o", run, "--json", *more)
    assert ended.code in (0, 3), ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def files(run: Path) -> dict[str, bytes]:
    """Return all files of a run except its ledgers."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and ".db" not in path.name
    }


def test_fewer_conversations_need_a_yes(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path, conversations=12), tmp_path / "run"
    made(command, path, run)
    before = files(run)
    ended = command("generate", path, "-o", run, "-n", "4")
    assert ended.code == 2
    assert "its 12 finished conversations would become 4" in ended.err
    assert "-n 12 brings them back without a call" in ended.err
    assert "--yes" in ended.err
    assert files(run) == before
    assert made(command, path, run, "-n", "4", "--yes")["accepted"] == 4
    again = made(command, path, run, "-n", "12")  # more conversations need no consent
    assert (again["accepted"], again["calls"]["now"]) == (12, 0)
    assert files(run) == before


def test_fewer_replicates_are_fewer_conversations(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path, conversations=4, replicates=3), tmp_path / "run"
    made(command, path, run)
    ended = command("generate", path, "-o", run, "--set", "replicates=1")
    assert (ended.code, "12 finished conversations would become 4" in ended.err) == (2, True)
    way_back = "-n 4 --set replicates=3"
    assert f"{way_back} brings them back without a call" in ended.err
    made(command, path, run, "--set", "replicates=1", "--yes")
    again = made(command, path, run, *way_back.split())
    assert (again["accepted"], again["calls"]["now"]) == (12, 0)


def test_rejected_ones_count_in_the_way_back(command: Command, tmp_path: Path) -> None:
    faults = {"default": {"type": "simulator", "faults": "refusal=0.3"}}
    path, run = job(tmp_path, conversations=20, backends=faults), tmp_path / "run"
    assert made(command, path, run, "--set", "asks=1")["accepted"] < 20
    ended = command("generate", path, "-o", run, "-n", "4", "--set", "asks=1")
    assert "-n 20 brings them back without a call" in ended.err


def test_of_arms_each_is_looked_at_before_any_is_changed(command: Command, tmp_path: Path) -> None:
    path, run = (
        job(tmp_path, conversations=6, arms={"one": {"asks": 2}, "two": {"asks": 4}}),
        tmp_path / "run",
    )
    made(command, path, run)
    before = files(run)
    ended = command("generate", path, "-o", run, "-n", "2")
    assert ended.code == 2
    assert "arms/one: its 6" in ended.err
    assert "arms/two: its 6" in ended.err
    assert files(run) == before


def test_an_arm_is_not_dropped_without_a_word(command: Command, tmp_path: Path) -> None:
    arms = {"one": {"asks": 2}, "two": {"asks": 4}}
    path, run = job(tmp_path, conversations=4, arms=arms), tmp_path / "run"
    made(command, path, run)
    before = files(run)
    job(tmp_path, conversations=4, arms={"one": {"asks": 2}})
    ended = command("generate", path, "-o", run)
    assert (ended.code, files(run)) == (2, before)
    assert "no longer has the arm two, so its 4 finished conversations" in ended.err
    assert made(command, path, run, "--yes")["accepted"] == 4
    job(tmp_path, conversations=4, arms=arms)
    again = made(command, path, run)
    assert (again["accepted"], again["calls"]["now"]) == (8, 0)


def test_an_edited_template_pays_again_only_after_a_yes(
    command: Command, tmp_path: Path, server: str
) -> None:
    path, run = paid(tmp_path, server, conversations=10), tmp_path / "run"
    first = made(command, path, run)
    assert first["calls"]["made"] >= 10
    (tmp_path / "mine.j2").write_text(PROMPT + " Be brief.")
    ended = command("generate", path, "-o", run)
    assert ended.code == 2
    assert "about 10 answered conversations would be requested again" in ended.err
    assert f"about {first['calls']['made']} calls, about $0.0" in ended.err
    assert made(command, path, run, "--yes")["calls"]["now"] >= 10
    # Answers for an earlier form do not count in the cost of a third one.
    (tmp_path / "mine.j2").write_text(PROMPT + " Be kind.")
    assert f"about {first['calls']['made']} calls" in command("generate", path, "-o", run).err
    # Back to the first form: every answer is stored, so no consent is needed.
    (tmp_path / "mine.j2").write_text(PROMPT)
    assert made(command, path, run)["calls"]["now"] == 0


def test_only_what_lacks_an_answer_is_counted(command: Command, tmp_path: Path, server: str) -> None:
    path, run = paid(tmp_path, server, conversations=4, protocol="selfplay", prompt=None), tmp_path / "run"
    talk = {"teacher": "selfplay_teacher", "student": "selfplay_student"}
    judged = ["--set", "selfplay={closing: judge, max_turns: 6}"]
    made(command, path, run, *judged, "--set", f"prompts={json.dumps({**talk, 'closing': 'closing_judge'})}")
    (tmp_path / "closing.j2").write_text(
        "How likely is it that {{ topic }} is understood? {{ conversation }}"
    )
    changed = ["--set", f"prompts={json.dumps({**talk, 'closing': str(tmp_path / 'closing.j2')})}"]
    ended = command("generate", path, "-o", run, *judged, *changed)
    assert "4 answered conversations would be requested again: about 4 calls" in ended.err


def test_what_touches_no_answer_needs_no_yes(command: Command, tmp_path: Path, server: str) -> None:
    path, run = paid(tmp_path, server, conversations=6), tmp_path / "run"
    made(command, path, run)
    assert made(command, path, run, "--set", "asks=5", "--set", "split.by=topic")["calls"]["now"] == 0


def test_the_simulator_costs_nothing(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path, conversations=6), tmp_path / "run"
    made(command, path, run)
    assert made(command, path, run, "--set", "seed=99")["calls"]["now"] >= 6
    assert (run / "previous" / "1" / "shards").is_dir()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 2)])
def test_a_terminal_is_asked(tmp_path: Path, answer: str, code: int) -> None:
    path, run = job(tmp_path, conversations=6), tmp_path / "run"
    assert fork_server.run("generate", path, "-o", run).returncode == 0
    ended, shown = at_terminal(["generate", path, "-o", run, "-n", "3"], answer)
    assert shown.count("[y/N]") == 1
    assert ended == code, shown
    manifest = yaml.safe_load((run / "shards" / "manifest.json").read_text())
    assert sum(manifest["counts"].values()) == (3 if code == 0 else 6)
