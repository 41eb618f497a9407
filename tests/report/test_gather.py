"""The data read from a run: the times of answers, and no more of a text than a page can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.report.gather import CUT, LONGEST_TURN, gather, summarize_latency
from tests.execution.service import Service, completion
from tests.report.runs import generated, made


def test_latencies_are_logarithms() -> None:
    found = summarize_latency(iter([0.001] * 90 + [10.0] * 10))
    assert found.n == 100
    assert (found.median, found.max) == (pytest.approx(-3), pytest.approx(1))
    assert sum(bar.count for bar in found.bins) == 100
    assert all(bar.low < bar.high for bar in found.bins)
    assert summarize_latency(iter([])).n == 0
    assert summarize_latency(iter([0.0])).median == pytest.approx(-5)


def test_the_most_frequent_reason_is_first(tmp_path: Path) -> None:
    faults = 'backends.default={type: simulator, faults: "refusal=0.1,garbage=0.5"}'
    run = made(tmp_path / "run", "--set", faults, "--set", "asks=1", n=60)
    counts = [reason.count for reason in gather(run).arms[0].reasons]
    assert len(set(counts)) > 1
    assert counts == sorted(counts, reverse=True)


def test_long_texts_are_cut(tmp_path: Path) -> None:
    async def long(_service: Service, seed: int) -> object:
        if seed % 3 == 0:
            return completion("no conversation " * 1000)
        return completion(f"Teacher: {'a long word ' * 2000}\nStudent: I see {seed}.\nProbability: 0.5")

    run = generated(tmp_path, Service(trouble=long), conversations=20)  # type: ignore[arg-type]
    report = gather(run)
    assert all(len(turn.text) < LONGEST_TURN + 80 for one in report.chosen for turn in one.turns)
    assert any("of 23,999 characters]" in turn.text for one in report.chosen for turn in one.turns)
    examples = [example for reason in report.arms[0].reasons for example in reason.examples]
    assert examples
    assert all(example.reply is not None and len(example.reply) == CUT for example in examples)
    assert all(example.length == 16_000 for example in examples)
