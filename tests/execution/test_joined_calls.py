"""One request for several answers: when equal calls are joined, and how each answer is used."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.config import load_job
from edgen.core.errors import JobError
from edgen.core.values import Address, Message, Reply, Request, Usage
from edgen.execution.client.call import Answer
from edgen.execution.joined_calls import CallPlace, split_choices
from edgen.providers import make
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.gemini.online import read_reply as read_gemini
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai.online import read_reply
from edgen.simulator.service.server import serve_options
from tests.cli.command import Command
from tests.dose import dose
from tests.execution.choosing import ANSWER, PROMPT, Chooser, choosing
from tests.execution.service import edgen, end, start
from tests.simulator.server import options

SCENARIOS, REPLICATES = 4, 3


@pytest.fixture
def chooser() -> Iterator[Chooser]:
    with choosing() as running:
        yield running


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def job_in(folder: Path, chooser: Chooser | None, backend: dict[str, Any] | None = None, **more: Any) -> Path:
    url = chooser.url if chooser else "http://127.0.0.1:9/v1"
    known = {"type": "openai", "model": "m", "base_url": url, "choices": "auto"} | (backend or {})
    job = {
        "name": "t", "seed": 3, "conversations": SCENARIOS, "replicates": REPLICATES, "space": "education_dialogue",
        "prompt": "education_dialogue", "backends": {"default": known}, "limits": {"in_flight": 8},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(json.dumps(job | more))
    return path


def made(command: Command, job: Path, run: Path, *more: str) -> Any:
    ended = command("generate", job, "-o", run, "--json", *more)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def rows(run: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(run / "run.db") as ledger:
        columns = "scenario, task, attempt, prompt_tokens, completion_tokens, charged_tokens, text"
        return ledger.execute(f"SELECT {columns} FROM replies ORDER BY scenario, task, attempt").fetchall()


def test_replicates_of_a_scenario_are_one_request_and_their_prompt_is_paid_once(
    command: Command, chooser: Chooser, tmp_path: Path
) -> None:
    job = job_in(tmp_path, chooser)
    facts = made(command, job, tmp_path / "run")
    assert chooser.wanted == [REPLICATES] * SCENARIOS
    assert facts["accepted"] == SCENARIOS * REPLICATES == facts["calls"]["made"]
    assert facts["tokens"] == {"prompt": SCENARIOS * PROMPT, "completion": SCENARIOS * REPLICATES * ANSWER}
    found = rows(tmp_path / "run")
    assert [row[:3] for row in found] == [(s, r, 0) for s in range(SCENARIOS) for r in range(REPLICATES)]
    assert len({row[6] for row in found}) == len(found), "each has an answer of its own"
    for scenario in range(SCENARIOS):
        own = [row for row in found if row[0] == scenario]
        assert sorted(row[3] for row in own) == [0, 0, PROMPT]
        assert sum(row[4] for row in own) == REPLICATES * ANSWER
        assert all(row[4] > 0 for row in own)
    again = made(command, job, tmp_path / "run")
    assert (len(chooser.bodies), again["calls"]["made"]) == (SCENARIOS, SCENARIOS * REPLICATES)


def test_without_it_each_call_goes_by_itself_and_answers_serve_both_ways(
    command: Command, chooser: Chooser, tmp_path: Path
) -> None:
    plain = job_in(tmp_path, chooser, {"choices": None})
    made(command, plain, tmp_path / "run")
    assert len(chooser.bodies) == SCENARIOS * REPLICATES
    assert all("n" not in body for body in chooser.bodies)
    files = {path.name: path.read_bytes() for path in (tmp_path / "run" / "shards").iterdir()}
    made(command, job_in(tmp_path, chooser), tmp_path / "run")
    assert len(chooser.bodies) == SCENARIOS * REPLICATES, "how answers are fetched shapes none of them"
    assert {path.name: path.read_bytes() for path in (tmp_path / "run" / "shards").iterdir()} == files
    made(command, job_in(tmp_path, chooser), tmp_path / "run", "--set", "replicates=5")
    assert chooser.wanted[SCENARIOS * REPLICATES :] == [2] * SCENARIOS


@pytest.mark.parametrize(
    ("mode", "several", "alone"),
    [("fewer", SCENARIOS, SCENARIOS), ("one", SCENARIOS, SCENARIOS * (REPLICATES - 1))],
)
def test_an_answer_that_is_missing_is_asked_for_alone(
    command: Command, chooser: Chooser, tmp_path: Path, mode: Any, several: int, alone: int
) -> None:
    chooser.mode = mode
    facts = made(command, job_in(tmp_path, chooser), tmp_path / "run")
    assert facts["accepted"] == SCENARIOS * REPLICATES
    assert sorted(chooser.wanted) == [1] * alone + [REPLICATES] * several


def test_where_a_service_refuses_several_they_go_one_by_one(
    command: Command, chooser: Chooser, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chooser.mode = "refuses"
    facts = made(command, job_in(tmp_path, chooser), tmp_path / "run")
    assert facts["accepted"] == SCENARIOS * REPLICATES
    assert sorted(chooser.wanted) == [1] * (SCENARIOS * REPLICATES) + [2, 3]
    said = [line for line in caplog.messages if "does not give" in line]
    assert [line.rpartition("requests ")[2] for line in said] == ["2 at most now.", "one now."]


def test_a_service_with_room_for_fewer_is_asked_for_fewer(
    command: Command, chooser: Chooser, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """llama.cpp gives at most as many answers as it has slots."""
    chooser.mode, chooser.most = "refuses", 2
    facts = made(command, job_in(tmp_path, chooser, replicates=4), tmp_path / "run")
    assert facts["accepted"] == SCENARIOS * 4
    assert chooser.wanted.count(4) == 1, "it is tried once"
    assert chooser.wanted.count(2) == 2 * (SCENARIOS - 1)
    assert sum("requests 2 at most" in line for line in caplog.messages) == 1


def test_a_bad_answer_alone_is_asked_for_again(command: Command, chooser: Chooser, tmp_path: Path) -> None:
    chooser.garbage = 1
    facts = made(command, job_in(tmp_path, chooser), tmp_path / "run")
    assert facts["accepted"] == SCENARIOS * REPLICATES
    assert sorted(chooser.wanted) == [1] * SCENARIOS + [REPLICATES] * SCENARIOS
    assert (
        sorted(row[2] for row in rows(tmp_path / "run")) == [0] * (SCENARIOS * REPLICATES) + [1] * SCENARIOS
    )


def test_a_cap_reserves_all_answers_and_holds(command: Command, chooser: Chooser, tmp_path: Path) -> None:
    most = 4_500
    limits = {"max_tokens": most, "in_flight": 8}
    job = job_in(tmp_path, chooser, {"max_tokens": 900}, limits=limits, forms="prose")
    ended = command("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 4, ended.err
    assert 0 < sum(row[5] for row in rows(tmp_path / "run")) <= most
    # A joined call reserves room for three answers; if they do not fit, calls go one by one.
    assert chooser.wanted.count(REPLICATES) >= 1


async def test_a_run_that_is_killed_pays_for_no_answer_twice(chooser: Chooser, tmp_path: Path) -> None:
    job = job_in(tmp_path, chooser, conversations=12)
    chooser.hold_after = 6
    process = await start("generate", job, "-o", tmp_path / "run")
    async with asyncio.timeout(60):
        while len(chooser.bodies) < 12 or not rows(tmp_path / "run"):  # no request arrives after the kill
            await asyncio.sleep(0.01)
    process.kill()
    await end(process)
    chooser.hold_after = None
    chooser.released.set()
    stored = {row[:2] for row in rows(tmp_path / "run")}
    assert len(stored) % REPLICATES == 0, "all answers of a call, or none"
    asked = len(chooser.bodies)
    ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 0, ended.err
    assert ended.facts["accepted"] == 36
    assert sum(chooser.wanted[asked:]) == 36 - len(stored)


def test_a_judges_votes_on_a_pair_are_one_request_in_each_order(
    command: Command, chooser: Chooser, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    made(
        command,
        job_in(tmp_path, None, {"type": "simulator", "choices": None, "base_url": None})
        and simulated(tmp_path),
        run,
    )
    backend = {"type": "openai", "model": "m", "base_url": chooser.url, "choices": "auto"}
    judge = ("--set", f"backends.judge={json.dumps(backend)}", "--set", "pairs.votes=5")
    ended = command("pairs", run, "--by", "oracle", *judge, "--json")
    assert ended.code == 0, ended.err
    facts = json.loads(ended.out)
    assert facts["judged"] == SCENARIOS * 3
    assert facts["calls"]["made"] == SCENARIOS * 3 * 10
    assert chooser.wanted == [5] * (SCENARIOS * 3 * 2)


def simulated(folder: Path) -> Path:
    path = job_in(folder, None)
    job = json.loads(path.read_text())
    path.write_text(json.dumps(job | {"backends": {"default": {"type": "simulator"}}}))
    return path


def test_rollouts_of_a_response_share_their_first_turn(
    command: Command, chooser: Chooser, tmp_path: Path
) -> None:
    talk = {"max_turns": 4, "closing": "student"}
    play = {
        "protocol": "selfplay",
        "prompt": None,
        "conversations": 2,
        "replicates": 3,
        "branch": {"at": 1},
        "selfplay": talk,
    }
    path = simulated(tmp_path)
    path.write_text(
        json.dumps({k: v for k, v in (json.loads(path.read_text()) | play).items() if v is not None})
    )
    made(command, path, tmp_path / "run")
    backend = {"type": "openai", "model": "m", "base_url": chooser.url, "choices": "auto"}
    changes = ("--set", f"backends.default={json.dumps(backend)}", "--set", "pairs.rollouts=4")
    ended = command(
        "pairs", tmp_path / "run", "--by", "probability", "--credit", "rollouts", *changes, "--json"
    )
    assert ended.code in (0, 3), ended.err
    assert chooser.wanted.count(4) == 6, "each of three responses, in two scenarios"


def test_self_play_shares_its_first_turn(command: Command, chooser: Chooser, tmp_path: Path) -> None:
    job = job_in(
        tmp_path, chooser, protocol="selfplay", prompt=None, conversations=2, selfplay={"max_turns": 3}
    )
    made(command, job, tmp_path / "run")
    assert chooser.wanted.count(REPLICATES) == 2
    assert set(chooser.wanted) == {1, REPLICATES}


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ({"seed": "auto"}, "one request has one seed"),
        ({"extra_body": {"n": 2}}, "its extra_body sets n, too"),
        ({"type": "anthropic", "max_tokens": 9}, "gives one answer to a request"),
        ({"type": "openai-responses"}, "gives one answer to a request"),
        (
            {"type": "gemini", "extra_body": {"generationConfig": {"candidateCount": 2}}},
            "candidateCount, too",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, backend: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError, match=r"backends\.default\.choices") as refused:
        load_job(job_in(tmp_path, None, backend))
    assert said in str(refused.value)


# --- on the wire ---------------------------------------------------------------------------------


def request(choices: int) -> Request:
    return Request(Address(0, 0), (Message("user", "hello"),), seed=7, choices=choices)


def test_each_service_is_asked_in_its_own_way_and_all_answers_are_read() -> None:
    openai: Any = make(
        OpenAIConfig(model="m", base_url="http://127.0.0.1:9/v1"), timeout=1, connections=1, environ={}
    )
    assert json.loads(openai.body(request(3))) == json.loads(openai.body(request(1))) | {"n": 3}
    assert b'"n"' not in openai.body(request(1))
    gemini: Any = make(
        GeminiConfig(model="m", base_url="http://127.0.0.1:9"), timeout=1, connections=1, environ={}
    )
    assert json.loads(gemini.body(request(3)))["generationConfig"] == {"candidateCount": 3}
    assert b"candidateCount" not in gemini.body(request(1))

    usage = {"prompt_tokens": 9, "completion_tokens": 8}
    choices = [
        {"message": {"content": text}, "finish_reason": end} for text, end in (("a", "stop"), ("b", "length"))
    ]
    expected = Reply("a", usage=Usage(9, 8), others=(Reply("b", "length"),))
    assert read_reply(json.dumps({"choices": choices, "usage": usage}).encode()) == expected
    parts = [
        {"content": {"parts": [{"text": "a"}]}},
        {"content": {"parts": [{"text": "b"}]}, "finishReason": "MAX_TOKENS"},
    ]
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 8}
    assert read_gemini(json.dumps({"candidates": parts, "usageMetadata": counts}).encode()) == expected


async def test_the_simulator_gives_several_in_both_formats() -> None:
    async with serve_options(options()) as url:
        for config in (OpenAIConfig(model="m", base_url=f"{url}/v1"), GeminiConfig(model="m", base_url=url)):
            it: Any = make(config, timeout=5, connections=1, environ={})
            reply = await it.complete(request(3))
            await it.aclose()
            assert len(reply.others) == 2
            assert reply.usage.completion_tokens >= sum(len(one.text) // 4 for one in (reply, *reply.others))


@settings(max_examples=dose(10, 40))
@given(
    texts=st.lists(st.text(max_size=30), min_size=1, max_size=6),
    places=st.integers(1, 6),
    usage=st.none() | st.builds(Usage, st.integers(1, 9999), st.integers(0, 9999)),
    cost=st.none() | st.floats(0.5, 9),
)
def test_the_parts_of_an_answer_add_up_to_the_whole(
    texts: list[str], places: int, usage: Usage | None, cost: float | None
) -> None:
    whole = Reply(texts[0], usage=usage, others=tuple(map(Reply, texts[1:])))
    answer = Answer(whole, 0.1, 1, 20_000, cost)
    where = [CallPlace(Address(0, i), bytes([i])) for i in range(places)]
    shares = split_choices(answer, where, lambda prompt, completion: prompt * 2e-6 + completion * 1e-5)
    assert [one.place for one in shares] == where[: len(shares)]
    assert len(shares) == min(places, len(texts))
    assert [one.reply.text for one in shares] == texts[: len(shares)]
    assert sum(one.charged_tokens for one in shares) == 20_000
    if usage is not None:
        counted = [one.reply.usage or Usage(0, 0) for one in shares]
        assert sum(one.prompt_tokens for one in counted) == usage.prompt_tokens
        assert sum(one.completion_tokens for one in counted) == usage.completion_tokens
    if cost is not None:
        assert sum(one.cost_usd or 0 for one in shares) == pytest.approx(cost)
