"""An environment as an OpenEnv server, and its client.

    app = serve(EducationEnv.from_job("jobs/selfplay.yaml"), conversations=64)
    print(app.address("http://127.0.0.1:8000"))  # with the server's token
    uvicorn.run(app, host="127.0.0.1", port=8000)

    async with ConversationClient(address) as client:
        result = await client.reset(scenario=0)
        result = await client.step(Said(text="Good morning!"))

Every client with the token uses the job's models at your expense: give the job a budget. OpenEnv's clients
send no header of their own, so the token is part of the address that they get; see `edgen.env.guard` for
refused requests.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import Field

from edgen.core.errors import EdgenError, InputError, UsageError
from edgen.core.extras import make_not_installed_error
from edgen.env.conversation import Conversation, Step, heard
from edgen.env.environment import EducationEnv
from edgen.env.episode import Messages
from edgen.env.guard import TokenGuard

try:
    from openenv.core import Action, EnvClient, Environment, Observation, State, create_app
    from openenv.core.client_types import StepResult
except ImportError as missing:
    raise make_not_installed_error("openenv-core", missing) from missing


MAX_TEXT = 100_000  # characters of a turn
MAX_SCENARIO = 2**40
_MAX_EPISODE_ID = 255  # characters, OpenEnv's own limit over HTTP


class Said(Action):
    """The policy's words. With `stop`, the conversation ends and is rewarded."""

    text: str = Field(default="", max_length=MAX_TEXT)
    stop: bool = False


class Heard(Observation):
    """The policy's new observation: its brief after `reset`, then the others' turns."""

    messages: list[dict[str, str]]
    turns: int = 0
    ended_by: str | None = None
    rejected: str | None = None
    probability: float | None = None


class ScenarioState(State):
    """The number of the present scenario."""

    scenario: int | None = None


class ConversationServer(Environment[Said, Heard, ScenarioState]):
    """One client's successive conversations. All servers share one environment."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env: EducationEnv, following: Iterator[int]) -> None:
        super().__init__()
        self._env = env
        self._following = following
        self._conversation: Conversation | None = None
        self._state = ScenarioState()

    async def reset_async(
        self, /, seed: int | None = None, episode_id: str | None = None, scenario: int | None = None, **_: Any
    ) -> Heard:
        """Begin `scenario`; without it, scenario `seed`; without both, the next unused scenario. Raises
        UsageError."""
        for name, number in (("scenario", scenario), ("seed", seed)):
            if number is not None and (type(number) is not int or not 0 <= number < MAX_SCENARIO):
                raise UsageError(
                    f"{name}: expected a whole number below {MAX_SCENARIO}; scenarios are counted from 0."
                )
        if episode_id is not None and not (
            isinstance(episode_id, str) and len(episode_id) <= _MAX_EPISODE_ID
        ):
            raise UsageError(f"episode_id: expected a text of at most {_MAX_EPISODE_ID} characters.")
        index = next((n for n in (scenario, seed) if n is not None), None)
        index = next(self._following) if index is None else index
        self._conversation = self._env.conversation(index)
        self._state = ScenarioState(episode_id=episode_id, scenario=index)
        return Heard(messages=await self._conversation.reset())

    async def step_async(self, /, action: Said, timeout_s: float | None = None, **_: Any) -> Heard:
        """Continue, or stop. Raises EdgenError as `Conversation.step`; the client sees its message."""
        if self._conversation is None:
            raise UsageError("no episode is running: call reset first.")
        step = await (self._conversation.stop() if action.stop else self._conversation.step(action.text))
        self._state.step_count += 1
        return _make_observation(step, [] if action.stop else heard(step))

    def reset(self, *_: Any, **__: Any) -> Heard:
        """Raise: OpenEnv's server calls `reset_async` instead."""
        raise NotImplementedError

    def step(self, *_: Any, **__: Any) -> Heard:
        """Raise: OpenEnv's server calls `step_async` instead."""
        raise NotImplementedError

    @property
    def state(self) -> ScenarioState:
        """The present scenario, and the number of steps."""
        return self._state


def _make_observation(step: Step, messages: Messages) -> Heard:
    told = {name: step.info.get(name) for name in ("turns", "ended_by", "rejected", "probability")}
    return Heard(messages=messages, reward=step.reward, done=step.done, **told)


class ConversationClient(EnvClient[Said, Heard, ScenarioState]):
    """A client: `reset(scenario=...)`, `step(Said(...))` until done, `state()`; `sync()` for programs without
    event loop."""

    def _step_payload(self, action: Said) -> dict[str, Any]:
        return {"text": action.text, "stop": action.stop}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Heard]:
        reward, done = payload["reward"], payload["done"]
        heard = Heard(reward=reward, done=done, **payload["observation"])
        return StepResult(observation=heard, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> ScenarioState:
        return ScenarioState(**payload)


def serve(
    env: EducationEnv,
    conversations: int = 64,
    *,
    token: str | None = None,
    host: str = "127.0.0.1",
    allow_hosts: Iterable[str] = (),
) -> TokenGuard:
    """Return the server as an ASGI application, for uvicorn for example.

    `conversations`: maximum concurrent conversations. `token`: required from every client, at least 16
    characters; None draws one, which is the application's `token`; `address(url)` is the address for a
    client. `host`: the address that the server listens on. `allow_hosts`: further accepted host names.
    """
    following = itertools.count()
    make = functools.partial(ConversationServer, env, following)
    app = create_app(make, Said, Heard, max_concurrent_envs=conversations)
    app.add_exception_handler(EdgenError, _refuse)
    # An environment of conversations has no tools, and OpenEnv's handler of their protocol fails on some
    # input.
    app.router.routes[:] = [route for route in app.routes if getattr(route, "path", None) != "/mcp"]
    return TokenGuard(app, token, host=host, allow_hosts=allow_hosts, at_once=conversations)


async def _refuse(_: Any, error: Exception) -> Any:
    """Answer a request that cannot be fulfilled: a mistake of the client, or an error of the job's models."""
    from starlette.responses import JSONResponse

    return JSONResponse({"detail": str(error)}, 422 if isinstance(error, InputError) else 502)
