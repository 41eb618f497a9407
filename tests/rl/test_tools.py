"""GRPO on conversations in which the policy speaks by calling a tool: TRL's `environment_factory`."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from edgen.env import SyncEducationEnv
from edgen.env.trl import ToolEnvironment, tool_rows
from edgen.execution.client.budget import BudgetExhausted
from tests.env.jobs import job
from tests.rl import tiny
from tests.rl.pipeline import Tokenizers
from tests.rl.train import settings, take_steps

WORDS = [["What do you know about it already?", "Let us try it together."], ["I do not know.", "Never mind."]]


@pytest.fixture
def env(tmp_path: Path) -> Iterator[SyncEducationEnv]:
    with SyncEducationEnv.from_job(job(tmp_path)) as env:
        yield env


class Scripted(GRPOTrainer):
    """A trainer whose policy's words are known: two calls of `say`, then a text.

    Every other conversation differs, so that there is something to learn.
    """

    said = 0

    def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
        made = []
        for number in range(len(prompt_ids)):
            text = "Goodbye." if self.said % 3 == 2 else call(WORDS[number % 2][self.said % 3])
            made.append(self.processing_class(f"{text}<|im_end|>", add_special_tokens=False)["input_ids"])
        self.said += 1
        return made, None


def call(text: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'say', 'arguments': {'text': text}})}\n</tool_call>"


class Remembering(ToolEnvironment):
    """A tool environment that keeps the words and the reward of each conversation."""

    played: ClassVar[list[tuple[int, list[str], float | None]]] = []

    def reset(self, *, scenario: int, **row: Any) -> str | None:
        self._index, self._words = scenario, []
        return super().reset(scenario=scenario, **row)

    def say(self, text: str) -> str:
        """
        Say something.

        Args:
            text: What you say.
        """
        self._words.append(text)
        return super().say(text)

    def get_reward(self) -> float | None:
        worth = super().get_reward()
        self.played.append((self._index, self._words, worth))
        return worth


def trainer_of(env: SyncEducationEnv, tokenizers: Tokenizers, folder: Path) -> Scripted:
    tokens = tiny.tokenizer(tokenizers.texts, qwen3_chat_template)
    tokens.add_special_tokens({"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]})
    told = {
        **settings(folder),
        "num_generations": 2,
        "max_completion_length": 2_000,
        "per_device_train_batch_size": 4,
    }
    del told["max_length"]
    return Scripted(
        model=tiny.language_model(tokens, folder), args=GRPOConfig(**told), processing_class=tokens,
        train_dataset=Dataset.from_list(tool_rows(env, range(8))),
        environment_factory=functools.partial(Remembering, env),
    )  # fmt: skip


def test_grpo_trains_on_tool_calls_and_the_environment_owns_the_reward(
    env: SyncEducationEnv, tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    trainer = trainer_of(env, tokenizers, tmp_path)
    take_steps(trainer)
    log = [entry for entry in trainer.state.log_history if "tools/call_frequency" in entry]
    assert [entry["tools/call_frequency"] for entry in log] == [2.0, 2.0]
    assert [entry["tools/failure_frequency"] for entry in log] == [0.0, 0.0]
    assert len(Remembering.played) == 8
    for index, said, worth in Remembering.played:
        conversation = env.conversation(index)
        conversation.reset()
        assert said in WORDS
        for text in said:
            step = conversation.step(text)
            if step.done:
                break
        assert worth == (step if step.done else conversation.stop()).reward


def test_the_policy_is_told_its_own_side_and_hears_the_others(env: SyncEducationEnv) -> None:
    (row,) = tool_rows(env, [3])
    assert row == {"prompt": env.first_prompt(3), "scenario": 3}
    one = ToolEnvironment(env)
    assert one.reset(**row) is None
    answer = one.say(WORDS[0][0])
    assert answer == env_answer(env, 3)
    assert one.say("Goodbye. [end of conversation]") == "The conversation is over."
    worth = one.get_reward()
    assert worth is not None
    assert one.say("Hello?") == "The conversation is over."
    assert one.get_reward() == worth
    assert one.reset(**row) is None
    assert one.get_reward() == env.broken, "it said nothing"


def env_answer(env: SyncEducationEnv, index: int) -> str:
    conversation = env.conversation(index)
    conversation.reset()
    return conversation.step(WORDS[0][0]).messages[-1]["content"]


def test_where_another_role_opens_reset_adds_what_it_said(tmp_path: Path) -> None:
    path = job(tmp_path, selfplay={"first": "student", "closing": "student", "max_turns": 6})
    with SyncEducationEnv.from_job(path) as env:
        (row,) = tool_rows(env, [4])
        assert row["prompt"] == [{"role": "user", "content": ""}]
        shown = ToolEnvironment(env).reset(**row)
        assert shown == "\n\n".join(message["content"] for message in env.conversation(4).reset())


def test_a_budget_that_is_out_stops_the_training_and_is_not_shown_to_the_policy(tmp_path: Path) -> None:
    backends = {"default": {"type": "simulator", "max_tokens": 100}}
    with SyncEducationEnv.from_job(job(tmp_path, backends=backends, limits={"max_tokens": 20_000})) as env:
        one = ToolEnvironment(env)
        one.reset(scenario=0)
        assert one.say("x" * 100_000) == "The conversation is over."
        with pytest.raises(BudgetExhausted, match=r"raise limits\.max_tokens"):
            one.get_reward()
