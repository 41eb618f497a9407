"""The estimated duration of a job: bounded by calls at once, by conversations, and by limits per minute."""

from __future__ import annotations

from typing import Any

import pytest

from edgen.config import parse_job
from edgen.cost.duration import START, estimate_duration
from edgen.cost.usage import CallUse, UsageRange

USED = CallUse(calls=1000, prompt=200_000, completion=100_000)
USES = UsageRange(USED, USED, USED)


def seconds(conversations: float = 1000, backend: dict[str, Any] | None = None, **limits: Any) -> float:
    job = parse_job(
        {
            "name": "x",
            "conversations": 10,
            "space": "education_dialogue",
            "prompt": "education_dialogue",
            "backends": {"default": backend or {"type": "simulator", "latency_ms": 100}},
            "limits": limits,
        },
        "x",
    )
    found = estimate_duration(job, USES, conversations, ())
    assert found.low <= found.expected <= found.high
    return found.expected - START


def test_calls_at_once_share_the_time() -> None:
    assert seconds(in_flight=10) == pytest.approx(10)
    assert seconds(in_flight=100) == pytest.approx(1)


def test_the_turns_of_a_conversation_follow_one_another() -> None:
    assert seconds(conversations=5, in_flight=100) == pytest.approx(20)


def test_limits_per_minute_hold_it_up() -> None:
    assert seconds(requests_per_minute=100) == pytest.approx(600)
    assert seconds(tokens_per_minute=100_000) == pytest.approx(180)


def test_a_model_that_was_never_asked_writes_as_models_usually_do() -> None:
    model = {"type": "openai", "model": "m"}
    assert 2 < seconds(in_flight=1000, backend=model) < 4  # 100 tokens a call
    assert seconds(in_flight=1, backend=model) > 1000
