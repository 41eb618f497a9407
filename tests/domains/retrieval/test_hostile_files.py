"""Hostile files: repeated ids cost no more than others, and lone surrogates stop nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import DataError
from edgen.domains.retrieval.candidates import RightAnswers
from edgen.domains.retrieval.functions import baseline, score
from tests.timing import takes_under

MANY = 40_000
SECONDS = 10.0  # CPU; a linear reader takes under 1 s on one slow core, a quadratic one many minutes


def written(path: Path, entries: Iterable[Any]) -> Path:
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in entries))
    return path


def ranking(example: str, ids: Iterable[str]) -> dict[str, Any]:
    return {
        "example-id": example,
        "candidate-ranking": [{"candidate-id": one, "confidence": 1} for one in ids],
    }


def truth_of(folder: Path, *ids: str) -> Path:
    return written(folder / "truth.tsv", [f"1\t{','.join(ids)}\tx"])


DOUBLED = [f"X{n // 2}" for n in range(MANY)]


@pytest.mark.parametrize("case", ["answers", "rankings", "answers and rankings", "offered", "labels"])
def test_repeated_ids_are_read_in_linear_time(case: str, tmp_path: Path) -> None:
    given, examples = tmp_path / "given.json", None
    truth = truth_of(tmp_path, *(DOUBLED if "answers" in case else ["X1"]))
    if case == "answers":
        written(given, [[ranking("1", DOUBLED)]])
    elif case == "labels":
        truth = written(tmp_path / "truth.json", [{"id": "d", "turn": 1, "labels": ["a"]}])
        written(given, ({"id": "d", "turn": 1, "labels": ["a"]} for _ in range(MANY)))
    else:
        written(given, (ranking("1", ["X1"]) for _ in range(MANY)))
    if case == "offered":
        offered = [{"candidate-id": one, "utterance": "t"} for one in DOUBLED]
        examples = written(tmp_path / "examples.json", [[{"example-id": "1", "options-for-next": offered}]])
    scored = []
    assert takes_under(
        SECONDS, lambda: scored.append(score(truth, given, candidates=1, examples=examples)), tries=2
    )
    found = scored[-1]
    kind = {"answers": "doubled_candidate", "labels": "doubled_turn"}.get(case, "doubled_example")
    assert any(one.kind == kind for one in found.findings)


def test_many_replies_to_one_context_are_collected_in_linear_time() -> None:
    answers = RightAnswers()
    assert takes_under(SECONDS, lambda: [answers.add(b"", [number]) for number in range(MANY)], tries=1)
    assert answers.of(b"")[-1] == MANY - 1


def test_the_first_place_of_a_candidate_counts_in_the_last_ranking(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "A", "B")
    given = written(tmp_path / "given.json", [ranking("1", "AB"), ranking("1", ["C", "B", "A", "B"])])
    found = score(truth, given, candidates=4)
    assert found.figures.recall[1].value == 0.0
    assert found.figures.mrr.value == 0.5


@pytest.mark.parametrize("by", ["chance", "tfidf", "bm25", "model"])
def test_lone_surrogates_in_examples_stop_no_baseline(by: str, tmp_path: Path) -> None:
    half = "\ud800"
    offered = [{"candidate-id": f"{one}{half}", "utterance": f"text {one}{half}"} for one in "AB"]
    said = [{"speaker": half, "utterance": f"hello{half}"}]
    entry = {"example-id": f"1{half}", "messages-so-far": said, "options-for-next": offered}
    examples = written(tmp_path / "examples.json", [[entry]])
    assert baseline(examples, tmp_path / "out.json", by, progress=False).examples == 1
    (ranked,) = json.loads((tmp_path / "out.json").read_text())
    assert ranked["example-id"] == "1\ufffd"
    assert {one["candidate-id"] for one in ranked["candidate-ranking"]} == {"A\ufffd", "B\ufffd"}
    with pytest.raises(DataError):
        score(examples, examples)
