"""The examples of docs/environment.md for the environment itself run unchanged."""

from __future__ import annotations

import re
from typing import Any

import pytest

from edgen.env import SyncEducationEnv
from tests import ROOT

PAGE = (ROOT / "docs" / "environment.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def block(holding: str) -> str:
    (found,) = [text for text in BLOCKS if holding in text]
    return found


def test_what_the_page_shows_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(block("env.reset(0)"), names)
    assert (names["done"], names["reward"]) == (False, None)
    assert names["messages"][-1]["role"] == "user"
    exec(block("weight=2"), names)
    exec(block("class Brevity"), names)
    for reward in (names["rubric"], names["Brevity"]()):
        with SyncEducationEnv.from_job("jobs/selfplay.yaml", reward=reward) as env:
            env.reset(0)
            env.step("Good morning! What do you know about it already?")
            worth = env.stop().reward
            assert worth is not None
            assert 0 <= worth <= 1
