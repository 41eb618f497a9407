"""Forms that the reader once misread: labels after texts, notes between turns, numbers in words."""

from __future__ import annotations

import json

import pytest

from bench.replies import LAYOUTS
from edgen.core.values import Conversation, Rejection, RejectionReason
from edgen.reading import Repair, read
from edgen.reading.conversation import read_unknown
from edgen.reading.learned.layouts import Layouts
from edgen.reading.other_speaker import holds_other_speaker
from edgen.reading.probability import parse_probability
from edgen.reading.roles import TEACHER_STUDENT
from edgen.reading.text.characters import TOKEN, split_letters

SAID = [
    "Good morning! What do you know about light?",
    "It is quick, I think.",
    "How quick would you say?",
    "Nobody can tell me, they say.",
    "Let us measure it with a mirror then.",
    "That sounds like work to me.",
]
ROLES = ["Teacher", "Student"] * 3


def reply(form: str, roles: list[str] = ROLES, foot: str = "\nProbability: 0.4") -> str:
    turns = zip(roles, SAID, strict=True)
    return "\n".join(form.format(r=role, t=said) for role, said in turns) + foot


def spoken(text: str) -> list[tuple[str, str]]:
    result = read_unknown(text, TEACHER_STUDENT)
    assert isinstance(result, Conversation), result
    return [(turn.role, turn.text) for turn in result.turns]


@pytest.mark.parametrize("roles", [ROLES, ["Teacher", "Teacher", "Student", "Student", "Student", "Teacher"]])
@pytest.mark.parametrize(
    "form",
    [
        "<figure><blockquote>{t}</blockquote><figcaption>{r}</figcaption></figure>",
        "<blockquote>{t}<cite>{r}</cite></blockquote>",
        "<div>\n<p>{t}</p>\n<span>{r}</span>\n</div>",
        "<tr><td>{t}</td><td>{r}</td></tr>",
        # In front of the texts, as before.
        "<div><h4>{r}</h4><p>{t}</p></div>",
        "<p><b>{r}</b></p>\n<p>{t}</p>",
        "<dt>{r}</dt><dd>{t}</dd>",
    ],
)
def test_a_name_in_markup_belongs_to_the_text_in_its_element(form: str, roles: list[str]) -> None:
    assert spoken(reply(form, roles)) == [*zip(roles, SAID, strict=True)]


def test_names_behind_texts_without_an_element_around_both_are_refused() -> None:
    result = read(reply("<p>{t}</p><i>{r}</i>"))
    assert isinstance(result, Rejection)
    assert result.reason is RejectionReason.NO_TURNS


def test_a_learned_layout_with_labels_behind_texts_gives_no_text_to_the_next_speaker() -> None:
    form = "<figure><blockquote>{t}</blockquote><figcaption>{r}</figcaption></figure>"
    layouts = Layouts(TEACHER_STUDENT)
    for _ in range(4):
        result = read_unknown(reply(form), TEACHER_STUDENT)
        assert isinstance(result, Conversation)
        layouts.learn(reply(form), result)
    other = reply(form, ["Teacher", "Student", "Student", "Teacher", "Student", "Teacher"])
    assert layouts.read(reply(form)) == read_unknown(reply(form), TEACHER_STUDENT)
    assert layouts.read(other) in (None, read_unknown(other, TEACHER_STUDENT))


