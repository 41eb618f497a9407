"""GRPO on conversations with a simulated student: TRL's `rollout_func`, its tokens and its masks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from edgen.core.errors import UsageError
from edgen.env import SyncEducationEnv
from edgen.env.trl import TrlRollouts, sample_with_trainer
from tests.rl import tiny
from tests.rl.pipeline import Tokenizers
from tests.rl.train import settings, take_steps
from tests.rl.watch import complaints

TURNS = 6
WORDS = "Let us look at it together, with picture number"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[SyncEducationEnv]:
    values = {
        "name": "t", "seed": 3, "conversations": 20, "protocol": "selfplay", "space": "education_dialogue",
        "selfplay": {"closing": "student", "max_turns": TURNS}, "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(json.dumps(values))
    with SyncEducationEnv.from_job(tmp_path / "job.yaml") as env:
        yield env


def trainer_of(rollouts: TrlRollouts, rollout: Any, reward: Any, tokens: Any, folder: Path) -> GRPOTrainer:
    told = {
        **settings(folder),
        "num_generations": 2,
        "max_completion_length": 8,
        "per_device_train_batch_size": 4,
    }
    del told["max_length"]
    return GRPOTrainer(
        model=tiny.language_model(tokens, folder), reward_funcs=reward, args=GRPOConfig(**told),
        train_dataset=Dataset.from_list(rollouts.rows()), processing_class=tokens, rollout_func=rollout,
    )  # fmt: skip


def test_grpo_trains_on_what_the_policy_says_in_a_conversation(
    env: SyncEducationEnv, tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokens = tokenizers.with_template(tiny.STRICT)
    sampled: list[list[int]] = []
    done: list[dict[str, Any]] = []
    rewarded: list[float | None] = []

    def sample(trainer: Any, prompts: list[list[int]]) -> Any:
        said, chances = sample_with_trainer(trainer, prompts)
        sampled.extend(said)
        return said, chances

    def rollout(prompts: Any, trainer: Any) -> Any:
        done.append(rollouts.rollout(prompts, trainer))
        return done[-1]

    def reward(**given: Any) -> list[float | None]:
        rewarded.extend(rollouts.reward(**given))
        return rollouts.reward(**given)

    rollouts = TrlRollouts(env, range(8), sample=sample)
    with complaints() as said:
        take_steps(trainer_of(rollouts, rollout, reward, tokens, tmp_path))
    assert said == []
    masked = [
        [token for token, kept in zip(ids, mask, strict=True) if kept]
        for one in done
        for ids, mask in zip(one["completion_ids"], one["env_mask"], strict=True)
    ]
    assert sum(map(len, masked)) == sum(map(len, sampled)), (
        "all that was sampled is trained on, and nothing else"
    )
    assert max(sum(1 for kept, _ in groupby(mask) if kept) for one in done for mask in one["env_mask"]) > 1
    assert rewarded == [worth for one in done for worth in one["env_reward"]]
    assert all(worth is None or 0 <= worth <= 1 for worth in rewarded)


@pytest.mark.parametrize("template", tiny.TEMPLATES.values(), ids=tiny.TEMPLATES)
@pytest.mark.parametrize("closes", [True, False])
def test_tokens_are_those_of_the_whole_conversation(
    env: SyncEducationEnv, tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str,
    closes: bool,
) -> None:  # fmt: skip
    """The tokens of a policy with known words are complete, and none is repeated.

    With and without the end of a turn.
    """
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokens = tokenizers.with_template(template)
    asked: list[int] = []

    def sample(_: Any, prompts: list[list[int]]) -> Any:
        asked.append(len(prompts))
        text = f"{WORDS} {len(asked)}." + tiny.END * closes
        return [tokens(text, add_special_tokens=False)["input_ids"] for _ in prompts], None

    rollouts = TrlRollouts(env, range(4), sample=sample)
    trainer = trainer_of(rollouts, rollouts.rollout, rollouts.reward, tokens, tmp_path)
    out = rollouts.rollout([row["prompt"] for row in rollouts.rows()], trainer)
    assert out["logprobs"] is None
    for index in range(4):
        conversation = env.conversation(index)
        messages, done, info, number = conversation.reset(), False, {}, 0
        while not done:
            number += 1
            before = messages
            messages, _, done, info = conversation.step(f"{WORDS} {number}.")
        shown = tokens.apply_chat_template(before, tokenize=False, add_generation_prompt=True)
        whole = shown + f"{WORDS} {number}." + tiny.END * closes
        assert tokens.decode(out["prompt_ids"][index] + out["completion_ids"][index]) == whole
        assert len(out["env_mask"][index]) == len(out["completion_ids"][index])
        assert out["env_reward"][index] == info["probability"]


def test_a_conversation_that_grows_too_long_is_stopped_with_its_reward(
    env: SyncEducationEnv, tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokens = tokenizers.with_template(tiny.PLAIN)

    def sample(_: Any, prompts: list[list[int]]) -> Any:
        return [tokens(WORDS + tiny.END, add_special_tokens=False)["input_ids"] for _ in prompts], None

    rollouts = TrlRollouts(env, range(2), sample=sample, max_tokens=1)
    trainer = trainer_of(rollouts, rollouts.rollout, rollouts.reward, tokens, tmp_path)
    out = rollouts.rollout([row["prompt"] for row in rollouts.rows()], trainer)
    assert [tokens.decode(ids) for ids in out["completion_ids"]] == [WORDS + tiny.END] * 2
    assert all(0 <= worth <= 1 for worth in out["env_reward"])


def test_words_that_are_no_turn_have_the_reward_that_was_said(
    env: SyncEducationEnv, tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokens = tokenizers.with_template(tiny.PLAIN)

    def sample(_: Any, prompts: list[list[int]]) -> Any:
        said = f"Hello.\nStudent: Hi!\nTeacher: Well.{tiny.END}"
        return [tokens(said, add_special_tokens=False)["input_ids"] for _ in prompts], None

    for broken in (-1.0, None):
        worth = SyncEducationEnv.from_job(tmp_path / "job.yaml", shares=env, broken=broken)
        rollouts = TrlRollouts(worth, range(2), sample=sample)
        trainer = trainer_of(rollouts, rollouts.rollout, rollouts.reward, tokens, tmp_path)
        prompts = [row["prompt"] for row in rollouts.rows()]
        assert rollouts.rollout(prompts, trainer)["env_reward"] == [broken, broken]
        worth.close()
    with pytest.raises(UsageError, match=r"not from these rollouts"):
        rollouts.rollout([env.first_prompt(9)], trainer)


def test_a_template_that_rewrites_the_past_is_refused(
    env: SyncEducationEnv, tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokens = tiny.tokenizer(tokenizers.texts, "{{ messages | length }} messages\n" + tiny.PLAIN)

    def sample(_: Any, prompts: list[list[int]]) -> Any:
        return [tokens(WORDS + tiny.END, add_special_tokens=False)["input_ids"] for _ in prompts], None

    rollouts = TrlRollouts(env, range(2), sample=sample)
    trainer = trainer_of(rollouts, rollouts.rollout, rollouts.reward, tokens, tmp_path)
    with pytest.raises(UsageError, match="changes earlier messages"):
        rollouts.rollout([row["prompt"] for row in rollouts.rows()], trainer)


def test_a_policy_that_speaks_twice_in_a_row_is_refused(
    env: SyncEducationEnv, tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokens = tokenizers.with_template(tiny.PLAIN)

    def sample(_: Any, prompts: list[list[int]]) -> Any:
        return [tokens(WORDS + tiny.END, add_special_tokens=False)["input_ids"] for _ in prompts], None

    order = "selfplay.order=[teacher, teacher, student]"
    with SyncEducationEnv.from_job(tmp_path / "job.yaml", order) as twice:
        rollouts = TrlRollouts(twice, range(2), sample=sample)
        trainer = trainer_of(rollouts, rollouts.rollout, rollouts.reward, tokens, tmp_path)
        with pytest.raises(UsageError, match=r"change selfplay\.order"):
            rollouts.rollout([row["prompt"] for row in rollouts.rows()], trainer)
