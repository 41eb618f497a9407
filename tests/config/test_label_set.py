"""Label sets: the shipped ones, and the errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.config.label_set import LabelSetError, find_label_set, make_inline_set, parse_label_set
from edgen.core import resources

TWO = "labels:\n  - {name: Asks, definition: asks}\n  - {name: Tells, definition: tells}\n"


def test_the_shipped_sets_can_be_used_and_are_called_what_their_files_are() -> None:
    names = resources.list_shipped("label_sets")
    assert {
        "msdialog_intents",
        "quality",
        "student_states",
        "teacher_moves",
    } <= {*names}
    for name in names:
        found = find_label_set(name)
        assert found.name == name
        assert found.source
    assert len(find_label_set("msdialog_intents").names) == 12
    assert find_label_set("teacher_moves").names == ("Focus", "Probing", "Telling", "Generic")
    assert find_label_set("teacher_moves").asks_for("Tutor")
    assert not find_label_set("teacher_moves").asks_for("Student")


def test_a_set_is_found_by_its_path_too(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\nother: Else\n" + TWO)
    found = find_label_set(str(tmp_path / "mine.yaml"))
    assert found.definitions == {"Asks": "asks", "Tells": "tells", "Else": "anything else"}
    assert not found.several
    assert make_inline_set("x", {"A": "a", "B": "b"}).several


BAD = {
    "no mapping": ("[]", "a label set is a mapping with `name` and `labels`"),
    "nothing": ("name: mine", "$.labels: this key is missing"),
    "no labels": ("name: mine\nlabels: []", "there are no labels; a label set needs at least two"),
    "one label": ("name: mine\nlabels: [{name: A, definition: a}]", "there is one label"),
    "two of a name": (f"name: mine\nother: ' asks'\n{TWO}", "$.other: ' asks' is already at $.labels[0].name"),
    "a comma": (f"name: mine\nother: 'a, b'\n{TWO}", "$.other: a label's name cannot have ',': it separates labels"),
    "too long": (f"name: mine\nother: {'o' * 61}\n{TWO}", "at most 60 characters, and this has 61"),
    "unknown key": (f"name: mine\nsevral: true\n{TWO}", "$.sevral: unknown key (did you mean 'several'?)"),
    "unknown key of a label": ("name: mine\nlabels: [{nme: A}]", "$.labels[0].nme: unknown key (did you mean 'name'?)"),
    "no YAML": ("name: [", "it is not valid YAML"),
    "10,000": ("name: mine\nlabels:\n" + "- {name: A, definition: a}\n" * 10_000, "$.labels: there are 10,000 labels, and at most 200"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_set_is_refused_in_a_sentence(case: str) -> None:
    text, expected = BAD[case]
    with pytest.raises(LabelSetError) as caught:
        parse_label_set(text, "mine.yaml")
    assert str(caught.value).startswith("label set mine.yaml: ")
    assert expected in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_name_that_nothing_has_is_told_with_the_nearest() -> None:
    with pytest.raises(LabelSetError, match=r"no such label set \(did you mean 'teacher_moves'\?\)"):
        find_label_set("teachr_moves")
