"""Numbers that count turns, names of probabilities in code, blocks of YAML, and letters with numbers."""

from __future__ import annotations

import pytest

from edgen.core.values import Conversation
from edgen.reading.conversation import read

SAID = [
    "Hello! What do you know about plants?",
    "I think that they eat sunlight, right?",
    "Close: they make sugar from light, water and air.",
    "So the food is sugar, not the light?",
    "Exactly. Oxygen is left over.",
    "Why are leaves green, then?",
]
ROLES = ["Teacher", "Student"] * 3


def make_reply(form: str, tail: str = "\n\nProbability: 0.8") -> str:
    """Return a reply with its turns in a form."""
    turns = zip(ROLES, SAID, strict=True)
    forms = [
        form.format(role=role, low=role.lower(), letter=role[0], n=n, pair=(n + 1) // 2, said=said)
        for n, (role, said) in enumerate(turns, 1)
    ]
    return "\n".join(forms) + tail


def read_reply(text: str) -> Conversation:
    result = read(text)
    assert isinstance(result, Conversation), result
    return result


@pytest.mark.parametrize(
    "form",
    [
        "[{role}] ({n}) {said}",
        "{role}: [{n}] {said}",
        "{role}: #{n}: {said}",
        "{role}: ({pair}) {said}",
        "{role}: {said} [{n}]",
        "{role}: {said} ({pair})",
        "{letter}{pair}. {said}",
        "{letter}{pair}) {said}",
        "- {low}: >-\n    {said}",
        "- {low}: |-\n    {said}",
    ],
)
def test_marks_that_count_turns_or_open_blocks_belong_to_the_layout(form: str) -> None:
    result = read_reply(make_reply(form))
    assert [turn.text for turn in result.turns] == SAID
    assert [turn.role for turn in result.turns] == ROLES
    assert result.probability == 0.8


@pytest.mark.parametrize("form", ["{letter}{pair}. {said}", "{letter}: {said}", "{n}. {letter}: {said}"])
@pytest.mark.parametrize(
    "legend", ["T = Teacher, S = Student", "(T: teacher, S: student)", "T: Teacher; S: Student"]
)
def test_a_legend_is_no_turn(legend: str, form: str) -> None:
    result = read_reply(f"{legend}\n\n" + make_reply(form))
    assert [turn.text for turn in result.turns] == SAID
    assert [turn.role for turn in result.turns] == ROLES


@pytest.mark.parametrize("numbers", [(3, 1, 2, 5, 4, 6), (2, 2, 2, 2, 2, 2), (1, 2, 3, 4, 5, 7)])
def test_numbers_that_do_not_count_turns_are_speech(numbers: tuple[int, ...]) -> None:
    said = [f"({number}) {text}" for number, text in zip(numbers, SAID, strict=True)]
    lines = [f"{role}: {text}" for role, text in zip(ROLES, said, strict=True)]
    assert [turn.text for turn in read_reply("\n".join(lines)).turns] == said


def test_a_number_in_some_turns_is_speech() -> None:
    lines = [f"{role}: {text}" for role, text in zip(ROLES, SAID, strict=True)]
    result = read_reply("\n".join([*lines[:-1], f"Student: (6) {SAID[-1]}"]))
    assert result.turns[-1].text == f"(6) {SAID[-1]}"


@pytest.mark.parametrize(
    "line",
    [
        "p_understood = 0.8",
        "pUnderstood: 0.8",
        "probabilityUnderstood = 0.8",
        "const probabilityUnderstood = 0.8;",
        "likelihoodOfUnderstanding = 80%",
        '"probabilityUnderstood": 0.8',
        "prob_understood = 0.8",
        "understood: 0.8",
        '<understood p="0.8"/>',
        "<understanding>0.8</understanding>",
        "probability,,0.8",
        "Prob(understood) = 0.8",
        "Pr(understood) = 80%",
        "set probability to 0.8",
        "p: 0.8",
        "[10:20] <Probability> 0.8",
        "17|Probability|0.8",
    ],
)
def test_a_probability_may_have_a_name_of_code(line: str) -> None:
    result = read_reply(make_reply("{role}: {said}", f"\n\n{line}"))
    assert [turn.text for turn in result.turns] == SAID
    assert result.probability == 0.8


@pytest.mark.parametrize(
    "line", ["The probability of rain rose from 0.2 to 0.8.", "I misunderstood 80% of it.", "Take 0.8 of it."]
)
def test_a_number_in_a_last_sentence_is_speech(line: str) -> None:
    result = read_reply(make_reply("{role}: {said}", f"\n{line}"))
    assert result.turns[-1].text == f"{SAID[-1]}\n{line}"
    assert result.probability is None
