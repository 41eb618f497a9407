"""Other speakers under short, numbered and foreign labels are found; sentences with a colon are not."""

from __future__ import annotations

import pytest

from edgen.reading.other_speaker import speaks_for_another
from edgen.reading.role_words import LANGUAGES
from edgen.reading.roles import TEACHER_STUDENT
from tests.reading.speakers_abroad import ABROAD, ABROAD_LAYOUTS

# Teacher's turns in which another speaker speaks too.
SHARED = [
    "That is a good guess.\nS: But why do the leaves fall?",
    "That is a good guess. S: But why do the leaves fall?",
    "That is a good guess.\n\nS: But why do the leaves fall?\n\nT: Because of the cold.",
    "That is a good guess.\n**S:** But why do the leaves fall?",
    "That is a good guess.\n**S**: But why do the leaves fall?",
    'That is a good guess.\nS: "But why do the leaves fall?"',
    "That is a good guess.\nS1: But why do the leaves fall?",
    "That is a good guess.\nS2: I do not know.",
    "That is a good guess.\n[S]: I do not know.",
    "That is a good guess.\n(S): I do not know.",
    "That is a good guess.\n- S: I do not know.",
    "That is a good guess.\nSt: But why do the leaves fall?",
    "That is a good guess.\nStu: But why do the leaves fall?",
    "That is a good guess.\nStud.: But why do the leaves fall?",
    "That is a good guess.\nP1: But why do the leaves fall?",
    "That is a good guess.\nP2: I do not know.",
    "That is a good guess.\nYou: But why do the leaves fall?",
    "That is a good guess.\n**You:** But why do the leaves fall?",
    "That is a good guess. You: I think I see it now.",
    "That is a good guess.\nMe: I think I see it now.",
    "That is a good guess.\nHuman: But why do the leaves fall?",
    "That is a good guess. Human: But why do the leaves fall?",
    "That is a good guess.\n\nHuman: I see, thank you!\n\nAssistant: You are welcome.",
    "That is a good guess.\nAI: Here is more about leaves.",
    "That is a good guess.\nModel: Here is more about leaves.",
    "That is a good guess.\nBot: Here is more about leaves.",
    "That is a good guess.\nSystem: The lesson is over.",
    "That is a good guess.\nSpeaker 2: But why do the leaves fall?",
    "That is a good guess.\nSpeaker B: But why do the leaves fall?",
    "That is a good guess.\n**Speaker 2:** But why do the leaves fall?",
    "That is a good guess.\n[Speaker 2]: But why do the leaves fall?",
    "That is a good guess.\nSpeaker_2: But why do the leaves fall?",
    "That is a good guess.\nSPEAKER_01: But why do the leaves fall?",
    "That is a good guess.\nPerson 2: But why do the leaves fall?",
    "That is a good guess.\nPerson B: I do not know.",
    "That is a good guess.\nParticipant 2: I do not know.",
    "That is a good guess.\nVoice 2: I do not know.",
    "That is a good guess.\nUser 1: I do not know.",
    "That is a good guess.\n- Student -\nBut why do the leaves fall?",
    "That is a good guess.\n- Student - But why do the leaves fall?",
    "That is a good guess.\n~ Student ~\nBut why do the leaves fall?",
    "That is a good guess.\n. Student: But why do the leaves fall?",
    "That is a good guess.\n• Student • But why do the leaves fall?",
    "That is a good guess.\n>> Student: But why do the leaves fall?",
    "That is a good guess.\nStudent; But why do the leaves fall?",
    "That is a good guess.\nStudent = But why do the leaves fall?",
    "That is a good guess.\nStudent | But why do the leaves fall?",
    "That is a good guess.\nStudent => But why do the leaves fall?",
    "That is a good guess.\nStudent -> Teacher: But why do the leaves fall?",
    "That is a good guess.\nStudent (10:04): But why do the leaves fall?",
    "That is a good guess.\n[10:04] Student: But why do the leaves fall?",
    "That is a good guess.\n10:04 Student: But why do the leaves fall?",
    "That is a good guess.\nTurn 2 (Student): But why do the leaves fall?",
    "That is a good guess.\nTurn 2 - Student: But why do the leaves fall?",
    "That is a good guess.\n2. Student: But why do the leaves fall?",
    "That is a good guess.\nStudent No. 2: But why do the leaves fall?",
    "That is a good guess.\nStudent One: But why do the leaves fall?",
    "That is a good guess.\nThe students: But why do the leaves fall?",
    "That is a good guess.\nStudents (together): But why do the leaves fall?",
    "That is a good guess.\nThe whole class: But why do the leaves fall?",
    "That is a good guess.\nClass: Good morning, teacher!",
    "That is a good guess.\nAll: Good morning, teacher!",
    "That is a good guess.\nEveryone: Good morning, teacher!",
    "That is a good guess.\nAnother learner: But why do the leaves fall?",
    "That is a good guess.\nTA: But why do the leaves fall?",
    "That is a good guess.\nMom: It is time for dinner.",
    "That is a good guess.\nThe student (a bit confused): But why do the leaves fall?",
    "That is a good guess.\nStudent, puzzled: But why do the leaves fall?",
    "That is a good guess.\nStudent's answer: But why do the leaves fall?",
    # Written after the reader was changed.
    "Well tried.\n\nT: Yes, it is.\n\nS: Why is that?",
    "Well tried.\n\nPerson #2: Could you say that again?",
    "Bien.\nUsuario: ¿Por qué es así?",
    "Gut.\nBenutzer: Warum ist das so?",
    "很好。\n用户：为什么会这样？",
    "很好。学生甲：为什么这样？",
    "よし。\n生徒A：どうしてですか？",
    "Hay lắm.\nHọc sinh 2: Con hiểu rồi ạ.",
    "Très bien.\nÉlève 1 : Pourquoi ?",
    "Well tried.\nEverybody: Yes, we do!",
    "Well tried.\nP3: Can we go on now?",
    "Well tried.\n* Student *\nCan we go on now?",
    "Well tried.\nMe (thinking): Can we go on now?",
    "Well tried.\nSTUDENT_2: Can we go on now?",
    "Well tried.\nuser\nCan we go on now?",
    "Well tried.\nThe learners: Can we go on now?",
]  # fmt: skip
# Turns of the teacher alone: lessons are full of colons.
ALONE = [
    "We meet at 10:30. Bring your book.",
    "The ratio of boys to girls is 3:2, so there are 15 boys.",
    "Remember: the sum of the angles is 180 degrees.",
    "Note: this works for positive numbers alone.",
    "Answer: 4",
    "Answer: It is four, since two and two make four.",
    "Question: What do plants need to grow?",
    "Q: What do plants need to grow?\nA: They need light and water.",
    "Hint: Look at the denominator.",
    "Example: If you have 3 apples and eat one, two are left.",
    "Step 1: Read the text.\nStep 2: Underline the verbs.\nStep 3: Write a summary.",
    "Rule 1: Never divide by zero.",
    "A: Paris.\nB: Rome.\nC: Madrid.\nD: Berlin.\nWhich is right?",
    "Here is a dialogue to practise:\nAnna: How are you?\nTom: I am fine, thanks.",
    "Read this dialogue aloud.\nA: How are you?\nB: I am fine, thanks.",
    'As Einstein said: "Imagination is more important than knowledge."',
    "Shakespeare wrote: To be, or not to be, that is the question.",
    "See https://example.org/a:b for more.",
    "Photosynthesis: the way in which plants make sugar.",
    "Mass: 3 kg. Height: 2 m. So the potential energy is 58.8 J.",
    "S: the surface of the cube\nV: its volume\na: the length of an edge",
    "Let us name them.\nS: surface\nT: temperature",
    "T: 20 °C, P: 1 bar.",
    "T: 300 K",
    "S: 4π·r²",
    "P1: (2, 3)\nP2: (4, 7)",
    "P1: 20 kPa",
    "Human: 46 chromosomes. Chimpanzee: 48 chromosomes.",
    "Chromosomes per cell:\nHuman: 46\nDog: 78",
    "System: a set of parts that work together.",
    "Model: a simplified picture of reality.",
    "Class: Mammalia. Order: Primates.",
    "All: every one of them; none: not a single one.",
    "You have two options: wait or ask.",
    "You know the rule: practice makes perfect.",
    "One question for you: Why is the sky blue?",
    "Try this one yourself: 3x + 2 = 11.",
    "Dear student: congratulations!",
    "There are two kinds of students: those who ask and those who wait.",
    "I tell my students: practice every day.",
    "What a teacher needs: patience, time and chalk.",
    "The role of a teacher: to ask good questions.",
    "Vocabulary: der Lehrer - the teacher; der Schüler - the student.",
    "Lehrer: teacher\nSchüler: student",
    "Speaker: the person who gives a talk.",
    "Subject: Biology. Level: 7. Time: 45 minutes.",
    "Title: The Old Man and the Sea",
    "Pros: It is fast. Cons: It is loud.",
    "True or false: Whales are fish.",
    "Fill in: She ___ to school every day.",
    "In short: Yes, you may.",
    "My advice: Sleep well before the test.",
    "Good news: You passed!",
    "Warm-up: Count from ten to one.",
    "Homework: Read chapter 3. Due: Friday.",
    "Summary: Plants turn light into sugar.",
    "Teacher's note: this page is difficult.",
    "Materials: paper, scissors, glue.",
    "def area(s): return s * s",
    "x: 3, y: 4, so the point is (3, 4).",
    "| Speaker | Words |\n|---|---|\n| A | 12 |",
    "Genesis 1:1 says that the beginning was dark.",
    "Me, I would say: try again.",
    "Voice: active or passive?",
    "Person: first, second or third.\nNumber: singular or plural.",
    "Participants: 24. Mean age: 12.3 years.",
    "Group 2: Please open your books.",
    "Table 2: Results of the test.",
    "Player 2 wins 3:1.",
    "Everyone knows this one: i before e, except after c.",
    "Ask yourself: What do I already know?",
    "Two words: well done!",
    "The answer is simple: You multiply first.",
    "He asked me: Who are you?",
    # Written after the reader was changed.
    "Order of operations: Brackets first, then powers.",
    "This is key: You cannot divide by zero.",
    "All: Everything that is there counts.",
    "Pronouns:\nI: first person\nYou: second person\nHe: third person",
    "Father: Latin pater, Greek patēr.",
    "Translate: You are my friend.",
    "T: The symbol for temperature.",
    "P1: The pressure at the start.\nP2: The pressure at the end.",
    "Key:\nT: True.\nF: False.",
    "You: subject. Are: verb. Kind: adjective.",
    "A student once asked me: Why is the sky blue?",
    "Translate into German:\nYou: Where do you live?",
    "First person: I walk. Second person: You walk.",
    "The students' answers: 4, 5 and 6.",
]  # fmt: skip


@pytest.mark.parametrize("text", SHARED)
def test_another_speaker_is_found(text: str) -> None:
    assert speaks_for_another(text, "Teacher", TEACHER_STUDENT)


@pytest.mark.parametrize("text", ALONE)
def test_a_colon_alone_makes_no_speaker(text: str) -> None:
    assert not speaks_for_another(text, "Teacher", TEACHER_STUDENT)


def test_every_language_of_the_readers_has_cases() -> None:
    assert ABROAD.keys() == LANGUAGES.keys()


@pytest.mark.parametrize("language", ABROAD)
@pytest.mark.parametrize("layout", ABROAD_LAYOUTS)
def test_both_roles_are_found_in_every_language(language: str, layout: str) -> None:
    opening, reply, *labels = ABROAD[language]
    for own, other in (("Teacher", labels[1]), ("Student", labels[0])):
        for label in other:
            text = ABROAD_LAYOUTS[layout].format(opening, label, reply)
            assert speaks_for_another(text, own, TEACHER_STUDENT), (own, text)
    assert not speaks_for_another(f"{opening} {reply}", "Teacher", TEACHER_STUDENT)
