"""Lines inside a turn that look like another layout's label or markup stay part of the turn."""

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

# Lines that look like labels of chats, mails, programs, tables and headings.
MORE = [
    "a. Student: somebody who studies",
    "b. Teacher: somebody who teaches",
    "A) Teacher: noun",
    "12/05/2024, 9:30 AM - Student: absent",
    "[9:15 AM] Student: late",
    "9:15 AM Student: arrives",
    "Student  [9:15 AM]",
    "Student — Today at 9:15 AM",
    "@Student: see page 4",
    "#Student# is a placeholder",
    "{Student}: a template field",
    "<@student> is a mention",
    "Post #4 by Student",
    "Student wrote on 12 May at 9:30:",
    "student_1: 14 years old",
    "Student_2: 15 years old",
    "S2: 15 points",
    "T3: 12 points",
    "P1: the first point",
    "Q: who is the student?",
    "A: nobody knows.",
    "Speaker 2 (Student): a column title",
    "=== Student ===",
    "--- STUDENT ---",
    "--- Phase 2 ---",
    "Scene 2",
    "### Part 2: The student",
    "Exchange 2",
    "Turn 4 (Student): skip",
    "[Turn 4] skip this",
    "┌─ Student",
    "│ Student │ 14 │",
    "└─",
    "<Turn 4>",
    "</Turn 4>",
    ":student: is an emoji code",
    "4 / Student / skip",
    'Turn(role="student")',
    "('Student', 14),",
    "(student 14)",
    "['role' => 'student'],",
    '{ role = "student" },',
    "- Student",
    "* **Student**",
    "1. Student",
    "2) Teacher",
    "4,Student,14",
    "Student\t14",
    "| Student | 14 |",
    "Student 💬 talks",
    "Student ==> Pupil",
    '"Student": 14',
    '"What?" said the student.',
    "P(student) = 0.4",
    "Probability of rain: 30%",
    "So P(A) ≈ 0.3",
    "The chance is 3/100.",
]


@pytest.mark.parametrize("line", [*LINES, *MORE])
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


# Texts that people type at the end of a message, and at its beginning.
ENDS = [
    ":)",
    ";-)",
    ":]",
    ":-}",
    "=)",
    ">:)",
    "x)",
    "8)",
    "xD :)",
    "(^_^)",
    "(*^_^*)",
    "\\o/",
    "o/",
    ":/",
    "^^",
    "<3",
    "(smiles) :)",
    "c)",
]
FORMS = ["{}: {}", "**{}:** {}", "- {}: {}", "### {}\n{}\n", "{}:\n{}\n", "[{}] {}"]
SAID = [
    "Good morning",
    "Hello there",
    "What is a prime",
    "It has two divisors",
    "Right, name one",
    "Seven, I think",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ENDS)
def test_what_every_turn_ends_with_is_said(form: str, end: str) -> None:
    said = [f"{text} {end}" for text in SAID]
    result = read("\n".join(form.format(("Teacher", "Student")[i % 2], text) for i, text in enumerate(said)))
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == said


@pytest.mark.parametrize("form", FORMS[:5])
def test_a_smiley_with_which_every_turn_begins_is_said(form: str) -> None:
    said = [f":) {text}" for text in SAID]
    result = read("\n".join(form.format(("Teacher", "Student")[i % 2], text) for i, text in enumerate(said)))
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == said


@pytest.mark.parametrize("text", [")", "]", ":\\:", "\\o"])
def test_turns_of_the_same_marks_are_said(text: str) -> None:
    """A turn's complete text is never a mark of the layout."""
    for form in ("{}: {}", '   {}:  "{}",'):
        turns = [*[("Teacher", text)] * 4, ("Student", "Yes.")]
        result = read("\n".join(form.format(*turn) for turn in turns))
        assert isinstance(result, Conversation)
        assert [(turn.role, turn.text) for turn in result.turns] == turns
