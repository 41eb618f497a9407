"""Judging at scale: killed and resumed, within its memory, the equation true at every stop."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import jsonschema_rs
import pytest

from edgen.core.resources import find
from tests.dose import dose
from tests.execution.service import ROOT, Service, edgen, end, job_text, serve, start, until_it_says

pytestmark = pytest.mark.integration

# Bytes for 1,530 pairs beyond those for a few: 16 kB a pair. The memory of the start depends on the machine.
MEMORY = 24 * 2**20
SIMULATED = {"backends": {"default": {"type": "simulator"}}}


def judged(folder: Path) -> int:
    """Return the number of verdicts in the judge's ledger."""
    count = 0
    for path in (folder / "pairs" / "judged").glob("*.db"):
        with sqlite3.connect(path) as ledger:
            try:
                count += ledger.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
            except sqlite3.OperationalError:  # killed before the tables were made
                return 0
    return count


async def measured(*arguments: str | Path) -> tuple[int, str, int]:
    """Return exit code, stdout and peak memory in bytes of an edgen process."""
    code = "import resource,subprocess,sys; r=subprocess.run(sys.argv[1:],stdout=subprocess.PIPE); sys.stdout.buffer.write(r.stdout); sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)); sys.exit(r.returncode)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, sys.executable, "-m", "edgen", *map(str, arguments),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )  # fmt: skip
    ended = await end(process, timeout=120)
    return ended.code, ended.out, int(ended.err.rsplit(maxsplit=1)[-1].rpartition("\n")[2]) * 1024


async def made_run(folder: Path, conversations: int) -> Path:
    """Make a run to judge, with four conversations of each scenario."""
    job, run = folder / f"job{conversations}.yaml", folder / f"run{conversations}"
    job.write_text(job_text("http://127.0.0.1:9/v1", conversations=conversations, replicates=4, **SIMULATED))
    made = await edgen("generate", job, "-o", run, "--json")
    assert made.code == 0, made.err
    return run


@pytest.mark.only_long
@pytest.mark.crash
async def test_many_pairs_killed_resumed_and_small(tmp_path: Path) -> None:
    few = await made_run(tmp_path, conversations=2)
    _, _, least = await measured("pairs", few, "--by", "oracle", "--json")
    folder = await made_run(tmp_path, conversations=255)
    process = await start("pairs", folder, "--by", "oracle", "--json")
    while process.returncode is None and judged(folder) < 300:
        await asyncio.sleep(0.05)
    assert process.returncode is None, "it was to be killed in the middle"
    process.kill()
    await end(process)
    stored = judged(folder)
    assert not (folder / "pairs" / "pairs.jsonl").exists()

    code, out, peak = await measured("pairs", folder, "--by", "oracle", "--json")
    planned = 1_530
    facts = json.loads(out)
    assert code == 0
    assert peak - least < MEMORY, (
        f"{least / 2**20:.0f} MB for 12 pairs, {peak / 2**20:.0f} MB for {planned:,}"
    )
    assert facts["planned"] == planned
    ended = facts["judged"] + sum(facts["rejected"].values()) + sum(facts["failed"].values())
    assert facts["planned"] == ended + facts["pending"]
    assert facts["pending"] == 0
    assert facts["calls"]["made"] == judged(folder) == 2 * facts["judged"]
    assert stored < facts["calls"]["made"], "the second start had the rest to do"
    validator = jsonschema_rs.validator_for(json.loads(find("validators", "pair").read_text()))
    splits: dict[int, str] = {}
    count: Counter[bool] = Counter()
    with (folder / "pairs" / "pairs.jsonl").open() as lines:
        for line in lines:
            pair = json.loads(line)
            validator.validate(pair)
            assert splits.setdefault(pair["scenario"], pair["split"]) == pair["split"]
            count[pair["label"] is not None] += 1
    assert count.total() == planned
    assert count[True] == sum(facts["pairs"].values())


@pytest.mark.long
@pytest.mark.crash
async def test_killed_at_any_moment_no_verdict_is_asked_for_twice_and_the_pairs_are_the_same(
    tmp_path: Path,
) -> None:
    async with serve(Service(latency=0.01)) as service:
        judge = {"type": "openai", "model": "judge", "base_url": service.url, "seed": "auto"}
        job, folder = tmp_path / "job.yaml", tmp_path / "run"
        backends = {"default": {"type": "simulator"}, "judge": judge}
        job.write_text(
            job_text(service.url, conversations=20, replicates=4, backends=backends, limits={"in_flight": 8})
        )
        assert (await edgen("generate", job, "-o", folder)).code == 0
        for _ in range(dose(2, 3)):
            asked = service.asked.total()
            process = await start("pairs", folder, "--by", "oracle")
            while process.returncode is None and service.asked.total() < asked + 40:
                await asyncio.sleep(0.002)
            process.kill()
            await end(process)
        repeated = sum(count - 1 for count in service.asked.values())
        assert repeated <= 3 * 8, "more was asked again than can have been in flight"
        stored = judged(folder)
        before = service.asked.total()
        ended = await edgen("pairs", folder, "--by", "oracle", "--json")
        assert ended.code == 0, ended.err
        assert service.asked.total() - before == 240 - stored
        first = (folder / "pairs" / "pairs.jsonl").read_bytes()
        calls = service.asked.total()
        assert (await edgen("pairs", folder, "--by", "oracle")).code == 0
        assert service.asked.total() == calls
        assert (folder / "pairs" / "pairs.jsonl").read_bytes() == first


