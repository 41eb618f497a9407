"""Length is independent of quality: else a judge without a bias would seem to have one."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from statistics import mean

import pytest

from edgen.core import resources
from edgen.core.values import END_MARKER
from edgen.prompting import load_prompt
from edgen.simulator.judge import rate_quality
from edgen.simulator.text import respond
from tests.dose import dose
from tests.simulator import lessons
from tests.simulator.prompts import turns_of

pytestmark = pytest.mark.integration

Variables = dict[str, object]
SCENARIOS = dose(20, 50)
REPLICATES = 24


def oneshot(known: Variables, seed: int) -> list[str]:
    """Return replicates of a one-shot conversation, as a judge is shown them."""
    names = [f"{who}_{what}" for who in ("student", "teacher") for what in ("preference", "reaction")]
    asked = load_prompt(resources.find("prompts", "education_dialogue"), ("topic", *names)).messages(known)
    texts = []
    for k in range(REPLICATES):
        said = turns_of(respond(asked, seed=seed + k).text)
        bare = [(role, text.replace(END_MARKER, "").strip()) for role, text in said]
        texts.append("\n".join([f"{role}: {text}" for role, text in bare if text]))
    return texts


def selfplay(known: Variables, seed: int) -> list[str]:
    return [lessons.shown(lessons.play(known, seed + k)[0]) for k in range(REPLICATES)]


def branched(known: Variables, seed: int) -> list[str]:
    """Return one lesson, and others that leave it at one of the teacher's turns."""
    base = lessons.play(known, seed)[0]
    turns = [i for i, (role, _) in enumerate(base) if role == "Teacher"]
    start = base[: random.Random(seed).choice(turns)]
    others = [lessons.play(known, seed + k, start=start)[0] for k in range(1, REPLICATES)]
    return [lessons.shown(said) for said in (base, *others)]


def longer_is_better(texts: list[list[str]]) -> float:
    """Return the share of the pairs of a scenario in which the one with more words is the better one."""
    wins = []
    for group in texts:
        sized = [(rate_quality(text), len(text.split())) for text in group]
        for (good_a, words_a), (good_b, words_b) in combinations(sized, 2):
            if words_a != words_b:
                wins.append((good_a > good_b) == (words_a > words_b))
    return mean(wins)


@pytest.mark.long
@pytest.mark.parametrize("make", [oneshot, selfplay, branched])
def test_longer_is_neither_better_nor_worse(make: Callable[[Variables, int], list[str]]) -> None:
    """Longer texts are neither better nor worse, over 13,800 pairs of both shipped spaces.

    Three standard deviations are 3%: of n replicates, as of Kendall's tau, the variance of a group is (2n +
    5) / 18n(n - 1), so that many of few scenarios are less precise than few of many.
    """
    texts = [make(known, REPLICATES * i) for i, known in enumerate(lessons.scenarios(SCENARIOS, seed=5))]
    # Three standard deviations: 3% of 50 scenarios, 5% of 20.
    assert abs(longer_is_better(texts) - 0.5) < dose(0.05, 0.03)


def test_the_measure_finds_a_bias() -> None:
    """This proves that the test above can fail."""
    assert longer_is_better([["Teacher: Great.", "Teacher: Great, great, thank you."]]) == 1
    assert longer_is_better([["Teacher: Great.", "Teacher: Whatever, this is boring."]]) == 0
