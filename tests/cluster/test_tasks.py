"""Every kind of work on a cluster: rounds, plugin measures, arms, and all askers.

The files equal those of a local run, and a second start makes no call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.execution.service import Ended, files, write
from tests.execution.service import edgen_alone as start_edgen

pytestmark = pytest.mark.integration
SIMULATOR = {"type": "simulator"}
SELFPLAY = {
    "name": "s", "seed": 7, "conversations": 6, "replicates": 2, "space": "education_dialogue", "protocol": "selfplay",
    "prompts": {"teacher": "selfplay_teacher", "student": "selfplay_student"},
    "selfplay": {"first": "teacher", "max_turns": 4},
    "backends": {"default": SIMULATOR}, "limits": {"in_flight": 16},
}  # fmt: skip


async def edgen(*arguments: str | Path) -> Ended:
    """Run `edgen` to its end: Ray alone may take minutes to start next to other work."""
    return await start_edgen(*arguments, timeout=900)


def contents(folder: Path, *names: str) -> dict[str, bytes]:
    """Return the files of a folder of a run, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in names
        for path in sorted(folder.glob(name))
    }


async def both(tmp_path: Path, cluster: str, job: dict[str, Any], *more: str | Path) -> tuple[Path, Path]:
    """Make a job here and on the cluster; check that the bytes are the same. Return the two runs."""
    path = write(tmp_path / "job.yaml", json.dumps(job))
    here, there = tmp_path / "here", tmp_path / "there"
    local = await edgen("generate", path, "-o", here, *more, "--json")
    assert local.code == 0, local.err
    # In the job, `on` names the cluster.
    on = ("--set", f"on=ray://{cluster}", "--set", "workers=2")
    far = await edgen("generate", path, "-o", there, *more, *on, "--json")
    assert far.code == 0, far.err
    assert files(here) == files(there)
    assert far.facts["calls"]["made"] == local.facts["calls"]["made"] > 0
    assert "workers only make calls" not in far.err
    return here, there


async def test_all_that_asks_about_a_run(tmp_path: Path, cluster: str) -> None:
    write(
        tmp_path / "mine.py",
        "def words(conversation):\n    return sum(len(turn.text.split()) for turn in conversation.turns)\n",
    )
    job = {**SELFPLAY, "measures": "./mine.py:words", "gates": {"wordy": "words > 3"}}
    trust = ("--trust-code", tmp_path / "mine.py")
    here, there = await both(tmp_path, cluster, job, *trust)
    ray = ("--on", f"ray://{cluster}", "--workers", "2")
    judge = ("--set", "backends.judge={type: simulator}")
    for command, made in (
        (("pairs", "--signal", "oracle", *judge), ("pairs*.jsonl", "pairs/*.jsonl")),
        (
            ("pairs", "--signal", "oracle", "--credit", "rollouts", "--rollouts", "1", *judge),
            ("pairs*.jsonl",),
        ),
        (("annotate", "--labels", "teacher_moves", "--annotators", "2"), ("layers/*/labels.jsonl",)),
        (("annotate", "--write", "paraphrases", "--after", "1", "--texts", "1"), ("candidates/*.jsonl",)),
    ):
        if command[-2:] and "rollouts" in command and not (here / "pairs.jsonl").exists():
            continue
        local = await edgen(command[0], here, *command[1:], "--on", "here", "--json")
        far = await edgen(command[0], there, *command[1:], *ray, "--json")
        assert (far.code, local.code) == (0, 0), (command, far.err, local.err)
        assert "workers only make calls" not in far.err
        expected = contents(here, *made)
        assert expected, command
        assert contents(there, *made) == expected
        # The run's own job says `on: ray://…`, which the option overrides.
        again = await edgen(command[0], there, *command[1:], "--on", "here", "--json")
        assert again.code == 0, again.err


