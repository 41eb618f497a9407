"""Lines on a terminal that is narrower than results are laid out for."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.cli.folding import WIDE, fold, fold_lines
from edgen.cli.output import align_columns

TEXT = (
    "The first of two sentences is long, so that it does not fit a line of eighty columns. The second is not."
)


@pytest.mark.parametrize("wide", [78, 79, 80])
@pytest.mark.parametrize(
    "label", ["", "  ", "source      ", "  a longer label that is in a column of its own   "]
)
def test_a_wrapped_paragraph_is_wrapped_anew(wide: int, label: str) -> None:
    laid_out = textwrap.wrap(TEXT, wide, initial_indent=label, subsequent_indent=" " * len(label))
    lines = "\n".join(fold_lines(laid_out, 60)).split("\n")
    assert " ".join(" ".join(lines).split()) == " ".join(f"{label} {TEXT}".split())
    assert max(map(len, lines)) <= 60
    texts = lines[label.strip() != "" and len(label) > 30 :]  # a wide label has its own line
    assert all(len(line) > 60 - len(label) - 25 for line in texts[:-1])  # no short line but the last


def test_the_cells_of_a_table_stay_whole_and_aligned() -> None:
    rows = [("run", "accepted", "calls", "tokens", "age"), ("nightly", "200/200", "400", "20.8k", "12m14s")]
    assert "\n".join(fold_lines(align_columns(rows), 36)).splitlines() == [
        "run      accepted  calls  tokens",
        "       age",
        "nightly   200/200    400   20.8k",
        "    12m14s",
    ]


def test_what_is_not_one_paragraph_is_not_joined() -> None:
    files = [
        f"outputs/nightly/shards/conversations_train{n}.json: 7 records, 7 valid, no errors" for n in "12"
    ]
    assert [one.split("\n")[0][:20] for one in fold_lines(files, 60)] == ["outputs/nightly/shar"] * 2
    items = [
        "roles       Teacher sees the topic, the preference, the reaction and the level",
        "            Student",
    ]
    assert "\n".join(fold_lines(items, 60)).splitlines()[-1] == "            Student"
    prompt = [
        "A line of a prompt that has more than eighty columns is no wrapped line of ours at all.",
        "    and",
    ]
    assert len([*fold_lines(prompt, 60)]) == 2


def test_nothing_changes_where_there_is_room() -> None:
    lines = ["short", "", "  indented", "a label   and its text"]
    assert [*fold_lines(lines, 60)] == lines
    assert fold(TEXT, 0) == TEXT
    assert fold("edgen: " + TEXT, WIDE).count("\n") == 1


def test_a_path_is_not_broken() -> None:
    path = "outputs/experiment/comparisons/published-vs-refusing.json"
    assert [*fold_lines([f"stored     {path}"], 60)] == [f"stored\n{path}"]


@pytest.mark.parametrize("blank", [" " * 200, "\t" * 200, "\u3000" * 100, ""])
def test_blank_lines_of_any_length(blank: str) -> None:
    assert "".join(fold_lines([blank], 60)).strip() == ""
    assert "".join(fold_lines([f"text{blank}"], 60)).strip() == "text"


def test_blanks_in_prose_are_no_gaps_between_cells() -> None:
    prose = f"{TEXT}  And a third,  with blanks  in it."
    lines = "".join(f"{one}\n" for one in fold_lines([prose], 60)).splitlines()
    assert all(len(line) > 45 for line in lines[:-1])
    assert not any(line.startswith(" ") for line in lines)


@given(st.text(alphabet="ab .,:  \t-/\n界", max_size=400), st.integers(20, 120))
def test_nothing_is_lost(text: str, width: int) -> None:
    assert "".join("\n".join(fold_lines([text], width)).split()) == "".join(text.split())
    assert "".join(fold(text, width).split()) == "".join(text.split())
