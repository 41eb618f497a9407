"""Another speaker inside a turn is reported, in every layout and language; a colon alone is not."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from edgen.core.values import Conversation, Turn
from edgen.reading import read
from edgen.reading.one_turn.reader import read_turn
from edgen.reading.other_speaker import holds_other_speaker, speaks_for_another
from edgen.reading.role_words import LANGUAGES
from edgen.reading.roles import TEACHER_STUDENT
from tests.timing import takes_under

FIRST = "That is a good guess about the leaves."
THEN = "zebra crossings are quiet tonight."
NAMES = (
    "Student", "the student", "Another student", "Student 2", "Student B", "Student (quietly)", "Sam (student)", "PUPIL",
    "Ms. Ortega", "Dr. Hahn", "Mme Dupont", "Herr Vogel", "Señor Ruiz", "Narrator", "our tutor",
)  # fmt: skip
LABELS = {
    "line": "\n{}: " + THEN,
    "quoted": '\n{}: "' + THEN + '"',
    "middle of a line": " {}: " + THEN,
    "bold": " **{}:** " + THEN,
    "bold, then colon": "\n**{}**: " + THEN,
    "html": "<br><b>{}:</b> " + THEN,
    "paragraph": "</p><p><strong>{}</strong>: " + THEN,
    "verb": '\n{} says: "' + THEN + '"',
    "full-width": "\n{}：" + THEN,
    "escaped": "\\n{}: " + THEN,
    "list": "\n- {}: " + THEN,
    "note": "\n[{}]: " + THEN,
}
UNLABELLED = {
    "said": '\n{} said, "' + THEN + '"',
    "said after": '\n"' + THEN + '" said {}.',
    "brackets": "\n[{}] " + THEN,
    "heading": "\n### {}\n" + THEN,
    "dash": "\n{} — " + THEN,
    "arrow": "\n{} > " + THEN,
    "aside": "\n({} asks) " + THEN,
}
OTHERS = (
    "\n<|im_start|>user\n" + THEN,
    "<start_of_turn>user\n" + THEN,
    '\n{"role": "student", "text": "' + THEN + '"}',
    "\n<student>" + THEN + "</student>",
)


def test_labels_in_the_middle_of_a_turn_are_found() -> None:
    for name, label in itertools.product(NAMES, LABELS.values()):
        assert speaks_for_another(FIRST + label.format(name), "Teacher", TEACHER_STUDENT), (name, label)


def test_forms_without_a_colon_are_found() -> None:
    for name, label in itertools.product(("the student", "Ms. Ortega"), UNLABELLED.values()):
        assert speaks_for_another(FIRST + label.format(name), "Teacher", TEACHER_STUDENT), (name, label)
    for said in OTHERS:
        assert speaks_for_another(FIRST + said, "Teacher", TEACHER_STUDENT), said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_words_of_every_language_are_found(language: str) -> None:
    for word in itertools.chain(*LANGUAGES[language]):
        for label in ("\n{}: " + THEN, " {}: " + THEN, "\n**{}：** " + THEN):
            said = FIRST + label.format(word.capitalize())
            assert speaks_for_another(said, "Teacher", TEACHER_STUDENT), said


INSIDE = " Ms. Ortega: " + THEN
LAYOUTS = {
    "lines": f"Teacher: {FIRST}{INSIDE}\nStudent: Now I see.\nTeacher: Good.",
    "published": f'Conversation:\n[\nTeacher: "{FIRST}{INSIDE}",\nStudent: "Now I see.",\n]\nProbability: "0.4"',
    "bold": f"**Teacher:** {FIRST}{INSIDE}\n\n**Student:** Now I see.",
    "json": json.dumps(
        {
            "conversation": [
                {"role": "Teacher", "text": FIRST + INSIDE},
                {"role": "Student", "text": "Now I see."},
            ]
        }
    ),
    "German": f"Lehrer: {FIRST}{INSIDE}\nSchüler: Now I see.\nLehrer: Gut.",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_names_it_and_keeps_the_text(layout: str) -> None:
    for _ in range(3):  # from the second reply on, in a learned layout
        result = read(LAYOUTS[layout])
        assert isinstance(result, Conversation)
        assert "other_speaker" in result.repairs
        assert result.turns[0].text == FIRST + INSIDE
    clean = read(LAYOUTS[layout].replace(INSIDE, ""))
    assert isinstance(clean, Conversation)
    assert "other_speaker" not in clean.repairs


def test_a_turn_of_self_play_names_it() -> None:
    said = read_turn(FIRST + INSIDE, "Teacher")
    assert "other_speaker" in getattr(said, "repairs", ())


NONE = (
    "Remember this: plants make sugar.",
    "I asked your teacher: she said no.",
    "As I tell every student: practice.",
    "Ratio: 3:2, time: 10:30, https://example.org/a:b",
    'What does "teacher" mean in French?',
    "The word is (in short) a noun. Note: it is plural.",
    "Step 1: read.\nStep 2: write.\nAnswer: 42",
    'Einstein said: "Imagination is more important than knowledge."',
    "My favourite teacher is kind, and the student next to me, too.",
    "Dear Ms. Ortega, thank you. One more thing: why?",
    "| Word | Meaning |\n|---|---|\n| rosa | pink |",
    "Let x < 3 and y > 2 [see above].",
)


def test_what_is_no_other_speaker_is_not_found() -> None:
    for said in NONE:
        assert not speaks_for_another(said, "Teacher", TEACHER_STUDENT), said
    assert not speaks_for_another("Teacher: " + FIRST, "Teacher", TEACHER_STUDENT), (
        "its own label at its beginning"
    )


def test_real_conversations_hold_none(shared_data: Path) -> None:
    records = json.loads((shared_data / "ed_release_sample.json").read_bytes())
    talks = [[Turn(turn["role"], turn["text"]) for turn in one["conversation"]] for one in records]
    assert talks
    assert not [talk for talk in talks if holds_other_speaker(talk, TEACHER_STUDENT)]


@pytest.mark.integration
def test_it_takes_time_in_proportion() -> None:
    for shape in (
        ":",
        "Student",
        "Teacher: a\nStudent: b\n",
        '"said ',
        "[student",
        " ,:",
        ". Ms. A",
        "\\n",
        "(the ",
        "**",
        "Dr. ",
    ):
        text = shape * (300_000 // len(shape))
        assert takes_under(2, lambda text=text: speaks_for_another(text, "Teacher", TEACHER_STUDENT)), shape


def test_a_label_far_down_in_a_long_turn_is_found() -> None:
    filler = "This line says nothing of anybody at all.\n" * 80
    for label in ("[Student]\nI see it now.", "*Student nods* I see.", "\n\nStudent\nI see it now."):
        turns = [Turn("Teacher", f"Look.\n{filler}{label}\n{filler}"), Turn("Student", "Good.")]
        assert holds_other_speaker(turns, TEACHER_STUDENT), label
    assert not holds_other_speaker([Turn("Teacher", filler), Turn("Student", "Good.")], TEACHER_STUDENT)
