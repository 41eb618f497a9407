"""The environments: a job's scenarios, and the partners that play the other roles."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from edgen.core.errors import JobError, UsageError
from edgen.core.values import ROLES, Role
from edgen.env.conversation import Conversation, Step, SyncConversation
from edgen.env.episode import Episode, Messages
from edgen.env.partners import Partners
from edgen.env.reward import ProbabilityReward, Reward
from edgen.execution.client.budget import Spending
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.protocols.suggestions import list_playable

Env = TypeVar("Env", bound="_Environment")


class _Environment:
    """The common part of both environments.

    `plays` names the policy's role; None: the first role, in spaces that name no roles. `shares` is another
    environment, whose budget, limits and connections are shared. `reward` rates an ended conversation; None
    is the probability. `broken` is the reward if the policy's words are not a turn. None: unknown, and
    trainers leave such a conversation out. Raises JobError if the job does not fit a policy.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        plays: Role | None = None,
        shares: _Environment | None = None,
        reward: Reward | None = None,
        broken: float | None = 0.0,
    ) -> None:
        self.role = _find_policy_role(plan, plays)
        self.scenario = plan.scenario
        self._plan = plan
        self._closed = False
        reward = reward or ProbabilityReward()
        self._reward = reward.start(plan)
        self.broken = broken
        others = [role for role in (*plan.roles, *reward.roles) if role != self.role.lower()]
        self._partners = Partners(plan.call_settings) if shares is None else shares._open_partners()
        self._partners.join(plan.call_settings, others)

    @classmethod
    def from_job(
        cls: type[Env],
        path: str | Path,
        *overrides: str,
        plays: Role | None = None,
        shares: _Environment | None = None,
        reward: Reward | None = None,
        broken: float | None = 0.0,
    ) -> Env:
        """Build the environment of a job file; `overrides` as for --set. Raises JobError, SpaceError,
        TemplateError."""
        plan = load_plan(Path(path), list(overrides))
        return cls(plan, plays=plays, shares=shares, reward=reward, broken=broken)

    def __len__(self) -> int:
        """Return the number of scenarios that the job plans. Larger indices can be played, too."""
        return self._plan.job.conversations

    @property
    def spent(self) -> Spending | None:
        """Charged tokens and US dollars, in all environments that share the budget; None if the job sets
        none."""
        return self._partners.spent

    def first_prompt(self, index: int) -> Messages:
        """Return the policy's first observation of scenario `index`, without a call. Raises UsageError if
        another role opens."""
        return self._make_episode(index).first_prompt()

    def opens(self, index: int) -> bool:
        """Return whether the policy speaks first in scenario `index`."""
        return self._make_episode(index).opens

    def _make_episode(self, index: int) -> Episode:
        if index < 0:
            raise UsageError(f"scenario {index}: they are counted from 0.")
        stage = self._plan.stage(self._plan.scenario(index))
        assert stage is not None, "the job was checked for it"
        return Episode(stage, self.role, self._reward, self.broken)

    def _open_partners(self) -> Partners:
        if self._closed:
            raise UsageError("the environment is closed.")
        return self._partners

    def _close(self) -> None:
        """Leave the partners. It may be called twice."""
        if not self._closed:
            self._closed = True
            self._partners.leave()


class EducationEnv(_Environment):
    """An environment for programs with an event loop; several loops may use it.

    An observation is the prompt of the policy's role: chat messages, `{"role", "content"}`, its own turns as
    assistant, the others' as user. `scenario(index)` is the scenario itself, with all secrets. Use as an
    async context manager, or call `aclose`.

    `conversation(index)` returns any number of concurrent conversations. `reset`, `step` and `stop` are for
    one conversation at a time.
    """

    async def __aenter__(self) -> EducationEnv:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, unless another environment shares them. It may be called twice."""
        await asyncio.to_thread(self._close)

    def conversation(self, index: int) -> Conversation:
        """Return a conversation on scenario `index`; begin it with its `reset`."""
        return Conversation(self._make_episode(index), self._open_partners())

    _one: Conversation | None = None

    async def reset(self, index: int) -> Messages:
        """Begin scenario `index` with a new conversation, as `Conversation.reset` does."""
        self._one = self.conversation(index)
        return await self._one.reset()

    async def step(self, text: str) -> Step:
        """Take a step as `Conversation.step` does."""
        return await _require_begun(self._one).step(text)

    async def stop(self) -> Step:
        """End the conversation as `Conversation.stop` does."""
        return await _require_begun(self._one).stop()


class SyncEducationEnv(_Environment):
    """An `EducationEnv` with blocking methods, for programs without an event loop, and for threads."""

    def __enter__(self) -> SyncEducationEnv:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the environment as `EducationEnv.aclose` does."""
        self._close()

    def conversation(self, index: int) -> SyncConversation:
        """Return a conversation as `EducationEnv.conversation` does."""
        return SyncConversation(self._make_episode(index), self._open_partners())

    _one: SyncConversation | None = None

    def reset(self, index: int) -> Messages:
        """Begin a scenario as `EducationEnv.reset` does."""
        self._one = self.conversation(index)
        return self._one.reset()

    def step(self, text: str) -> Step:
        """Take a step as `EducationEnv.step` does."""
        return _require_begun(self._one).step(text)

    def stop(self) -> Step:
        """End the conversation as `EducationEnv.stop` does."""
        return _require_begun(self._one).stop()


AnyConversation = TypeVar("AnyConversation")


def _require_begun(conversation: AnyConversation | None) -> AnyConversation:
    if conversation is None:
        raise UsageError("no episode is running: call reset(index) first.")
    return conversation


def _find_policy_role(plan: Plan, plays: Role | None) -> Role:
    """Return the policy's role in the space. Raises JobError if the job has no such role, or does not fit a
    policy."""
    job = plan.job
    if plan.stage(plan.scenario(0)) is None:
        able = " or ".join(f"`protocol: {name}`" for name in list_playable())
        raise JobError(job.name, f"an environment needs two agents{f': {able}' if able else ''}.")
    if job.arms:
        raise JobError(job.name, "an environment trains one policy: take a job without arms.")
    role = {role.lower(): role for role in job.speakers}.get((plays or ROLES[0]).lower())
    if role is None:
        roles = ", ".join(job.speakers)
        missing = "has no role" if plays is None else f"cannot play {plays!r}"
        raise JobError(job.name, f"the policy {missing}: set plays=ROLE, one of the space's roles {roles}.")
    if (plan.settings.closing or "").lower() == role.lower():
        raise JobError(
            job.name,
            f"the closing question goes to {role}, whom the policy plays: set selfplay.closing to another "
            "role or to `judge`.",
        )
    return role
