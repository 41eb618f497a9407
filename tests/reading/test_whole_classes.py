"""Placeholders and speakers in no list: instructions to write, lengths, empty values, layouts."""

from __future__ import annotations

import pytest

from edgen.core.values import Rejection
from edgen.reading.answers.choice import Chosen, read_choice
from edgen.reading.other_speaker import speaks_for_another
from edgen.reading.placeholders import is_placeholder
from edgen.reading.roles import TEACHER_STUDENT

PLACEHOLDERS = [
    "Write your reply here", "Put the text here.", "Escribe tu respuesta aquí", "écrivez votre réponse", "Ihre Antwort…",
    "Введите ответ здесь", "the student's next turn", "Student's reply", "Reply to the student.", "Message 1",
    "a question about the topic", "Answer to the question", "(1-3 sentences)", "<one to three sentences>",
    "[student replies]", "[The teacher continues]", "null", "undefined", "[object Object]", "Your answer...", "This is a possible response...", "Another sample reply",
    "votre texte…", "il tuo messaggio...", "The student's reply goes here.", "The other side's post goes here", "Write your post here.",
    "$answer", "in your own words", "[Your comment here]",
]  # fmt: skip
OWN = [
    "A question about the topic: why do we add?", "Answer to the question? I have none.", "What is the student's answer?",
    "Two or three words.", "Write your answer on the board.", "The teacher answers.", "Respond to the teacher's question, please.",
    "The student's answer is 5.", "Message 3 is right.", "Undefined, since we divide by 0.", "None.", "Null is a number.",
    "Your answer… is right.", "Add the text here.", "Text me later.", "Here is an example question.",
    "This is a possible response to her letter.", "Say it in your own words, please.", "I read your post.", "Post it here tomorrow.",
]  # fmt: skip
SHARED = [
    "Right.\nStudent - But why is that?", "Good.\n\nStudent\nBut why is that?", "Good.\n--- Student ---\nBut why?",
    "Good. Student's reply: But why?", "Good. Now the student: But why?", "Хорошо. — А почему? — спросил ученик.",
    'Good. The student then asks, "But why?"', "Gut. Schüler: Warum ist das so?", "Oui. L'élève : Pourquoi ça ?",
    "よし。生徒：なぜですか？", "İyi. Öğrenci: neden böyle?", "Good.\n== Student ==\nBut why?", "جيد. الطالب: لماذا؟",
    "Good. [Student raises a hand] But why?", "That is it. *The student smiles* I see now!", "Gut. (Schüler nickt) Ja.",
    "Right. (Student hesitates, then speaks) Four?",
]  # fmt: skip
ALONE = [
    'My teacher said "practise".', "I told every student: read the text twice.", "There are two roles: teacher and student.",
    "Vocabulary:\nLehrer - teacher", "Draw a line - student side first.", "A good student asks: why?",
    "You — as a student — would ask why.", "(Teacher smiles) Well done.", "*the teacher points at the board* What is this?",
    "(A student has 3 apples and takes 4.)", "(students often forget this)",
]  # fmt: skip


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_a_placeholder_is_found(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", OWN)
def test_a_speakers_own_words_are_none(text: str) -> None:
    assert not is_placeholder(text)


@pytest.mark.parametrize("text", SHARED)
def test_another_speaker_inside_a_turn_is_found(text: str) -> None:
    assert speaks_for_another(text, "Teacher", TEACHER_STUDENT)


@pytest.mark.parametrize("text", ALONE)
def test_a_turn_of_one_speaker_is_left_alone(text: str) -> None:
    assert not speaks_for_another(text, "Teacher", TEACHER_STUDENT)


OFFERED = ["Shall we begin?", "Let me show you an example.", "What do you know about fractions?"]
MENUS = [
    "You may say:\n1. Shall we begin?\n2. Let me show you an example.\n3. What do you know about fractions?",
    "The options are shall we begin, let me show you an example, and what do you know about fractions.",
    "Number 1, number 2, number 3", "option 1 or option 2", "1/2/3", "First: Shall we begin? Second: Let me show you an example.",
    "A) Shall we begin?\nB) Let me show you an example.", "1. Shall we begin?\n\n2. Let me show", '{"choice": [1, 2, 3]}',
    "(1) Shall we begin?\n(2) Let me show you an example.\n(3)", "Say: 1. Shall we begin? 2. Let me show you an example.",
]  # fmt: skip
CHOICES = {
    "I would say number 3, what do you know about fractions?": 3, "Number 1 fits best because the lesson begins.": 1,
    "2 (Let me show you an example.)": 2, "Choice: 2 – an example helps here.": 2, "My pick: 3": 3,
    "3. What do you know about fractions? This helps me.": 3, "The best reply is 2.": 2, "2) Let me": 2,
    "Option two": 2, "I would go with the second one.": 2, "Number three.": 3, "My choice: one": 1,
}  # fmt: skip


@pytest.mark.parametrize("text", MENUS)
def test_a_menu_is_no_choice(text: str) -> None:
    assert isinstance(read_choice(text, OFFERED, "Teacher"), Rejection)


@pytest.mark.parametrize(("text", "number"), CHOICES.items())
def test_a_choice_in_other_words_is_read(text: str, number: int) -> None:
    chosen = read_choice(text, OFFERED, "Teacher")
    assert isinstance(chosen, Chosen)
    assert chosen.number == number


@pytest.mark.parametrize(("text", "number"), [("The third one", 3), ("Second.", 2), ("two", 2)])
def test_a_number_in_letters_is_a_choice_where_nothing_else_can_be_said(text: str, number: int) -> None:
    chosen = read_choice(text, OFFERED, "Teacher", free=False)
    assert isinstance(chosen, Chosen)
    assert chosen.number == number
    assert read_choice(text, OFFERED, "Teacher") == Chosen(None, text)


@pytest.mark.parametrize("text", ["-1", "−2", "Number eleven", "the fourth"])
def test_a_number_that_is_not_offered_is_no_choice(text: str) -> None:
    assert isinstance(read_choice(text, OFFERED, "Teacher", free=False), Rejection)
