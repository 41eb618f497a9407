"""Tables for Python users: comparisons and pairs as data frames, measures of arms by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import edgen
from edgen.core.errors import UsageError

pytestmark = pytest.mark.integration

JOB = {"name": "few", "conversations": 4, "space": "education_dialogue", "prompt": "education_dialogue"}
SIMULATOR = {"default": {"type": "simulator"}}


async def canned(request: edgen.Request) -> str:
    return "Teacher: Good morning.\nStudent: Good morning.\nProbability: 0.4"


def test_backends_given_beside_a_job_that_has_none(tmp_path: Path) -> None:
    run = edgen.generate(JOB, backends={"default": canned}, output=tmp_path / "run")
    assert run.status.accepted == 4
    assert {one.turns[0].text for one in run} == {"Good morning."}


def test_a_comparison_as_a_data_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    arms = {"one": {}, "other": {"prompt": "education_dialogue_json"}}
    run = edgen.generate({**JOB, "arms": arms}, backends=SIMULATOR, output=tmp_path / "run")
    compared = edgen.compare(run)
    table = compared.to_pandas()
    assert {"metric", "arm", "value", "low", "high", "n", "difference_value", "p"} <= {*table.columns}
    turns = table[table.metric == "turns"]
    assert [*turns.arm] == [arm.label for arm in compared.result.arms]
    assert [*turns.value] == [compared.metrics["turns"].arms[arm].value for arm in turns.arm]


def test_pairs_as_a_data_frame_have_their_texts(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    run = edgen.generate("jobs/selfplay.yaml", conversations=3, output=tmp_path / "run")
    pairs = run.pairs(by="oracle")
    table = pairs.to_pandas()
    for pair, row in zip(pairs, table.to_dict("records"), strict=True):
        assert row["id"] == pair.id
        assert len(row["shared_text"].splitlines()) >= pair.prefix_turns
        assert row["text_a"] != row["text_b"]


def test_a_measure_of_an_arm(tmp_path: Path) -> None:
    arms = {"one": {}, "other": {"asks": 2}}
    run = edgen.generate({**JOB, "arms": arms}, backends=SIMULATOR, output=tmp_path / "run")
    stats = run.stats(["lengths"])
    assert stats.arms["one"]["lengths"].turns.n == 4
    assert [*stats.arms["one"]] == ["lengths"]
    with pytest.raises(UsageError, match="'overviw' was not measured"):
        stats.arms["one"]["overviw"]


def test_usage_is_exported() -> None:
    assert edgen.Usage(1, 2).completion_tokens == 2
