"""Environments for TRL's GRPOTrainer; nothing of TRL is imported.

    rollouts = TrlRollouts(SyncEducationEnv.from_job("jobs/selfplay.yaml"), range(500))
    trainer = GRPOTrainer(
        model,
        rollouts.reward,
        train_dataset=Dataset.from_list(rollouts.rows()),
        rollout_func=rollouts.rollout,
        ...
    )

or, if the policy speaks by calling a tool:

    trainer = GRPOTrainer(
        model,
        train_dataset=Dataset.from_list(tool_rows(env, range(500))),
        environment_factory=partial(ToolEnvironment, env),
        ...
    )
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from edgen.core.errors import EdgenError, UsageError
from edgen.env.conversation import Step, SyncConversation, heard
from edgen.env.environment import SyncEducationEnv
from edgen.env.episode import Messages

Tokens = list[int]
# Takes a trainer and each conversation's tokens so far; returns the policy's next tokens and their log
# probabilities, None if unknown.
Sample = Callable[[Any, list[Tokens]], tuple[list[Tokens], list[list[float]] | None]]


def sample_with_trainer(trainer: Any, prompts: list[Tokens]) -> tuple[list[Tokens], list[list[float]] | None]:
    """Generate in the trainer's own way, by vLLM or transformers."""
    tokens, chances = trainer._generate_single_turn(prompts, None, {}, 1)  # TRL has no public name for this
    return [[*map(int, said)] for said in tokens], chances


class TrlRollouts:
    """Arguments for a GRPOTrainer: `rows` as its data, `rollout` as `rollout_func`, `reward` as a reward
    function.

    The policy opens the conversations. Its sampled tokens are trained on; the others' are masked. A
    conversation is stopped once its completion has `max_tokens`. `sample` generates.
    """

    def __init__(
        self,
        env: SyncEducationEnv,
        scenarios: Iterable[int],
        *,
        max_tokens: int = 4096,
        sample: Sample = sample_with_trainer,
    ) -> None:
        self._env = env
        self._max_tokens = max_tokens
        self._sample = sample
        self._scenarios: dict[bytes, int] = {}
        for index in scenarios:
            self._scenarios.setdefault(_make_key(env.first_prompt(index)), index)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per scenario; one row for scenarios with equal prompts."""
        return [{"prompt": self._env.first_prompt(index)} for index in self._scenarios.values()]

    def reward(self, *, env_reward: Sequence[float | None], **_: Any) -> list[float | None]:
        """Return the environment's reward of each conversation."""
        return [*env_reward]

    def rollout(self, prompts: Sequence[Messages], trainer: Any) -> dict[str, Any]:
        """Return a conversation for each prompt, run concurrently. Raises UsageError for a prompt not in
        `rows`."""
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
            "env_reward": [course.reward for course in courses],
        }

    def _find(self, prompt: Messages) -> int:
        index = self._scenarios.get(_make_key(prompt))
        if index is None:
            raise UsageError("the prompt is not from these rollouts: take the data from their `rows()`.")
        return index


