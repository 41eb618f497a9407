"""Turn texts of released Education Dialogue files, and the texts after cleaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.reading import Repair, clean_turn, is_plain
from edgen.reading import released_turns as cleaning
from edgen.validation.speech import read_turn
from tests.dose import dose

DEBRIS, TAG, EMPTY = ("stray_debris",), ("stage_tag",), ("empty_turn",)

TEXTS: list[tuple[str, str, bool, tuple[str, ...]]] = [
    ("What is a cell?", "What is a cell?", False, ()),
    ('What is a cell?"",', "What is a cell?", False, DEBRIS),
    ('What is a cell?",', "What is a cell?", False, DEBRIS),
    ('What is a cell?"', "What is a cell?", False, DEBRIS),
    ('What is a cell...",', "What is a cell...", False, DEBRIS),
    ('""What is a cell?""', "What is a cell?", False, DEBRIS),
    ('"What is a cell?",', "What is a cell?", False, DEBRIS),
    ('"What is a cell?', "What is a cell?", False, DEBRIS),
    ("“What is a cell?”,", "What is a cell?", False, DEBRIS),
    ('What is a cell?" (Direct instruction)', "What is a cell?", False, TAG),
    ("What is a cell? (smiling)", "What is a cell? (smiling)", False, ()),
    ("(smiling) What is a cell?", "(smiling) What is a cell?", False, ()),
    ('Do you like "cells" (or rooms)?', 'Do you like "cells" (or rooms)?', False, ()),
    ('I said "cell" (twice)', 'I said "cell" (twice)', False, ()),
    ('I said "cell"', 'I said "cell"', False, ()),
    ('I said "cell"",', 'I said "cell"', False, DEBRIS),
    ('"Wall" and "core"', '"Wall" and "core"', False, ()),
    ('"What is a cell?"', '"What is a cell?"', False, ()),
    ('He typed ""', 'He typed ""', False, ()),
    ("Well,", "Well,", False, ()),
    ("'Tis a cell.", "'Tis a cell.", False, ()),
    ("A line break is \\\\", "A line break is \\\\", False, ()),
    ("...", "", False, EMPTY),
    ("…", "", False, EMPTY),
    ("", "", False, EMPTY),
    (" \n", "", False, EMPTY),
    ('...",', "", False, ("stray_debris", "empty_turn")),
    ("[end of conversation]", "", True, ()),
    ("[End of conversation]", "", True, ()),
    ('[end of conversation]",', "", True, DEBRIS),
    ('[End of conversation]" (Frustration)', "", True, TAG),
    ("Thanks. [End of conversation]", "Thanks.", True, ()),
    ('Thanks.", [End of conversation]', "Thanks.", True, DEBRIS),
    ("Thanks. [end of conversation] See you.", "Thanks.", True, ("after_end_marker",)),
    ("Thanks. (end of conversation)", "Thanks.", True, ("marker_form",)),
]


@pytest.mark.parametrize(("text", "said", "marked", "repairs"), TEXTS)
def test_clean_turn(text: str, said: str, marked: bool, repairs: tuple[str, ...]) -> None:
    assert clean_turn(text) == (said, marked, repairs)


@pytest.mark.parametrize("text", [row[0] for row in TEXTS])
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    said, _, _ = clean_turn(text)
    if said:
        assert clean_turn(said) == (said, False, ())


@given(st.text(st.characters(), max_size=60) | st.text('ab ".,“”()[]…\\', max_size=20))
def test_no_text_raises_and_the_result_is_stripped(text: str) -> None:
    said, _, repairs = clean_turn(text)
    assert said == said.strip()
    assert said in text
    assert set(repairs) <= {str(name) for name in Repair}


PLAIN = st.text("ab Z9.!?,;'-\n\\[](){}<>\"“”＂_*`…é\u200b\xa0", max_size=20)
WORDS = st.lists(
    st.sampled_from(["So", " ", "a chat", "dialogue", "End of conversation", "x.", "?", ",", "2"]), max_size=5
)


@settings(max_examples=dose(75, 300))
@given(PLAIN | WORDS.map("".join) | st.text(max_size=20))
def test_what_is_plain_at_a_glance_is_so_when_looked_at_closely(text: str) -> None:
    if is_plain(text):
        assert cleaning._clean_text(text) == (text, False, ())
        assert read_turn(text) == read_turn("Yes.")


@pytest.mark.parametrize("text", ["Yes.", "What is half of 4?", "It's well-known; isn't it\nso"])
def test_most_turns_are_plain(text: str) -> None:
    assert is_plain(text)


def test_released_records_come_out_clean(shared_data: Path) -> None:
    records = json.loads((shared_data / "ed_release_sample.json").read_text(encoding="utf-8"))
    texts = [turn["text"] for record in records for turn in record["conversation"]]
    cleaned = [clean_turn(text) for text in texts]
    for said, _, _ in cleaned:
        assert "[" not in said
        assert not said.endswith(('"', '",', "instruction)", "expression)"))
        assert said.strip(".…") or not said
    assert sum(marked for _, marked, _ in cleaned) == sum("of conversation]" in text for text in texts)
    assert sum(not said for said, _, _ in cleaned) == sum(
        text.lstrip(".").startswith(('",', "[End of")) for text in texts
    )
    untouched = sum(said == text for text, (said, _, _) in zip(texts, cleaned, strict=True))
    assert untouched > len(texts) * 0.7
