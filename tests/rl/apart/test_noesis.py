"""DSTC7's own, unchanged `metrics.py` and edgen's figures of the same submissions agree.

IBM/dstc-noesis is no package: `git clone https://github.com/IBM/dstc-noesis`, `pip install ijson numpy`, then
`PYTHONPATH=dstc-noesis/evaluations python -m pytest tests/rl/apart/test_noesis.py`. Its ids must be text in
upper case. For its MAP to be correct, right answers must stand in the truth in the order of the ranking.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import logging
import random
import re
import runpy
import sys
from pathlib import Path

import pytest

import edgen
from edgen.domains.retrieval.score import RankingScore
from tests.domains.retrieval.submissions import drawn, submission_file, truth_file

_FOUND = importlib.util.find_spec("metrics")
PROGRAM = str(_FOUND.origin) if _FOUND is not None else ""
SUBMISSIONS = 1000


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def theirs(
    truth: Path, ranking: Path, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> dict[str, float]:
    said.clear()
    monkeypatch.setattr(sys, "argv", [PROGRAM, "--predictions", str(ranking), "--targets", str(truth)])
    runpy.run_path(PROGRAM, run_name="__main__")
    figures: dict[str, float] = {}
    for text in said.messages:
        if text.startswith("{'R@1'"):
            figures.update(ast.literal_eval(text))
        elif found := re.fullmatch(r"Mean .*\((MRR|MAP)\): (\S+)", text):
            figures[found[1]] = float(found[2])
    return figures


def ours(truth: Path, ranking: Path, precision: str) -> dict[str, float]:
    found = edgen.score(truth, ranking)
    assert isinstance(found, RankingScore)
    figures = found.figures
    told = {f"R@{k}": figures.recall[k].value for k in (1, 10, 50, 100)}
    return {**told, "MRR": figures.mrr.value, "MAP": getattr(figures, precision).value}


def test_random_submissions_have_the_same_figures(
    tmp_path: Path, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)
    for number in range(SUBMISSIONS):
        answers, rankings = drawn(rng, examples=rng.choice((5, 20, 50)), candidates=rng.choice((10, 100)))
        if not rankings:
            rankings["0"] = [*answers["0"]]
        truth, ranking = truth_file(tmp_path / "t", answers), submission_file(tmp_path / "s", rankings)
        told = theirs(truth, ranking, said, monkeypatch)
        assert ours(truth, ranking, "map_in_file_order") == pytest.approx(told, rel=1e-5), number
        for example, ids in answers.items():
            ranked = [*rankings.get(example, ())]
            ids.sort(key=lambda one, ranked=ranked: ranked.index(one) if one in ranked else len(ranked))  # type: ignore[misc]
        in_order = truth_file(tmp_path / "t2", answers)
        assert ours(truth, ranking, "map") == pytest.approx(
            theirs(in_order, ranking, said, monkeypatch), rel=1e-5
        ), number


def test_what_it_takes_for_wrong_edgen_reads_and_says(
    tmp_path: Path, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, rankings = drawn(random.Random(8))
    truth, ranking = truth_file(tmp_path / "t", answers), submission_file(tmp_path / "s", rankings)
    right = ours(truth, ranking, "map")
    integers = json.loads(ranking.read_text())
    for entry in integers:
        entry["example-id"] = int(entry["example-id"])
    lower = submission_file(
        tmp_path / "lower", {one: [c.lower() for c in ids] for one, ids in rankings.items()}
    )
    ranking.write_text(json.dumps(integers))
    for path, kind in ((ranking, "integer_id"), (lower, "lower_case")):
        assert theirs(truth, path, said, monkeypatch)["MRR"] == 0
        assert ours(truth, path, "map") == right
        assert kind in {one.kind for one in edgen.score(truth, path).findings}
