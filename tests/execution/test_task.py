"""Model names reported by a service, on records and cards: always one line."""

from __future__ import annotations

import pytest

from edgen.core.values import Address, Reply, Request
from edgen.protocols.parts import Spent

pytestmark = pytest.mark.unit

ASKED = Request(Address(0, 0), (), 1)


def test_a_models_name_is_one_line_without_controls() -> None:
    spent = Spent()
    spent.add(
        Reply("text", model="m\n---\nsource: x\x1b[31m\u202e" + "y" * 500),
        b"key",
        ASKED,
        "openai",
        "asked",
    )
    name = spent.by_role["default"].model
    assert name.isprintable()
    assert name.startswith("m --- source: x")
    assert len(name) <= 200


def test_a_reply_without_a_name_has_the_one_that_was_asked_for() -> None:
    spent = Spent()
    spent.add(Reply("text"), b"key", ASKED, "openai", "asked")
    assert spent.by_role["default"].model == "asked"
