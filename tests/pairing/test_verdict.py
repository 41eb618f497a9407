"""Reading a judge: a table of replies, and what holds for any text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.pairing.verdict import read_verdict

ONE = [
    "1", " 1 ", "1.", "1\n", "**1**", "`1`", '"1"', "'1'", "(1)", "[1]", "[[1]]", "#1", "1!", "１", "1️⃣", "One", "First.",
    "Interaction 1", "interaction 1.", "Interaction 1 is better.", "**Interaction 1**", "Interaction #1", "Interaction (1)",
    "Interaction: 1", "Interaction one", "The first interaction.", "The first one is better.", "Response 1", "Option 1",
    "Answer: 1", "Answer: **1**", "**Answer:** 1", "answer is 1", "The answer is 1.", "My answer is Interaction 1.",
    "Final answer: Interaction 1", "Output: 1", "Verdict: Interaction 1", "Choice: 1", "Winner: 1", "Better interaction: 1",
    '{"answer": 1}', '{"answer": "1"}', '```json\n{"choice": 1, "confidence": 2}\n```', '{"answer": "Interaction 1"}',
    '{"reason": "The teacher asks more.", "winner": 1}', r"\boxed{1}", r"The answer is $\boxed{1}$.", r"\boxed{\text{1}}",
    "<answer>1</answer>", "<reason>Clear.</reason><answer>1</answer>", "<think>2 is nice, but</think>\n1",
    "<think>\nInteraction 2 is better.\n</think>\n\nInteraction 1", "so 2 it is... no</think>1", "<think>1 or 2?</think>1",
    "I would choose Interaction 1.", "I'd say 1.", "I prefer the first interaction.", "I choose 1", "It's 1.", "Therefore, 1.",
    "1 because the teacher encourages questions.", "1, because it is clearer.", "1. The teacher encourages questions.",
    "1\n\nThe teacher encourages questions, and the student feels comfortable.", "1 - the teacher is kinder.", "1: it is clearer",
    "1.\n\nInteraction 1 is better because the second teacher never asks.", "Interaction 1 is clearly the better one.",
    "Interaction 1 is better than Interaction 2.", "Interaction 1 is better than 2 because of its questions.",
    "Interaction 1 wins.", "The better interaction is Interaction 1.", "Interaction 1 is slightly better overall.",
    "Both teachers are patient. Interaction 1 is better because it has more questions. It lets the student speak.",
    "Interaction 1 would be the better choice.", "Interaction 2 is good, but Interaction 1 is better.",
    "In Interaction 2 the teacher does not listen, so Interaction 1 is better.", "Compared to Interaction 2, Interaction 1 is better.",
    "Interaction 1:\n- clear\n\nInteraction 2:\n- dull\n\nAnswer: 1", "**Interaction 1**\nclear\n**Interaction 2**\ndull\n\n**Answer: 1**",
    "Response 1 will lead to a better interaction.", "Assuming that they continue, response 1 will likely lead to a better interaction.",
    "1, not 2.", "Interaction 1 is better in every way.", "1\n1", "1\n\nAnswer: 1", "Sure! Interaction 1.", "> 1", "- 1", "### Answer: 1",
    "The teacher in the first takes 3 steps and asks 2 questions.\n\n1",
]  # fmt: skip
TWO = [
    '{"reason": "The teacher asks more", "answer": 2}', '{\n  "reason": "He says 1.",\n  "answer": 2,\n  "sure": "very"\n}',
    "Considering how the teacher engages the student, I choose 2.", "The student says the answer is 1.\n\nInteraction 2",
    "2", "2.", "**2**", "\n\n2\n", '"2"', "Two.", "second", "Interaction 2", "Response 2 is better because the teacher listens.",
    'Answer: "2"', '{"answer": 2}', '{"better_interaction": 2}', r"$\boxed{2}$", "[[2]]", "<answer>\n2\n</answer>",
    "<|channel|>analysis<|message|>1 looks fine<|end|><|start|>assistant<|channel|>final<|message|>2",
    "The teacher in Interaction 1 lectures. The student in Interaction 2 asks. Therefore, Interaction 2 is better.",
    "Interaction 1 is better at explaining, but it does not invite questions. Overall, Interaction 2 is better.",
    "Step 1: compare clarity.\nStep 2: compare questions.\n\nFinal answer: 2", "Reasoning first.\nThen the number.\n\n2",
    "In conclusion, I would pick the second interaction.", "The second interaction is superior.", "The second is better.",
    "Interaction 2 has the edge.", "I think Interaction 2 is better, since its 10 turns hold 1 joke and 8 questions.",
    "I rate the first 6/10 and the second 8/10, so 2.", "Interaction 1 is worse than Interaction 2.\n\n2",
    "Not Interaction 1. Answer: 2", "2 (the second one)", "The winner is 2.", "My choice: Response 2.", "2; it is livelier.",
    "Interaction 1 is not better. Interaction 2 is better.", "Let us see. Interaction 2 provides a better environment for learning.",
    "Although both are good, Interaction 2 stands out as the better one.", "Interaction 2 seems better.", "If I had to choose, I would choose Interaction 2.", "Interaction 2, however, is better.", "2</s>",
    "Let me think. 2", "**2**\n\n**Explanation:** Interaction 2 asks while Interaction 1 lectures.", "Based on the criteria, the better interaction is:\n\n2",
    "2\n\n1. It invites questions.\n2. It is clear.", "Interaction 2 is more effective because the student may disagree.",
]  # fmt: skip
NONE = [
    "The student says the answer is 2.", "Student: The answer is 2.", "The teacher explains that 1 is better than 0.", "Score: 1", "Total: 2",
    '{"interaction_1": 8, "interaction_2": 6}', "Better: Interaction 2?", "The student gets 3 and then 2.", "The student asks if it is 1.",
    "", " ", "\n", ".", "?", "0", "3", "10", "12", "21", "11", "1.5", "2.5", "0.1", "1/2", "2/2", "8/10", "1/10", "-1", "+1", "1%", "1e2", "v2", "x1", "1st",
    "1 or 2", "1 or 2.", "Both 1 and 2", "1 and 2", "1, 2", "1,2", "1-2", "1 2", "1\n2", "1 & 2", "Interaction 1 or Interaction 2", "1 vs 2",
    "Interaction 1 and Interaction 2 are good.", "Interaction 1 or 2 is better", "not 1", "Not Interaction 1.", "Answer: not 2", "1 > 2",
    "Both are equally good.", "It is a tie.", "Interaction 1 and 2 are on a par.", "Neither is better.", "Neither interaction 1 nor 2.",
    "I have no preference.", "They are the same.", "1. Both interactions are equally good.", "Interaction 1 is no better than Interaction 2.",
    "The teacher explains well and the student feels comfortable.", "A", "B", "Interaction A is better.", "I like it.", "Yes", "No",
    "I'm sorry, but I can't help with that.", "I cannot judge these interactions.", "As an AI, I cannot decide whether 1 or 2 is better.",
    "Interaction 1 is better. Interaction 2 is better.", "1\n\nTherefore, Interaction 2 is better.", "Answer: 1\nAnswer: 2",
    '{"answer": 1} {"answer": 2}', '{"answer": null}', '{"1": 0.5, "2": 0.5}', '{"answer": [1, 2]}', '{"answer": 1.5}', r"\boxed{1} \boxed{2}",
    "Interaction 1 is better at explaining.", "Interaction 1 is better in terms of clarity, while Interaction 2 is more engaging.",
    "Interaction 1 would be better if the teacher asked more.", "If the student likes books, Interaction 1 is better.",
    "It is hard to say whether Interaction 2 is better.", "Is Interaction 1 better?", "Which is better, 1 or 2?", "Interaction 1 is better?",
    "I don't think Interaction 1 is better.", "Interaction 1 might be better.", "Perhaps Interaction 2 is better.", "Interaction 1 isn't better.",
    "Interaction 1 is not better.", "Interaction 2 is worse.", "1. Clarity: both good.\n2. Questions: both good.", "There are 2 reasons.",
    "The lesson has 1 teacher.", "Rating: 8/10 and 7/10", "Score for Interaction 1: 8\nScore for Interaction 2: 7", "Interaction 1: 8/10\nInteraction 2: 7/10",
    "Interaction 1:\nclear\nInteraction 2:\ndull", "## Interaction 1\nclear\n## Interaction 2\nalso", "2 out of 10", "1 of 2", "<think>1", "<think>\nInteraction 1 is better.",
    "Confidence: 1", "Depending on the student, Interaction 1 is better.", "I cannot choose: 1", "[end of conversation]", "1...2", "2 + 2 = 4", "1 minute", "½", "Interaction 12", "Interaction 1.5 is better",
    "My answer is 1. Wait, no, 2.", "I pick 2! Just kidding, 1!", "Interaction 1 is better. 2.", "Interaction 1: 1\nInteraction 2: 2", "Interaction 2 better demonstrates it.",
]  # fmt: skip


@pytest.mark.parametrize("text", ONE)
def test_one(text: str) -> None:
    assert read_verdict(text) == 1


@pytest.mark.parametrize("text", TWO)
def test_two(text: str) -> None:
    assert read_verdict(text) == 2


@pytest.mark.parametrize("text", NONE)
def test_none(text: str) -> None:
    assert read_verdict(text) is None


SWAP = str.maketrans({"1": "2", "2": "1"})
# About lists, tokens and other numbers: exchanging the digits changes what they are.
LOPSIDED = ("One", "First", "first", "one", "second", "Two", "Second", "10", "turns", "１")


@pytest.mark.parametrize("text", [t for t in ONE + TWO if not any(w in t for w in LOPSIDED)])
def test_exchanging_the_sides_exchanges_the_verdict(text: str) -> None:
    before, after = read_verdict(text), read_verdict(text.translate(SWAP))
    assert before is not None
    assert after == 3 - before


@pytest.mark.parametrize("text", ["1", "Answer: 2", "Interaction 1 is better."])
def test_what_was_cut_off_or_refused_is_no_verdict(text: str) -> None:
    assert read_verdict(text, finish_reason="length") is None
    assert read_verdict(text, finish_reason="content_filter") is None
    assert read_verdict(text, refusal="blocked") is None
    assert read_verdict(text, finish_reason="other") is not None


PIECES = [
    "1", "2", "1.", "**", "Interaction ", "Response ", "the first ", " is better", " is not ", " or ", " and ", "\n", ". ", ", ", "<think>", "</think>",
    "{", "}", '"answer"', ": ", "\\boxed{", "not ", "if ", "so ", "therefore ", "because ", "\ue001", "\ue020", "\ud800", "\x00", "[[", "]]", "1/", "equally good ", "#",
]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=30).map("".join))
@settings(max_examples=600, deadline=None)
def test_no_text_raises(text: str) -> None:
    assert read_verdict(text) in (1, 2, None)


@given(st.text(alphabet=st.characters(exclude_characters="12１２"), max_size=60))
@settings(max_examples=200, deadline=None)
def test_without_a_number_or_a_word_for_one_there_is_no_verdict(text: str) -> None:
    if not any(word in text.lower() for word in ("one", "two", "first", "second")):
        assert read_verdict(text) is None


@pytest.mark.parametrize(
    "piece", [*PIECES, "interaction 1 is ", "a, ", "my ", "<|x|>", " " * 50 + "1", "((", "no better "]
)
def test_work_is_linear_in_the_length(piece: str) -> None:
    text = (piece * 20_000)[:60_000]
    started = time.process_time()
    read_verdict(text)
    assert time.process_time() - started < 1.5
