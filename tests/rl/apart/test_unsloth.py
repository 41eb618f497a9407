"""unsloth on exports of conversations: its results, and its error for a boolean in a message.

unsloth needs datasets before 5, so it has an environment of its own: that of `make test-rl`, and in it `pip
install --no-deps unsloth==2026.10.9 unsloth_zoo==2026.10.9`. Then `python -m pytest tests/rl/apart`.
"""

from __future__ import annotations

import unsloth  # isort: skip - it wants to be first

from pathlib import Path

import pytest
from datasets import load_dataset
from unsloth.chat_templates import standardize_sharegpt, train_on_responses_only

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers, edgen

pytestmark = pytest.mark.integration
assert unsloth.__version__


def exported(exports: Exports, name: str, folder: Path, *options: str) -> Path:
    edgen("export", exports.run, "--to", name, "-o", folder / name, *options, cwd=folder)
    return folder / name


def test_it_takes_no_boolean_in_a_message(exports: Exports, tmp_path: Path) -> None:
    rows = load_dataset(str(exports.folder("sharegpt")), cache_dir=str(tmp_path), split="train")
    with pytest.raises(RuntimeError, match="Cannot standardize non text datasets"):
        standardize_sharegpt(rows)


def test_without_masks_sharegpt_becomes_messages(exports: Exports, tmp_path: Path) -> None:
    folder = exported(exports, "sharegpt", tmp_path, "--no-masks")
    rows = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"), split="train")
    names = {"human": "user", "gpt": "assistant"}
    standard = standardize_sharegpt(rows)
    for before, after in zip(rows, standard, strict=True):
        assert after["conversations"] == [
            {"role": names[message["from"]], "content": message["value"]}
            for message in before["conversations"]
        ]


def test_the_loss_falls_on_the_assistant(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    """The loss falls on the assistant, as in unsloth's notebooks.

    The texts are the template's; masks follow from the text before each side's turns.
    """
    from trl import SFTConfig, SFTTrainer

    from tests.rl.train import settings

    tokens = tokenizers.with_template(tiny.PLAIN)
    folder = exported(exports, "trl-sft", tmp_path, "--no-masks")
    rows = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"), split="train")
    texts = rows.map(lambda row: {"text": tokens.apply_chat_template(row["messages"], tokenize=False)})
    trainer = SFTTrainer(
        model=tiny.language_model(tokens, tmp_path), processing_class=tokens, train_dataset=texts.select_columns("text"),
        args=SFTConfig(**settings(tmp_path), dataset_text_field="text"),
    )  # fmt: skip
    trainer = train_on_responses_only(
        trainer, instruction_part="<|begin|>user\n", response_part="<|begin|>assistant\n"
    )
    for row, seen in zip(rows, trainer.train_dataset, strict=True):
        own = [message["content"] for message in row["messages"] if message["role"] == "assistant"]
        said = tokens.decode([label for label in seen["labels"] if label != -100])
        assert [text in said for text in own] == [True] * len(own)
        assert not any(message["content"] in said for message in row["messages"] if message["role"] == "user")
