"""A judge with known biases, through the whole program: the report's findings, and the labels' worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgen.protocols.base import transcript_of
from edgen.simulator.judge import rate_quality
from edgen.store.run_parts import ComparedPair
from edgen.store.run_reader import RunReader
from tests.execution.service import edgen, job_text

pytestmark = pytest.mark.integration

FIRST, LONGER = 0.20, 0.15  # shares of verdicts that go to the first slot, and to the longer text
JUDGE = {"type": "simulator", "faults": f"judge_first={FIRST},judge_longer={LONGER}"}


def better(compared: ComparedPair) -> str:
    """Return the truly better side: the answer of a judge without faults."""
    a, b = (rate_quality(transcript_of(candidate.turns)) for candidate in (compared.a, compared.b))
    return "a" if a > b else "b"


def right(said: list[tuple[str, str]]) -> float:
    return sum(choice == truth for choice, truth in said) / len(said)


@pytest.mark.only_long
async def test_the_report_finds_what_was_planted_and_both_orders_make_labels_right(tmp_path: Path) -> None:
    job, folder = tmp_path / "job.yaml", tmp_path / "run"
    backends = {"default": {"type": "simulator"}, "judge": JUDGE}
    job.write_text(job_text("http://127.0.0.1:9/v1", conversations=800, replicates=2, backends=backends))
    assert (await edgen("generate", job, "-o", folder)).code == 0
    made = await edgen("pairs", folder, "--by", "oracle", "--credit", "whole", "--json")
    assert made.code == 0, made.err
    assert made.facts["judged"] == 800

    with RunReader(folder) as reader:
        lines = list(reader.compared())
    labelled = [(line.pair.label.chosen, better(line)) for line in lines if line.pair.label]
    one_order = [(line.pair.signals.oracle[0].verdicts[0].choice or "", better(line)) for line in lines]
    assert len(labelled) > 300
    assert right(labelled) >= 0.93
    assert right(one_order) < 0.85

    ended = await edgen("pairs", folder, "--report", "--json")
    report: dict[str, Any] = json.loads(ended.out)
    (judge,) = report["judges"]
    position, length = judge["position"], judge["length"]
    assert position["points"]["low"] <= 100 * FIRST <= position["points"]["high"]
    assert position["points"]["low"] > 0, "and tells it from none"
    # Apart from the bias, the longer one wins where it is the better one.
    apart = [line for line in lines if words(line)[0] != words(line)[1]]
    longer_better = sum((words(line)[0] > words(line)[1]) == (better(line) == "a") for line in apart) / len(
        apart
    )
    planted = 100 * (LONGER + (1 - FIRST - LONGER) * (2 * longer_better - 1))
    assert length["points"]["low"] <= planted <= length["points"]["high"]
    assert length["points"]["low"] > 0
    assert length["slope"]["low"] > 0
    assert judge["ties"]["n"] == sum(line.pair.signals.oracle[0].tie for line in lines) > 0


def words(line: ComparedPair) -> tuple[int, int]:
    a, b = (sum(len(turn.text.split()) for turn in candidate.turns) for candidate in (line.a, line.b))
    return a, b
