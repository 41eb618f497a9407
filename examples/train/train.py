"""Train a tiny teacher in conversations with a simulated student, and draw the reward by step.

python examples/train/train.py [--job JOB] [--model NAME] [--steps N] [--seed N] [--picture FILE]

Needs torch, transformers, datasets, trl and matplotlib. Nothing is downloaded, unless --model names a model
of the hub.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import matplotlib

matplotlib.use("svg")
import numpy as np
import torch
from datasets import Dataset
from matplotlib import pyplot
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from trl import GRPOConfig, GRPOTrainer

from edgen.env import SyncEducationEnv
from edgen.env.trl import TrlRollouts

PROMPTS, GENERATIONS = 8, 8  # scenarios a step, conversations of each scenario
WORDS = 400  # that the tiny model knows
END = "<|end|>"
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|> {{ m['content'] }} <|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)
WINDOW = 9  # steps over which the picture's line is the mean


def tiny_model(env: SyncEducationEnv, seed: int) -> tuple[Any, Any]:
    """Return a model of two layers with random weights, and a tokenizer.

    The tokenizer knows the most common words of the first prompts.
    """
    texts = [message["content"] for index in range(len(env)) for message in env.first_prompt(index)]
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<unk>", END, "<|system|>", "<|user|>", "<|assistant|>"]
    words.train_from_iterator(
        texts, trainers.WordLevelTrainer(vocab_size=WORDS, special_tokens=special, show_progress=False)
    )
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", eos_token=END, pad_token=END,
        additional_special_tokens=special[2:],
    )  # fmt: skip
    tokens.chat_template = TEMPLATE
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # in a model of this size, more threads would only wait for each other
    config = LlamaConfig(
        vocab_size=len(tokens), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=4096, pad_token_id=tokens.pad_token_id, eos_token_id=tokens.eos_token_id,
        bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config), tokens


def train(env: SyncEducationEnv, model: Any, tokens: Any, **settings: Any) -> np.ndarray:
    """Train the model with GRPO.

    Return the rewards, (steps, scenarios a step, conversations of each); NaN where a conversation has no
    reward.
    """
    rollouts = TrlRollouts(env, range(len(env)))
    rewards: list[list[float]] = []

    def reward(**given: Any) -> list[float | None]:
        worth = rollouts.reward(**given)
        rewards.append([np.nan if one is None else one for one in worth])
        return worth

    config = GRPOConfig(
        per_device_train_batch_size=PROMPTS * GENERATIONS, num_generations=GENERATIONS, logging_steps=10, report_to=[],
        save_strategy="no", gradient_checkpointing=False, **settings,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model, reward_funcs=reward, args=config, processing_class=tokens,
        train_dataset=Dataset.from_list(rollouts.rows()), rollout_func=rollouts.rollout,
    )  # fmt: skip
    trainer.train()
    return np.array(rewards).reshape(-1, PROMPTS, GENERATIONS)


def say_lesson(env: SyncEducationEnv, model: Any, tokens: Any, index: int, turn: int) -> list[str]:
    """Return the policy's messages in one lesson."""
    conversation = env.conversation(index)
    messages, said, done = conversation.reset(), [], False
    while not done:
        prompt = tokens(
            tokens.apply_chat_template(messages, tokenize=False, add_generation_prompt=True),
            add_special_tokens=False,
            return_tensors="pt",
        )
        ids = model.generate(**prompt, max_new_tokens=turn, do_sample=True)[0, prompt["input_ids"].shape[1] :]
        said.append(tokens.decode(ids, skip_special_tokens=True))
        messages, _, done, _ = conversation.step(said[-1])
    return said


def draw(rewards: np.ndarray, path: Path) -> None:
    """Draw the mean reward by step, and the mean of WINDOW steps.

    The latter has its 95 % interval (normal, over scenarios).
    """
    scenarios = np.nanmean(rewards, axis=2)
    middles, means, halves = [], [], []
    for start in range(max(1, len(scenarios) - WINDOW + 1)):
        part = scenarios[start : start + WINDOW].ravel()
        middles.append(start + (min(WINDOW, len(scenarios)) + 1) / 2)
        means.append(np.nanmean(part))
        halves.append(1.96 * np.nanstd(part, ddof=1) / np.sqrt(np.isfinite(part).sum()))
    mean, half = np.array(means), np.array(halves)
    with matplotlib.rc_context({"svg.hashsalt": "edgen", "svg.fonttype": "none", "font.size": 9}):
        figure, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        steps = np.arange(1, len(scenarios) + 1)
        axes.plot(steps, np.nanmean(scenarios, axis=1), ".", color="#9aa5b1", label="one step")
        axes.fill_between(middles, mean - half, mean + half, color="#1f6feb", alpha=0.2, linewidth=0)
        axes.plot(middles, mean, color="#1f6feb", label=f"mean of {WINDOW} steps, with its 95 % interval")
        axes.set(xlabel="step", ylabel="mean reward", ylim=(0, 1), xlim=(0, len(scenarios) + 1))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def main() -> None:
    """Train the model, print the rewards and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--job", default=str(Path(__file__).with_name("job.yaml")))
    parser.add_argument("--model", help="a model's folder or its name on the hub; else a tiny one is made")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, help="learning rate: 3e-3 for the tiny model, else 1e-6")
    parser.add_argument("--turn", type=int, help="tokens of a turn at most: 10 for the tiny model, else 128")
    parser.add_argument("--picture", type=Path, default=Path("training.svg"))
    told = parser.parse_args()
    with SyncEducationEnv.from_job(told.job) as env, tempfile.TemporaryDirectory() as folder:
        if told.model:
            model = AutoModelForCausalLM.from_pretrained(told.model)
            tokens = AutoTokenizer.from_pretrained(told.model)
        else:
            model, tokens = tiny_model(env, told.seed)
        turn = told.turn or (128 if told.model else 10)
        print("before:", *say_lesson(env, model, tokens, 0, turn), sep="\n  ")
        started = time.monotonic()
        rewards = train(
            env, model, tokens, output_dir=folder, max_steps=told.steps, seed=told.seed, max_completion_length=turn,
            learning_rate=told.rate or (1e-6 if told.model else 3e-3), use_cpu=not torch.cuda.is_available(),
            bf16=torch.cuda.is_available(),
        )  # fmt: skip
        seconds = time.monotonic() - started
        print("after:", *say_lesson(env, model, tokens, 0, turn), sep="\n  ")
    draw(rewards, told.picture)
    tenth = max(1, len(rewards) // 10)
    print(
        f"mean reward {np.nanmean(rewards[:tenth]):.3f} in the first tenth of {len(rewards)} steps, "
        f"{np.nanmean(rewards[-tenth:]):.3f} in the last; {rewards.size} conversations, {seconds:.0f} s, "
        f"seed {told.seed}; {told.picture}"
    )


if __name__ == "__main__":
    main()
