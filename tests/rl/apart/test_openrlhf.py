"""OpenRLHF's data sets on its export.

It has an environment of its own: that of `make test-rl`, and in it `pip install --no-deps openrlhf==0.11.2
pylatexenc`. Then `python -m pytest tests/rl/apart`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from openrlhf.datasets import RewardDataset

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("is_dpo", [True, False])
def test_pairs(exports: Exports, tokenizers: Tokenizers, is_dpo: bool) -> None:
    """The pairs are loaded as by train_dpo and train_rm, with the card's options."""
    tokens = tokenizers.with_template(tiny.STRICT)
    given = exports.load("openrlhf", config="pairs")["train"]
    told = SimpleNamespace(
        prompt_key=None, chosen_key="chosen", rejected_key="rejected", apply_chat_template=True
    )
    strategy: Any = SimpleNamespace(args=SimpleNamespace(data=told))
    rows = RewardDataset(given, tokens, 8192, strategy, is_dpo=is_dpo, num_processors=1)
    assert len(rows) == len(given)
    for at, row in enumerate(given):
        assert rows.chosens[at].endswith(f"{row['chosen'][-1]['content']}{tiny.END}\n")
        assert rows.rejects[at].endswith(f"{row['rejected'][-1]['content']}{tiny.END}\n")
        if is_dpo:
            assert rows.prompts[at] == tokens.apply_chat_template(
                row["chosen"][:-1], add_generation_prompt=True, tokenize=False
            )
        else:
            assert rows.extras[at] == row["margin"]
