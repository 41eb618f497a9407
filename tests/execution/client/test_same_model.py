"""A fleet's servers run the same model, from their first answer to the last."""

from __future__ import annotations

import pytest

from edgen.core.errors import ProviderError
from edgen.core.values import Reply
from edgen.execution.client.fleet import SameModel

pytestmark = pytest.mark.unit


def answer(model: str | None) -> Reply:
    return Reply("hi", "stop", model=model)


def test_a_server_that_changes_its_model_is_refused() -> None:
    same = SameModel({}, "m")
    for address in ("a", "b", "a", "b"):
        same.check_model_name(address, answer("m-1"))
    same.check_model_name("b", answer(None))
    with pytest.raises(ProviderError, match="b runs m-2, a runs m-1"):
        same.check_model_name("b", answer("m-2"))


def test_a_server_alone_may_name_its_model_in_other_ways() -> None:
    same = SameModel({}, "m")
    for model in ("m", None, "m-2026-01-01", "m"):
        same.check_model_name("a", answer(model))
