"""axolotl's preprocessing on the exports, with the configurations of their cards.

axolotl pins transformers and more, so it has an environment of its own: that of `make test-rl`, and in it
`pip install --no-deps axolotl==0.19.0` with the packages that its loader imports. Then `python -m pytest
tests/rl/apart`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from axolotl.cli.config import load_cfg
from axolotl.common.datasets import load_datasets, load_preference_datasets

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers, joined

pytestmark = pytest.mark.integration


def told_by_card(folder: Path) -> dict[str, Any]:
    """Return the card's settings for axolotl, as YAML."""
    card = (folder / "README.md").read_text()
    found = re.search(r"^# axolotl[^\n]*\n(.*?)(?=^#|^```)", card, re.DOTALL | re.MULTILINE)
    assert found is not None
    told: dict[str, Any] = yaml.safe_load(found[1].replace("THIS_FOLDER", str(folder)))
    return told


def preprocessed(told: dict[str, Any], tokens: Any, folder: Path) -> Any:
    """Return the train split as `axolotl preprocess` makes it."""
    tokens.save_pretrained(folder / "model")
    tiny.language_model(tokens, folder)
    base = {
        "base_model": str(folder / "model"), "output_dir": str(folder / "out"), "sequence_len": 4096,
        "dataset_prepared_path": str(folder / "prepared"), "micro_batch_size": 1, "gradient_accumulation_steps": 1,
        "num_epochs": 1, "learning_rate": 1e-4, "val_set_size": 0.0, "bf16": False, "fp16": False, "dataset_num_proc": 1,
    }  # fmt: skip
    (folder / "config.yml").write_text(yaml.safe_dump(base | told))
    cfg = load_cfg(str(folder / "config.yml"), is_preprocess=True)
    cfg.is_preprocess = True
    return (load_preference_datasets if cfg.rl else load_datasets)(cfg=cfg).train_dataset


def trained(tokens: Any, row: dict[str, Any]) -> str:
    return str(tokens.decode([label for label in row["labels"] if label != -100]))


@pytest.mark.parametrize("name", ["sharegpt", "trl-sft"])
def test_the_loss_falls_on_the_trained_side(
    exports: Exports, tokenizers: Tokenizers, name: str, tmp_path: Path
) -> None:
    tokens = tokenizers.with_template(tiny.PLAIN)
    rows = preprocessed(told_by_card(exports.folder(name)), tokens, tmp_path)
    assert len(rows) == exports.summary(name)["rows"]["train"]
    lessons = {
        "".join(text + tiny.END for role, text in joined(turns) if role == "Teacher")
        for turns in exports.lessons().values()
    }
    for row in rows:
        assert trained(tokens, row) in lessons


def test_preferences_load(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    name = "trl-dpo"
    tokens = tokenizers.with_template(tiny.PLAIN)
    told = told_by_card(exports.folder(name))
    rows = preprocessed(told, tokens, tmp_path)
    assert len(rows) == exports.summary(name)["rows"]["train"]
    given = exports.train(name)
    ends = tiny.END
    assert {(row["chosen"], row["rejected"]) for row in rows} == {
        (row["chosen"][0]["content"] + ends, row["rejected"][0]["content"] + ends) for row in given
    }
    prompts = {
        tokens.apply_chat_template(row["prompt"], add_generation_prompt=True, tokenize=False) for row in given
    }
    assert {row["prompt"] for row in rows} == prompts