def test_a_learned_layout_keeps_the_heading_of_a_part_out_of_a_turn() -> None:
    def text(headed: bool) -> str:
        lines = [f"{role}: {said}" for role, said in zip(ROLES, SAID, strict=True)]
        lines[3] += "\n\nScene 2: Back at the desk" if headed else "\n\nI am sure."
        return "\n\n".join(lines)

    layouts = Layouts(TEACHER_STUDENT)
    for _ in range(3):
        result = read_unknown(text(False), TEACHER_STUDENT)
        assert isinstance(result, Conversation)
        layouts.learn(text(False), result)
    assert layouts.read(text(True)) in (None, read_unknown(text(True), TEACHER_STUDENT))


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("seventy-two percent", 0.72),
        ("Eighty per cent", 0.8),
        ("about nineteen percent.", 0.19),
        ("one hundred percent", None),
        ("seventy or eighty percent", None),
        ("less than forty percent", None),
        ("forty", None),
        ("twenty twelve percent", None),
        ("five percent", 0.05),
    ],
)
def test_a_percentage_in_words_is_a_number(given: str, value: float | None) -> None:
    assert parse_probability(given) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("foot", ["", "\nProbability: 0.4"])
@pytest.mark.parametrize(
    "note", ["[Probability: 0.4]", "(Probability: 0.4)", "*(Probability of success: 40%)*"]
)
def test_a_line_in_brackets_between_turns_gives_the_probability(foot: str, note: str) -> None:
    lines = [f"{role}: {said}" for role, said in zip(ROLES, SAID, strict=True)]
    noted = "\n".join([*lines[:3], note, *lines[3:]]) + foot
    result = read(noted)
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == SAID
    assert result.probability == 0.4
    kept = read(noted.replace(f"\n{note}", f" {note}"))
    assert isinstance(kept, Conversation)
    assert kept.turns[2].text.endswith(note)


@pytest.mark.parametrize(
    "foot",
    [
        "\nEnd of log. Probability: 0.4",
        "\n\nProb.: 0.4",
        "\n\nProbability that the student understood: forty percent.",
        "\n\n**Probability**\n0.4",
    ],
)
def test_the_probability_is_found_below_the_last_turn(foot: str) -> None:
    result = read(reply("{r}: {t}", foot=foot))
    assert isinstance(result, Conversation)
    assert result.probability == pytest.approx(0.4)
    assert result.turns[-1].text == SAID[-1]


def test_line_breaks_of_html_are_lines() -> None:
    text = reply("**{r}**<br>{t}", foot="\n\n**Probability**<br>0.4")
    assert spoken(text) == [*zip(ROLES, SAID, strict=True)]
    kept = read("Teacher: A break is <br> in HTML.\nStudent: I see.\nTeacher: Good.")
    assert isinstance(kept, Conversation)
    assert "<br>" in kept.turns[0].text


def test_marks_of_read_messages_are_no_words() -> None:
    assert spoken(reply("{r} (09:12): {t} ✓✓")) == [*zip(ROLES, SAID, strict=True)]
    some = reply("{r}: {t}").replace(SAID[1], f"{SAID[1]} ✓")
    assert spoken(some)[1][1] == f"{SAID[1]} ✓"


def test_a_legend_in_a_row_names_the_speakers() -> None:
    head = "Participants: TE (teacher), ST (student)\n\n"
    named = [{"Teacher": "TE", "Student": "ST"}[role] for role in ROLES]
    assert spoken(head + reply("{r}: {t}", named)) == [*zip(ROLES, SAID, strict=True)]


def test_another_speaker_is_seen_after_a_number_before_a_colon() -> None:
    plain = read("Teacher: Look at this one: it turns.\nStudent: Why does it?\nTeacher: Guess.")
    assert isinstance(plain, Conversation)
    assert Repair.OTHER_SPEAKER not in plain.repairs
    text = "Teacher: It turns. Student one: But why does it do so?\nStudent: Why?\nTeacher: Guess."
    result = read_unknown(text, TEACHER_STUDENT)
    assert isinstance(result, Conversation)
    assert holds_other_speaker(result.turns, TEACHER_STUDENT)


@pytest.mark.parametrize(
    "text", ["Öğretmen: İyi!", "Ms. R’s — “l’élève”", "老师：你好", "शिक्षक: हाँ", "x\ud800y", "a1b_c", ""]
)
def test_letters_are_split_as_the_expression_splits_them(text: str) -> None:
    assert split_letters(text) == TOKEN.findall(text.lower())


