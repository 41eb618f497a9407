"""Agreement of responses is not available, with a reason, if a tutor gave the same response several times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import edgen

pytestmark = pytest.mark.integration

HINTS = '{"text": "“red” is “rosso”.", "actions": ["Hint"]}'
GUESSES = '{"text": "Is it rosso?", "actions": ["Guess"]}'


async def same(request: Any) -> str:
    """Answer every tutor's request with one text, and every student's with another."""
    return HINTS if "right answer" in request.messages[0].content else GUESSES


def test_agreement_of_one_text_is_not_available(tmp_path: Path) -> None:
    job = {
        "name": "t", "seed": 7, "conversations": 4, "space": "italian_shapes", "protocol": "tutoring",
        "tutoring": {"student_turns": 4, "responses": 3},
    }  # fmt: skip
    run = edgen.generate(job, output=tmp_path / "run", progress=False, backends={"default": same})
    found = run.stats(["action_agreement"])
    told = found.as_json()["action_agreement"]
    assert told["alpha"] is None
    assert told["of_complete"] is None
    assert "identical requests" in told["not_available"]
    assert "not available" in str(found)


def test_agreement_of_several_texts_is_available(tmp_path: Path) -> None:
    job = {
        "name": "t", "seed": 7, "conversations": 4, "space": "italian_shapes", "protocol": "tutoring",
        "tutoring": {"student_turns": 4, "responses": 3}, "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    run = edgen.generate(job, output=tmp_path / "run", progress=False)
    told = run.stats(["action_agreement"]).as_json()["action_agreement"]
    assert told["not_available"] is None
    assert told["alpha"] is not None
