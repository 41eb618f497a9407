"""Token counts that services report: which are accepted, and that no invalid number loses an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.values import Usage
from edgen.providers.gemini import online as gemini
from edgen.providers.openai import online as openai
from edgen.providers.usage import MOST_COMPLETION, MOST_PROMPT, read_usage

pytestmark = pytest.mark.unit

ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.integers().map(str)
    | st.lists(st.integers(), max_size=2)
)


@given(ANYTHING, ANYTHING, st.sampled_from(["", "text"]))
def test_whatever_is_said_a_usage_can_be_true_or_is_none(prompt: Any, completion: Any, text: str) -> None:
    usage = read_usage(prompt, completion, text)
    if usage is not None:
        assert type(usage.prompt_tokens) is type(usage.completion_tokens) is int
        assert 1 <= usage.prompt_tokens <= MOST_PROMPT
        assert (1 if text else 0) <= usage.completion_tokens <= MOST_COMPLETION


@pytest.mark.parametrize(
    ("prompt", "completion", "text", "usage"),
    [
        (3, 4, "a", Usage(3, 4)),
        (MOST_PROMPT, MOST_COMPLETION, "a", Usage(MOST_PROMPT, MOST_COMPLETION)),
        ("3", 4.0, "a", Usage(3, 4)),  # some servers use these types
        (3, 0, "", Usage(3, 0)),  # a blocked prompt
        (0, 0, "a", None),
        (0, 4, "a", None),
        (3, 0, "a", None),
        (None, None, "a", None),
        (3, None, "a", None),
        (-120_000, 4, "a", None),
        (3, -4, "a", None),
        (MOST_PROMPT + 1, 4, "a", None),
        (3, MOST_COMPLETION + 1, "a", None),
        (3, 2**63, "a", None),
        (3, 1e300, "a", None),
        (3, float("nan"), "a", None),
        (True, True, "a", None),
        ("9" * 5000, 4, "a", None),
        ("٣", 4, "a", None),
    ],
)
def test_counts_that_cannot_be_are_none(prompt: Any, completion: Any, text: str, usage: Usage | None) -> None:
    assert read_usage(prompt, completion, text) == usage


LIES: list[Any] = [
    None, {}, [], "many", 7, {"prompt_tokens": None, "promptTokenCount": None},
    {"prompt_tokens": -5, "completion_tokens": 3, "promptTokenCount": -5, "candidatesTokenCount": 3},
    {"prompt_tokens": 1.5, "completion_tokens": 3, "promptTokenCount": 1.5, "candidatesTokenCount": 3},
    {"prompt_tokens": 9, "completion_tokens": 10**30, "promptTokenCount": 9, "candidatesTokenCount": 10**30},
    {"prompt_tokens": 9, "completion_tokens": {}, "promptTokenCount": 9, "candidatesTokenCount": []},
    {"prompt_tokens": 9, "completion_tokens": 0, "promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": -1},
]  # fmt: skip


@pytest.mark.parametrize("usage", LIES)
def test_no_usage_costs_an_answer(usage: Any) -> None:
    body = {"choices": [{"message": {"content": "hi"}}], "usage": usage}
    reply = openai.read_reply(json.dumps(body).encode())
    assert reply is not None
    assert (reply.text, reply.usage) == ("hi", None)
    answer = {"candidates": [{"content": {"parts": [{"text": "hi"}]}}], "usageMetadata": usage}
    reply = gemini.read_reply(json.dumps(answer).encode())
    assert reply is not None
    assert (reply.text, reply.usage) == ("hi", None)


def test_what_an_answer_holds_besides_is_left_alone() -> None:
    """Cached tokens and reasoning tokens are part of the two sums."""
    details = {
        "prompt_tokens_details": {"cached_tokens": -1},
        "completion_tokens_details": {"reasoning_tokens": None},
    }
    body = {
        "choices": [{"message": {"content": "hi"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 40, **details},
    }
    reply = openai.read_reply(json.dumps(body).encode())
    assert reply is not None
    assert reply.usage == Usage(9, 40)
