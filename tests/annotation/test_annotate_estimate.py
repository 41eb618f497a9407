"""`edgen annotate --dry-run`: it prints the later spending, makes no call and writes no file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import edgen
from tests.cli.command import Command

PRICE = {"prompt": 2.0, "completion": 8.0}
JOB = {
    "name": "t", "seed": 3, "conversations": 25, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator", "price": PRICE}},
}  # fmt: skip
ASKED = 1.05  # times that an answer is expected to be requested; the simulator's first answer is always valid
WITHIN = 0.05  # of the spending
ANSWER_WITHIN = 0.15  # labels differ in length


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgen.generate(JOB, output=tmp_path_factory.mktemp("made") / "run", progress=False).folder


def contents(run: Path) -> dict[Path, bytes]:
    """Return all files except those in which SQLite notes its readers."""
    return {
        path: path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", ".lock"))
    }


@pytest.mark.parametrize(
    "way",
    [
        ("--labels", "teacher_moves", "--annotators", "2"),
        ("--labels", "teacher_moves", "--together"),
        ("--labels", "quality", "--unit", "conversation"),
    ],
    ids=["a turn", "together", "a conversation"],
)
def test_it_is_what_is_spent(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: tuple[str, ...]
) -> None:
    command, run = Command(capsys), Path(shutil.copytree(made, tmp_path / "run"))

    def told(*more: str) -> Any:
        ended = command("annotate", run, *way, "--json", *more)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    before = told("--dry-run")
    assert not (run / "layers").exists()
    text = command("annotate", run, *way, "--dry-run").out
    assert f"{before['annotators'][0]['requests']:,} requests to make, 0 answered already" in text
    spent = told()["annotators"]
    for needs, one in zip(before["annotators"], spent, strict=True):
        assert (needs["annotator"], needs["requests"]) == (one["annotator"], one["calls"]["made"])
        figures = (
            (needs["calls"], one["calls"]["made"], WITHIN),
            (needs["tokens"]["prompt"], one["tokens"]["prompt"], WITHIN),
            (needs["tokens"]["completion"], one["tokens"]["completion"], ANSWER_WITHIN),
            (needs["cost_usd"], one["cost_usd"], WITHIN),
        )
        for said, came, within in figures:
            assert said["low"] <= came <= said["high"]
            assert abs(said["expected"] / ASKED / came - 1) < within, (said, came)
    for key in ("calls", "cost_usd"):
        assert before[key]["expected"] == pytest.approx(
            sum(one[key]["expected"] for one in before["annotators"]), abs=1
        )
    files = contents(run)
    again = told("--dry-run")
    assert (again["requests"], again["calls"]["expected"], again["cost_usd"]["expected"]) == (0, 0, 0.0)
    assert [one["there"] for one in again["annotators"]] == [one["planned"] for one in spent]
    assert contents(run) == files, "nothing is written"


def test_a_larger_sample_is_told_by_what_is_missing(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, run = Command(capsys), Path(shutil.copytree(made, tmp_path / "run"))
    said = ("annotate", run, "--labels", "quality", "--unit", "conversation")
    assert command(*said, "--sample", "10").code == 0
    (one,) = json.loads(command(*said, "--sample", "18", "--dry-run", "--json").out)["annotators"]
    assert (one["there"], one["requests"]) == (10, 8)
    people = tmp_path / "people.csv"
    people.write_text("id,turn,labels\n")
    assert "no model would be called" in command(*said, "--people", people, "--dry-run").err
    other = ("--set", 'backends.default={"type": "simulator", "model": "other"}')
    refused = command(*said, *other, "--dry-run")
    assert (refused.code, "the annotator 'default'" in " ".join(refused.err.split())) == (2, True)
