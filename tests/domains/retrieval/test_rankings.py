"""Scores of rankings: by hand, by the definitions, and the messages for invalid files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import typer

import edgen
from edgen.cli.options import with_declared
from edgen.cli.output import run_guarded
from edgen.core.errors import DataError
from edgen.domains.retrieval import score_command
from edgen.domains.retrieval.score import RankingFigures, RankingScore
from edgen.domains.retrieval.submissions.findings import KINDS
from tests.cli.command import get_command
from tests.domains.retrieval.submissions import by_definition, drawn, submission, submission_file, truth_file

APP = typer.Typer()
APP.command()(with_declared(score_command.command))


def call(*arguments: object) -> int:
    """Return the exit code of `edgen score ARGUMENTS`."""
    try:
        return run_guarded(lambda: get_command(APP)([str(argument) for argument in arguments]))
    except SystemExit as end:
        return int(end.code or 0)


def scored(folder: Path, truth: str, entries: Any, candidates: int = 3) -> RankingScore:
    (folder / "truth.tsv").write_text(truth)
    (folder / "ranking.json").write_text(json.dumps(entries))
    found = edgen.score(folder / "truth.tsv", folder / "ranking.json", candidates)
    assert isinstance(found, RankingScore)
    return found


def values(figures: RankingFigures) -> dict[str, float]:
    return {
        **{f"R@{k}": one.value for k, one in figures.recall.items()},
        "MRR": figures.mrr.value,
        "MAP": figures.map.value,
        "MAP by the file": figures.map_in_file_order.value,
    }


def test_figures_by_hand(tmp_path: Path) -> None:
    truth = "a\tX,Y\thello\r\nb\tNONE\t\nc\tZ\tbye\n"
    found = scored(
        tmp_path, truth, submission({"a": ["Y", "U", "X"], "b": ["P", "NONE", "Q"], "c": ["P", "Q", "R"]})
    )
    assert (found.sound, found.findings, found.examples, found.several, found.ranked) == (True, (), 3, 1, 3)
    third = pytest.approx(1 / 3, rel=1e-5)
    assert values(found.figures) == {
        "R@1": third,
        **{f"R@{k}": pytest.approx(2 / 3, rel=1e-5) for k in (2, 5, 10, 50, 100)},
        "MRR": 0.5,
        "MAP": pytest.approx(((1 + 2 / 3) / 2 + 1 / 2) / 3, rel=1e-5),
        "MAP by the file": pytest.approx(((1 / 3 + 2 / 1) / 2 + 1 / 2) / 3, rel=1e-5),
    }
    assert found.figures.official.value == pytest.approx((2 / 3 + 1 / 2) / 2, rel=1e-5)


def test_random_submissions_are_as_the_definitions_have_them(tmp_path: Path) -> None:
    rng = random.Random(11)
    for _ in range(25):
        answers, rankings = drawn(rng)
        found = edgen.score(truth_file(tmp_path / "t", answers), submission_file(tmp_path / "s", rankings))
        assert isinstance(found, RankingScore)
        assert values(found.figures) == pytest.approx(by_definition(answers, rankings), rel=1e-5)
        assert {one.kind for one in found.findings} <= {"missing_example"}
        assert len(found.findings) == len(answers) - len(rankings)
        for one in (found.figures.mrr, found.figures.official):
            assert one.low is not None
            assert one.high is not None
            assert 0 <= one.low <= one.value <= one.high <= 1


def candidates_of(*ids: Any, **changes: Any) -> list[dict[str, Any]]:
    return [{"candidate-id": one, "confidence": 0.5, **changes} for one in ids]


@pytest.mark.parametrize(
    ("kind", "entry", "where", "words"),
    [
        ("not_a_ranking", 7, "entry 2", "a number"),
        ("not_a_ranking", {"candidate-ranking": []}, "entry 2", "example-id"),
        ("not_a_ranking", {"example-id": True, "candidate-ranking": []}, "entry 2", "example-id"),
        ("not_a_ranking", {"example-id": "b", "candidate-ranking": {}}, "b", "an object"),
        ("other_example", {"example-id": "z", "candidate-ranking": []}, "z", "entry 2"),
        ("doubled_example", {"example-id": "a", "candidate-ranking": candidates_of("X", "Y", "Z")}, "a", "entry 2"),
        ("no_candidate_id", {"example-id": "b", "candidate-ranking": candidates_of("X", None, 0.5)}, "b", "places 2, 3"),
        ("no_candidate_id", {"example-id": "b", "candidate-ranking": ["X", *candidates_of("V", "W")]}, "b", "place 1"),
        ("doubled_candidate", {"example-id": "b", "candidate-ranking": candidates_of("X", "Y", "x")}, "b", "X"),
        ("too_few", {"example-id": "b", "candidate-ranking": candidates_of("X", "Y")}, "b", "2 candidates where 3"),
        ("too_many", {"example-id": "b", "candidate-ranking": candidates_of(*"VWXY")}, "b", "4 candidates where 3"),
        ("too_many", {"example-id": "b", "candidate-ranking": candidates_of(*"VWXY", "NONE")}, "b", "5 candidates"),
        ("no_confidence", {"example-id": "b", "candidate-ranking": candidates_of(*"XYZ", confidence="0.5")}, "b", "0.5"),
        ("no_confidence", {"example-id": "b", "candidate-ranking": candidates_of(*"XYZ", confidence=None)}, "b", "none"),
        ("no_confidence", {"example-id": "b", "candidate-ranking": candidates_of(*"XYZ", confidence=float("nan"))}, "b", "nan"),
        ("no_confidence", {"example-id": "b", "candidate-ranking": candidates_of(*"XYZ", confidence=True)}, "b", "True"),
        ("rising_confidence", {"example-id": "b", "candidate-ranking": [*candidates_of("X", "Y"), *candidates_of("Z", confidence=1)]}, "b", "place 3"),
        ("integer_id", {"example-id": "b", "candidate-ranking": candidates_of("X", "Y", 7)}, "b", "1 of 3"),
        ("lower_case", {"example-id": "b", "candidate-ranking": candidates_of("X", "Y", "z1")}, "b", "z1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_by_example(
    tmp_path: Path, kind: str, entry: Any, where: str, words: str
) -> None:
    good = {"example-id": "a", "candidate-ranking": candidates_of("X", "Y", "Z")}
    found = scored(tmp_path, "a\tX\tw\nb\tY\tw\n", [good, entry])
    told = [one for one in found.findings if one.kind == kind]
    assert [(one.where, one.severity) for one in told] == [(where, KINDS[kind][0])]
    assert words in told[0].problem
    others = {one.kind for one in found.findings} - {kind}
    assert others <= {"missing_example", "lower_case", "no_confidence"}
    assert found.figures.recall[1].value >= 0.5


def test_integers_and_lower_case_are_read_rightly_and_none_may_come_beside_the_candidates(
    tmp_path: Path,
) -> None:
    found = scored(
        tmp_path, "5\t12,AB\tw\n6\tNONE\tw\n", submission({5: [12, "ab", 3], 6: ["NONE", 1, 2, 3]})
    )  # type: ignore[dict-item]
    assert found.sound
    assert found.figures.map.value == 1
    assert {one.kind for one in found.findings} == {"integer_id", "lower_case"}


def test_candidates_that_the_set_does_not_offer_are_told(tmp_path: Path) -> None:
    scored(tmp_path, "a\tX\tw\nb\tNONE\tw\n", submission({"a": ["X", "Q", 7], "b": ["NONE", "X", "y"]}))
    offered = {"a": ["x", 7], "b": ["X", "Y"]}
    examples = [
        {"example-id": one, "options-for-next": [{"candidate-id": name} for name in ids]}
        for one, ids in offered.items()
    ]
    files = [tmp_path / name for name in ("truth.tsv", "ranking.json")]
    for kept, told in (
        (examples, [("a", "Q")]),
        (examples[1:], [("a", "the file of examples does not have this one")]),
    ):
        (tmp_path / "set.json").write_text(json.dumps(kept))
        found = edgen.score(*files, 3, tmp_path / "set.json")
        assert [(one.where, one.problem) for one in found.findings if one.kind == "other_candidate"] == told
    (tmp_path / "set.json").write_text("[1]")
    with pytest.raises(DataError, match="it holds no examples"):
        edgen.score(*files, 3, tmp_path / "set.json")


def test_a_mark_of_the_byte_order_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbfa\tX\tw\n")
    (tmp_path / "s").write_bytes(b"\xef\xbb\xbf" + json.dumps(submission({"a": ["X"]})).encode())
    assert edgen.score(tmp_path / "t", tmp_path / "s", 1).sound


def test_a_later_ranking_of_an_example_counts_and_an_answer_twice_counts_once(tmp_path: Path) -> None:
    entries = [*submission({"a": ["X", "Y", "Z"]}), *submission({"a": ["Y", "X", "Z"]})]
    found = scored(tmp_path, "a\tX,x\tw\n", entries)
    assert (found.figures.mrr.value, found.figures.map.value) == (0.5, 0.5)
    assert {one.kind for one in found.findings} == {"doubled_example", "doubled_answer"}


@pytest.mark.parametrize(
    ("truth", "ranking", "words"),
    [
        ("a\tX\tw\na\tY\tw\n", "[]", "line 2: example a is also in an earlier line"),
        ("a X\n", "[]", "line 1: expected 'example-id TAB"),
        (
            "a\tX,,Y\tw\n",
            "[]",
            "line 1: an id of a right answer is empty; where no candidate is right, write NONE",
        ),
        ("\tX\tw\n", "[]", "the example has no id"),
        ("\n", "[]", "it is empty"),
        ("a\tX\tw\n", "[]", "it holds no rankings"),
        ("a\tX\tw\n", "[7]", "The first problem: entry 1: expected an object"),
        (
            "a\tX\tw\n",
            '[{"example-id": "b", "candidate-ranking": []}]',
            "its ids are b, and the truth's a. Is one of the files of another set?",
        ),
        ("a\tX\tw\n", '[{"example-id": "a", ', "it is not valid JSON"),
        ("a\tX\tw\n", "a,X\n", "it is neither a ranking"),
        ("a\tX\tw\n", "", "it is neither a ranking"),
        ("a\tX\tw\n", "[" * 100_000, "nested too deeply"),
    ],
)
def test_files_of_which_nothing_can_be_used(tmp_path: Path, truth: str, ranking: str, words: str) -> None:
    (tmp_path / "t").write_text(truth)
    (tmp_path / "s").write_text(ranking)
    with pytest.raises(DataError) as caught:
        edgen.score(tmp_path / "t", tmp_path / "s")
    assert words in str(caught.value)


def test_the_command_says_all_and_ends_as_it_should(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = truth_file(tmp_path / "t", {"a": ["X"], "b": ["Y"]})
    whole = submission_file(tmp_path / "s", {"a": ["X", "Y"], "b": ["X", "Y"]})
    assert call(truth, whole, "--candidates", 2, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["examples"], told["findings"]) == ("ranking", 2, [])
    assert (told["figures"]["recall"]["1"]["value"], told["figures"]["official"]["value"]) == (0.5, 0.875)
    assert call(truth, whole) == 3
    out = capsys.readouterr().out
    assert "R@10       1.0000" in out
    assert "error: rankings of too few candidates: 2\n  a: 2 candidates where 100 are expected" in out
    assert call(truth, tmp_path / "nowhere") == 2
    assert "there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("entries", "code", "told"),
    [
        ({"a": "XYZ", "b": "XYZ"}, 0, ""),
        ({"a": "XYZ"}, 3, "b: there is no ranking of it"),
        ({"a": "XYZ", "b": "XYX"}, 3, "candidates ranked more than once; the first place counts: 1\n  b: X"),
        ({"a": "XYZ", "b": "XY"}, 3, "b: 2 candidates where 3 are expected"),
        ({"a": "XYZ", "b": "XYZW"}, 3, "b: 4 candidates where 3 are expected"),
        ({"a": "XYZ", "b": "XYZ", "c": "XYZ"}, 3, "examples that the truth does not have; they are left out: 1\n  c: entry 3"),
        ({"c": "XYZ", "d": "XYZ"}, 2, "its ids are c, d, and the truth's a, b"),
        ({}, 2, "it holds no rankings"),
    ],
)  # fmt: skip
def test_every_bad_submission_ends_with_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], entries: dict[str, str], code: int, told: str
) -> None:
    truth = truth_file(tmp_path / "t", {"a": ["X"], "b": ["Y"]})
    assert call(truth, submission_file(tmp_path / "s", entries), "--candidates", 3) == code
    out = capsys.readouterr()
    assert told in out.out + " ".join(out.err.split())


@pytest.mark.parametrize("confidence", ['"high"', "null", "NaN", "-Infinity", "true", "[0.5]"])
def test_confidences_that_are_none_are_told_by_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], confidence: str
) -> None:
    truth = truth_file(tmp_path / "t", {"a": ["X"]})
    text = json.dumps(submission({"a": ["X", "Y"]})).replace("0.999", confidence)
    (tmp_path / "s").write_text(text)
    assert call(truth, tmp_path / "s", "--candidates", 2) == 3
    out = capsys.readouterr().out
    assert "error: confidences that are not numbers: 1\n  a: at place 2" in out
    assert "R@1        1.0000" in out  # the file is scored nevertheless
