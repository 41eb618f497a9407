"""Templates of this domain that show a fence, for tests/protocols/test_fences.py."""

from __future__ import annotations

from edgen.core.values import Turn
from edgen.domains.tutoring.judging import judge_variables
from tests.protocols.fenced import HERE, render


def best_and_worst(turns: list[Turn]) -> str:
    shown = judge_variables(turns, turns[1:], HERE, 7)
    told = {"exercise_number": 1, "question": "q", "picture": "", "answer": "a", "points": []}
    return render("tutoring_judge", told | shown)


PROMPTS = {
    "tutoring_judge": best_and_worst,
}
