"""Checks of an answer's form with its reader, for the forms of the engine and of the domains."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from edgen.core.forms import BOUNDS, Form, without_bounds
from edgen.core.values import Rejection, Reply
from edgen.simulator.schemas.structured import fit_to_schema


def check_what_fits_is_read(asked: Form, reader: Callable[[str], Any]) -> None:
    """Check that a reader accepts answers that fit the form; it may refuse a few for their content."""
    refused = Counter[str]()
    for seed in range(100):
        found = reader(asked.content(Reply(fit_to_schema("", asked.schema, random.Random(seed)))).text)
        if found is None or isinstance(found, Rejection):
            refused["unread" if found is None else found.reason] += 1
    assert refused.keys() <= {"one_speaker", "empty"}, refused
    assert refused.total() < 30


def check_names_without_bounds(asked: Form) -> None:
    loose = msgspec.json.decode(without_bounds(asked.schema))
    assert loose["required"] == msgspec.json.decode(asked.schema)["required"]
    assert not any(f'"{word}"' in without_bounds(asked.schema).decode() for word in BOUNDS)
    for seed in range(20):
        fit_to_schema(
            fit_to_schema("", asked.schema, random.Random(seed)),
            without_bounds(asked.schema),
            random.Random(0),
        )


def check_words(asked: Form) -> None:
    for property_ in msgspec.json.decode(asked.schema)["properties"]:
        assert f'"{property_}"' in asked.words
    assert "…" not in asked.words
    assert "..." not in asked.words