async def test_the_budget_of_the_run_binds_the_judge_too(tmp_path: Path) -> None:
    price = {"prompt": 1.0, "completion": 1.0}
    backends = {"default": {"type": "simulator", "price": price, "max_tokens": 2000}}
    job, folder = tmp_path / "job.yaml", tmp_path / "run"
    job.write_text(job_text("http://127.0.0.1:9/v1", conversations=20, replicates=4, backends=backends))
    made = await edgen("generate", job, "-o", folder, "--json")
    spent = made.facts["cost_usd"]
    stopped = await edgen("pairs", folder, "--by", "oracle", "--set", f"limits.max_cost={spent * 1.5}")
    assert stopped.code == 4, stopped.err
    (path,) = (folder / "pairs" / "judged").glob("*.db")
    with sqlite3.connect(path) as ledger:
        cost = ledger.execute("SELECT TOTAL(cost_usd) FROM replies").fetchone()[0]
    assert 0 < cost <= spent * 0.5
    ended = await edgen("pairs", folder, "--by", "oracle", "--json")
    assert ended.code == 0, ended.err
    assert ended.facts["judged"] == 120


async def test_nobody_reads_or_judges_a_run_that_is_being_made(tmp_path: Path) -> None:
    async with serve(Service(hold_after=20)) as service:
        job, folder = tmp_path / "job.yaml", tmp_path / "run"
        job.write_text(job_text(service.url, conversations=200, replicates=2, limits={"in_flight": 8}))
        process = await start("generate", job, "-o", folder)
        while not (folder / "run.db").exists() or service.asked.total() < 20:
            await asyncio.sleep(0.01)
        for command in (
            ("pairs", folder, "--by", "probability"),
            ("pairs", folder, "--report"),
            ("export", folder, "--to", "trl-sft", "-o", tmp_path / "sft"),
        ):
            ended = await edgen(*command)
            assert ended.code == 6, ended.err
            assert "works on this run" in ended.err
        process.terminate()
        await until_it_says(process, "Stopping")
        service.release()
        assert (await end(process)).code == 143


async def test_a_scenario_that_is_never_taken_stops_no_branches(tmp_path: Path) -> None:
    """One call that fails is one failure, for any number of replicates that wait for it."""
    import msgspec
    from aiohttp import web

    from edgen.core.values import Message
    from edgen.simulator.text import respond
    from tests.execution.service import completion, error

    class Picky(Service):
        async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
            body = msgspec.json.decode(await request.read())
            self.asked[body["seed"]] += 1
            if "Irony" in str(body["messages"]):
                return error(400, "this topic is not taken")
            messages = [Message(m["role"], m["content"]) for m in body["messages"]]
            return completion(respond(messages, seed=body["seed"]).text)

    async with serve(Picky()) as service:
        job, folder = tmp_path / "job.yaml", tmp_path / "run"
        played = {"protocol": "selfplay", "prompt": None, "replicates": 26, "branch": {}, "seed": 7}
        job.write_text(job_text(service.url, conversations=5, **played))
        ended = await edgen("generate", job, "-o", folder, "--json")
    assert ended.code == 3, ended.err
    assert ended.facts["failed"] == {"bad_request": 26}
    assert ended.facts["accepted"] == 104


async def test_a_run_with_arms_killed_before_its_job_was_noted_goes_on(tmp_path: Path) -> None:
    job, folder = tmp_path / "job.yaml", tmp_path / "run"
    job.write_text(
        job_text("http://127.0.0.1:9/v1", conversations=3, arms={"a": {}, "b": {"asks": 2}}, **SIMULATED)
    )
    (folder / "inputs").mkdir(parents=True)
    (folder / "arms").mkdir()
    (folder / "run.lock").touch()
    (folder / ".job.yaml.0123456789abcdef.part").touch()
    ended = await edgen("generate", job, "-o", folder)
    assert ended.code == 0, ended.err


async def test_a_template_that_fails_for_one_value_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    template = tmp_path / "mine.j2"
    template.write_text("About {{ topic }}{% if topic == 'Neurons' %}{{ 1 / 0 }}{% endif %}")
    job = tmp_path / "job.yaml"
    job.write_text(
        job_text("http://127.0.0.1:9/v1", conversations=3, **SIMULATED | {"prompt": str(template)})
    )
    ended = await edgen("generate", job, "-o", tmp_path / "run")
    assert ended.code == 2
    assert "division by zero" in ended.err
    assert "topic='Neurons'" in ended.err
    assert not (tmp_path / "run").exists()
