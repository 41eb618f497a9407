"""An environment as TRL's GRPOTrainer takes it; nothing of TRL is imported.

rollouts = TrlRollouts(SyncEducationEnv.from_job("jobs/selfplay.yaml"), range(500))
trainer = GRPOTrainer(
    model, rollouts.reward, train_dataset=Dataset.from_list(rollouts.rows()), rollout_func=rollouts.rollout, ...
)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from edgen.core.errors import UsageError
from edgen.env.conversation import SyncConversation
from edgen.env.environment import SyncEducationEnv
from edgen.env.episode import Messages

Tokens = list[int]
# A trainer and the tokens so far of each conversation: the tokens that the policy says next, and their log
# probabilities, None where they are not known.
Sample = Callable[[Any, list[Tokens]], tuple[list[Tokens], list[list[float]] | None]]


def sample_with_trainer(trainer: Any, prompts: list[Tokens]) -> tuple[list[Tokens], list[list[float]] | None]:
    """The trainer's own way of generating, vLLM or transformers."""
    tokens, chances = trainer._generate_single_turn(prompts, None, {}, 1)  # TRL has no public name for it
    return [[*map(int, said)] for said in tokens], chances


class TrlRollouts:
    """What a GRPOTrainer is given: `rows` as its data, `rollout` as `rollout_func`, `reward` as a reward function.

    The policy opens the conversations. What it samples is trained on; what the others say is masked. A conversation is
    stopped once its completion has `max_tokens`. `broken` is the reward where the policy's words are no turn; None leaves
    such a conversation out. `sample` generates.
    """

    def __init__(
        self,
        env: SyncEducationEnv,
        scenarios: Iterable[int],
        *,
        max_tokens: int = 4096,
        broken: float | None = 0.0,
        sample: Sample = sample_with_trainer,
    ) -> None:
        self._env = env
        self._max_tokens = max_tokens
        self._broken = broken
        self._sample = sample
        self._scenarios: dict[bytes, int] = {}
        for index in scenarios:
            self._scenarios.setdefault(_key(env.first_prompt(index)), index)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each scenario. Of scenarios in which the policy is told the same, the first one."""
        return [{"prompt": self._env.first_prompt(index)} for index in self._scenarios.values()]

    def reward(self, *, env_reward: Sequence[float | None], **_: Any) -> list[float | None]:
        """What the environment's reward says of each conversation."""
        return [*env_reward]

    def rollout(self, prompts: Sequence[Messages], trainer: Any) -> dict[str, Any]:
        """A conversation for each prompt, all side by side. Raises UsageError for a prompt that is none of `rows`."""
        tokenizer = trainer.processing_class
        courses = [_Course(self._env.conversation(self._find(prompt)), tokenizer) for prompt in prompts]
        with ThreadPoolExecutor(max(1, len(courses))) as pool:
            list(pool.map(_Course.begin, courses))
            while going := [course for course in courses if not course.done]:
                said, chances = self._sample(trainer, [course.prompt + course.completion for course in going])
                for number, course in enumerate(going):
                    course.say(said[number], chances[number] if chances is not None else None)
                list(pool.map(lambda course: course.hear(self._max_tokens), going))
        known = all(len(course.chances) == len(course.completion) for course in courses)
        return {
            "prompt_ids": [course.prompt for course in courses],
            "completion_ids": [course.completion for course in courses],
            "logprobs": [course.chances for course in courses] if known else None,
            "env_mask": [course.mask for course in courses],
            "env_reward": [self._worth(course) for course in courses],
        }

    def _find(self, prompt: Messages) -> int:
        index = self._scenarios.get(_key(prompt))
        if index is None:
            raise UsageError("the prompt is none of these rollouts: take the data from their `rows()`.")
        return index

    def _worth(self, course: _Course) -> float | None:
        if course.info.get("rejected_by") == self._env.role:
            return self._broken
        worth: float | None = course.info["reward"]
        return worth


class _Course:
    """A conversation with its tokens: `mask` is 1 for the policy's, 0 for those it hears."""

    def __init__(self, conversation: SyncConversation, tokenizer: Any) -> None:
        self._conversation = conversation
        self._tokenizer = tokenizer
        self._shown = ""  # what the policy is asked with, as text
        self._text = ""  # what it said last
        self.prompt: Tokens = []
        self.completion: Tokens = []
        self.mask: list[int] = []
        self.chances: list[float] = []
        self.done = False
        self.info: dict[str, Any] = {}

    def begin(self) -> None:
        self._shown = self._render(self._conversation.reset())
        self.prompt = self._encode(self._shown)

    def say(self, tokens: Tokens, chances: Sequence[float] | None) -> None:
        """What the policy sampled."""
        self.completion += tokens
        self.mask += [1] * len(tokens)
        self.chances += chances or ()
        self._text = self._tokenizer.decode(tokens, skip_special_tokens=True)

    def hear(self, most: int) -> None:
        """What the others say to it; the end once there are `most` tokens."""
        messages, self.done, self.info = self._conversation.step(self._text)
        heard = [] if self.done else self._heard(messages)
        if not self.done and len(self.completion) + len(heard) >= most:
            _, self.done, self.info = self._conversation.stop()
        if not self.done:
            self.completion += heard
            self.mask += [0] * len(heard)
            self.chances += [0.0] * len(heard)

    def _heard(self, messages: Messages) -> Tokens:
        """What the template puts behind the policy's words. They themselves stay the tokens that were sampled."""
        if messages[-1]["role"] != "user":
            raise UsageError("the policy speaks twice in a row, and nobody answers: change selfplay.order.")
        shown = self._render(messages)
        before = self._shown + messages[-2]["content"]
        if not shown.startswith(before):
            raise UsageError(
                "the chat template does not keep what was said before to the letter, so tokens cannot be put one behind "
                "the other: train with a template that does."
            )
        self._shown, rest = shown, shown[len(before) :]
        last = self.completion[-1]
        if last in self._tokenizer.all_special_ids:
            rest = rest.removeprefix(self._tokenizer.decode([last]))  # the policy has closed its turn itself
        return self._encode(rest)

    def _render(self, messages: Messages) -> str:
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text

    def _encode(self, text: str) -> Tokens:
        return [*self._tokenizer(text, add_special_tokens=False)["input_ids"]]


def _key(prompt: Messages) -> bytes:
    return msgspec.json.encode([(message["role"], message["content"]) for message in prompt])
