"""SWEET-RL's own programs on the export: its evaluation of trajectories, and the data set of its trainer.

Neither is a package: `git clone` github.com/facebookresearch/sweet_rl (38daf2a) and
github.com/YifeiZhou02/collab_openrlhf, then in the environment of `make test-rl` with fire,
`PYTHONPATH=sweet_rl:sweet_rl/scripts:collab_openrlhf python -m pytest tests/rl/apart/test_sweet.py`. These
tests replace the modules that the trainer's package imports for pictures and GPUs.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import evaluate_code
import pytest
from datasets import load_dataset

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers, edgen

pytestmark = pytest.mark.integration
HEADER = "<|begin|>assistant\n"
LENGTH = 4096


@pytest.fixture
def made(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> Path:
    """Return the export with texts by a chat template, next to its tokenizer."""
    tiny.tokenizer(tokenizers.texts, tiny.STRICT).save_pretrained(tmp_path / "model")
    edgen(
        "export", exports.run, "--to", "sweet", "-o", tmp_path / "out", "--tokenizer", "model", "--max-tokens", "8192",
        cwd=tmp_path,
    )  # fmt: skip
    return tmp_path / "out"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("split", ["train", "test"])
def test_their_evaluation_makes_the_texts_of_the_critic(made: Path, split: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.jsonl"
    evaluate_code.main(
        str(made / "trajectories" / f"{split}.jsonl"), k=2, ground_truth_preference_path=str(theirs)
    )
    ours = [
        {side: row[side] for side in ("chosen", "rejected")}
        for row in rows(made / "critic" / f"{split}.jsonl")
    ]
    assert rows(theirs) == ours
    assert len(ours) > 3


@pytest.mark.parametrize("table", ["critic", "turns"])
def test_their_data_set_trains_each_turn(made: Path, table: str, tmp_path: Path) -> None:
    tokens = importlib.import_module("transformers").AutoTokenizer.from_pretrained(made.parent / "model")
    found = load_dataset(str(made), table, cache_dir=str(tmp_path / "cache"), split="train")
    arguments = SimpleNamespace(
        prompt_key=None, chosen_key="chosen", rejected_key="rejected", apply_chat_template=False
    )
    theirs = _reward_dataset()(
        found,
        tokens,
        LENGTH,
        SimpleNamespace(args=arguments),
        is_dpo=True,
        num_processors=1,
        response_template=HEADER,
    )
    assert len(theirs) == len(found) > 3
    for place, row in enumerate(found):
        chosen, _, rejected, _, chosen_mask, rejected_mask, _ = theirs[place]
        for ids, mask, text in (
            (chosen, chosen_mask, row["chosen"]),
            (rejected, rejected_mask, row["rejected"]),
        ):
            trained = tokens.decode(ids[0][mask[0] == 1])
            assert trained.count(tiny.END) == text.count(HEADER)
            assert trained.endswith(
                text.rsplit(HEADER, 1)[1].removesuffix(tiny.END).rstrip()
                + f"{'' if text.endswith(tiny.END) else ' '}{tiny.END}"
            )


def _reward_dataset() -> Any:
    """Return `RewardDataset` from its file: the package around it imports deepspeed."""
    found = importlib.util.find_spec("openrlhf")
    assert found is not None
    folder = Path(next(iter(found.submodule_search_locations or ()))) / "datasets"
    package = ModuleType("sweet_datasets")
    package.__path__ = [str(folder)]
    pictures = ModuleType("qwen_vl_utils")
    pictures.process_vision_info = None  # type: ignore[attr-defined]
    sys.modules |= {"sweet_datasets": package, "qwen_vl_utils": pictures}
    return importlib.import_module("sweet_datasets.reward_dataset").RewardDataset
