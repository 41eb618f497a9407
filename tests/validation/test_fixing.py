"""Repairs: the result has no errors, a second pass changes nothing, and no word is invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import END_MARKER
from edgen.validation.checker import Checker, find_problems
from edgen.validation.reading import read_records
from edgen.validation.repair import Change, Fixed, Fixer, IrreparableRecord, fix
from edgen.validation.stream import Piece
from tests.dose import dose

BACKGROUND = {
    "topic": "Rust",
    "student_prefrences": "reading",
    "teacher_prefrences": "lectures",
    "student_reactions": "and sulks",
    "teacher_reactions": "and sighs",
}


def record(*turns: str, **more: Any) -> dict[str, Any]:
    said = [{"role": ("Teacher", "Student")[i % 2], "text": text} for i, text in enumerate(turns)]
    return {"background_info": BACKGROUND, "conversation": said, **more}


def fixed(value: Any) -> Fixed:
    result = fix(value)
    assert isinstance(result, Fixed), result
    return result


def texts(result: Fixed) -> list[str]:
    return [turn["text"] for turn in result.record["conversation"]]


def test_a_clean_record_is_left_as_it_is() -> None:
    value = record("Hello.", f"Bye. {END_MARKER}", id="x", ended_by="Teacher")
    result = fixed(value)
    assert result.record == value
    assert list(result.record) == list(value)
    assert result.changes == ()


def test_debris_goes_and_is_listed() -> None:
    result = fixed(record('Hello.",', "Bye."))
    assert texts(result) == ["Hello.", "Bye."]
    (change,) = result.changes
    assert (change.path, change.before, change.after) == ("$.conversation[0]", 'Hello.",', "Hello.")
    assert change.repairs == ("stray_debris",)


def test_a_marker_before_the_marker_goes_too() -> None:
    result = fixed(record("Hello.", "Bye. End of conversation. [end of conversation]"))
    assert texts(result) == ["Hello.", f"Bye. {END_MARKER}"]
    assert result.changes[0].repairs == ("marker_form",)


def test_a_marker_of_its_own_becomes_the_suffix_of_the_turn_before() -> None:
    result = fixed(record("Hello.", "Hi.", "...", "[End of conversation]"))
    assert texts(result) == ["Hello.", f"Hi. {END_MARKER}"]
    assert [(c.path, c.after) for c in result.changes] == [
        ("$.conversation[1]", f"Hi. {END_MARKER}"),
        ("$.conversation[2]", None),
        ("$.conversation[3]", None),
    ]
    assert all(change.repairs for change in result.changes)


def test_turns_behind_the_marker_go() -> None:
    result = fixed(record("Hello.", f"Bye. {END_MARKER} Wait.", "Yes?", "Nothing."))
    assert texts(result) == ["Hello.", f"Bye. {END_MARKER}"]
    assert [c.repairs for c in result.changes][1:] == [("after_end_marker",)] * 2


def test_ended_by_follows_the_marker() -> None:
    for wrong in (None, "Nobody", []):
        marked = fixed(record("Hello.", f"Bye. {END_MARKER}", ended_by=wrong))
        assert marked.record["ended_by"] == "Student"
        assert [c.path for c in marked.changes] == ["$.ended_by"]
    unmarked = fixed(record("Hello.", "Bye.", ended_by="Student"))
    assert unmarked.record["ended_by"] is None


def test_who_spoke_a_marker_of_its_own_is_kept() -> None:
    result = fixed(record("Hello.", "Hi.", "[End of conversation]"))
    assert texts(result) == ["Hello.", f"Hi. {END_MARKER}"]
    assert result.record["ended_by"] == "Teacher"
    assert result.changes[-1] == Change("$.ended_by", ("ended_by",), None, "Teacher")
    assert fixed(result.record).changes == ()
    for given_role, role in ((None, "Teacher"), ("Student", "Student"), ("Nobody", "Teacher")):
        result = fixed(record("Hello.", "Hi.", END_MARKER, ended_by=given_role))
        assert result.record["ended_by"] == role
    assert "ended_by" not in fixed(record("Hello.", "Hi.", "...", END_MARKER)).record


def test_only_repairs_that_happened_are_named() -> None:
    def names(*turns: str) -> list[tuple[str, ...]]:
        result = fix(record(*turns))
        assert isinstance(result, Fixed)
        return [change.repairs for change in result.changes if change.path != "$.ended_by"]

    assert names(" Hello.", "Hi.\u200b") == [("white_space",)] * 2
    assert names("Hello.", f"Bye.{END_MARKER} ") == [("white_space",)]
    assert names("Hello.", "Bye. [End of conversation]") == [("marker_form",)]
    assert names("Hello.", "Bye. (end of dialogue)") == [("marker_form",)]
    assert names("Hello.", "Bye.", END_MARKER) == [("moved_marker",)] * 2
    assert names("Hello.", 'Bye."",', "(end of dialogue)") == [
        ("stray_debris", "moved_marker"),
        ("marker_form", "moved_marker"),
    ]
    assert names("Hello.", "Bye.", "...") == [("empty_turn",)]


def test_what_cannot_be_repaired_is_left_out_with_the_reason() -> None:
    for value, reason in [
        (record("Hello.", "[end of conversation]"), "at least 2 turns"),
        (record("Hello.", "...", "Anybody?"), "spoken by the Student"),
        (record("[end of conversation]", "Hello.", "Hi."), "at least 2 turns"),
        (record("Hello.", "Hi.", probability=3), "$.probability"),
        ({"background_info": BACKGROUND}, "$.conversation: this key is missing"),
        ({"conversation": record("Hello.", "Hi.")["conversation"]}, "$.background_info"),
        (record("Hello.", "Hi.")["conversation"], "expected an object"),
        (None, "expected an object"),
    ]:
        result = fix(value)
        assert isinstance(result, IrreparableRecord), value
        assert reason in result.reason


turn_texts = st.one_of(
    st.sampled_from(["Yes.", "...", '...",', "[End of conversation]", "Bye. [end of conversation]", "", " "]),
    st.text(alphabet='ab ."“”,()[]\n', max_size=12),
    st.text(max_size=8).map(lambda text: f"{text} {END_MARKER} {text}"),
)


@given(
    st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["Teacher", "Student"]), "text": turn_texts}),
        max_size=7,
    ),
    st.sampled_from(["absent", None, "Teacher"]),
)
@settings(max_examples=dose(10, 80), deadline=None)
def test_what_is_kept_has_no_errors_no_new_words_and_stays(turns: list[Any], ended_by: str | None) -> None:
    value = {"background_info": BACKGROUND, "conversation": turns}
    if ended_by != "absent":
        value["ended_by"] = ended_by
    result = fix(value)
    if isinstance(result, IrreparableRecord):
        assert result.reason
        return
    assert [f for f in find_problems(result.record) if f.severity == "error"] == []
    assert fix(result.record) == Fixed(result.record, ())
    assert bool(result.changes) == (result.record != value)
    given_texts = [turn["text"] for turn in turns]
    for turn in result.record["conversation"]:
        said = turn["text"].removesuffix(f" {END_MARKER}")
        assert any(said in text for text in given_texts)


def test_of_two_records_with_one_id_the_first_stays() -> None:
    raw = Piece(msgspec.Raw(json.dumps(record("Hello.", "Hi.", id="x")).encode()))
    results = list(
        Fixer(lambda _: "conversation").fix_file("a.json", [raw, raw, Piece(msgspec.Raw(b"[1e999]"))])
    )
    assert isinstance(results[0], Fixed)
    assert isinstance(results[1], IrreparableRecord)
    assert "also the id of record 0" in results[1].reason
    assert isinstance(results[2], IrreparableRecord)
    assert "cannot be decoded" in results[2].reason


def test_the_released_records_can_all_be_repaired(shared_data: Path) -> None:
    raws = list(read_records(shared_data / "ed_release_sample.json"))
    results = list(Fixer(lambda _: "conversation").fix_file("ed", raws))
    kept = [result for result in results if isinstance(result, Fixed)]
    assert len(kept) == len(raws) == 19
    report = Checker().check_file("fixed", [Piece(msgspec.Raw(msgspec.json.encode(r.record))) for r in kept])
    assert {f.kind for f in report.problems} <= {"no_marker", "alternation"}
    assert sum(r.record["conversation"][-1]["text"].endswith(END_MARKER) for r in kept) == 18