class _Course:
    """A conversation with its tokens: `mask` is 1 for the policy's, 0 for the others'."""

    def __init__(self, conversation: SyncConversation, tokenizer: Any) -> None:
        self._conversation = conversation
        self._tokenizer = tokenizer
        self._shown = ""  # the policy's prompt as text
        self._text = ""  # the policy's last words
        self.prompt: Tokens = []
        self.completion: Tokens = []
        self.mask: list[int] = []
        self.chances: list[float] = []
        self.done = False
        self.reward: float | None = None

    def begin(self) -> None:
        self._shown = self._render(self._conversation.reset())
        self.prompt = self._encode(self._shown)

    def say(self, tokens: Tokens, chances: Sequence[float] | None) -> None:
        """Take the policy's sampled tokens."""
        self.completion += tokens
        self.mask += [1] * len(tokens)
        self.chances += chances or ()
        self._text = self._tokenizer.decode(tokens, skip_special_tokens=True)

    def hear(self, most: int) -> None:
        """Hear the others' answer; end once there are `most` tokens."""
        step = self._conversation.step(self._text)
        answer = [] if step.done else self._encode_answers(step)
        if not step.done and len(self.completion) + len(answer) >= most:
            step = self._conversation.stop()
        self.done, self.reward = step.done, step.reward
        if not step.done:
            self.completion += answer
            self.mask += [0] * len(answer)
            self.chances += [0.0] * len(answer)

    def _encode_answers(self, step: Step) -> Tokens:
        """Return the tokens that the chat template puts after the policy's words. The words keep their
        sampled tokens."""
        heard(step)  # raises UsageError without an answer
        messages = step.messages
        shown = self._render(messages)
        before = self._shown + messages[-2]["content"]
        if not shown.startswith(before):
            raise UsageError(
                "the chat template changes earlier messages, so new tokens cannot be appended: train with a "
                "template that keeps them."
            )
        self._shown, rest = shown, shown[len(before) :]
        last = self.completion[-1]
        if last in self._tokenizer.all_special_ids:
            rest = rest.removeprefix(self._tokenizer.decode([last]))  # the policy has already closed its turn
        return self._encode(rest)

    def _render(self, messages: Messages) -> str:
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text

    def _encode(self, text: str) -> Tokens:
        return [*self._tokenizer(text, add_special_tokens=False)["input_ids"]]


def _make_key(prompt: Messages) -> bytes:
    return msgspec.json.encode([(message["role"], message["content"]) for message in prompt])


class ToolEnvironment:
    """One conversation for TRL's `environment_factory`: its one tool is `say`, and it holds the reward.

    If the policy leaves a conversation, it is stopped and rewarded. Without any words of the policy, the
    reward is the environment's `broken`.
    """

    def __init__(self, env: SyncEducationEnv) -> None:
        self._env = env
        self._conversation: SyncConversation | None = None
        self._said = False
        self._step: Step | None = None
        self._failure: EdgenError | None = None

    def reset(self, *, scenario: int, **_: Any) -> str | None:
        """Begin the scenario of a row; return the first words of the others, if they open. TRL calls this."""
        self._conversation = self._env.conversation(scenario)
        self._said, self._step, self._failure = False, None, None
        messages = self._conversation.reset()
        return None if self._env.opens(scenario) else "\n\n".join(message["content"] for message in messages)

    def say(self, text: str) -> str:
        """
        Say something to the others, and hear what they answer.

        Args:
            text: What you say, in your own words.

        Returns:
            What the others say to it.
        """
        conversation = self._find_running()
        if self._failure is not None or (self._step is not None and self._step.done):
            return _OVER
        try:
            self._said = True
            self._step = conversation.step(str(text))  # a policy may pass a value of any type
            answer = "\n\n".join(message["content"] for message in heard(self._step))
        except EdgenError as failure:  # if raised, TRL would show it to the policy and continue
            self._failure = failure
            return _OVER
        return answer or _OVER

    def get_reward(self) -> float | None:
        """Return the conversation's reward. TRL calls this. Raises the errors of `say`: EdgenError, as
        `SyncConversation.step` does."""
        if self._failure is not None:
            raise self._failure
        if not self._said:
            return self._env.broken
        if self._step is None or not self._step.done:
            self._step = self._find_running().stop()
        return self._step.reward

    def _find_running(self) -> SyncConversation:
        if self._conversation is None:
            raise UsageError("no episode is running: call reset(scenario=...) first.")
        return self._conversation


_OVER = "The conversation is over."


def tool_rows(env: SyncEducationEnv, scenarios: Iterable[int]) -> list[dict[str, Any]]:
    """Return the data for `ToolEnvironment`: a prompt that its `reset` may extend, and the scenario's
    number."""
    blank = [{"role": "user", "content": ""}]
    return [
        {"prompt": env.first_prompt(index) if env.opens(index) else blank, "scenario": index}
        for index in scenarios
    ]
