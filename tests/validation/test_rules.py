"""The rules next to the schema, and the artefacts of released files, each by its name."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.values import END_MARKER
from edgen.validation.checker import Checker, find_problems
from edgen.validation.findings import KINDS, make_json_path
from edgen.validation.reading import read_records
from edgen.validation.speech import read_turn
from edgen.validation.stream import Piece
from tests.timing import takes_under

BACKGROUND = {
    "topic": "Rust",
    "student_prefrences": "reading",
    "teacher_prefrences": "lectures",
    "student_reactions": "and sulks",
    "teacher_reactions": "and sighs",
}


def record(*turns: str, **more: Any) -> dict[str, Any]:
    """Return a record with turns by teacher and student in turn."""
    said = [{"role": ("Teacher", "Student")[i % 2], "text": text} for i, text in enumerate(turns)]
    return {"background_info": BACKGROUND, "conversation": said, **more}


def kinds(value: Any, **options: Any) -> list[str]:
    return [finding.kind for finding in find_problems(value, **options)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Iron and water make rust.", []),
        ('He said "hello".', []),
        ('He said "hello"', []),
        ('"Hello," he said, "and welcome",', ["stray_quote"]),
        ('What does "rust" mean?", ', ["quote_comma"]),
        ('What is it?"",', ["doubled_quotes", "quote_comma"]),
        ('What is it?"', ["stray_quote"]),
        ('"What is it?', ["stray_quote"]),
        ('""What is it?', ["doubled_quotes"]),
        ("What is it?””", ["doubled_quotes"]),
        ("“What is it?”,", ["stray_quote"]),
        ("What is it?”,", ["quote_comma"]),
        ('"...",', ["stray_quote", "ellipsis_turn"]),
        ('"What is it?"', []),
        ('An empty text is written ""', []),
        ('I see." (Frustration)', ["stage_tag"]),
        ('She calls it "rust" (or oxide)', []),
        ("I see (really).", []),
        ("...", ["ellipsis_turn"]),
        ("…", ["ellipsis_turn"]),
        ('...",', ["quote_comma", "ellipsis_turn"]),
        ("Well...", []),
        ("?!", []),
        ("😀", []),
        (" ", ["empty_turn"]),
        ('""', ["empty_turn"]),
        ("Right. [end of conversation]", []),
        ("Right. [End of Conversation]", ["marker_spelling"]),
        ("Right. [end of the conversation].", ["marker_spelling"]),
        ("[end of conversation]", ["marker_turn"]),
        ('[End of conversation]" (Frustration)', ["stage_tag", "marker_spelling", "marker_turn"]),
        ("Right. (End of dialogue)", ["marker_spelling"]),
        ('Right." (End of conversation)', ["stray_quote", "marker_spelling"]),
        ("Right. [end of conversation] Or not?", ["marker_place"]),
        ("[end of conversation] [end of conversation]", ["marker_turn", "marker_place"]),
    ],
)
def test_a_last_turn(text: str, found: list[str]) -> None:
    ended_by = "Student" if "end of" in text.lower() else None
    assert kinds(record("What is rust?", "Iron oxide.", "Good.", text, ended_by=ended_by)) == found


@given(st.text(max_size=300))
def test_no_text_is_too_strange(text: str) -> None:
    for kind, problem in read_turn(text).notes:
        assert kind in KINDS
        assert problem


@given(st.text(alphabet='ab"”“(),.[] …\n', max_size=40))
def test_a_marker_at_the_end_is_always_seen(text: str) -> None:
    read = read_turn(f"{text} {END_MARKER}")
    assert read.markers == 1
    assert read.marker_last


@pytest.mark.parametrize(
    "piece", ['"', "”", '" (', "[end of ", "[ ", "(", '",', "[end of conversation]", " ", "."]
)
def test_time_is_linear(piece: str) -> None:
    assert takes_under(1.0, lambda: read_turn(piece * (1_000_000 // len(piece)) + "x"))


def test_a_clean_conversation_has_no_findings() -> None:
    assert kinds(record("What is rust?", "Iron oxide. [end of conversation]")) == []


def test_the_marker_belongs_to_the_end() -> None:
    assert kinds(record("Hello. [end of conversation]", "Bye. [end of conversation]")) == ["marker_place"]
    assert kinds(record("Hello.", "Bye.")) == ["no_marker"]


def test_a_side_that_says_nothing_is_no_speaker() -> None:
    found = find_problems(record("Hello.", "[end of conversation]"))
    assert [f.kind for f in found] == ["marker_turn", "one_speaker"]
    assert "the Student has turns" in found[1].problem


def test_turns_in_a_row_are_a_warning_with_their_place() -> None:
    value = record("Hello.", "Hi.", "Good.", "Bye. [end of conversation]")
    value["conversation"][2]["role"] = "Student"
    found = find_problems(value, 5)
    assert [(f.record, f.path, f.kind, f.severity) for f in found] == [
        (5, "$.conversation[2].role", "alternation", "warning"),
        (5, "$.conversation[3].role", "alternation", "warning"),
    ]


@pytest.mark.parametrize(
    ("ended_by", "last", "found"),
    [
        ("Student", "Bye. [end of conversation]", []),
        (
            "Teacher",
            "Bye. [end of conversation]",
            [],
        ),  # a marker-only turn of the Teacher's may have followed
        (None, "Bye.", []),
        (None, "Bye. [end of conversation]", ["ended_by"]),
        ("Teacher", "Bye.", ["ended_by"]),
        ("Nobody", "Bye.", ["schema"]),
    ],
)
def test_ended_by_fits_the_marker(ended_by: str | None, last: str, found: list[str]) -> None:
    assert kinds(record("Hello.", last, ended_by=ended_by)) == found


def test_scenario_strings_come_from_the_space() -> None:
    vocabulary = {key: frozenset({value}) for key, value in BACKGROUND.items()}
    value = record("Hello.", "Bye. [end of conversation]")
    assert kinds(value, vocabulary=vocabulary) == []
    found = find_problems(value, vocabulary={**vocabulary, "topic": frozenset({"Iron"})})
    assert [(f.path, f.kind) for f in found] == [("$.background_info.topic", "vocabulary")]
    assert '"Rust"' in found[0].problem


@pytest.mark.parametrize(
    "value",
    [
        None, 3, "text", [], {}, {"conversation": None}, {"conversation": [None, 1, {}, {"role": []}]},
        {"background_info": [], "conversation": [{"role": {}, "text": []}], "id": 1, "provenance": []},
        {"id": "x", "provenance": {"scenario": True, "replicate": "0"}, "ended_by": []},
    ],
)  # fmt: skip
def test_what_is_malformed_is_left_to_the_schema(value: Any) -> None:
    assert set(kinds(value, vocabulary={"topic": frozenset()})) == {"schema"}


def test_ids_are_unique_in_the_whole_set() -> None:
    value = record("Hello.", "Bye. [end of conversation]", id="x")
    raw = Piece(msgspec.Raw(json.dumps(value).encode()))
    checker = Checker()
    first, second = checker.check_file("a.json", [raw, raw]), checker.check_file("b.json", [raw])
    assert (first.records, first.valid) == (2, 1)
    assert [(f.record, f.kind) for f in first.problems] == [(1, "duplicate_id")]
    assert "record 0" in first.problems[0].problem
    assert "record 0 of a.json" in second.problems[0].problem


def test_a_record_that_cannot_be_decoded_is_its_own_problem() -> None:
    good = Piece(msgspec.Raw(json.dumps(record("Hello.", "Bye. [end of conversation]")).encode()))
    report = Checker().check_file("a.json", [Piece(msgspec.Raw(b"[1e999]")), good, Piece(msgspec.Raw(b"17"))])
    assert (report.records, report.valid) == (3, 1)
    assert [(f.record, f.path, f.kind) for f in report.problems] == [
        (0, "$", "unreadable"),
        (2, "$", "schema"),
    ]


def test_paths() -> None:
    assert make_json_path(["conversation", 3, "role"]) == "$.conversation[3].role"
    assert make_json_path(["a b", ""]) == '$["a b"][""]'


def test_the_released_records_are_read_as_they_are(shared_data: Path) -> None:
    report = Checker().check_file("ed", read_records(shared_data / "ed_release_sample.json"))
    assert (report.records, report.valid) == (19, 15)
    assert Counter(finding.kind for finding in report.problems) == {
        "quote_comma": 30,
        "stage_tag": 14,
        "doubled_quotes": 5,
        "ellipsis_turn": 2,
        "marker_turn": 8,
        "marker_spelling": 16,
        "no_marker": 1,
    }
    errors = {f.record for f in report.problems if f.severity == "error"}
    assert errors == {0, 4, 6, 17}
    assert [f.record for f in report.problems if f.kind == "no_marker"] == [6]
    assert {f.record for f in report.problems if f.kind == "marker_turn"} == {4, 7, 9, 12, 13, 15, 16, 17}