async def test_stats_and_exports(tmp_path: Path, cluster: str) -> None:
    job = {
        "name": "large", "seed": 5, "conversations": 1300, "space": "education_dialogue", "prompt": "education_dialogue",
        "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    run = tmp_path / "run"
    made = await edgen("generate", write(tmp_path / "job.yaml", json.dumps(job)), "-o", run)
    assert made.code == 0, made.err
    ray = ("--on", f"ray://{cluster}", "--workers", "2")
    only = ("--only", "duplicates", "lengths", "diversity", "--json")
    here, there = await edgen("stats", run, *only), await edgen("stats", run, *only, *ray)
    assert (there.code, there.out) == (0, here.out), there.err
    for name, more in (("here", ()), ("there", ray)):
        exported = await edgen("export", run, "--to", "hf", "-o", tmp_path / name / "hf", *more)
        assert exported.code == 0, exported.err
    assert contents(tmp_path / "here", "**/*.*") == contents(tmp_path / "there", "**/*.*")
    gone = await edgen(
        "export", run, "--to", "hf", "-o", tmp_path / "x", "--on", "ray://127.0.0.1:1", "--workers", "2"
    )
    assert (gone.code, "No Ray cluster answers" in gone.err) == (5, True)
    assert not (tmp_path / "x").exists()


async def test_rounds(tmp_path: Path, cluster: str) -> None:
    """Later rounds use the conversations of earlier ones, which the workers receive with the tasks."""
    job = {
        "name": "r", "seed": 5, "conversations": 8, "space": "italian_prepositions", "protocol": "tutoring",
        "tutoring": {"choose": "pool", "rounds": 2, "sessions_per_round": 4, "student_turns": 3, "responses": 2},
        "backends": {"default": SIMULATOR}, "limits": {"in_flight": 16},
    }  # fmt: skip
    await both(tmp_path, cluster, job)


async def test_arms(tmp_path: Path, cluster: str) -> None:
    job = {**SELFPLAY, "replicates": 1, "arms": {"long": {"selfplay": {"max_turns": 6}}, "short": {}}}
    path = write(tmp_path / "job.yaml", json.dumps(job))
    for name, on in (("here", ()), ("there", ("--on", f"ray://{cluster}", "--workers", "2"))):
        made = await edgen(
            "generate", path, "-o", tmp_path / name, *on, "--set", "limits.arms_at_once=2", "--json"
        )
        assert made.code == 0, made.err
    for arm in ("long", "short"):
        [folder] = [one for one in (tmp_path / "here").rglob("shards") if arm in str(one)]
        assert files(folder.parent) == files(
            tmp_path / "there" / folder.parent.relative_to(tmp_path / "here")
        )


_CONNECTED = """
import json, os, sys
import edgen, ray
from edgen.core.errors import UsageError

job = json.loads(sys.argv[1])
if __name__ == "__main__":
    for name in "ab":  # a cluster each, which ends with the run
        assert edgen.generate(job, output=f"{sys.argv[2]}/{name}", on="ray", workers=1, progress=False).status.accepted
        assert not ray.is_initialized()
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    run = edgen.generate(job, output=f"{sys.argv[2]}/c", on="ray", workers=1, progress=False)
    assert run.status.accepted and ray.is_initialized(), "the caller's own"
    try:
        edgen.generate(job, output=f"{sys.argv[2]}/d", on="ray://127.0.0.1:1", workers=1, progress=False)
    except UsageError as error:
        assert "is connected to the Ray cluster at" in str(error), error
    assert ray.is_initialized()
    print("done")
"""


def test_a_process_with_a_cluster_and_without_a_home(tmp_path: Path) -> None:
    """Without a home folder the run works, although Ray would write a token to the home."""
    script = write(tmp_path / "script.py", _CONNECTED)
    made = subprocess.run(
        [sys.executable, script, json.dumps({**SELFPLAY, "conversations": 2}), tmp_path],
        capture_output=True, text=True, timeout=900, check=False, cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"}
        | {"HOME": "/proc/nowhere", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert made.stdout.split()[-1:] == ["done"], made.stderr


async def test_partitions_with_more_workers_than_cores(tmp_path: Path) -> None:
    """A cluster on this machine has room for all workers, and each partition has its share of them."""
    job = write(tmp_path / "job.yaml", json.dumps(SELFPLAY))
    local = await edgen("generate", job, "-o", tmp_path / "local", "--json")
    assert local.code == 0, local.err
    cores = os.cpu_count() or 1
    on = ("--on", "ray", "--workers", str(cores + 2), "--partitions", str(cores + 1))
    made = await edgen("generate", job, "-o", tmp_path / "run", "--json", *on)
    assert made.code == 0, made.err
    assert files(tmp_path / "run") == files(tmp_path / "local")
    assert made.facts["calls"]["now"] == local.facts["calls"]["made"]
