"""Other words for teacher and student: every word of the table in every layout, never recognised in part."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import Conversation, Rejection
from edgen.reading import read
from edgen.reading.assembly import add_repairs
from edgen.reading.assistant_words import is_refusal
from edgen.reading.conversation import _as_it_stands
from edgen.reading.one_turn.reader import TurnReply, read_turn
from edgen.reading.other_speaker import holds_other_speaker
from edgen.reading.probability import read_probability
from edgen.reading.repairs import Repair
from edgen.reading.role_words import LANGUAGES
from edgen.reading.roles import TEACHER_STUDENT, OwnWords
from tests.cases import each
from tests.reading.test_corpus import CASES, expected, raw
from tests.reading.test_properties import check

SAID = ["Hm, 1?", "A!", "Ok, b.", "Thanks (a lot)."]
MANNERS = {
    "lines": "{0}: {1}",
    "full width": "{0}：{1}",
    "blank before the colon": "{0} : {1}",
    "bold, colon inside": "**{0}:** {1}",
    "bold, colon outside": "**{0}**: {1}",
    "quoted": '{0}: "{1}"',
    "a bullet": "- {0}: {1}",
    "an arrow of writing": "\u200f{0}\u200f: {1}\u200f",
    "a heading": "### {0}\n{1}\n",
    "square brackets": "[{0}]: {1}",
    "a note": "{0} (A. B.): {1}",
    "capitals": "{0!u}: {1}",
}
OWN: OwnWords = (("Teacher", ("Ms. Rivera", "Coach")), ("Student", ("Kim",)))


def lesson(manner: str, teacher: str, student: str) -> str:
    form = MANNERS[manner]
    if "!u" in form:
        form, teacher, student = form.replace("!u", ""), teacher.upper(), student.upper()
    return "\n".join(form.format((teacher, student)[i % 2], said) for i, said in enumerate(SAID)) + "\n"


def said(result: Conversation | Rejection) -> list[tuple[str, str]] | None:
    return [(t.role, t.text) for t in result.turns] if isinstance(result, Conversation) else None


EXPECTED = [("Teacher" if i % 2 == 0 else "Student", text) for i, text in enumerate(SAID)]


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_a_language_names_its_side_in_every_manner(language: str, manner: str) -> None:
    teachers, students = LANGUAGES[language]
    for i in range(max(len(teachers), len(students))):
        teacher, student = teachers[i % len(teachers)], students[i % len(students)]
        if language == "Turkish" and manner == "capitals":
            continue  # Turkish has capitals of its own
        assert said(read(lesson(manner, teacher, student))) == EXPECTED, (teacher, student)


@pytest.mark.parametrize(
    ("teacher", "student"), [("老师", "学生"), ("Lehrer", "Schüler"), ("Tutor é", "Kim")]
)
def test_json_may_have_its_letters_escaped(teacher: str, student: str) -> None:
    spoken = ["Ein „Wort“ \\u00e9 \U0001f600", 'Ja: "gut"\nso\u2028']
    told = [{"role": (teacher, student)[i % 2], "text": text} for i, text in enumerate(spoken)]
    own: OwnWords = (("Teacher", ("Tutor é",)), ("Student", ("Kim",)))
    results = [read(json.dumps(told, ensure_ascii=escaped), words=own) for escaped in (True, False)]
    assert said(results[0]) == said(results[1]) is not None


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_side_alone_is_never_a_conversation_and_splits_no_other(language: str) -> None:
    known = {*TEACHER_STUDENT.by_name, *TEACHER_STUDENT.aliases}
    for words in LANGUAGES[language]:
        for word in {*words} - known:
            assert isinstance(read(lesson("lines", word, word)), Rejection)
            within = f"Teacher: Well.\n{word}: yes\nStudent: I see.\n"
            assert said(read(within)) == [("Teacher", f"Well.\n{word}: yes"), ("Student", "I see.")]


@pytest.mark.parametrize("form", ['{0}: "Yes."', "{0}: ¿Sí?", "**{0}:** Yes.", "- {0}: 3 of them."])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_speaker_in_other_words_is_no_part_of_another_s_turn(language: str, form: str) -> None:
    """A line with a speaker in other words is not part of the turn before it."""
    articles = {
        "German": "Der ",
        "French": "Le ",
        "Spanish": "El ",
        "Italian": "Il ",
        "Dutch": "De ",
        "Portuguese": "O ",
    }
    for word in {word for words in LANGUAGES[language] for word in words}:
        for name in (word, articles.get(language, "The ") + word):
            result = read(f"Teacher: Well.\n{form.format(name)}\nStudent: I see.\n\nProbability: 0.3")
            assert isinstance(result, Conversation)
            assert [turn.text for turn in result.turns][::2] == ["Well.", "I see."]
            assert {*result.repairs} == {"layout", "role_alias"} - (
                {"role_alias"} if name in ("student", "teacher") else set()
            )


def test_the_student_with_an_article_is_no_part_of_the_teacher_s_turn() -> None:
    result = read(
        'Teacher: Well.\nthe student: "I see."\nTeacher: Good.\nThe Teacher: a history\nStudent: Bye.'
    )
    assert said(result) == [
        ("Teacher", "Well."), ("Student", "I see."), ("Teacher", "Good.\nThe Teacher: a history"), ("Student", "Bye."),
    ]  # fmt: skip


@each("case", [case for case in CASES if not case.startswith("languages/")])
def test_what_the_reader_knew_already_reads_as_before(case: str) -> None:
    facts = expected(case)
    if "reason" not in facts:
        known = _as_it_stands(raw(case), TEACHER_STUDENT)
        assert isinstance(known, Conversation)
        seen = [Repair.OTHER_SPEAKER] if holds_other_speaker(known.turns, TEACHER_STUDENT) else []
        assert read(raw(case)) == add_repairs(known, last=seen)


@given(st.lists(st.sampled_from(["Lehrer: a\n", "Schüler: b\n", "x Lehrer: c\n", "Student: d\n", "老师：e\n", "\n", '"', "[",
                                 "Wahrscheinlichkeit: 0,2\n", "[Ende des Gesprächs]", "{", "**", "Teacher: f\n"]), max_size=12)
       .map("".join))  # fmt: skip
@settings(deadline=None)
def test_any_heap_of_it_is_read(text: str) -> None:
    check(read(text))


class TestOwnWords:
    @pytest.mark.parametrize("manner", MANNERS)
    def test_a_jobs_own_words_name_its_sides(self, manner: str) -> None:
        text = lesson(manner, "Ms. Rivera", "Kim")
        assert said(read(text)) in (None, EXPECTED)
        assert said(read(text, words=OWN)) == EXPECTED

    @pytest.mark.parametrize(
        ("teacher", "student"),
        [("Coach", "Student"), ("Ms. Rivera", "Learner"), ("Coach", "Schüler"), ("Lehrer", "Kim")],
    )
    def test_they_go_with_the_readers_and_with_any_language(self, teacher: str, student: str) -> None:
        assert said(read(lesson("lines", teacher, student), words=OWN)) == EXPECTED

    def test_they_come_before_the_readers_own(self) -> None:
        text = "Ms. Rivera: The Teacher: a film.\nKim: Oh.\nTeacher: is who?\nStudent: me.\n"
        assert said(read(text, words=OWN)) is not None
        assert said(read(text, words=OWN))[:2] == [("Teacher", "The Teacher: a film."), ("Student", "Oh.")]  # type: ignore[index]

    def test_what_names_nobody_by_them_reads_as_without(self) -> None:
        for text in (
            lesson("lines", "Teacher", "Student"),
            lesson("lines", "Lehrer", "Schüler"),
            "Kim: a\nKim: b\n",
        ):
            assert read(text, words=OWN) == read(text)

    def test_in_self_play_they_are_labels_of_a_turn(self) -> None:
        label = read_turn("Ms. Rivera: Good morning.", "Teacher", words=OWN)
        assert isinstance(label, TurnReply)
        assert label.text == "Good morning."
        other = read_turn("Good morning.\nKim: Good morning, Ms. Rivera!", "Teacher", words=OWN)
        assert isinstance(other, Rejection)
        assert other.reason == "speaks_for_other"
        assert isinstance(read_turn("Good morning.\nKim: Good morning, Ms. Rivera!", "Teacher"), TurnReply)


def test_an_end_marker_in_another_language_ends_a_turn_of_self_play() -> None:
    for marker in (
        "[Ende des Gesprächs]",
        "[fin de la conversación]",
        "【对话结束】",
        "[نهاية المحادثة]",
        "(fine della conversazione)",
    ):
        turn = read_turn(f"Bis bald! {marker}", "Student")
        assert isinstance(turn, TurnReply)
        assert (turn.text, turn.ended) == ("Bis bald!", True)
    turn = read_turn("[Ende des Gesprächs] steht auf der Tafel.", "Student")
    assert isinstance(turn, TurnReply)
    assert not turn.ended


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Wahrscheinlichkeit: 20 %", 0.2), ("0,2", 0.2), ("概率：0.2", 0.2), ("etwa 20 Prozent", 0.2), ("20 pour cent", 0.2),
        ("20 por ciento", 0.2), ("約30%", 0.3), ("확률: 30퍼센트", 0.3), ("٠٫٢", 0.2), ("٢٠٪", 0.2), ("20 प्रतिशत", 0.2),
        ("20 процентов", 0.2), ("zwischen 0,2 und 0,4", None),
    ],
)  # fmt: skip
def test_a_number_in_another_language_is_a_probability(text: str, value: float | None) -> None:
    assert read_probability(text) == value


@pytest.mark.parametrize("text", [raw(case) for case in CASES if re.match(r"languages/refuses_", case)])
def test_a_refusal_is_one_wherever_it_begins(text: str) -> None:
    assert is_refusal(f"Hm. {text}")


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("Als KI kann ich das nicht.", True), ("In quanto IA, non posso farlo.", True),
        ("Como modelo de linguagem, não posso.", True), ("AIとして、それはできません。", True),
        ("Ich kann diese Anfrage nicht erfüllen.", True), ("Ich kann das nicht, ich verstehe es nicht.", False),
        ("No puedo con esto, profesora.", False), ("我不能理解这个。", False), ("できません、先生。", False),
        ("Je ne peux pas répondre à votre demande.", True), ("我无法满足您的请求。", True),
    ],
)  # fmt: skip
def test_a_student_who_cannot_is_no_model_that_declines(text: str, refused: bool) -> None:
    assert isinstance(read_turn(text, "Student"), Rejection) is refused


def test_words_of_a_vocabulary_are_no_conversation_within_a_turn() -> None:
    text = "Two words for today.\nLehrer: teacher\nSchüler: pupil"
    assert read_turn(text, "Teacher") == TurnReply(text)


@pytest.mark.parametrize(
    ("teacher", "student", "foot", "value"),
    [
        ("Leraar", "Leerling", "Kans: 80%", 0.8), ("Leraar", "Leerling", "Kans dat hij het niet begrijpt: 0,8", None),
        ("Lärare", "Elev", "Chans: 0,8", 0.8), ("Учитель", "Ученик", "Шанс: 0.8", 0.8),
    ],
)  # fmt: skip
@pytest.mark.parametrize("below", ["", "\n\nDat was het."])
def test_the_everyday_word_for_a_probability_is_read(
    teacher: str, student: str, foot: str, value: float | None, below: str
) -> None:
    text = f"{teacher}: Ja?\n{student}: So, so.\n{teacher}: Ja.\n{student}: Kansas\n3 is it."
    result = read(f"{text}\n\n{foot}{below}")
    assert isinstance(result, Conversation)
    assert result.probability == value
    assert result.turns[-1].text == "Kansas\n3 is it."
