"""Runs with vast plans and little data: every command reads what exists, in time that depends
on the data only."""

from __future__ import annotations

import functools
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, call
from tests.dose import dose

VAST = 1 << 40  # conversations
MANY = 1 << 20  # replicates, the most that a job may name
SECONDS = 5  # of CPU time for a command

READS: dict[str, tuple[int, tuple[Any, ...]]] = {
    "status": (0, ("status", "{run}")),
    "runs": (0, ("runs", "{folder}")),
    "stats": (0, ("stats", "{run}")),
    "report": (0, ("report", "{run}")),
    "show": (0, ("show", "{run}", "{first}")),
    "compare": (0, ("compare", "{run}", "{other}")),
    "validate": (0, ("validate", "{run}")),
    "export": (0, ("export", "{run}", "--to", "sft", "-o", "{folder}/export")),
    "select": (0, ("select", "{run}", "--where", "turns > 0", "-o", "{folder}/chosen")),
    "merge": (3, ("merge", "{run}", "-o", "{folder}/merged")),
    "annotate": (0, ("annotate", "{run}", "--labels", "quality", "--dry-run")),
    "estimate": (0, ("estimate", "{job}")),
    "preview": (0, ("preview", "{job}")),
}  # fmt: skip


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(autouse=True)
def _few_seconds() -> Iterator[None]:
    """End a test whose command takes more CPU time than allowed."""

    def end(*_: object) -> None:
        raise TimeoutError("the time grows with the plan")

    before = signal.signal(signal.SIGVTALRM, end)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def job(folder: Path, name: str, **changes: Any) -> Path:
    values = {
        "name": name, "seed": 5, "conversations": VAST, "space": "education_dialogue", "prompt": "education_dialogue",
        "asks": 1, "backends": {"default": {"type": "simulator", "max_tokens": 1000}}, "limits": {"in_flight": 4},
    }  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(values | changes))
    return path


def interrupted(command: Command, folder: Path, name: str, **changes: Any) -> tuple[Path, Path]:
    """Make a job, and its run that a budget of tokens stopped after a few conversations."""
    path = job(folder, name, limits={"in_flight": 4, "max_tokens": 6000}, **changes)
    assert command("generate", path, "-o", folder / name).code == 4
    return path, folder / name


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return a function that makes a folder with two interrupted runs of this many
    replicates, once; tests copy it."""

    @functools.cache
    def make(replicates: int) -> Path:
        folder = tmp_path_factory.mktemp("stopped")
        for name in ("run", "other"):
            path = job(folder, name, limits={"in_flight": 4, "max_tokens": 6000}, replicates=replicates)
            assert call("generate", path, "-o", folder / name) == 4
        return folder

    return make


def read(command: Command, name: str, **names: Any) -> tuple[int, str]:
    code, arguments = READS[name]
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    ended = command(*(str(one).format(**names) for one in arguments))
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    assert "bug in edgen" not in ended.err
    return ended.code - code, ended.out + ended.err


@pytest.mark.long
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("replicates", dose([MANY], [1, MANY]))
def test_an_interrupted_run_is_read(
    command: Command, tmp_path: Path, name: str, replicates: int, stopped: Callable[[int], Path]
) -> None:
    folder = shutil.copytree(stopped(replicates), tmp_path / "stopped")
    path, run, other = (folder / one for one in ("run.yaml", "run", "other"))
    wrong, said = read(command, name, run=run, other=other, folder=folder, job=path, first=0)
    if name == "validate":
        assert wrong == 2, "what is not finished has no shards"
    else:
        assert wrong == 0, said


@pytest.mark.parametrize("name", READS)
def test_a_piece_at_the_far_end_is_read(command: Command, tmp_path: Path, name: str) -> None:
    path = job(tmp_path, "run", conversations=VAST)
    for folder in ("run", "other") if name == "compare" else ("run",):
        assert command("generate", path, "-o", tmp_path / folder, "--range", f"{VAST - 5}:{VAST}").code == 0
    wrong, said = read(
        command,
        name,
        run=tmp_path / "run",
        other=tmp_path / "other",
        folder=tmp_path,
        job=path,
        first=VAST - 5,
    )
    assert wrong == 0, said


def test_pairs_by_probability_take_what_exists(command: Command, tmp_path: Path) -> None:
    _, run = interrupted(command, tmp_path, "run", conversations=1, replicates=MANY)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    assert command("pairs", run, "--by", "probability").code == 0


def test_replicates_without_an_outcome_are_left_out_of_many(command: Command, tmp_path: Path) -> None:
    _, run = interrupted(command, tmp_path, "run", conversations=1, replicates=MANY)
    shown = json.loads(command("show", run, 0, "--json").out)
    assert 1 < len(shown["conversations"]) < 20
    assert all(one["status"] == "accepted" for one in shown["conversations"])


def test_measures_name_the_bound(command: Command, tmp_path: Path) -> None:
    _, run = interrupted(command, tmp_path, "run")
    assert "first 100,000 pending conversations" in " ".join(command("stats", run).out.split())
