"""The environment in SkyRL-gym, OpenEnv and verifiers: the same words get the same answers and rewards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import skyrl_gym
import verifiers.v1 as vf
from skyrl_gym.metrics import aggregate_for_environment
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig

from edgen.env import EducationEnv, Step, SyncEducationEnv, heard, skyrl
from edgen.env import openenv as edgen_openenv
from edgen.env import verifiers as edgen_verifiers
from edgen.env.openenv import ConversationClient, Said
from edgen.simulator.options import ServerOptions
from edgen.simulator.service.server import serve_options
from tests.env.jobs import Watching, job, served
from tests.execution.service import Service, serve
from tests.rl.served import Served

MANY = 8


def words(number: int) -> str:
    return f"Let us look at it together, with picture number {number}."


@pytest.fixture
def env(tmp_path: Path) -> Iterator[SyncEducationEnv]:
    with SyncEducationEnv.from_job(job(tmp_path)) as env:
        yield env


def alone(env: SyncEducationEnv, index: int, turns: int = 100) -> tuple[list[Any], Step]:
    """Return the environment's own messages to a policy that says `words`, and its end."""
    conversation = env.conversation(index)
    seen: list[Any] = [conversation.reset()]
    for number in range(turns):
        step = conversation.step(words(number))
        if step.done:
            return seen, step
        seen.append(heard(step))
    return seen[:-1], conversation.stop()


@pytest.fixture
def lessons(env: SyncEducationEnv) -> Iterator[str]:
    skyrl.register("lessons", env)
    yield "lessons"
    skyrl_gym.envs.deregister("lessons")


def play_skyrl(row: dict[str, Any], **extras: Any) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Play as SkyRL's generator does: all columns but two are extras."""
    told = {name: value for name, value in row.items() if name not in {"prompt", "env_class"}}
    gym = skyrl_gym.make(row["env_class"], env_config={}, extras=told | extras)
    seen: list[Any] = [gym.init(row["prompt"])[0]]
    for number in range(100):
        out = gym.step(words(number))
        assert isinstance(out["reward"], float)
        if out["done"]:
            gym.close()
            return seen, dict(out), gym.get_metrics()
        seen.append(out["observations"])
    raise AssertionError("it never ends")


def test_skyrl_plays_many_at_once_as_the_environment_alone(env: SyncEducationEnv, lessons: str) -> None:
    rows = skyrl.rows(lessons, env, range(MANY))
    with ThreadPoolExecutor(MANY) as pool:
        played = list(pool.map(play_skyrl, rows))
    for index, (seen, out, metrics) in enumerate(played):
        expected, end = alone(env, index)
        assert seen == expected
        assert seen[0] == rows[index]["prompt"]
        assert out["reward"] == end.reward == metrics["probability"]
        assert out["metadata"] == {"reward_known": True} | {
            name: end.info[name] for name in ("turns", "ended_by", "rejected", "probability")
        }
    assert aggregate_for_environment(lessons, [one[2] for one in played])["turns"] > 1


def test_skyrl_stops_after_its_turns_with_the_closing_probability(
    env: SyncEducationEnv, lessons: str
) -> None:
    (row,) = skyrl.rows(lessons, env, [2])
    seen, out, _ = play_skyrl(row, max_turns=2)
    expected, end = alone(env, 2, turns=2)
    assert (seen, out["reward"]) == (expected, end.reward)
    assert 0 <= out["reward"] <= 1


def test_skyrl_where_another_role_opens_or_fails(tmp_path: Path) -> None:
    """A role that opens or fails in SkyRL is handled.

    A student who opens has spoken after `init`; one whose words are no turn leaves no known reward.
    """
    path = job(tmp_path, selfplay={"first": "student", "closing": "student", "max_turns": 12})
    broken = {"default": {"type": "simulator", "faults": "empty=1"}}
    with SyncEducationEnv.from_job(path) as env:
        gym = type("Gym", (skyrl.ConversationEnv,), {"shared": env})(extras={"scenario": 4})
        assert gym.init([])[0] == env.conversation(4).reset()
    with SyncEducationEnv.from_job(job(tmp_path, backends=broken, asks=1)) as env:
        gym = type("Gym", (skyrl.ConversationEnv,), {"shared": env})(extras={"scenario": 0})
        gym.init([])
        out = gym.step(words(0))
        assert (out["reward"], out["done"], out["metadata"]["reward_known"]) == (0.0, True, False)
        assert out["metadata"]["rejected_by"] == "Student"


