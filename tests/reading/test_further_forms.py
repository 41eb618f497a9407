"""Further forms that the reader once misread: tuples, tokens before the first turn, lines after the last."""

from __future__ import annotations

import json

import pytest

from edgen.core.values import Conversation
from edgen.reading import read
from edgen.reading.conversation import read_unknown
from edgen.reading.roles import TEACHER_STUDENT

SAID = [
    "Good morning! What do you know (so far) about light?",
    "It's quick, I think: it needs no time.",
    'Who told you "no time"?',
    "Nobody. Is that wrong?",
    "Let us measure it with a mirror then.",
    "That sounds like work, doesn't it?",
]
ROLES = ["Teacher", "Student"] * 3
TURNS = [*zip(ROLES, SAID, strict=True)]


def join(form: str, separator: str = "\n") -> str:
    return separator.join(form.format(r=role, l=role.lower(), t=said) for role, said in TURNS)


def assert_read(text: str, probability: float | None = 0.4) -> None:
    """Check that a first reply of a layout is read without a loss, and later ones, too."""
    for result in (read_unknown(text, TEACHER_STUDENT), read(text), read(text), read(text)):
        assert isinstance(result, Conversation), result
        assert [(turn.role, turn.text) for turn in result.turns] == TURNS
        assert result.probability == probability


@pytest.mark.parametrize(
    "text",
    [
        repr({"done": True, "turns": TURNS, "probability": 0.4}),
        f"{TURNS!r}\nProbability: 0.4",
        f"{[(*turn, 'calm') for turn in TURNS]!r}\nProbability: 0.4",
        f"{[(number, *turn, 0.5) for number, turn in enumerate(TURNS, 1)]!r}\nProbability: 0.4",
    ],
)
def test_tuples_in_a_list_are_rows(text: str) -> None:
    assert_read(text)


def test_doubled_braces_around_words_are_no_json() -> None:
    assert_read(join("{{{{{r}|{t}}}}}") + "\n{{Probability|0.4}}")


def test_a_token_of_a_chat_template_before_the_first_label_is_no_text() -> None:
    turns = join("<|start_header_id|>{l}<|end_header_id|>\n\n{t}<|eot_id|>", "")
    assert_read(f"<|begin_of_text|>{turns}\nProbability: 0.4")


def test_a_probability_in_brackets_after_a_time_ends_the_turns() -> None:
    assert_read(join("[2030-01-01T09:00:00Z] [{r}] {t}") + "\n[2030-01-01T09:10:00Z] [PROBABILITY] 0.4")


def test_a_quotation_before_the_speaker_keeps_its_last_mark() -> None:
    turns = join("| {t} | {r} |").replace("with a mirror then.", 'with a "mirror"')
    text = f"| Text | Speaker |\n|---|---|\n{turns}\n\nProbability: 0.4"
    result = read(text)
    assert isinstance(result, Conversation)
    assert result.turns[4].text == 'Let us measure it with a "mirror"'


@pytest.mark.parametrize(
    "foot",
    [
        "\n\nTHE END\n\nProbability: 0.4",
        "\n\n(The bell rings again.)\n\nProbability: 0.4",
        "\n\nNumber of turns: 12\nProbability: 0.4",
        "\n\nStudent's understanding: 40%",
        "\n\nConfidence score: 0.4",
        "\n\n| Metric | Value |\n|---|---|\n| Probability | 0.4 |",
    ],
)
@pytest.mark.parametrize("turns", [4, 6])
def test_lines_below_the_last_turn_are_no_speech(foot: str, turns: int) -> None:
    text = "\n".join(join("{r}: {t}").split("\n")[:turns]) + foot
    for result in (read_unknown(text, TEACHER_STUDENT), read(text), read(text), read(text)):
        assert isinstance(result, Conversation)
        assert [(turn.role, turn.text) for turn in result.turns] == TURNS[:turns]
        assert result.probability == 0.4


