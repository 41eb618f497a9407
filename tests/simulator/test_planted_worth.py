"""Planted worth: each turn's contribution is known, judges see it with an error, the outcome is the sum."""

from __future__ import annotations

import re
from statistics import correlation, mean, pstdev

import pytest

from edgen.config.backends import BackendConfig
from edgen.core.values import Message
from edgen.protocols.fence import fence_text
from edgen.simulator import planted_worth
from edgen.simulator.backend import Simulator
from edgen.simulator.config import SimulatorConfig
from edgen.simulator.text import respond
from tests.simulator import lessons

SEED = 5
FENCE = "0123456789abcdef"
BYE = "Great lesson, thank you for joining in."


def taught(said: lessons.Said) -> list[str]:
    return [text for role, text in said if role == "Teacher"]


def test_a_worth_is_drawn_from_the_seed_and_the_words_and_a_goodbye_has_none() -> None:
    texts = [f"Look at part {i} of it." for i in range(2_000)]
    worths = [planted_worth.compute_worth(SEED, text) for text in texts]
    assert worths == [planted_worth.compute_worth(SEED, text) for text in texts]
    assert worths != [planted_worth.compute_worth(SEED + 1, text) for text in texts]
    assert abs(mean(worths)) < 0.05
    assert abs(pstdev(worths) - 1 / 3**0.5) < 0.02
    assert planted_worth.compute_worth(SEED, BYE) == 0


def test_every_last_word_of_the_teacher_is_a_goodbye_and_no_other_turn_of_a_lesson_is() -> None:
    ends = []
    for i, known in enumerate(lessons.scenarios(120)):
        said, ended_by = lessons.play(known, i)
        *others, last = taught(said)
        assert not any(map(planted_worth.is_goodbye, others)), said
        if ended_by == "Teacher":
            ends.append(planted_worth.is_goodbye(last))
    assert len(ends) > 30
    assert all(ends)


def test_the_closing_question_is_answered_by_the_sum_of_the_teachers_turns() -> None:
    sums: list[float] = []
    own: list[float] = []
    judged: list[float] = []
    for i, known in enumerate(lessons.scenarios(150)):
        said = lessons.play(known, i)[0]
        sums.append(sum(planted_worth.compute_worth(SEED, text) for text in taught(said)))
        own.append(float(lessons.self_judged(known, said, i, planted=SEED)))
        judged.append(float(lessons.judged(known["topic"], said, i, planted=SEED)))
    for answers in (own, judged):
        assert all(0.01 <= answer <= 0.99 for answer in answers)
        assert correlation(answers, sums) > 0.75
    assert abs(mean(own) - 0.5) < 0.06


def _picked(first: str, second: str, noun: str) -> str:
    shown = "\n".join(fence_text(f"{noun} {n}", text, FENCE) for n, text in ((1, first), (2, second)))
    text = f"{shown}\n\nWhich is better? Output 1 or 2."
    found = re.search("[12]", respond([Message("user", text)], seed=1, planted=SEED).text)
    assert found
    return found[0]


def test_a_judge_goes_by_what_it_sees_in_the_words_whatever_the_order() -> None:
    """It is right about single responses more often than not, and its errors are the same in both orders."""
    right = 0
    texts = [f"Let us draw step {i}." for i in range(200)]
    for a, b in zip(texts[::2], texts[1::2], strict=True):
        picked = _picked(f"Teacher: {a}", f"Teacher: {b}", "Response")
        assert picked != _picked(f"Teacher: {b}", f"Teacher: {a}", "Response")
        right += (picked == "1") is (
            planted_worth.compute_worth(SEED, a) > planted_worth.compute_worth(SEED, b)
        )
    assert 65 <= right <= 92


def test_of_a_conversation_it_counts_the_teachers_turns_alone() -> None:
    first, second = "Teacher: Draw it.\nStudent: Hm.", "Teacher: Draw it.\nStudent: Oh, I see! Great!"
    assert planted_worth.rate_quality(SEED, first) == planted_worth.rate_quality(SEED, second)
    more = f"{first}\nTeacher: Now this\nand that."
    assert planted_worth.rate_quality(SEED, more) != planted_worth.rate_quality(SEED, first)
    assert planted_worth.rate_quality(SEED, "Draw it.") == planted_worth.rate_quality(SEED, first)


@pytest.mark.parametrize("given", [None, 0, 7])
def test_what_is_planted_is_part_of_what_an_answer_is_known_by(given: int | None) -> None:
    config = SimulatorConfig(planted=given)
    assert isinstance(config, BackendConfig)
    identity = Simulator(config, timeout=1).identity
    assert identity.get("planted") == given
    assert ("planted" in identity) is (given is not None)