def test_letters_of_replies_are_split_as_the_expression_splits_them() -> None:
    for layout in LAYOUTS.values():
        assert split_letters(layout(3)) == TOKEN.findall(layout(3).lower())


@pytest.mark.parametrize(
    ("layout", "foot"),
    [
        ("- speaker: {r}\n  utterance: >-\n    {t}", "\nunderstanding_probability: 40%\n..."),
        ("* {r}\n    * {t}", "\n* Probability\n    * 0.4"),
        ("{r}\n(quietly)\n{t}\n", "\nFADE OUT.\n\nProbability: 0.4"),
        ("<{r}_ann> {t}", "\n* probability is 0.4"),
        ("<start_of_turn>{r}\n{t}<end_of_turn>", "\nProbability: 0.4"),
        ("{r}: {t}", "\n\nP = 0.4"),
        ("{r}: {t}", "\n\n$$\\boxed{{0.4}}$$"),
    ],
)
def test_forms_of_small_models(layout: str, foot: str) -> None:
    result = read(reply(layout, foot=foot.replace("{{", "{").replace("}}", "}")))
    assert isinstance(result, Conversation)
    assert [turn.text for turn in result.turns] == SAID
    assert result.probability == pytest.approx(0.4)


def test_a_number_alone_in_front_counts_unless_a_line_below_speaks_of_the_contrary() -> None:
    lines = reply("{r}: {t}", foot="\n\nProbability that the student did not understand: high")
    result = read(f"20%\n\n{lines}")
    assert isinstance(result, Conversation)
    assert result.probability is None


@pytest.mark.parametrize(
    ("form", "foot"),
    [
        ("> [!quote] {r}\n> {t}\n", "\n> [!info] Probability\n> 0.4"),
        ("> [!quote] {r}\n> {t}\n", "\n> [!note]- Probability: 40%"),
        ("<turn><speaker>{r}</speaker><mood>calm</mood><text>{t}</text></turn>", "<probability>0.4</probability>"),
        ("<turn><speaker>{r}</speaker><text>{t}</text><mood>calm</mood></turn>", "<probability>0.4</probability>"),
        ("<turn><speaker>{r}</speaker><text>{t}</text></turn>", "<understanding>0.4</understanding>"),
        ("<turn><mood>calm</mood><speaker>{r}</speaker><text>{t}</text></turn>", "<probability>0.4</probability>"),
        ("From: {r}\nTo: you\nSubject: {t[0]} {t[3]}{t[4]}{t[5]}\n\n{t}\n\n---\n", "\nProbability: 0.4"),
        ("{{ role: '{r}', text: `{t}` }},", "\n];\nexport const probability = 0.4;"),
    ],
)  # fmt: skip
def test_notes_and_marks_around_texts_are_no_words_of_turns(form: str, foot: str) -> None:
    head = "export const turns = [\n" if "`" in form else ""
    result = read(head + reply(form, foot="\n" + foot))
    assert isinstance(result, Conversation)
    assert [(turn.role, turn.text) for turn in result.turns] == [*zip(ROLES, SAID, strict=True)]
    assert result.probability == pytest.approx(0.4)


def test_words_after_a_label_are_no_head_of_a_message() -> None:
    said = [(role, f"Note: {text}\n\nOf {text[5:]}") for role, text in zip(ROLES, SAID, strict=True)]
    assert spoken("\n\n".join(map(": ".join, said))) == said


@pytest.mark.parametrize(("blanks", "kept"), [("    ", ""), ("  - ", "  - ")])
def test_a_margin_is_no_part_of_a_turn_unless_a_list_needs_it(blanks: str, kept: str) -> None:
    turns = [*zip(ROLES, SAID, reversed(SAID), strict=True)]
    text = "\n".join(f"{role}: {said}\n{blanks}{more}" for role, said, more in turns)
    assert spoken(text) == [(role, f"{said}\n{kept}{more}") for role, said, more in turns]


