"""Formats that have no row for a single response."""

from __future__ import annotations

import pytest

from edgen.core.errors import UsageError
from tests.export.runs import options


def test_a_format_without_single_responses_says_so() -> None:
    for name in ("trl-sft", "hf", "mtpo"):
        with pytest.raises(UsageError, match=f"{name} does not take --actions; llamafactory, openrlhf"):
            options(name, actions="labels")
    with pytest.raises(
        UsageError,
        match=r"trl-dpo does not take --alternatives; sft, trl-prompts do",
    ):
        options("trl-dpo", alternatives=True)
    with pytest.raises(UsageError, match="--actions x: expected one of labels, wanted"):
        options("sft", actions="x")