async def play_openenv(client: ConversationClient, index: int) -> tuple[list[Any], Any]:
    seen: list[Any] = [(await client.reset(scenario=index)).observation.messages]
    for number in range(100):
        result = await client.step(Said(text=words(number)))
        if result.done:
            return seen, result
        seen.append(result.observation.messages)
    raise AssertionError("it never ends")


async def test_openenv_serves_many_at_once_as_the_environment_alone(
    tmp_path: Path, env: SyncEducationEnv
) -> None:
    async def one(url: str, index: int) -> tuple[list[Any], Any]:
        async with ConversationClient(url) as client:
            played = await play_openenv(client, index)
            state = await client.state()
            assert state.scenario == index
            assert state.step_count == len(played[0])
            return played

    shared = EducationEnv.from_job(job(tmp_path))
    with Served(edgen_openenv.serve(shared, conversations=MANY)) as url:
        played = await asyncio.gather(*(one(url, index) for index in range(MANY)))
    await shared.aclose()
    for index, (seen, result) in enumerate(played):
        expected, end = await asyncio.to_thread(alone, env, index)
        assert seen == expected
        assert result.reward == end.reward == result.observation.probability
        assert result.observation.turns == end.info["turns"]


def test_openenv_without_an_event_loop_its_stop_and_its_errors(tmp_path: Path, env: SyncEducationEnv) -> None:
    shared = EducationEnv.from_job(job(tmp_path))
    with Served(edgen_openenv.serve(shared)) as url, ConversationClient(url).sync() as client:
        with pytest.raises(RuntimeError, match="no episode is running: call reset first"):
            client.step(Said(text="Hello."))
        with pytest.raises(RuntimeError, match="counted from 0"):
            client.reset(scenario=-1)
        first = client.reset()
        assert first.observation.messages == env.first_prompt(0), "the first that no client had"
        client.step(Said(text=words(0)))
        result = client.step(Said(stop=True))
        assert result.done
        assert result.reward == alone(env, 0, turns=1)[1].reward
        assert client.reset().observation.messages == env.first_prompt(1)
        assert client.reset(seed=7).observation.messages == env.first_prompt(7)
        asyncio.run(shared.aclose())
        with pytest.raises(RuntimeError, match="the environment is closed"):
            client.reset()


@pytest.fixture(scope="module")
def plugin() -> Iterator[str]:
    """Yield the name of a user's module, written as in the documentation."""
    module = ModuleType("edgen_lessons")
    exec("from edgen.env.verifiers import *\nfrom edgen.env.verifiers import __all__", module.__dict__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "edgen_lessons", module)
        yield "edgen_lessons"


def evaluation(plugin: str, url: str, folder: Path, taskset: dict[str, Any], **told: Any) -> EvalConfig:
    policy = told.pop("policy", {})
    return EvalConfig(
        env={"taskset": {"id": plugin, **taskset}, "policy": policy}, model="simulator", push=False, rich=None,
        client={"type": "eval", "base_url": f"{url}/v1", "api_key_var": "NO_KEY_IS_NEEDED"},
        output_dir=folder / "out", **told,
    )  # fmt: skip


async def simulated_eval(plugin: str, folder: Path, taskset: dict[str, Any], **told: Any) -> Any:
    async with serve_options(ServerOptions()) as url:
        config = evaluation(plugin, url.removesuffix("/v1"), folder, taskset, **told)
        return await run_eval(config)


