"""open-instruct's own reading and tokenising of the exports for its three trainers.

It is no package: with a checkout of github.com/allenai/open-instruct (e6c3044aa) on PYTHONPATH, in the
environment of `make test-rl` with the packages that its module imports, `python -m pytest tests/rl/apart`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from open_instruct.dataset_transformation import TRANSFORM_FNS, DatasetConfig
from open_instruct.judge_utils import JUDGE_PROMPT_MAP

from edgen.export.formats.open_instruct import VERIFIER
from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers, edgen

pytestmark = pytest.mark.integration


def transformed(file: Path, name: str, tokens: Any, **how: Any) -> Any:
    """Return a file as open-instruct loads it, through one of its functions."""
    data = DatasetConfig(str(file), "train", "main").dataset
    function, kind = TRANSFORM_FNS[name]
    assert kind == "map"
    return data.map(lambda row: function(row, tokenizer=tokens, **how), load_from_cache_file=False)


def trained(tokens: Any, row: dict[str, Any], column: str = "labels") -> str:
    return str(tokens.decode([label for label in row[column] if label != -100]))


def test_grpo(exports: Exports, tokenizers: Tokenizers) -> None:
    tokens = tokenizers.with_template(tiny.STRICT)
    assert VERIFIER.removeprefix("general-") in JUDGE_PROMPT_MAP
    given = exports.train("open-instruct")
    rows = transformed(exports.folder("open-instruct") / "train.jsonl", "rlvr_tokenize_v1", tokens)
    for row, before in zip(rows, given, strict=True):
        assert row["input_ids_prompt"] == tokens.apply_chat_template(
            before["messages"], add_generation_prompt=True, return_dict=False
        )
        assert (row["dataset"], row["ground_truth"]) == ([VERIFIER], [before["ground_truth"]])


def test_sft_takes_trl_sft(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    tokens = tokenizers.with_template(tiny.STRICT)
    edgen("export", exports.run, "--to", "trl-sft", "-o", tmp_path / "sft", "--no-masks", cwd=tmp_path)
    file = tmp_path / "sft" / "train.jsonl"
    for row in transformed(file, "sft_tulu_tokenize_and_truncate_v1", tokens, max_seq_length=8192):
        said = trained(tokens, row)
        assert all((one["content"] in said) == (one["role"] == "assistant") for one in row["messages"])


def test_dpo_takes_openrlhfs_pairs(exports: Exports, tokenizers: Tokenizers) -> None:
    tokens = tokenizers.with_template(tiny.STRICT)
    file = exports.folder("openrlhf") / "pairs" / "train.jsonl"
    rows = transformed(file, "preference_tulu_tokenize_and_truncate_v1", tokens, max_seq_length=8192)
    for row in rows:
        for side in ("chosen", "rejected"):
            assert row[side][-1]["content"] in trained(tokens, row, f"{side}_labels")
