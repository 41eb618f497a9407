"""Lines inside a turn that look like a label, or like markup, of another layout: they stay what somebody says."""

from __future__ import annotations

import pytest

from edgen.core.values import Conversation, Turn
from edgen.reading import read

LINES = [
    "Student 10:30 is the time on the sheet.", "Student, at 10:30 we meet.", "Teacher at 9:00: the bell rings.",
    "Teacher to student ratio: 20 to 1", "Student to teacher: how do we say this?", "a) Student: one who learns.",
    "i. Student: one who learns.", "① Student: one who learns.", "Step 3: Teacher: nobody", "Student; teacher; parent",
    "Student ~ 20 years old", "Student => pupil", "Teacher >> Student >> Parent", "Student » pupil", "Teacher/Student: a pair",
    "«Student» is a noun.", "[STUDENT]name[/STUDENT]", "\\item[Student] a person", "\\speak{Student} a person",
    "&lt;student&gt; is an element", "00:00:01,000 --> 00:00:02,000", "|-", "|===", "Teacher → Student: a letter", "【Student】is a word.", "Student「a word」", "Student's turn: read it aloud.", "Teacher's response: none", "*Student*", "_all of it_",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("form", ["{}: {}", "**{}:** {}"])
def test_a_line_that_looks_like_a_label_of_another_layout_stays_in_its_turn(line: str, form: str) -> None:
    turns = (
        Turn("Teacher", f"Look at this sheet:\n{line}\nWhat do you see?"),
        Turn("Student", "I see a word."),
        Turn("Teacher", "Good."),
        Turn("Student", "And it helps?"),
        Turn("Teacher", f"It does. Once more:\n{line}\nCan you say it?"),
        Turn("Student", "I can, thanks!"),
    )
    text = "\n".join(form.format(turn.role, turn.text) for turn in turns)
    result = read(f"{text}\n\nProbability: 0.8")
    assert isinstance(result, Conversation)
    assert result.turns == turns
    assert result.probability == 0.8


def test_marks_of_some_turns_alone_are_said() -> None:
    said = ["> 3 is what I mean.", "*nods*", "> 4 then?", "*smiles*", "> 5, at last.", "*bows*"]
    turns = tuple(Turn(("Teacher", "Student")[i % 2], text) for i, text in enumerate(said))
    result = read("\n".join(f"{turn.role}: {turn.text}" for turn in turns) + "\n\nProbability: 0.8")
    assert isinstance(result, Conversation)
    assert result.turns == turns
