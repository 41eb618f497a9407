"""Lines on a terminal that is narrower than results are laid out for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.cli.folding import fold
from edgen.cli.output import align_columns

TEXT = (
    "The first of two sentences is long, so that it does not fit a line of eighty columns. The second is not."
)


def test_the_cells_of_a_table_stay_whole_and_aligned() -> None:
    rows = [("run", "accepted", "calls", "tokens", "age"), ("nightly", "200/200", "400", "20.8k", "12m14s")]
    assert fold("\n".join(align_columns(rows)), 36).splitlines() == [
        "run      accepted  calls  tokens",
        "       age",
        "nightly   200/200    400   20.8k",
        "    12m14s",
    ]


def test_nothing_changes_where_there_is_room() -> None:
    lines = ["short", "", "  indented", "a label   and its text"]
    assert fold("\n".join(lines), 60).split("\n") == lines
    assert fold("edgen: " + TEXT, 80).count("\n") == 1


def test_a_path_is_not_broken() -> None:
    path = "outputs/experiment/comparisons/published-vs-refusing.json"
    assert fold(f"stored     {path}", 60) == f"stored\n{path}"


@pytest.mark.parametrize("blank", [" " * 200, "\t" * 200, "\u3000" * 100, ""])
def test_blank_lines_of_any_length(blank: str) -> None:
    assert fold(blank, 60).strip() == ""
    assert fold(f"text{blank}", 60).strip() == "text"


def test_blanks_in_prose_are_no_gaps_between_cells() -> None:
    prose = f"{TEXT}  And a third,  with blanks  in it."
    lines = fold(prose, 60).splitlines()
    assert all(len(line) > 45 for line in lines[:-1])
    assert not any(line.startswith(" ") for line in lines)


@given(st.text(alphabet="ab .,:  \t-/\n界", max_size=400), st.integers(20, 120))
def test_nothing_is_lost(text: str, width: int) -> None:
    assert "".join(fold(text, width).split()) == "".join(text.split())
