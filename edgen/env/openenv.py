"""An environment as an OpenEnv server, and the client that drives it.

app = serve(EducationEnv.from_job("jobs/selfplay.yaml"), conversations=64)
uvicorn.run(app, host="127.0.0.1", port=8000)

async with ConversationClient("http://127.0.0.1:8000") as client:
    result = await client.reset(scenario=0)
    result = await client.step(Said(text="Good morning!"))

Whoever reaches the server asks the job's models at your expense: bind it to this machine, and give the job a budget.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

from edgen.core.errors import UsageError
from edgen.env.conversation import Conversation, Step, heard
from edgen.env.environment import EducationEnv
from edgen.env.episode import Messages
from edgen.env.libraries import not_installed

try:
    from openenv.core import Action, EnvClient, Environment, Observation, State, create_app
    from openenv.core.client_types import StepResult
except ImportError as missing:
    raise not_installed("openenv-core", missing) from missing


class Said(Action):
    """What the policy says; or, with `stop`, the end here and now, with its reward."""

    text: str = ""
    stop: bool = False


class Heard(Observation):
    """What the policy has not seen yet: after `reset` its brief, then what the others said to it."""

    messages: list[dict[str, str]]
    turns: int = 0
    ended_by: str | None = None
    rejected: str | None = None
    probability: float | None = None


class Scenario(State):
    """Which scenario is played, by its number."""

    scenario: int | None = None


class ConversationServer(Environment[Said, Heard, Scenario]):
    """One client's conversations, one after the other. All servers share one environment."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env: EducationEnv, following: Iterator[int]) -> None:
        super().__init__()
        self._env = env
        self._following = following
        self._conversation: Conversation | None = None
        self._state = Scenario()

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, scenario: int | None = None, **_: Any
    ) -> Heard:
        """Begin `scenario`; else that of number `seed`; else the next that no client had."""
        index = next((n for n in (scenario, seed) if n is not None), None)
        index = next(self._following) if index is None else index
        self._conversation = self._env.conversation(index)
        self._state = Scenario(episode_id=episode_id, scenario=index)
        return Heard(messages=await self._conversation.reset())

    async def step_async(self, action: Said, timeout_s: float | None = None, **_: Any) -> Heard:
        """Go on, or stop. Raises EdgenError as `Conversation.step`; the client sees its words."""
        if self._conversation is None:
            raise UsageError("no episode is running: call reset first.")
        step = await (self._conversation.stop() if action.stop else self._conversation.step(action.text))
        self._state.step_count += 1
        return _observation(step, [] if action.stop else heard(step))

    def reset(self, *_: Any, **__: Any) -> Heard:
        """Nobody calls it: OpenEnv's server calls `reset_async`."""
        raise NotImplementedError

    def step(self, *_: Any, **__: Any) -> Heard:
        """Nobody calls it: OpenEnv's server calls `step_async`."""
        raise NotImplementedError

    @property
    def state(self) -> Scenario:
        """Which scenario it is, and how many steps were taken."""
        return self._state


def _observation(step: Step, messages: Messages) -> Heard:
    told = {name: step.info.get(name) for name in ("turns", "ended_by", "rejected", "probability")}
    return Heard(messages=messages, reward=step.reward, done=step.done, **told)


class ConversationClient(EnvClient[Said, Heard, Scenario]):
    """The other end: `reset(scenario=...)`, `step(Said(...))` until done, `state()`; `sync()` for no event loop."""

    def _step_payload(self, action: Said) -> dict[str, Any]:
        return {"text": action.text, "stop": action.stop}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Heard]:
        reward, done = payload["reward"], payload["done"]
        heard = Heard(reward=reward, done=done, **payload["observation"])
        return StepResult(observation=heard, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> Scenario:
        return Scenario(**payload)


def serve(env: EducationEnv, conversations: int = 64) -> Any:
    """The server as an ASGI application, for uvicorn, say: so many conversations at once."""
    following = itertools.count()
    make = functools.partial(ConversationServer, env, following)
    return create_app(make, Said, Heard, max_concurrent_envs=conversations)
