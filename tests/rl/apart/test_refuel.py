"""The columns of tokens equal those of REFUEL's own script.

It is no package: with setting_one of a checkout of github.com/ZhaolinGao/REFUEL (b76c534) on PYTHONPATH, in
the environment of `make test-rl` with transformers before 5, for which it was written, `python -m pytest
tests/rl/apart`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import load_dataset
from tokenize_mask import generate_token_mask
from transformers import AutoTokenizer

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers, edgen

pytestmark = pytest.mark.integration
LENGTH = 2048


def test_refuels_script_makes_the_same(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    tiny.tokenizer(tokenizers.texts, tiny.STRICT).save_pretrained(tmp_path / "model")
    edgen(
        "export", exports.run, "--to", "refuel", "-o", tmp_path / "out", "--tokenizer", "model", cwd=tmp_path
    )
    tokens = AutoTokenizer.from_pretrained(tmp_path / "model")
    tokens.add_special_tokens({"pad_token": "[PAD]"})
    rows = load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"), split="train")
    compared = 0
    for row in rows:
        for side in ("chosen", "reject"):
            theirs = generate_token_mask({side: [row[side]]}, tokens, side, [row["h"]], LENGTH)
            assert row[f"{side}_token"] == theirs[f"{side}_turn={row['h']}_token"][0]
            assert row[f"{side}_mask"] == theirs[f"{side}_turn={row['h']}_mask"][0].tolist()
            compared += 1
    assert compared > 20
