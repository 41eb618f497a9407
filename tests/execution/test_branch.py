"""Self-play through the whole program: replicates share requests, and a run resumes at any turn."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.api.status import read_status
from tests.dose import dose
from tests.execution.service import Service, edgen, end, equation, files, job_text, serve, start
from tests.execution.test_kill import stored_calls

SELFPLAY: dict[str, Any] = {
    "protocol": "selfplay",
    "prompt": None,
    "replicates": 3,
    "branch": {"at": "sampled"},
    "selfplay": {"closing": "student", "max_turns": 12},
}
SCENARIOS = 8


def records(folder: Path) -> dict[str, Any]:
    found = [
        json.loads(path.read_text()) for path in sorted((folder / "shards").glob("conversations_*.json"))
    ]
    return {record["id"]: record for shard in found for record in shard}


async def test_the_shared_prefix_is_asked_and_paid_for_once(tmp_path: Path) -> None:
    async with serve(Service(latency=0.005)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=SCENARIOS, **SELFPLAY))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
    assert ended.facts["accepted"] == 3 * SCENARIOS
    assert set(service.asked.values()) == {1}
    made = records(tmp_path / "run")
    turns = own = 0
    for index in range(SCENARIOS):
        base, *others = (made[f"t-{index:06d}-r{replicate}"] for replicate in range(3))
        assert "branch" not in base["provenance"]
        for other in others:
            at = other["provenance"]["branch"]
            assert other["conversation"][:at] == base["conversation"][:at]
            assert base["conversation"][at]["role"] == "Teacher"
            own += len(other["conversation"]) - at
            turns += len(other["conversation"])
    # The replicates' own requests: their turns and closing questions, without the shared ones.
    bases = sum(len(made[f"t-{index:06d}-r0"]["conversation"]) for index in range(SCENARIOS))
    assert own < turns
    assert ended.facts["calls"]["made"] == bases + own + 3 * SCENARIOS == service.asked.total()


@pytest.mark.long
@pytest.mark.crash
async def test_killed_in_the_middle_of_conversations_it_goes_on_at_the_turn_it_came_to(
    tmp_path: Path,
) -> None:
    rng = random.Random(8)
    async with serve(Service(latency=0.01)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=SCENARIOS, limits={"in_flight": 4}, **SELFPLAY))
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0, calm.err
        calls = service.asked.total()
        service.asked.clear()
        folder = tmp_path / "killed"
        for _ in range(dose(2, 6)):
            before, asked = stored_calls(folder), Counter(service.asked)
            process = await start("generate", job, "-o", folder, "--json")
            aim = service.asked.total() + rng.randint(5, calls // 7)
            while process.returncode is None and service.asked.total() < aim:
                await asyncio.sleep(0.005)
            if process.returncode is None:
                process.kill()
            await end(process)
            again = {seed for seed in service.asked if service.asked[seed] > asked[seed]}
            assert not again & before, "an answer that was stored was asked for again"
            if stored_calls(folder):
                assert equation(msgspec.to_builtins(read_status(folder)))
        ended = await edgen("generate", job, "-o", folder, "--json")
        assert ended.code == 0, ended.err
        assert ended.facts["calls"]["made"] == calls
        assert files(folder) == files(tmp_path / "calm")
        service.asked.clear()
        again = await edgen("generate", job, "-o", folder, "--json")
        assert again.code == 0
        assert not service.asked


async def test_more_replicates_ask_only_what_is_new(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=4, **SELFPLAY))
        assert (await edgen("generate", job, "-o", tmp_path / "run")).code == 0
        before = records(tmp_path / "run")
        asked = set(service.asked)
        more = await edgen("generate", job, "-o", tmp_path / "run", "--set", "replicates=4", "--json")
        assert more.code == 0, more.err
    assert set(service.asked.values()) == {1}
    assert more.facts["accepted"] == 16
    after = records(tmp_path / "run")
    assert {key: after[key] for key in before} == before
    assert len(set(service.asked) - asked) < len(asked)


async def test_both_sides_on_one_service_share_its_limit(tmp_path: Path) -> None:
    """in_flight limits a service, for all the roles that it plays."""
    running = most = 0

    async def counted(_service: Service, _seed: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    async with serve(Service(trouble=counted)) as service:
        backend = {"type": "openai", "model": "m", "base_url": service.url, "seed": "auto"}
        job = tmp_path / "job.yaml"
        changes = {**SELFPLAY, "backends": {"teacher": backend, "student": {**backend, "temperature": 0.5}}}
        job.write_text(job_text(service.url, conversations=SCENARIOS, limits={"in_flight": 5}, **changes))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
    assert 3 <= most <= 5