@pytest.mark.parametrize(("planned", "listed"), [(1_000_000, True), (10**12, False)])
def test_a_vast_plan_is_read_as_far_as_it_is_wanted(tmp_path: Path, planned: int, listed: bool) -> None:
    config = edgen_verifiers.ConversationTasksetConfig(
        id="lessons", job=job(tmp_path), overrides=(f"conversations={planned}",)
    )
    taskset = edgen_verifiers.ConversationTaskset(config)
    assert taskset.bounded == listed
    assert [task.data.scenario for task in taskset.take(3)] == [0, 1, 2]
    if not listed:
        with pytest.raises(ValueError, match="is infinite"):
            taskset.shuffle()


async def test_verifiers_evaluates_a_policy_in_conversations(
    plugin: str, tmp_path: Path, env: SyncEducationEnv
) -> None:
    path = job(tmp_path, conversations=3)
    episodes = await simulated_eval(plugin, tmp_path, {"job": path})
    assert len(episodes) == 3
    for episode in episodes:
        (trace,) = episode.traces
        assert episode.ok
        index = trace.task.data.scenario
        said = [node.message for node in trace.nodes]
        conversation = env.conversation(index)
        shown, step = conversation.reset(), None
        for message in said:
            if message.role == "assistant":
                step = conversation.step(message.content.strip())
                shown = step.messages
        assert step is not None
        assert step.done
        assert trace.rewards["conversation"].score == step.reward == trace.metrics["probability"]
        assert trace.metrics["turns"] == step.info["turns"]
        heard_by_policy = [(m["role"], m["content"]) for m in shown if m["role"] != "assistant"]
        asked = [(m.role, m.content) for m in said if m.role != "assistant"]
        assert asked == heard_by_policy[: len(asked)]
        secrets = {env.scenario(index)[name] for name in ("student_preference", "student_reaction")}
        known = {env.scenario(index)[name] for name in ("teacher_preference", "teacher_reaction")}
        assert not [one for one in secrets - known if one in trace.model_dump_json()]


async def test_verifiers_that_ends_it_gets_the_closing_probability(
    plugin: str, tmp_path: Path, env: SyncEducationEnv
) -> None:
    path = job(tmp_path, conversations=1)
    (episode,) = await simulated_eval(plugin, tmp_path, {"job": path}, policy={"max_turns": 2})
    (trace,) = episode.traces
    assert trace.stop_condition == "max_turns"
    assert trace.metrics["turns"] == 4
    assert 0 <= trace.rewards["conversation"].score <= 1


async def test_verifiers_shares_one_limit_and_one_pool(plugin: str, tmp_path: Path) -> None:
    async with serve(Watching(latency=0.01)) as service:
        assert isinstance(service, Watching)
        path = served(tmp_path, service.url, limits={"in_flight": 3}, conversations=MANY)
        episodes = await simulated_eval(plugin, tmp_path, {"job": path}, policy={"max_turns": 2})
    assert len(episodes) == MANY
    assert service.most_at_once == 3
    assert len(service.connections) == 3


async def test_verifiers_where_a_budget_is_out_or_a_role_is_nobodys(plugin: str, tmp_path: Path) -> None:
    async with serve(Service()) as service:
        path = served(tmp_path, service.url, limits={"max_tokens": 300}, conversations=2)
        episodes = await simulated_eval(plugin, tmp_path, {"job": path})
        assert all("raise limits.max_tokens" in episode.errors[0].message for episode in episodes)
    with pytest.raises(Exception, match="cannot play 'judge'"):
        await simulated_eval(plugin, tmp_path, {"job": job(tmp_path), "plays": "judge"})


def test_the_job_may_be_changed_and_the_environment_is_what_verifiers_loads(
    plugin: str, tmp_path: Path
) -> None:
    config = evaluation(plugin, "", tmp_path, {"job": job(tmp_path), "overrides": ["conversations=3"]})
    env = vf.load_environment(config.env)
    assert isinstance(env, edgen_verifiers.ConversationEnv)
    assert [task.data.scenario for task in env.taskset] == [0, 1, 2]
    assert "topic" not in json.dumps([task.data.model_dump(mode="json") for task in env.taskset])
