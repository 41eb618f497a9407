"""An environment for the library verifiers (its v1): `vf-eval`, and trainers that use its environments.

Plugins of verifiers are modules. Yours has one line and is importable, for example as lessons.py:

    from edgen.env.verifiers import *

    vf-eval lessons --env.taskset.job jobs/selfplay.yaml -m MODEL --client.base-url URL --no-push

The policy speaks through a harness that runs in the process: no sandbox and no `uv` is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

from edgen.core.errors import UsageError
from edgen.core.extras import make_not_installed_error
from edgen.env.conversation import Conversation, Step, heard
from edgen.env.environment import EducationEnv
from edgen.env.episode import Messages
from edgen.env.reward import Reward
from edgen.planning.load import load_plan

try:
    import httpx
    import verifiers.v1 as vf
except ImportError as missing:
    raise make_not_installed_error("verifiers", missing) from missing

MOST_LISTED = 1_000_000  # scenarios; verifiers holds all listed tasks in memory

__all__ = ["ConversationEnv", "ConversationHarness", "ConversationTaskset"]


class ConversationTasksetConfig(vf.TasksetConfig):
    """The source of scenarios: a job file, with changes as for `--set`, and the policy's role."""

    job: Path = Path("job.yaml")
    overrides: tuple[str, ...] = ()
    plays: str | None = None


class ConversationData(vf.TaskData):
    """A scenario by number: its contents, with secrets, stay out of the records of verifiers."""

    scenario: int


class ConversationTask(vf.Task[ConversationData, vf.State, vf.TaskConfig]):
    """One scenario."""


class ConversationTaskset(vf.Taskset[ConversationTask, ConversationTasksetConfig]):
    """The scenarios that a job plans."""

    @property
    def INFINITE(self) -> bool:  # noqa: N802 - verifiers names it
        """True if there are too many scenarios to list at once: verifiers then needs a number of them, as
        with -n."""
        return self._planned > MOST_LISTED

    @functools.cached_property
    def _planned(self) -> int:
        return load_plan(self.config.job, self.config.overrides).job.conversations

    def load(self) -> Iterator[ConversationTask]:
        """Yield a task for each scenario, made lazily. Raises JobError, SpaceError, TemplateError."""
        for index in range(self._planned):
            data = ConversationData(name=f"scenario {index}", scenario=index)
            yield ConversationTask(data, self.config.task)


class ConversationHarnessConfig(vf.HarnessConfig):
    """A configuration with the settings of every harness, and no others."""


class ConversationHarness(vf.Harness[ConversationHarnessConfig]):
    """A harness in this process: one call per turn, with the whole conversation."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: Any
    ) -> Any:
        """Call the policy; verifiers records its answer."""
        messages = [{"role": message.role, "content": message.content or ""} for message in data.prompt]
        async with httpx.AsyncClient(timeout=None, trust_env=False) as client:  # noqa: S113 - verifiers bounds the turn
            answer = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return vf.ProgramResult(int(answer.is_error), "", answer.text if answer.is_error else "")


class ConversationEnvConfig(vf.EnvConfig):
    """Settings of the environment. `policy` is the evaluated or trained side."""

    policy: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class ConversationEnv(vf.Env[ConversationEnvConfig]):
    """An environment in which the policy talks to the job's backends. An episode's reward is `conversation`,
    with the metric `turns` and, if the job asks a closing question, `probability`. A subclass may set
    `reward` and `broken`, as for `EducationEnv`."""

    reward: ClassVar[Reward | None] = None
    broken: ClassVar[float | None] = 0.0

    async def start(self) -> None:
        """Open the resources that all episodes share: budget, limits and connections."""
        config = self.config.taskset
        self._stack = AsyncExitStack()
        env = EducationEnv.from_job(
            config.job, *config.overrides, plays=config.plays, reward=self.reward, broken=self.broken
        )
        self._conversations = await self._stack.enter_async_context(env)

    async def stop(self) -> None:
        """Close the shared resources."""
        if hasattr(self, "_stack"):
            await self._stack.aclose()

    async def run(self, task: ConversationTask, agents: Any) -> None:
        """Run one conversation. Raises UsageError if its reward is unknown: verifiers then counts the episode
        as failed, and may retry it."""
        conversation = self._conversations.conversation(task.data.scenario)
        messages = await conversation.reset()
        async with agents.policy.interaction(task) as interaction:
            step = await _play(conversation, messages, interaction)
        if step is not None:
            _record_step(step, interaction.trace)


async def _play(conversation: Conversation, messages: Messages, interaction: Any) -> Step | None:
    """Play the conversation to its end. If verifiers ends it, for example by `max_turns`, the conversation is
    stopped. Return None if the policy could not be called."""
    while True:
        segment = await interaction.turn(messages)
        if segment.terminated:
            return None if interaction.trace.errors else await conversation.stop()
        step = await conversation.step(segment.last_reply)
        if step.done:
            return step
        messages = heard(step)


def _record_step(step: Step, trace: Any) -> None:
    if step.reward is None:
        raise UsageError(f"the conversation has no reward; rejected: {step.info['rejected']}.")
    trace.record_reward("conversation", step.reward)
    probability = step.info["probability"]
    known = {} if probability is None else {"probability": probability}
    trace.record_metrics({"turns": step.info["turns"]} | known | step.info.get("scores", {}))
