"""The spoken text: the turns that a repaired copy would have, without the marker."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import END_MARKER, Role, Turn
from edgen.validation.findings import KINDS
from edgen.validation.repair import _repair_turns
from edgen.validation.speech import read_speech
from tests.dose import dose

TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "Hello there.", "...", '?"",', 'Yes.",', "[End of conversation]", "Bye. [end of conversation]", "",
            "Bye. [end of conversation] One more thing.", '[End of conversation]" (Frustration)', 'So." (Sighs)', "End of conversation",
        ]
    ),
)  # fmt: skip
TURNS = st.lists(st.tuples(st.sampled_from(["Teacher", "Student"]), TEXTS), max_size=6)


@settings(max_examples=dose(12, 120))
@given(TURNS)
def test_the_turns_are_those_of_a_repaired_copy(turns: list[tuple[Role, str]]) -> None:
    found = read_speech([Turn(*turn) for turn in turns])
    kept, _, speaker = _repair_turns([{"role": role, "text": text} for role, text in turns])
    if kept and found.marker != "absent":
        kept[-1]["text"] = kept[-1]["text"].removesuffix(f" {END_MARKER}")
        assert found.ended_by == speaker
    assert [{"role": turn.role, "text": turn.text} for turn in found.turns] == kept
    assert (found.marker == "absent") == (found.ended_by is None)
    assert set(found.defects) <= KINDS.keys()


@pytest.mark.parametrize(
    ("texts", "marker", "defects"),
    [
        (["Hello.", "Bye. [end of conversation]"], "suffix", ()),
        (["Hello.", "Bye.", "[End of conversation]"], "own_turn", ("marker_spelling",)),
        (["Hello.", "[end of conversation]", "..."], "own_turn", ("ellipsis_turn",)),
        (["Hello.", "Bye. [end of conversation]", "Wait!"], "inside", ()),
        (["Hello.", "Bye. [end of conversation] And then we went home."], "inside", ()),
        (["Hello.", "Bye."], "absent", ()),
        (['Hello.",', "Bye."], "absent", ("quote_comma",)),
    ],
)
def test_where_the_marker_stands(texts: list[str], marker: str, defects: tuple[str, ...]) -> None:
    roles: list[Role] = ["Teacher", "Student", "Teacher"]
    found = read_speech(map(Turn, roles, texts))
    assert (found.marker, found.defects) == (marker, defects)
