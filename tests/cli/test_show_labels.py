"""`edgen show` prints everything that a label depends on: each label follows from the printed
lines, for every credit."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.cli.command import Command, call

SIMULATOR = "backends={default: {type: simulator, planted: 5, max_tokens: 400}}"
CREDITS = {
    "whole": ("--signal", "oracle", "--credit", "whole", "--set", "pairs.votes=3"),
    "response": ("--signal", "oracle", "--credit", "response"),
    "rollouts by a judge": ("--signal", "oracle", "--credit", "rollouts", "--rollouts", "2"),
    "rollouts by probability": ("--signal", "probability", "--credit", "rollouts", "--rollouts", "3"),
    "probability": ("--signal", "probability"),
}
_PAIR = re.compile(r"  (?P<a>\S+) and (?P<b>\S+): (?P<label>.*)")
_LABEL = re.compile(
    r"chosen (?P<chosen>\S+) by (?P<by>\w+).*?, p (?P<p>[\d.e-]+), margin (?P<margin>[\d.e-]+)"
)
_STRENGTHS = re.compile(r"strengths: (?P<a>-?[\d.]+) \(.*?\) and (?P<b>-?[\d.]+) \(")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no line is wrapped


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("show") / "run"
    job = ROOT / "jobs" / "selfplay.yaml"
    changes = ("conversations=3", "replicates=3", SIMULATOR)
    given = [word for one in changes for word in ("--set", one)]
    assert call("generate", job, *given, "-o", folder) == 0
    for credit in CREDITS.values():  # one after the other, like a user who tries all of them
        assert call("pairs", folder, *credit) in (0, 3)
    return folder


def shown(text: str) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Return each pair as printed: its sides and label, and the lines of its evidence."""
    lines = text.split("\npairs\n")[1].splitlines()
    found: list[tuple[dict[str, str], list[str]]] = []
    for line in lines:
        if (pair := _PAIR.fullmatch(line)) is not None:
            found.append((pair.groupdict(), []))
        else:
            found[-1][1].append(line.strip())
    yield from found


@pytest.mark.parametrize("credit", CREDITS)
def test_every_label_follows_from_what_is_shown(
    credit: str, made: Path, command: Command, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run"))
    assert command("pairs", run, *CREDITS[credit]).code in (0, 3)
    lines = [json.loads(line) for line in (run / "pairs" / "pairs.jsonl").read_text().splitlines()]
    labelled = 0
    for scenario in sorted({line["scenario"] for line in lines}):
        own = {(line["a"]["id"], line["b"]["id"]): line for line in lines if line["scenario"] == scenario}
        pairs = [*shown(command("show", run, str(scenario)).out)]
        assert len(pairs) == len(own)
        for pair, evidence in pairs:
            label = own[pair["a"], pair["b"]]["label"]
            stars = [line for line in evidence if line.startswith("* ")]
            if label is None:
                assert pair["label"].startswith("no label (")
                assert not stars
                continue
            labelled += 1
            _follows(pair, stars, evidence, label)
    assert labelled


def _follows(pair: dict[str, str], stars: list[str], evidence: list[str], label: dict[str, Any]) -> None:
    """Assert that the star's line and the strengths give the shown and stored label."""
    (star,) = stars
    said = _LABEL.match(pair["label"])
    assert said is not None, pair
    stand = re.search(r": p ([\d.e-]+) for the first", star)
    assert stand is not None, star
    p = float(stand[1])
    chosen = pair["a"] if p > 0.5 else pair["b"]
    assert (said["chosen"], said["by"]) == (chosen, label["by"])
    assert float(said["p"]) == pytest.approx(max(p, 1 - p), abs=1e-8)
    assert label["p"] == pytest.approx(float(said["p"]), abs=1e-8)
    margin = abs(2 * p - 1)
    for line in evidence:
        if (strengths := _STRENGTHS.match(line)) is not None:
            margin = math.tanh((float(strengths["a"]) - float(strengths["b"])) / 2) * (1 if p > 0.5 else -1)
    assert float(said["margin"]) == pytest.approx(margin, abs=1e-4)
    assert label["margin"] == pytest.approx(margin, abs=1e-4)


def test_the_mean_of_the_rollouts_shown_is_the_labels(made: Path, command: Command, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run"))
    assert command("pairs", run, *CREDITS["rollouts by probability"]).code in (0, 3)
    seen = 0
    for scenario in range(3):
        told = json.loads(command("show", run, str(scenario), "--json").out)
        for pair in told["pairs"]:
            signals = [one for one in pair["signals"].get("rollouts", ()) if one["by"] == "probability"]
            if not signals or pair["id"] not in told.get("rollouts", {}):
                continue
            seen += 1
            rollouts = told["rollouts"][pair["id"]]
            assert len(rollouts) == signals[0]["k"] == 3
            for side in ("a", "b"):
                known = [one[side] for one in rollouts if one[side] is not None]
                assert signals[0][side] == pytest.approx(sum(known) / len(known), abs=1e-6)
    assert seen


def test_a_changed_note_of_rollouts_is_reported(made: Path, command: Command, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run"))
    assert command("pairs", run, *CREDITS["rollouts by probability"]).code in (0, 3)
    (note,) = (run / "pairs" / "rollouts").glob("*.json")
    note.write_text(note.read_text().replace('"arm": ""', '"arm": "x"'))
    said = [command("show", run, str(scenario)).err for scenario in range(3)]
    assert any(f"{note}: it was changed after edgen wrote it" in one for one in said)
    assert any("Its rollouts cannot be read: " in one for one in said)


def test_a_whole_verdict_is_not_taken_for_a_label_of_rollouts(
    made: Path, command: Command, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run"))
    assert command("pairs", run, *CREDITS["rollouts by a judge"]).code in (0, 3)
    text = command("show", run, "0").out
    stars = [line for line in text.splitlines() if line.strip().startswith("* ")]
    assert stars
    assert all("rollouts of each response, by judge" in " ".join(line.split()) for line in stars)