def test_parallel_lists_and_a_number_of_what_was_understood_are_read_in_json() -> None:
    value = {"topic": "light", "teacher_lines": SAID[::2], "student_lines": SAID[1::2], "understanding": 0.4}
    result = read(json.dumps(value))
    assert isinstance(result, Conversation)
    assert [(turn.role, turn.text) for turn in result.turns] == [*zip(ROLES, SAID, strict=True)]
    assert result.probability == pytest.approx(0.4)


PERSONS = ["Mr. Smith (Teacher)", "Anna (Student)"] * 3


@pytest.mark.parametrize(
    "form",
    [
        "== {r} ==\n{t}",
        "~ {r} ~ {t}",
        "**{r}**\n\n{t}",
        "[b]{r}[/b]: {t}",
        "<b>{r}</b>: {t}",
        "\\textbf{{{r}}}: {t}\\\\",
        '("{r}", "{t}"),',
        "◦ **{r}** – {t}",
        '  - speaker: {r}\n    text: "{t}"',
        "{r} :: {t}",
        "{r} ➡️ {t}",
        "{r}; {t}",
    ],
)
def test_a_person_with_a_role_in_brackets_stands_before_any_separator(form: str) -> None:
    foot = "\nProbability: 0.4\nFeedback for the teacher: ask more."
    assert spoken(reply(form, PERSONS, foot)) == [*zip(ROLES, SAID, strict=True)]


@pytest.mark.parametrize(
    ("form", "head", "foot"),
    [
        ("[10:30] {r}: {t}\n", "Conversation:\n[\n", "]\nProbability: 0.4"),
        ("<|{r}|>{t}<|end|>", "", "Probability: 0.4"),
        ("{r}: {t}\\", "", "Probability: 0.4"),
        ("{r}: {t}", "", "Result: the student understood with a probability of 0.4."),
        ("**{r}:** {t}", "", "Probability: 0.4\n\n---\n\n### Notes\n\n- **Teacher:** asked.\n- **Student:** drew."),
        ("{r}: {t}\n", "", "*The student leaves.*\n\nProbability: 0.4"),
        ("{r}\n{t}\n", "", "END OF SCENE\n\nProbability: 0.4"),
        ("\\textbf{{{r}}}: {t}\\\\", "", "<probability>0.4</probability>"),
        ('<turn role="{r}">{t}</turn>', "", "Probability: 0.4\n\n**Teacher's way:** talk\n**Student's way:** play"),
        ("{r}: {t}", "Coach and Anna.\n", "Probability: 0.4"),
        ("{r}: {t}", "", "Turns: 10 | Words: 340 | Probability: 0.4"),
        ("[1] [{r}] {t}", "Conversation:\n[\n", "]\nProbability: 0.4"),
        ("{r}: »{t}«", "", "Wahrscheinlichkeit: 40 %"),
    ],
)  # fmt: skip
def test_marks_heads_and_feet_are_no_words_of_turns(form: str, head: str, foot: str) -> None:
    result = read(head + reply(form, foot="\n\n" + foot))
    assert isinstance(result, Conversation)
    assert [(turn.role, turn.text) for turn in result.turns] == [*zip(ROLES, SAID, strict=True)]
    assert result.probability == pytest.approx(0.4)


@pytest.mark.parametrize(
    "heads",
    ["Characters:\n- Mr. Smith – the teacher\n- Anna – the student", "Mr. Smith (the teacher) meets Anna (the student)."],
)  # fmt: skip
def test_a_cast_names_the_persons(heads: str) -> None:
    assert spoken(f"{heads}\n\n" + reply("{r}: {t}", ["Mr. Smith", "Anna"] * 3)) == [
        *zip(ROLES, SAID, strict=True)
    ]


