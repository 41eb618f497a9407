"""REFUEL's columns of tokens: padded and masked as by its own script, and stacked as by a trainer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers, edgen

pytestmark = pytest.mark.integration
LENGTH = 768


@pytest.fixture(scope="module")
def tokens(tokenizers: Tokenizers) -> PreTrainedTokenizerBase:
    return tiny.tokenizer(tokenizers.texts, tiny.STRICT)


@pytest.fixture(scope="module")
def made(
    exports: Exports, tokens: PreTrainedTokenizerBase, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """Return the export with tokens, and the output of --json."""
    folder = tmp_path_factory.mktemp("refuel")
    tokens.save_pretrained(folder / "tiny-model")
    said = edgen(
        "export", exports.run, "--to", "refuel", "-o", folder / "out", "--tokenizer", "tiny-model",
        "--max-tokens", str(LENGTH), "--json", cwd=folder,
    )  # fmt: skip
    return folder / "out", json.loads(said)


def test_a_trainer_stacks_them(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """The columns that refuel.py takes of both splits can be stacked."""
    names = [f"{side}_{what}" for side in ("chosen", "reject") for what in ("token", "mask", "reward")]
    for split in ("train", "test"):
        rows = load_dataset(str(made[0]), cache_dir=str(tmp_path), split=split).with_format(
            "torch", columns=names
        )
        batch = next(iter(DataLoader(rows, batch_size=2)))
        for side in ("chosen", "reject"):
            assert batch[f"{side}_token"].shape == batch[f"{side}_mask"].shape == (2, LENGTH)
            assert set(batch[f"{side}_mask"].unique().tolist()) == {0, 1}
            assert batch[f"{side}_reward"].shape == (2,)


def test_the_mask_is_on_the_reply_alone(
    made: tuple[Path, dict[str, Any]], exports: Exports, tokens: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    pad = len(tokens)  # [PAD] is the next one
    rows = load_dataset(str(made[0]), cache_dir=str(tmp_path), split="train")
    for row in rows:
        for side in ("chosen", "reject"):
            reply = row[side][2 * row["h"] + 1]["content"]
            found = row[f"{side}_token"]
            marked = [token for token, mask in zip(found, row[f"{side}_mask"], strict=True) if mask]
            assert tokens.decode(marked) == f"{reply}{tiny.END}\n"
            whole = tokens.apply_chat_template(row[side][: 2 * row["h"] + 2], return_dict=False)
            assert found == whole + [pad] * (LENGTH - len(whole))


def test_the_card_names_the_tokenizer(made: tuple[Path, dict[str, Any]]) -> None:
    card = (made[0] / "README.md").read_text()
    assert "- tokenizer: name: `tiny-model`" in card
    assert f"- tokenizer: padded_to: `{LENGTH}`" in card
    assert "`chosen_token`: tokens of the first 2h + 2 messages" in card


def test_what_is_longer_is_left_out_and_told(
    made: tuple[Path, dict[str, Any]], exports: Exports, tokens: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    folder, said = made
    rows = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.open()]
    longest = [
        max(LENGTH - row[f"{side}_token"].count(len(tokens)) for side in ("chosen", "reject")) for row in rows
    ]
    most = sorted(longest)[len(longest) // 2]
    shorter = edgen(
        "export", exports.run, "--to", "refuel", "-o", tmp_path / "out", "--tokenizer", folder.parent / "tiny-model",
        "--max-tokens", str(most), "--json", cwd=tmp_path,
    )  # fmt: skip
    found = json.loads(shorter)
    assert found["left_out"]["too_long"] == sum(one > most for one in longest) > 0
    assert sum(found["rows"].values()) == sum(one <= most for one in longest)
    assert sum(said["rows"].values()) == len(rows)


def test_a_template_that_refuses_is_named(exports: Exports, tokenizers: Tokenizers, tmp_path: Path) -> None:
    tokens = tiny.tokenizer(tokenizers.texts, "{{ raise_exception('Not today.') }}")
    tokens.save_pretrained(tmp_path / "model")
    tokens.chat_template = None
    tokens.save_pretrained(tmp_path / "without")
    (tmp_path / "empty").mkdir()
    for name in ("model", "without", "empty"):
        edgen(
            "export",
            exports.run,
            "--to",
            "refuel",
            "-o",
            tmp_path / "out",
            "--tokenizer",
            name,
            cwd=tmp_path,
            code=2,
        )
        assert not (tmp_path / "out").exists()
