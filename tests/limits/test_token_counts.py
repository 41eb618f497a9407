"""Counting tokens before anybody has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.limits import prompt_token_bound, prompt_token_estimate
from edgen.model import Message

TEXTS = ["", "a", "The teacher wants to teach the student.", "分数の足し算", "🙂" * 50, "\ud800"]


@pytest.mark.parametrize("text", TEXTS)
def test_bound_is_above_bytes_and_estimate_near_a_quarter(text: str) -> None:
    size = len(text.encode(errors="surrogatepass"))
    messages = (Message("system", text), Message("user", text))
    assert prompt_token_bound(messages) >= 2 * size + 8
    assert 2 * size / 4 <= prompt_token_estimate(messages) <= 2 * size / 4 + 12


@given(st.lists(st.text(), min_size=1))
def test_the_estimate_is_never_above_the_bound(texts: list[str]) -> None:
    messages = [Message("user", text) for text in texts]
    assert 0 < prompt_token_estimate(messages) <= prompt_token_bound(messages)
