"""LLaMA-Factory's data loader on its exports, as `llamafactory-cli train` calls it.

It needs older versions of nearly all packages, so it has an environment of its own: that of `make test-rl`,
and in it `pip install --no-deps llamafactory==0.9.5` with the packages that its loader imports, and
DISABLE_VERSION_CHECK=1. An empty module called torchaudio is enough: the loader imports it, and no text needs
it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
from llamafactory.hparams import get_train_args

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers

pytestmark = pytest.mark.integration


def loaded(folder: Path, dataset: str, stage: str, tokens: Any, where: Path) -> Any:
    tokens.save_pretrained(where / "model")
    tiny.language_model(tokens, where)
    model, data, training, finetuning, _ = get_train_args(
        {
            "stage": stage, "do_train": True, "model_name_or_path": str(where / "model"), "dataset_dir": str(folder),
            "dataset": dataset, "template": "empty", "output_dir": str(where / "out"), "cutoff_len": 8192,
            "finetuning_type": "full", "overwrite_cache": True, "report_to": "none",
        }
    )  # fmt: skip
    template = get_template_and_fix_tokenizer(tokens, data)
    return get_dataset(template, model, data, training, finetuning.stage, tokenizer=tokens)["train_dataset"]


def test_preferences(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    tokens = tokenizers.with_template(tiny.PLAIN)
    rows = loaded(exports.folder("llamafactory"), "preference_train", "rm", tokens, tmp_path)
    assert len(rows) == exports.summary("llamafactory")["tables"]["preference"]["train"]
    assert all(row["chosen_labels"] != row["rejected_labels"] for row in rows)


def test_good_and_bad_turns(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    tokens = tokenizers.with_template(tiny.PLAIN)
    rows = loaded(exports.folder("llamafactory"), "kto_train", "kto", tokens, tmp_path)
    given = [json.loads(line) for line in (exports.folder("llamafactory") / "kto" / "train.jsonl").open()]
    assert [row["kto_tags"] for row in rows] == [row["kto_tag"] for row in given]


def test_conversations(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    tokens = tokenizers.with_template(tiny.PLAIN)
    folder = exports.folder("sharegpt")
    card = (folder / "README.md").read_text()
    line = next(line for line in card.splitlines() if line.startswith('{"edgen": {"file_name"'))
    (tmp_path / "dataset_info.json").write_text(line.replace("THIS_FOLDER", str(folder)))
    rows = loaded(tmp_path, "edgen", "sft", tokens, tmp_path)
    assert len(rows) == exports.summary("sharegpt")["rows"]["train"]
    for row, given in zip(rows, exports.train("sharegpt"), strict=True):
        said = tokens.decode([label for label in row["labels"] if label != -100])
        own = [message["value"] for message in given["conversations"] if message["from"] == "gpt"]
        assert all(text in said for text in own)
        assert not any(m["value"] in said for m in given["conversations"] if m["from"] == "human")
