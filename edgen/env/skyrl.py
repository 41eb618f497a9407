"""An environment for SkyRL-gym.

    register("lessons", SyncEducationEnv.from_job("jobs/selfplay.yaml"))
    rows("lessons", env, range(500))  # a data set's rows: `prompt`, `env_class`, `scenario`

Call `register` in the process that makes the environments, as in SkyRL's own examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from edgen.core.extras import make_not_installed_error
from edgen.env.conversation import Step, heard
from edgen.env.environment import SyncEducationEnv
from edgen.env.episode import Messages

try:
    import skyrl_gym
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as missing:
    raise make_not_installed_error("skyrl-gym", missing) from missing


class ConversationEnv(BaseTextEnv):
    """One conversation of the environment `shared`. After `max_turns` of the policy it is stopped and
    rewarded.

    SkyRL requires a reward. If another role's words were not a turn, the reward is unknown: it is 0 then, and
    `reward_known` in the metadata is False.
    """

    shared: ClassVar[SyncEducationEnv]

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        extras = extras or {}
        self.max_turns = extras.get("max_turns")
        self._conversation = self.shared.conversation(int(extras["scenario"]))
        self._info: dict[str, Any] = {}

    def init(self, prompt: Messages) -> tuple[Messages, dict[str, Any]]:
        """Return the policy's first observation, ignoring the row's prompt: another role may have opened."""
        return self._conversation.reset(), {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Return the others' answer. Raises EdgenError as `SyncConversation.step`."""
        self.turns += 1
        step = self._conversation.step(action)
        answer = heard(step)
        if not step.done and self.max_turns is not None and self.turns >= self.max_turns:
            step, answer = self._conversation.stop(), []
        self._info = _describe_step(step)
        return BaseTextEnvStepOutput(
            observations=answer, reward=step.reward or 0.0, done=step.done, metadata=self._info
        )

    def get_metrics(self) -> dict[str, Any]:
        """Return the number of turns, and facts on the conversation's end."""
        numbers = {name: self._info.get(name) for name in ("turns", "probability")}
        return {name: value for name, value in numbers.items() if value is not None}


def _describe_step(step: Step) -> dict[str, Any]:
    told = ("turns", "ended_by", "rejected", "rejected_by", "probability", "scores")
    known = {"reward_known": step.reward is not None} if step.done else {}
    return known | {name: step.info[name] for name in told if name in step.info}


def register(name: str, env: SyncEducationEnv) -> None:
    """Let `skyrl_gym.make(name, ...)` make conversations of an environment. Raises SkyRL's error for a
    repeated name."""
    skyrl_gym.register(id=name, entry_point=type("ConversationEnv", (ConversationEnv,), {"shared": env}))


def rows(name: str, env: SyncEducationEnv, scenarios: Iterable[int]) -> list[dict[str, Any]]:
    """Return a data set's rows. SkyRL drops rows with a long `prompt`, which `init` then returns again.
    Raises UsageError if another role opens."""
    return [{"prompt": env.first_prompt(index), "env_class": name, "scenario": index} for index in scenarios]
