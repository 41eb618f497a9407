"""verl on its two exports: its data sets, the cards' commands in its entry points, and its reward manager.

verl brings ray (240 MB) and needs transformers before 5.11, so it has an environment of its own: `pip install
verl==0.9.1 torch==2.13.0` next to requirements.txt, then `python -m pytest tests/rl/apart`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.reward import get_custom_reward_fn, load_reward_manager
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import validate_config
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

from tests.rl import tiny
from tests.rl.pipeline import Exports, Tokenizers

pytestmark = pytest.mark.integration


def command(exports: Exports, name: str) -> list[str]:
    """Return the card's command with its placeholders filled in: the module and its overrides."""
    card = (exports.folder(name) / "README.md").read_text()
    told = re.search(r"## Use\n\n```\n(.*?)```", card, re.DOTALL)
    assert told is not None
    filled = (
        told[1]
        .replace("THIS_FOLDER", str(exports.folder(name)))
        .replace("JOB", str(exports.run / "job.yaml"))
    )
    words = shlex.split(
        filled.replace("\\\n", " ").replace("GPUS", "1").replace("=MODEL", "=/model").replace(" ...", "")
    )
    return words[words.index("-m") + 1 :]


@pytest.mark.parametrize("name", ["verl", "verl-rl"])
def test_the_entry_point_takes_the_cards_command(exports: Exports, name: str, tmp_path: Path) -> None:
    """With `--cfg job --resolve`, hydra composes the configuration and runs nothing."""
    done = subprocess.run(
        [sys.executable, "-m", *command(exports, name), "--cfg", "job", "--resolve"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "HYDRA_FULL_ERROR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert str(exports.folder(name) / "train.parquet") in done.stdout


def configuration(exports: Exports, *more: str) -> Any:
    _, *overrides = command(exports, "verl-rl")
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", [*overrides, *more])


def test_main_ppo_holds_its_configuration_for_valid(exports: Exports) -> None:
    config = configuration(exports)
    batch = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1"
    rollout = "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1"
    config = configuration(exports, batch, rollout)
    validate_config(config, need_reference_policy(config), need_critic(config))


@pytest.fixture(scope="module")
def rows(exports: Exports, tokenizers: Tokenizers) -> RLHFDataset:
    """Return the train split as main_ppo loads it, with the card's settings."""
    config = configuration(exports)
    return RLHFDataset(
        list(config.data.train_files.split()), tokenizers.with_template(tiny.STRICT), config.data
    )


def test_rlhf_dataset_takes_every_row(exports: Exports, rows: RLHFDataset) -> None:
    assert len(rows) == exports.summary("verl-rl")["rows"]["train"]
    batch = collate_fn([rows[i] for i in range(4)])
    assert set(batch["data_source"]) == {"edgen"}
    assert all(info["role"] == "Teacher" for info in batch["extra_info"])
    assert all(spec["ground_truth"] for spec in batch["reward_model"])


@pytest.mark.parametrize("name", ["compute_score", "compute_score_async"])
def test_the_reward_manager_scores_by_the_judge(
    exports: Exports, rows: RLHFDataset, tokenizers: Tokenizers, name: str
) -> None:
    """The naive manager, verl's default, with the run's own simulated judge."""
    tokens = tokenizers.with_template(tiny.STRICT)
    config = configuration(exports, f"reward.custom_reward_function.name={name}")
    assert get_custom_reward_fn(config) is not None

    async def score() -> list[dict[str, Any]]:
        manager = load_reward_manager(config, tokens)
        said = [
            rows[0]["reward_model"]["ground_truth"],
            "Tell me, what do you see?",
            "",
            "Well. Let us draw it.",
        ]
        batches = [batch_of(rows, 0, tokens, text) for text in said]
        return await asyncio.gather(*(manager.run_single(batch) for batch in batches))

    results = asyncio.run(score())
    scores = [one["reward_score"] for one in results]
    judged = [one["reward_extra_info"]["judged"] for one in results]
    assert scores[0] == 0.5  # the reference itself
    assert (scores[2], judged[2]) == (0.0, 0.0)  # no words
    assert all(score in (0.0, 0.5, 1.0) for score in scores)
    assert judged[0] == 1.0


def batch_of(rows: RLHFDataset, index: int, tokens: Any, said: str) -> DataProto:
    """Return a rollout's batch with one response."""
    ids = torch.tensor([tokens(said, add_special_tokens=False)["input_ids"] or [tokens.eos_token_id]])
    row = collate_fn([rows[index]])
    return DataProto.from_dict(
        tensors={"responses": ids, "attention_mask": torch.ones_like(ids)},
        non_tensors={key: row[key] for key in ("data_source", "reward_model", "extra_info")},
    )


def test_multiturn_sft_dataset_puts_the_loss_on_the_assistant(
    exports: Exports, tokenizers: Tokenizers
) -> None:
    tokens = tokenizers.with_template(tiny.PLAIN)
    config = OmegaConf.create({"messages_key": "messages", "max_length": 4096, "truncation": "error"})
    data = MultiTurnSFTDataset(str(exports.folder("verl") / "train.parquet"), tokens, config)
    rows = exports.train("verl")
    assert len(data) == len(rows)
    for index in range(0, len(rows), 7):
        one = data[index]
        said = tokens.decode(one["input_ids"][one["loss_mask"] == 1])
        own = [message["content"] for message in rows[index]["messages"] if message["role"] == "assistant"]
        assert said == "".join(f"{text}{tiny.END}\n" for text in own)
