"""Measures in several processes: the same bytes as in one process, for any measure."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import EdgenError, RunError, UsageError
from edgen.runtime.processes import Processes, send
from tests import fork_server
from tests.execution.service import edgen_alone as edgen
from tests.execution.service import write

pytestmark = pytest.mark.integration

JOB = {
    "name": "parts", "seed": 3, "conversations": 40, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator", "model": "edgen-simulator"}},
}  # fmt: skip


async def test_parts_of_the_measures_give_the_same_bytes(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine.py", "def first_words(one):\n    return len(one.turns[0].text.split())\n")
    job = write(
        tmp_path / "job.yaml",
        json.dumps(JOB | {"conversations": 3, "arms": {"a": {}, "b": {"prompt": "education_dialogue_json"}}}),
    )
    made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert made.code == 0, made.err
    options = ("stats", tmp_path / "run", "--json", "--measure", f"{mine}:first_words")
    one = await edgen(*options)
    assert one.code == 0, one.err
    for workers in (2, 8):  # fewer, and more than there are conversations
        several = await edgen(*options, "--workers", str(workers))
        assert (several.code, several.out) == (0, one.out), several.err
    only = ("--only", "lengths", "--workers", "3")
    few = await edgen("stats", tmp_path / "run", "--json", *only)
    assert few.code == 0, few.err
    assert {"lengths"} < set(few.facts["arms"]["a"])
    assert "duplicates" not in few.facts["arms"]["a"]


async def test_bad_places_and_numbers(tmp_path: Path) -> None:
    for options, said in (
        (("--workers", "0"), "workers"),
        (("--on", "slurm"), "write ray for a cluster"),
        (("--on", "ray"), "--workers 4"),
    ):
        refused = await edgen("stats", tmp_path, *options)
        assert refused.code == 2
        assert said in refused.err


# --- processes ------------------------------------------------------------------------------------


def double(number: int) -> tuple[int, int]:
    return 2 * number, os.getpid()


def refuse() -> None:
    raise RunError("this folder is not here")


def fail() -> None:
    raise ValueError("a bug")


def sleep(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(60)


def test_pieces_of_work_are_shared_by_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", fork_server.in_place_of_python())
    with Processes(3) as processes:
        found = [*processes.iterate_results(partial(double, number) for number in range(20))]
    assert [value for value, _ in found] == [*range(0, 40, 2)]
    assert len({os.getpid(), *(pid for _, pid in found)}) == 4


@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        (refuse, EdgenError, "not here"),
        (fail, RuntimeError, "a bug"),
        (partial(open, "/nowhere/x"), EdgenError, "/nowhere/x: No such file.* need the same files"),
    ],
)
def test_errors_come_from_where_they_were_raised(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any], kind: type[Exception], said: str
) -> None:
    monkeypatch.setattr(sys, "executable", fork_server.in_place_of_python())
    with Processes(2) as processes:
        results = processes.iterate_results([partial(double, 1), work])
        assert next(results)[0] == 2
        with pytest.raises(kind, match=said):
            next(results)
    with pytest.raises(UsageError):
        Processes(1, "elsewhere")


def test_a_process_with_another_version_is_a_sentence() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "edgen.runtime.processes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    send(worker.stdin, pickle.dumps(("0.0.9", pickle.dumps(partial(double, 1)))))
    said = worker.stdout.read(int.from_bytes(worker.stdout.read(8), "big"))
    worker.communicate(timeout=60)
    assert b"this one 0.0.9. Install the same on all nodes." in said


def test_a_process_that_ends_does_not_wait_for_its_input() -> None:
    """The process shuts down at once.

    The thread that reads holds no lock of Python's standard input, which would block the shutdown.
    """
    code = "import sys; from edgen.runtime.processes import receive; next(receive()); sys.stdin.close(); print('closed')"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    send(child.stdin, b"x")
    try:
        assert child.stdout.readline() == b"closed\n"
        assert child.wait(600) == 0
    finally:
        child.kill()
        child.communicate()


def test_a_killed_process_is_an_error_and_none_outlives_its_parent(tmp_path: Path) -> None:
    def pid_in(path: Path) -> int:
        end = time.monotonic() + 60
        while not path.exists() or not path.read_text():
            assert time.monotonic() < end, f"nobody wrote {path.name}"
            time.sleep(0.02)
        return int(path.read_text())

    with Processes(1) as processes:
        results = processes.iterate_results([partial(sleep, tmp_path / "killed")])
        os.kill(pid_in(tmp_path / "killed"), 9)
        with pytest.raises(EdgenError, match="was killed"):
            next(results)
    code = (
        "import pickle, sys, os, time; from edgen.runtime.processes import Processes\n"
        f"Processes(1).iterate_results([pickle.loads({pickle.dumps(partial(sleep, tmp_path / 'orphan'))!r})]); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    orphan = pid_in(tmp_path / "orphan")
    parent.kill()
    parent.wait()
    for _ in range(6000):
        if has_ended(orphan):
            break
        time.sleep(0.1)
    assert has_ended(orphan)


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if no parent has waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
