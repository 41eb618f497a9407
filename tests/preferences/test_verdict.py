"""Answer forms of a judge, and properties of the reading of any reply."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.reading.answers.verdict import read_verdict
from tests.cases import each
from tests.dose import dose
from tests.timing import takes_under

_EXCHANGED = re.compile(r"[12１２]|(?i:first|second)|(?i:(?<=interaction )|^)(?i:one|two)(?=\.?$| is)")
_PAIRS = dict(zip(["1", "１", "first", "one"], ["2", "２", "second", "two"], strict=True))
_OPPOSITES = {**_PAIRS, **{two: one for one, two in _PAIRS.items()}}
_REFERRED = re.compile(r"\b(?i:former|latter)\b")


def exchanged(text: str) -> str:
    """Return the same reply about the two in the other order.

    `the latter` refers to the order in which a text names the two, so it stays where a text does.
    """
    turned = _EXCHANGED.sub(lambda match: _OPPOSITES[match.group().lower()], text)
    if re.search(r"\d", text):
        return turned
    return _REFERRED.sub(lambda match: "latter" if match.group().lower() == "former" else "former", turned)


ONE = [
    "1\n", "Interaction 1", "My answer: **1**", "回答：1", "Ответ: 1", "#1", "Interaction #1", "Interaction One",
    "Interaction 1 wins", "<result>Interaction 1</result>", "Interaction 2 fails; Interaction 1 succeeds.\n1",
    "The answer is:\n\n1", "1", " 1 ", "1.", "**1**", "`1`", '"1"', "'1'", "(1)", "[1]", "[[1]]", "1!", "１", "1️⃣", "One",
    "First.", "interaction 1.", "**Interaction 1**", "Interaction (1)", "Interaction: 1", "Interaction one",
    "The first interaction.", "Response 1", "Option 1", "Answer: 1", "Answer: **1**", "**Answer:** 1",
    "Final answer: Interaction 1", "Output: 1", "Verdict: Interaction 1", "Choice: 1", "Winner: 1", "Better interaction: 1",
    '{"answer": 1}', '{"answer": "1"}', '```json\n{"choice": 1, "confidence": 2}\n```', '{"answer": "Interaction 1"}',
    '{"reason": "The teacher asks more.", "winner": 1}', "\\boxed{1}", "\\boxed{\\text{1}}", "<answer>1</answer>",
    "<reason>Clear.</reason><answer>1</answer>", "so 2 it is... no</think>1", "<think>1 or 2?</think>1", "It's 1.",
    "Therefore, 1.", "Interaction 1 wins.", "Interaction 1 would be the better choice.",
    "Interaction 1:\n- clear\n\nInteraction 2:\n- dull\n\nAnswer: 1", "Response 1 will lead to a better interaction.",
    "1, not 2.", "1\n1", "1\n\nAnswer: 1", "Sure! Interaction 1.", "> 1", "- 1", "### Answer: 1",
    "Response 1 would likely lead to a better interaction.", "Overall: 1", "Respuesta: 1", "### Final Answer\n1",
    "1\n\nReason: In Interaction 2 the teacher interrupts.",
]  # fmt: skip
TWO = [
    "2", "Output: 2", "**Output: 2**", '{"answer": 2}', "Final answer: 2", "\\boxed{2}", "答案是2", "Antwort: 2", "Output 2.",
    "Option 2 ✅", "(2)", "[2]", "2️⃣", "Second.", "The latter.", "Rating: Interaction 1: 6/10, Interaction 2: 8/10.\nBetter: 2",
    "Interaction 1: 7\nInteraction 2: 9\n\nAnswer: Interaction 2", "<answer>2</answer>", "Hmm... 2!", "Choice: 2\nConfidence: 1",
    "Confidence: 1\nChoice: 2", '{"winner":"Interaction 2","scores":{"1":1,"2":2}}', "```\n2\n```", "**Answer**\n\n2",
    "Answer\n2", "2 - the student asks more.", "2: The student asks more.", "Interaction 2 wins, by a small margin.",
    '{"reason": "The teacher asks more", "answer": 2}', "2.", "**2**", "\n\n2\n", '"2"', "Two.", "second", "Interaction 2",
    'Answer: "2"', '{"better_interaction": 2}', "$\\boxed{2}$", "[[2]]", "<answer>\n2\n</answer>",
    "Reasoning first.\nThen the number.\n\n2", "Interaction 2 has the edge.", "Not Interaction 1. Answer: 2",
    "2 (the second one)", "My choice: Response 2.", "2</s>", "Let me think. 2",
    "Based on the criteria, the better interaction is:\n\n2", "Overall winner: Interaction 2",
    "Teacher: Let us count.\nStudent: 1\n\nOutput: 2", "Output: 2\nTeacher: Let us count.\nStudent: 1",
    '{"winner": "2", "confidence": 0.8}', "{'answer': 2}", "<verdict>2</verdict>", "[THINK]1?[/THINK]2", "Result: Interaction 2",
    "Answer (1 or 2): 2", "Réponse : 2", "答案：2", "...\n2", "→ 2", "=> 2", "✅ 2", "**Interaction 2** 🎉", "\\(2\\)", "$2$",
    "(Interaction 2)", "'Interaction 2'", "Interaction No. 2", "Interaction nr. 2",
    "Looking at both: the second asks more.\n\nFinal answer: **2**", "Analysis:\n- a\n- b\n\n**Final Answer:** Interaction 2\n",
    "## Conclusion\n\n**Interaction 2**", "I'll go with 2.", "My verdict: 2",
]  # fmt: skip
NONE = [
    "Both interactions are equally good.", "1 or 2", "Output 1 or 2.", "The student gets 2 right. ", "Student: 2",
    "Interaction 1 scores 2. Interaction 2 scores 1.", "Score: 1", "Score for Interaction 1: 2",
    "Interaction 1's score: 1\nInteraction 2's score: 2", 'The student in Interaction 1 said: "2"',
    "Criterion 1\nClarity\nCriterion 2\n", "The student's answer: 2", "Instead of choosing Interaction 1, consider the details.",
    "Clarity: 1\nEngagement: 2\nComfort: 2", "Clarity: 2\nEngagement: 2\nComfort: 1\n\nTotal: 1",
    "Score (1-5):\nInteraction 1: 2\nInteraction 2: 2", "Interaction 1: 1\nInteraction 2: 2", "Interaction 1 = 2 points",
    "Number of questions asked by the student in Interaction 1: 2", "2 students", "1) Both teachers are clear",
    "1. Both interactions have merit", "1. Both teachers present well", "1. The teacher presents clearly in both.", "Total: 2",
    '{"interaction_1": 8, "interaction_2": 6}', "Better: Interaction 2?", "The student gets 3 and then 2.", "", " ", "\n", ".",
    "?", "0", "3", "10", "12", "21", "11", "1.5", "2.5", "0.1", "1/2", "2/2", "8/10", "1/10", "-1", "+1", "1%", "1e2", "v2", "x1",
    "1st", "1 or 2.", "Both 1 and 2", "1 and 2", "1, 2", "1,2", "1-2", "1 2", "1\n2", "1 & 2", "Interaction 1 or Interaction 2",
    "1 vs 2", "Interaction 1 and Interaction 2 are good.", "not 1", "Not Interaction 1.", "Answer: not 2",
    "Both are equally good.", "Interaction 1 and 2 are on a par.", "Neither interaction 1 nor 2.", "They are the same.",
    "1. Both interactions are equally good.", "The teacher explains well and the student feels comfortable.", "A", "B", "Yes",
    "No", "Answer: 1\nAnswer: 2", '{"answer": 1} {"answer": 2}', '{"answer": null}', '{"1": 0.5, "2": 0.5}', '{"answer": [1, 2]}',
    '{"answer": 1.5}', "\\boxed{1} \\boxed{2}", "Interaction 1 would be better if the teacher asked more.",
    "Is Interaction 1 better?", "Interaction 1 might be better.", "Interaction 1 isn't better.",
    "1. Clarity: both good.\n2. Questions: both good.", "There are 2 reasons.", "The lesson has 1 teacher.",
    "Rating: 8/10 and 7/10", "Score for Interaction 1: 8\nScore for Interaction 2: 7", "Interaction 1: 8/10\nInteraction 2: 7/10",
    "Interaction 1:\nclear\nInteraction 2:\ndull", "## Interaction 1\nclear\n## Interaction 2\nalso", "2 out of 10", "1 of 2",
    "<think>1", "Confidence: 1", "[end of conversation]", "1...2", "2 + 2 = 4", "1 minute", "½", "Interaction 12",
    "Interaction 2 better demonstrates it.", "Comfort:\n2", "Teacher: Let us count.\nStudent: 1\nTeacher: And then?\n2",
    "The teacher asks for a number. The student says. 2", '{"answer": true}', '{"answer": 1, "verdict": 2}',
    '{"scores": {"answer": 2}}', "[1, 2]", "[THINK]1?", "Clarity: 1\nOverall: 2", "The student's final answer: 2", "Result: 2",
    "Correct answer: 2", "Not 1", "Answer: neither", "Answer: 1 or 2", "Answer: 1/2", "Overall 1 point.",
    "Output:\nTeacher: Let us go on.", "Output: Teacher: 2", "Student:\n2", "2?", "1. Clarity\n2. Warmth",
    "1.\nClarity\n2.\nWarmth", "Step 1", "Interaction 1:", "Interaction 1:\nInteraction 2:", "Turn 2",
    "Answer 1: good\nAnswer 2: bad", "Answer 1\nGood.\nAnswer 2\nBad.", "Response 1\nGood.", "Output:\n", "Output: 1\nOutput: 2",
    "Output: 12", "Output: 1.5", "Output: 1-2", "Output: -1", "Output: 2/5", "Output: 2 out of 5", "Output: 2 points",
    "Confidence: 2", "The lesson: 1 + 1 = 2", "1 + 1 = 2", "The answer: 2 apples", "Answer: 2x",
    "Interaction 1 scores higher on all but one.", "Better interaction: not 1", "Better interaction: neither", "Better: both",
    "Worse interaction: 1", "Weaker: 2", "Loser: 2", "Teacher's choice: 2", "Student's choice: Interaction 1",
    "Option chosen by the student: 2", "student: 1\n1", "**Student:** Hi\n**Teacher:** Hello\n2", "1\n2\n1",
]  # fmt: skip


@each("text", ONE)
def test_one(text: str) -> None:
    assert read_verdict(text) == 1


@each("text", TWO)
def test_two(text: str) -> None:
    assert read_verdict(text) == 2


@each("text", NONE)
def test_none(text: str) -> None:
    assert read_verdict(text) is None


@each("text", [*ONE, *TWO, *NONE])
def test_exchanging_the_sides_exchanges_the_verdict(text: str) -> None:
    before, after = read_verdict(text), read_verdict(exchanged(text))
    assert after == (None if before is None else 3 - before)


@pytest.mark.parametrize("text", ["1", "Answer: 2", "Interaction 1 is better."])
def test_what_was_cut_off_or_refused_is_no_verdict(text: str) -> None:
    assert read_verdict(text, finish_reason="length") is None
    assert read_verdict(text, finish_reason="content_filter") is None
    assert read_verdict(text, refusal="blocked") is None
    assert read_verdict(text, finish_reason="other") is not None


FORMS = ["{}", "**{}**", "{}.", "Interaction {}", "Response {} is better.", "Output: {}", "Answer: **{}**", "Final answer: {}", r"\boxed{{{}}}",
         '{{"answer": {}}}', "<answer>{}</answer>", "The answer is {}", "Antwort: {}", "I choose {}.", '"{}"', "**Lesson {}**"]  # fmt: skip
REASONING = [
    "It is a tie on clarity. Wait, actually both are equally clear.", "Neither teacher is perfect, and I cannot tell which the student prefers.",
    "Interaction 1 is better at examples.\nInteraction 2 has a better opening.", "1. Clarity: Interaction 1.\n2. Warmth: Interaction 2.",
    "Interaction 1:\n- Clear but one-sided\n\nInteraction 2:\n* Warm and full of questions", "If clarity alone counted, Interaction 1 would be better. If warmth did, the second.",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("choice", [1, 2])
def test_an_answer_at_the_end_counts_whatever_is_weighed_before_it(form: str, choice: int) -> None:
    answer = form.format(choice)
    assert read_verdict(answer) == choice
    for reasoning in REASONING:
        assert read_verdict(f"{reasoning}\n\n{answer}") == choice
        assert read_verdict(f"<think>{answer}\n{reasoning}") is None
        assert read_verdict(f"{answer}\n\n{reasoning}\n\nOutput: {3 - choice}") in (None, 3 - choice)


@pytest.mark.parametrize("form", ["{}", "Output: {}", "Final answer: {}", "**{}**"])
def test_an_answer_at_the_start_counts_unless_it_is_taken_back(form: str) -> None:
    for choice in (1, 2):
        answer, other = form.format(choice), 3 - choice
        assert read_verdict(f"{answer}\n\nThe student asks more, and the other teacher interrupts.") == choice
        for taken_back in (
            f"Wait, actually {other} is better.",
            f"On reflection, Interaction {other} is warmer.",
            f"Output: {other}",
        ):
            assert read_verdict(f"{answer}\n\n{taken_back}") is None


NOUNS = [
    "Interaction",
    "Conversation",
    "Response",
    "Dialogue",
    "Dialog",
    "Lesson",
    "Transcript",
    "Reply",
    "Answer",
    "Option",
    "Candidate",
    "Teacher",
]
DRESSES = ["{noun} {number}", "**{number}**", "{number}.", "Answer: {number}", '"{number}"', "{noun} {number} is better.", "I choose {number}.", "**{noun} {number}**",
           "I choose {noun} {number}.", "Output: {noun} {number}", "{noun} {number} is the better one.", "The better {noun} is {noun} {number}", "{noun} #{number}"]  # fmt: skip


@pytest.mark.parametrize("noun", NOUNS)
def test_whatever_a_prompt_calls_the_two(noun: str) -> None:
    for dress in DRESSES:
        for number in (1, 2):
            assert read_verdict(dress.format(noun=noun, number=number)) == number
            assert read_verdict(dress.format(noun=noun.lower(), number=number)) == number


def test_an_answer_under_the_heading_of_a_criterion_is_none() -> None:
    for choice in (1, 2):
        for answer in (
            f"Interaction {choice}",
            f"Interaction {choice} is better.",
            f"Better: {choice}",
            f"I choose {choice}.",
        ):
            assert read_verdict(f"The lessons differ.\n\n{answer}") == choice
            assert read_verdict(f"## Verdict\n\n{answer}") == choice
            for heading in ("Clarity", "## Clarity", "**Clarity:**", "Warmth and tone:", "- Clarity"):
                assert read_verdict(f"{heading}\n{answer}") is None
        assert read_verdict(f"Clarity\nBetter: {choice}\nWarmth\nBoth alike") is None


def test_a_lesson_that_goes_on_is_no_verdict_and_a_labelled_answer_beside_it_is() -> None:
    lesson = "Teacher: Is it 1 or 2?\nStudent: {}\nTeacher: The answer is {}."
    for choice in (1, 2):
        said = lesson.format(choice, choice)
        assert read_verdict(said) is None
        assert read_verdict(f"{said}\n{choice}") is None
        assert read_verdict(f"{said}\nInteraction {choice} is better.") is None
        assert read_verdict(f"{said}\n\n**Output: {3 - choice}**") == 3 - choice
        assert read_verdict(f"Output: {choice}\n\n{said}") == choice


def test_of_a_long_reply_the_start_and_the_end_are_read_in_whole_lines() -> None:
    filler = "The teacher in Interaction 1 explains, and the student listens.\n" * 4_000
    assert read_verdict(f"{filler}\nOutput: 2") == 2
    assert read_verdict(f"2\n\n{filler}") == 2
    assert read_verdict(f"{filler}\nOutput: 2\n{filler}") is None
    assert read_verdict(f"<think>\n{filler}</think>\n2") == 2
    assert read_verdict(f"<think>\n{filler}</think>\nOutput: 1\n{filler[:20_000]}") == 1
    assert read_verdict(f"<think>\n{filler}") is None
    assert read_verdict(f"{filler}\n---\n**2**\n---\n") == 2
    assert read_verdict("x" * 10_000 + " Output: 2") is None
    assert read_verdict("Interaction 1 is better" + " at this" * 2_000) is None


JUNK = st.text(alphabet="*\"'`()[]#_ \n\u2705\U0001f389\ufe0f\u200b", max_size=8)


@given(JUNK, st.sampled_from([1, 2]), JUNK, st.sampled_from(["", ".", "!", "\ufe0f\u20e3"]))
@settings(max_examples=dose(10, 100), deadline=None)
def test_a_digit_with_nothing_but_marks_around_it_is_read(
    before: str, choice: int, after: str, end: str
) -> None:
    assert read_verdict(f"{before}{choice}{end}{after}") == choice


PIECES = [
    "1", "2", "1.", "**", "Interaction ", "Interaction 1", "Interaction 2", "Response ", "the first ", "the second one", " is better", " is not ", " or ",
    " and ", "\n", ". ", ", ", "<think>", "</think>", "{", "}", '"answer"', ": ", "\\boxed{", "not ", "if ", "so ", "therefore, ", " because it is clear",
    "\ue001", "\ue020", "\ud800", "\x00", "[[", "]]", "1/", "equally good ", "#", "Output: ", "Answer: ", "I choose ", "Although ", ", but ", " than ", "Student: ",
    "Overall, ", "My choice is ", "\u2028", "[THINK]", "```json\n",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=30).map("".join)


@given(TEXTS)
@settings(max_examples=dose(25, 250), deadline=None)
def test_no_text_raises_and_none_prefers_a_side(text: str) -> None:
    choice = read_verdict(text)
    assert choice in (1, 2, None)
    assert read_verdict(exchanged(text)) == (None if choice is None else 3 - choice)


@pytest.mark.parametrize(
    "value",
    [
        "9" * 5_000,
        "1e999",
        "1.0",
        "true",
        '"\\ud800"',
        "[" * 2_000,
        '{"answer": ' * 400 + "1" + "}" * 400,
        "0001",
        "NaN",
    ],
)
def test_an_object_with_any_value_in_place_of_the_answer_is_none(value: str) -> None:
    assert read_verdict(f'{{"answer": {value}}}') is None


@given(st.text(alphabet=st.characters(exclude_characters="12１２"), max_size=60))
@settings(max_examples=dose(10, 80), deadline=None)
def test_without_a_number_or_a_word_for_one_there_is_no_verdict(text: str) -> None:
    if not any(word in text.lower() for word in ("one", "two", "first", "second", "former", "latter")):
        assert read_verdict(text) is None


HOSTILE = [*PIECES, "1 or 2 ", "1\n", "1. ", "interaction 1 is ", "a, ", "my ", "<|x|>", " " * 50 + "1", "((", "</", "Interaction 1 is better.\n",
           "although a, ", "a, but a; ", "clearly, overall, ", '{"a":', "Step 1: 2\n", "é 1 ", "the latter ", "1 the former "]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_megabyte_costs_no_more_than_some_lines(piece: str) -> None:
    """The aim is 20 ms; ten times that leaves room for a busy machine."""
    text = (piece * (1_100_000 // len(piece)))[:1_050_000]
    for part in (text, text[:5_990]):
        assert takes_under(0.2, lambda part=part: read_verdict(part))
