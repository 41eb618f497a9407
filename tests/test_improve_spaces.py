"""Test scenarios of examples/improve share no word with training scenarios or a prompt's examples."""

from __future__ import annotations

import re

import pytest
import yaml

from tests import ROOT

FOLDER = ROOT / "examples" / "improve"
ARTICLES = {"the", "il", "la", "l"}


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold())) - ARTICLES


def words_in(name: str) -> set[str]:
    dimensions = yaml.safe_load((FOLDER / name).read_text())["dimensions"].values()
    return words_of(" ".join(f"{one['value']} {one['it']}" for each in dimensions for one in each["values"]))


@pytest.mark.unit
def test_held_out_words_are_held_out() -> None:
    held_out = words_in("held_out.yaml")
    assert len(held_out) > 35
    assert not held_out & words_in("seen.yaml")
    for template in FOLDER.glob("*.j2"):
        shown = "\n".join(
            line for line in template.read_text().splitlines() if line.startswith(("Card:", "What is"))
        )
        assert not held_out & words_of(shown), template.name