@pytest.mark.parametrize("last", ["The point is:\n\n(2, 3)", "So I get:\n\nx = 12", "Then:\n\nAnswer: 12"])
def test_a_value_below_the_words_of_the_last_turn_is_speech(last: str) -> None:
    result = read_unknown(join("{r}: {t}").replace(SAID[-1], last) + "\n\nProbability: 0.4", TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert result.turns[-1].text == last


def test_a_probability_in_brackets_of_another_language() -> None:
    turns = join("【{r}】{t}").replace("Teacher", "老师").replace("Student", "学生")
    assert_read(f"{turns}\n\n【概率】0.4")


@pytest.mark.parametrize(
    "between", ["(10 minutes later)", "**Conversation (continued)**", "*(The bell rings.)*"]
)
def test_an_aside_between_turns_of_one_line_is_no_speech(between: str) -> None:
    turns = join("{r}: {t}").replace("\nTeacher: Let us", f"\n\n{between}\n\nTeacher: Let us")
    assert_read(f"{turns}\n\nProbability: 0.4")


def test_words_in_brackets_below_a_turn_of_several_lines_are_speech() -> None:
    said = "Nobody:\n- you\n- she\n\n(I made that up.)"
    turns = join("{r}: {t}").replace(SAID[3], said)
    result = read_unknown(f"{turns}\n\nProbability: 0.4", TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert result.turns[3].text == said


@pytest.mark.parametrize(
    "head",
    [
        "Here is a talk between a teacher named Ms. Ray and a student named Bo:",
        "The teacher (Ms. Ray) talks with the student (Bo) about light.",
        "In this lesson, the teacher, Ms. Ray, helps a student, Bo.",
        "A talk between teacher Ms. Ray and her student Bo.",
        "**Ms. Ray** is the teacher and **Bo** is the student.",
        "Participants: Ms. Ray, the teacher, and Bo, a student.",
        "A chat between Ms. Ray (the teacher) and Bo (her student)",
    ],
)
def test_a_sentence_before_the_turns_says_who_is_who(head: str) -> None:
    turns = join("{r}: {t}").replace("Teacher:", "Ms. Ray:").replace("Student:", "Bo:")
    assert_read(f"{head}\n\n{turns}\n\nProbability: 0.4")


@pytest.mark.parametrize(
    ("form", "begun"),
    [
        ("**{r}:** {t}", "**Tea"),
        ("| {r} | {t} |", "| Teacher"),
        ("Turn 1 ({r}): {t}", "Turn 2 (T"),
        ("<turn><role>{r}</role><text>{t}</text></turn>", "<turn><role>Tea"),
    ],
)
def test_a_label_that_breaks_off_is_no_speech(form: str, begun: str) -> None:
    assert_read(f"{join(form)}\n{begun}", None)


@pytest.mark.parametrize(
    "text",
    [
        "```\n" + join('say("{r}", {t!r})') + "\nend(probability=0.4)\n```",
        "```xml\n<lesson>\n" + join("<{l}>{t}</{l}>") + "\n<understood>0.4</understood>\n</lesson>\n```",
        join("{{'role': '{r}', 'text': {t!r}}}") + "\n{'type': 'probability', 'value': 0.4}",
    ],
)
def test_a_probability_in_a_call_an_element_or_an_object_of_its_own(text: str) -> None:
    assert_read(text)


def test_the_other_speakers_name_before_each_text_of_a_short_reply() -> None:
    turns = "\n".join(
        f"{role}->>{ROLES[number + 1]}: {said}" for number, (role, said) in enumerate(TURNS[:5])
    )
    result = read_unknown(f"sequenceDiagram\n{turns}\nProbability: 0.4", TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert [(turn.role, turn.text) for turn in result.turns] == TURNS[:5]


def test_the_margin_of_further_lines_before_words_and_lists_belongs_to_the_layout() -> None:
    said = ["Look:\n- a\n  - b\n- c", "I see.\nFirst this.", "And\nthen?", "So\nit is", *SAID[4:]]
    turns = "\n\n".join(
        f"{number}. **{role}:** " + one.replace("\n", "\n   ")
        for number, (role, one) in enumerate(zip(ROLES, said, strict=True), 1)
    )
    result = read_unknown(f"{turns}\n\nProbability: 0.4", TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == said


@pytest.mark.parametrize("key", ["what", "phrase", "text"])
def test_the_same_key_below_every_speaker_belongs_to_the_layout(key: str) -> None:
    turns = "\n".join(f"- who: '{r}'\n  {key}: '{t.replace(chr(39), chr(39) * 2)}'" for r, t in TURNS)
    assert_read(f"conversation:\n{turns}\nprobability: 0.4")


@pytest.mark.parametrize("form", ["print({b!r})", "{l}({t!r})", "{l}.say({t!r})"])
def test_calls_with_either_quotation_mark(form: str) -> None:
    calls = "\n".join(form.format(b=f"{r}: {t}", l=r.lower(), t=t) for r, t in TURNS)
    assert_read(f"```python\n{calls}\n```\nProbability: 0.4")


@pytest.mark.parametrize(
    "text",
    [
        join("SPEAKER: {r} | {t}") + "\nPROBABILITY | 0.4",
        join("- {r}\n    - says: {t}\n    - tone: calm") + "\n\nProbability: 0.4",
        join("{r}:\n    {t}") + "\n\n[End of transcript]\n\nProbability: 0.4",
        join("{r}: {t}").replace("\nTeacher: Let", "\n\n#### Closing\n\nTeacher: Let")
        + "\n\nProbability: 0.4",
        join("{r}: {t}") + "\n\nDid the student understand? Probably. Probability: 0.4",
        "I estimate the probability of understanding at 40%. Here it is:\n\n" + join("{r}: {t}"),
        "CAST\nMs. Ray – Teacher\nBo – Student\n\n"
        + join("{r}: {t}").replace("Teacher:", "MS. RAY:").replace("Student:", "BO:")
        + "\n\nProbability: 0.4",
        json.dumps({"turns": [f"{role} - {said}" for role, said in TURNS], "probability": 0.4}),
        json.dumps(
            {
                "conversa": [
                    {"papel": "Professor" if role == "Teacher" else "Aluno", "texto": said}
                    for role, said in TURNS
                ],
                "probabilidade": 0.4,
            }
        ),
    ],
)
def test_further_layouts_are_read(text: str) -> None:
    assert_read(text)


def test_letters_of_json_in_code_blocks_of_one_turn_each_are_decoded() -> None:
    blocks = "\n".join(
        f"```json\n{json.dumps({role: said.replace('light', 'Licht – ü')})}\n```" for role, said in TURNS
    )
    result = read_unknown(f"{blocks}\nProbability: 0.4", TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert result.turns[0].text == SAID[0].replace("light", "Licht – ü")


def test_a_legend_ends_before_a_turn_that_speaks_to_the_other_side() -> None:
    said = [SAID[0], "Teacher, could you show me?", *SAID[2:]]
    names = {"Teacher": "Ann", "Student": "Bo"}
    turns = "\n".join(f"{names[role]}: {one}" for role, one in zip(ROLES, said, strict=True))
    result = read_unknown(f"Ann is the teacher and Bo is the student.\n\n{turns}", TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == said


def test_an_end_marker_that_breaks_off_is_no_speech() -> None:
    assert_read("```\n" + join("{r}: {t}") + "\n[end of conv", None)


def test_the_last_block_of_yaml_loses_its_margin_as_others_do() -> None:
    said = [*SAID[:4], "Let us see:\n  - a mirror\n\nAnd then?", "Well,\nit is work."]
    turns = "\n".join(
        f"  - speaker: {role}\n    text: |\n      " + one.replace("\n", "\n      ")
        for role, one in zip(ROLES, said, strict=True)
    )
    result = read_unknown(f"conversation:\n{turns}\nprobability: 0.4", TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == said


@pytest.mark.parametrize(
    "foot",
    [
        "Estimated likelihood that the student got it: 40%",
        "**Result:** The student understood with a probability of 40%.",
    ],
)
def test_further_words_about_the_probability(foot: str) -> None:
    assert_read(join("{r}: {t}") + f"\n\n{foot}")
