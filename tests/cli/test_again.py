"""A finished run that is started again, or read in a read-only folder: its files do not change."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgen.store.run_folder import RunFolder
from tests.cli.command import Command
from tests.cli.test_generate import job
from tests.cli.test_runs import contents
from tests.cli.test_watch import events, figures
from tests.dose import dose
from tests.privileges import bound_by_permissions

PRICED: dict[str, Any] = {
    "backends": {"default": {"type": "simulator", "price": {"prompt": 1, "completion": 1}}}
}


def sessions(run: Path) -> int:
    with contextlib.closing(sqlite3.connect(run / "run.db")) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM sessions").fetchone()[0])


@pytest.mark.parametrize("more", [{}, {"arms": {"one": {"asks": 2}, "two": {"asks": 4}}}, {"top_up": True}])
@pytest.mark.parametrize("via", ["online", "batch"])
def test_nothing_is_written_and_no_deadline_counts(
    command: Command, tmp_path: Path, more: dict[str, Any], via: str
) -> None:
    path, run = job(tmp_path, **more), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    command("status", run)  # a reader leaves an empty log
    before = contents(run)
    ended = command("generate", path, "-o", run, "--json", "--via", via, "--until", "2020-01-01T00:00")
    assert ended.code == 0, ended.err
    assert ended.err == f"edgen: {run}: the run is complete; nothing to do.\n"
    facts = json.loads(ended.out)
    assert (facts["state"], facts["calls"]["now"]) == ("complete", 0)
    assert contents(run) == before


def test_a_piece_is_finished_as_well(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    for _ in range(2):
        ended = command("generate", path, "-o", run, "--range", "0:3")
        assert ended.code == 0, ended.err
    assert "nothing to do" in ended.err
    assert command("generate", path, "-o", run).code == 2  # the piece is not the whole job
    ended = command("generate", path, "-o", run, "--range", "0:5")
    assert (ended.code, "nothing to do" in ended.err) == (0, False)
    assert "accepted   5" in ended.out


@pytest.mark.parametrize(
    "change", [("--set", "split.test=0.5"), ("--set", "shards.train=2"), ("--set", "asks=2"), ("-n", "6"), ()]
)
def test_what_is_left_to_do_is_done(command: Command, tmp_path: Path, change: tuple[str, ...]) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    if not change:
        (run / "rejected.jsonl").unlink()
    assert command("generate", path, "-o", run, *change, "--until", "2020-01-01T00:00").code == 4
    ended = command("generate", path, "-o", run, *change)
    assert ended.code == 0, ended.err
    assert "nothing to do" not in ended.err
    assert sessions(run) == 2
    assert (run / "rejected.jsonl").exists()
    assert "nothing to do" in command("generate", path, "-o", run, *change).err


def test_an_arm_that_is_taken_away_is_something_to_do(command: Command, tmp_path: Path) -> None:
    arms = {"one": {"asks": 2}, "two": {"asks": 4}}
    run = tmp_path / "run"
    assert command("generate", job(tmp_path, arms=arms), "-o", run).code == 0
    del arms["two"]
    ended = command("generate", job(tmp_path, arms=arms), "-o", run, "--yes")
    assert (ended.code, "nothing to do" in ended.err) == (0, False)
    assert list(json.loads(command("status", run, "--json").out)["arms"]) == ["one"]


def test_log_and_metrics_tell_of_the_whole_run(command: Command, tmp_path: Path) -> None:
    path, run, metrics = job(tmp_path, **PRICED), tmp_path / "run", tmp_path / "edgen.prom"
    options = ("-o", run, "--log-format", "json", "--metrics", metrics)
    first = command("generate", path, *options)
    before, cost = figures(metrics), json.loads(command("status", run, "--json").out)["cost_usd"]
    again = command("generate", path, *options)
    end = events(again.err)[-1]
    assert [event["event"] for event in events(again.err)] == ["start", "note", "end"]
    assert (end["state"], end["run"], end["accepted"], end["calls"]["made"]) == (
        "complete",
        "quickstart",
        5,
        5,
    )
    assert end["cost_usd"] == pytest.approx(events(first.err)[-1]["cost_usd"]) == pytest.approx(cost)
    assert end["now"]["calls"]["made"] == 0
    after = figures(metrics)
    for name in ("edgen_calls_total", "edgen_cost_usd_total", "edgen_planned"):
        assert after[name, "quickstart"] == before[name, "quickstart"]
    assert after["edgen_conversations", "accepted", "quickstart"] == 5


def test_a_deadline_that_has_gone_by_is_told_of_the_run(command: Command, tmp_path: Path) -> None:
    late = ("--until", "2020-01-01T00:00", "--log-format", "json", "--metrics", tmp_path / "edgen.prom")
    ended = command("generate", job(tmp_path), "-o", tmp_path / "run", *late)
    assert (ended.code, events(ended.err)[-1]["run"]) == (4, "quickstart")
    assert figures(tmp_path / "edgen.prom")["edgen_exit_code", "quickstart"] == 4
    assert not (tmp_path / "run").exists()


def test_what_is_kept_counts_from_the_start(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    slow = "backends.default.latency_ms=10"
    ended = command("generate", path, "-o", run, "-n", "7", "--set", slow)
    first = next(line for line in ended.err.splitlines() if line.startswith("quickstart: "))
    assert first.startswith("quickstart: 5/7 "), ended.err


def test_the_end_tells_the_run_and_what_this_start_did(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path, **PRICED), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    end = events(command("generate", path, "-o", run, "-n", "7", "--log-format", "json").err)[-1]
    facts = json.loads(command("status", run, "--json").out)
    assert (end["accepted"], end["calls"]["made"], end["now"]["calls"]["made"]) == (7, 7, 2)
    assert end["tokens"] == facts["tokens"]
    assert 0 < end["now"]["tokens"]["prompt"] < end["tokens"]["prompt"]
    assert end["cost_usd"] == pytest.approx(facts["cost_usd"])
    assert 0 < end["now"]["cost_usd"] < end["cost_usd"]


@contextlib.contextmanager
def unwritable(folder: Path) -> Iterator[Path]:
    """Copy a folder and make it read-only, for the superuser too; yield the copy."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        shutil.copytree(folder, place / "runs")
        for path in (place / "runs", *(place / "runs").rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            with bound_by_permissions():
                with pytest.raises(PermissionError):
                    (place / "runs" / "new").touch()
                yield place / "runs"
        finally:
            for path in (place / "runs", *(place / "runs").rglob("*")):
                path.chmod(0o755)


def test_a_finished_run_is_read_where_nothing_can_be_written(command: Command, tmp_path: Path) -> None:
    path, runs = job(tmp_path), tmp_path / "runs"
    assert command("generate", path, "-o", runs / "a").code == 0
    asked = (("status",), ("runs",), ("batch", "list"), ("stats",), ("validate",))
    for name in ("run.db-wal", "run.db-shm"):
        (runs / "a" / name).unlink(missing_ok=True)
    before = contents(runs / "a").keys()
    with unwritable(runs) as place:
        run = place / "a"
        told = {words: command(*words, run) for words in asked}
        made = command("generate", run / "job.yaml", "-o", run)
        left = contents(run).keys()
    assert {words: ended.code for words, ended in told.items()} == dict.fromkeys(asked, 0), told
    assert "unreadable" not in told["runs",].out
    assert (made.code, "nothing to do" in made.err) == (0, True), made.err
    assert {Path(name).name for name in left} == {Path(name).name for name in before}


@pytest.mark.parametrize(
    "change",
    [
        {"pairs": {"votes": 3}},
        {"backends": {"default": {"type": "simulator"}, "judge": {"type": "simulator", "seed": 9}}},
        {"prompts": {"oracle": "oracle_conversation"}},
        {"backends": {"default": {"type": "simulator", "price": {"prompt": 1, "completion": 1}}}},
    ],
    ids=["votes", "judge", "oracle", "price"],
)
@pytest.mark.long
@pytest.mark.parametrize("more", [{}, *dose([], [{"arms": {"one": {"asks": 2}, "two": {"asks": 4}}}])])
def test_what_others_read_of_the_job_is_taken_over(
    command: Command, tmp_path: Path, change: dict[str, Any], more: dict[str, Any]
) -> None:
    """These changes shape no conversation; `pairs`, `stats` and `status` read them in the
    run's copy of the job."""
    run = tmp_path / "run"
    assert command("generate", job(tmp_path, **more), "-o", run).code == 0
    (tmp_path / "later").mkdir()
    ended = command("generate", job(tmp_path / "later", **more, **change), "-o", run, "--json")
    assert (ended.code, json.loads(ended.out)["calls"]["now"]) == (0, 0), ended.err
    kept = (run / "job.yaml").read_text()
    (word,) = change
    assert {
        "pairs": "votes: 3",
        "prompts": "oracle",
        "backends": "judge" if "judge" in str(change) else "completion: 1",
    }[word] in kept
    again = command("generate", job(tmp_path / "later", **more, **change), "-o", run)
    assert "nothing to do" in again.err


def test_inputs_that_are_gone_are_put_back(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    shutil.rmtree(run / "inputs")
    assert command("generate", path, "-o", run).code == 0
    assert (run / "inputs" / "space.yaml").is_file()


@pytest.mark.parametrize(
    "name", ["rejected.jsonl", "shards/manifest.json", "shards/conversations_train1.json"]
)
def test_a_finished_file_that_was_changed_is_written_anew(
    command: Command, tmp_path: Path, name: str
) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    before = (run / name).read_bytes()
    # Like an edit in a text editor: the file stays readable, and its facts do not change.
    (run / name).write_bytes(before.replace(b": ", b" : ", 1) if before else b"{}\n")
    ended = command("generate", path, "-o", run)
    assert (ended.code, "nothing to do" in ended.err) == (0, False)
    said = f"edgen: {run}: damaged files are written again from the ledger: {Path(name).name} "
    assert ended.err.count(said) == 1
    assert (run / name).read_bytes() == before
    (run / name).unlink()
    ended = command("generate", path, "-o", run)
    assert (ended.code, ended.err.count(said)) == (0, 1)
    assert (run / name).read_bytes() == before
    assert "nothing to do" in command("generate", path, "-o", run).err


def test_a_stray_file_among_the_shards_is_told_and_left(command: Command, tmp_path: Path) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    stray = run / "shards" / "conversations_train9.json"
    stray.write_text("[]")
    ended = command("generate", path, "-o", run)
    assert ended.code == 0
    assert "nothing to do" in ended.err
    assert "conversations_train9.json: not in the manifest" in ended.err
    ended = command("validate", run)
    assert ended.code == 0
    assert "conversations_train9.json is in the folder, but is not listed" in ended.out
    assert stray.read_text() == "[]"


@pytest.mark.parametrize("moved", [("job.yaml",), ("job.yaml", "inputs", "shards", "rejected.jsonl")])
def test_a_kill_while_files_were_set_aside_blocks_no_form_of_the_job(
    command: Command, tmp_path: Path, moved: tuple[str, ...]
) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    gathering = run / "previous" / ".gathering"
    gathering.mkdir(parents=True)
    for name in moved:
        (run / name).rename(gathering / name)
    for seed in (None, "8", "9"):  # the earlier form resumes, then others follow
        ended = command("generate", path, "-o", run, *(("--set", f"seed={seed}") if seed else ()))
        assert ended.code == 0, ended.err
    assert sorted(os.listdir(run / "previous")) == ["1", "2", "3"]
    assert sorted(os.listdir(run / "previous" / "1")) == sorted(moved)
    assert command("validate", run).code == 0


def test_a_kill_between_the_noted_job_and_the_work_sets_nothing_aside_twice(
    command: Command, tmp_path: Path
) -> None:
    path, run = job(tmp_path), tmp_path / "run"
    assert command("generate", path, "-o", run).code == 0
    assert command("generate", path, "-o", tmp_path / "second", "--set", "seed=8").code == 0
    assert RunFolder(run).set_aside() == run / "previous" / "1"
    for name in ("job.yaml", "inputs/space.yaml"):  # the state after the killed start
        (run / name).parent.mkdir(exist_ok=True)
        shutil.copy(tmp_path / "second" / name, run / name)
    ended = command("generate", path, "-o", run, "--set", "seed=8")
    assert ended.code == 0, ended.err
    assert "previous" not in ended.err
    assert os.listdir(run / "previous") == ["1"]