@pytest.mark.parametrize(
    "roles", [["Coach", "Trainee"] * 3, ["Lecturer", "Student"] * 3, ["Mentor", "Mentee"] * 3]
)
def test_further_words_for_the_roles(roles: list[str]) -> None:
    assert spoken(reply("{r}: {t}", roles)) == [*zip(ROLES, SAID, strict=True)]


def test_bold_headings_between_turns_are_no_words_of_turns() -> None:
    lines = [f"{role}: {said}" for role, said in zip(ROLES, SAID, strict=True)]
    lines[2:2], lines[5:5] = ["**Exploration**"], ["**Closing**"]
    assert spoken("\n\n".join(lines)) == [*zip(ROLES, SAID, strict=True)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"Two:\n- one\n- two", "Two:\n- one\n- two"),
        (r"First.\n\nSecond.", "First.\n\nSecond."),
        (r"So it is.\nNow you.", "So it is.\nNow you."),
        (r"$\nabla f$ and print(1)\nprint(2)", r"$\nabla f$ and print(1)\nprint(2)"),
    ],
)
@pytest.mark.parametrize(
    "form", ['{r}: "{t}",', "'{r}': \"{t}\",", '- {r}: "{t}"', '("{r}", "{t}"),', "{r}: '{t}',"]
)
def test_line_breaks_that_a_quoted_turn_writes_as_escapes(form: str, written: str, meant: str) -> None:
    said = [*SAID[:2], written, *SAID[3:]]
    text = "\n".join(form.format(r=role, t=one) for role, one in zip(ROLES, said, strict=True))
    assert [one for _, one in spoken(text)] == [*SAID[:2], meant, *SAID[3:]]


def test_apostrophes_that_a_turn_in_single_quotation_marks_escapes() -> None:
    said = [one.replace("you", "you\\'d") for one in SAID]
    text = "\n".join(f"{role}: '{one}'," for role, one in zip(ROLES, said, strict=True))
    assert [one for _, one in spoken(text)] == [one.replace("\\", "") for one in said]


def test_cells_with_a_colon_among_quoted_cells_start_turns() -> None:
    said = [SAID[0], f'"{SAID[1]}"', "Remember: it is fast.", *SAID[3:]]
    rows = [f"{number},{role},{one}" for number, (role, one) in enumerate(zip(ROLES, said, strict=True), 1)]
    assert [one for _, one in spoken("turn,speaker,text\n" + "\n".join(rows))] == [
        one.strip('"') for one in said
    ]


TURNS = [{"role": role, "text": said} for role, said in zip(ROLES, SAID, strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"conversation": TURNS, "probability": 0.4}).replace("], ", ", "),
        json.dumps({"name": "write", "arguments": json.dumps({"conversation": TURNS, "probability": 0.4})}),
        json.dumps({"conversation": TURNS, "probability": 0.4}, indent=1).replace(
            "{\n", "{ /* a lesson */\n", 1
        ),
    ],
)
def test_json_without_a_bracket_in_a_string_and_with_comments(text: str) -> None:
    result = read(text)
    assert isinstance(result, Conversation)
    assert [(turn.role, turn.text) for turn in result.turns] == [*zip(ROLES, SAID, strict=True)]
    assert result.probability == pytest.approx(0.4)


def test_json_with_empty_turns_only_is_refused() -> None:
    result = read(json.dumps({"conversation": [{**turn, "text": ""} for turn in TURNS], "probability": 0.4}))
    assert isinstance(result, Rejection)
    assert result.reason is RejectionReason.NO_TURNS


def test_a_list_with_its_first_turn_on_the_line_of_its_heading() -> None:
    turns = ", ".join(f'{role}: "{said}"' for role, said in zip(ROLES, SAID, strict=True))
    assert spoken(f'Conversation: [{turns}] Probability: "0.4"') == [*zip(ROLES, SAID, strict=True)]
