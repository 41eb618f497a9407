"""Whole runs with a real local server: failures, signals, resumed runs, changes of the job."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
from pathlib import Path

import pytest
from aiohttp import web

from tests.execution.service import (
    CONVERSATIONS,
    Service,
    completion,
    edgen,
    end,
    equation,
    error,
    files,
    job_text,
    serve,
    start,
    until_it_says,
    write,
)


async def test_trouble_of_every_kind_ends_with_all_that_can_be_had(tmp_path: Path) -> None:
    """Of a call's first three attempts, 10% get 429 with Retry-After, 10% 500, and 5% hang;
    5% of answers are garbage."""

    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        draw = random.Random(f"{seed}/{service.asked[seed]}").random() if service.asked[seed] < 4 else 1.0
        if draw < 0.10:
            return error(429, **{"Retry-After": "0.2"})
        if draw < 0.20:
            return error(500)
        if draw < 0.25:
            await asyncio.sleep(60)
        if random.Random(seed).random() < 0.05:  # a call with a bad answer gets it at every attempt
            return completion("I like turtles.")
        return None

    async with serve(Service(latency=0.01, trouble=trouble)) as service:
        limits = {"in_flight": 32, "timeout": 0.7, "attempts": 12}
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=150, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json", timeout=120)
    assert ended.code == 0, ended.err
    facts = ended.facts
    assert (facts["state"], facts["accepted"], facts["pending"], facts["failed"]) == ("complete", 150, 0, {})
    assert facts["calls"]["retried"] > 20
    assert facts["calls"]["made"] > 150, "garbage was asked for again"
    assert equation(facts)


async def test_garbage_only_is_rejected_with_its_reason_and_kept(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return completion("I like turtles.")

    async with serve(Service(trouble=trouble)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=10, asks=2))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 3
    assert "0 of 10 conversations were accepted (no_turns 10)" in ended.err
    assert ended.facts["state"] == "short"
    assert ended.facts["calls"]["made"] == 20
    lines = [json.loads(line) for line in (tmp_path / "run" / "rejected.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"t-{i:06d}-r0" for i in range(10)]
    assert lines[0]["reason"] == "no_turns"
    assert lines[0]["reply"] == "I like turtles."


async def test_one_endless_failure_stops_the_run_with_a_sentence(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return error(500, "the model is on fire")

    async with serve(Service(trouble=trouble)) as service:
        limits = {"in_flight": 8, "attempts": 2, "stop_after_failures": 5}
        job = write(tmp_path / "job.yaml", job_text(service.url, limits=limits))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 5
    assert "5 scenarios in a row got no answer" in ended.err
    assert "the model is on fire" in ended.err
    assert "Traceback" not in ended.err
    assert ended.facts["state"] == "stopped"
    assert equation(ended.facts)


async def test_a_refused_key_stops_at_once_and_the_run_goes_on_later(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return error(401, "bad key sk-secret-value") if service.asked.total() > 20 else None

    async with serve(Service(trouble=trouble)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, limits={"in_flight": 4}))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 5
        assert "check the environment variable" in ended.err
        made = ended.facts["calls"]["made"]
        assert 15 <= made <= 20
        service.trouble = None
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0
        assert service.answered.total() == CONVERSATIONS


async def test_a_server_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    limits = {"attempts": 1, "stop_after_failures": 3}
    job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:9/v1", limits=limits))
    ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 5
    assert "127.0.0.1:9" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.crash
async def test_a_signal_flushes_and_the_run_goes_on(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with serve(Service(latency=0.01, hold_after=40)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, limits={"in_flight": 8}))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        while service.asked.total() < 48:
            await asyncio.sleep(0.005)
        process.send_signal(number)
        await until_it_says(process, "Stopping")
        service.release()
        ended = await end(process)
        assert ended.code == code, ended.err
        assert "run the same command again to resume" in ended.err
        assert equation(ended.facts)
        assert ended.facts["state"] == "stopped"
        assert ended.facts["calls"]["made"] == service.answered.total(), "what was in flight is kept"
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0
        assert set(service.asked.values()) == {1}, "nothing was asked twice"


@pytest.mark.crash
async def test_a_second_signal_does_not_wait_for_calls_in_flight(tmp_path: Path) -> None:
    async with serve(Service(latency=600)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, limits={"in_flight": 8}))
        process = await start("generate", job, "-o", tmp_path / "run", "--json")
        while service.asked.total() < 8:
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        await until_it_says(process, "Stopping")
        process.send_signal(signal.SIGINT)
        ended = await end(process, timeout=100)
    assert ended.code == 130
    assert "Traceback" not in ended.err


async def test_the_second_process_on_a_run_exits_6(tmp_path: Path) -> None:
    async with serve(Service(hold_after=0)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=20, limits={"in_flight": 2}))
        first = await start("generate", job, "-o", tmp_path / "run", "--json")
        while not service.asked:
            await asyncio.sleep(0.01)
        second = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert second.code == 6
        assert f"process {first.pid} on " in second.err
        status = await edgen("status", tmp_path / "run", "--json")
        assert status.facts["state"] == "running"
        service.release()
        assert (await end(first)).code == 0
        assert (await edgen("status", tmp_path / "run", "--json")).facts["state"] == "complete"


async def test_a_finished_run_asks_nothing_and_leaves_its_files_alone(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=50))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        before, asked = files(tmp_path / "run"), service.asked.total()
        times = {p: p.stat().st_mtime_ns for p in (tmp_path / "run" / "shards").iterdir()}
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0
        assert service.asked.total() == asked
        assert files(tmp_path / "run") == before
        assert times == {p: p.stat().st_mtime_ns for p in (tmp_path / "run" / "shards").iterdir()}
        refused = await edgen("generate", job, "-o", tmp_path / "run", "--resume", "never")
        assert refused.code == 2
        assert "already holds a run" in refused.err


async def test_growing_n_asks_only_what_is_new_and_changes_no_old_record(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=40, split={"test": 0.0}))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        small = records(tmp_path / "run")
        ended = await edgen("generate", job, "-n", "100", "-o", tmp_path / "run", "--json")
        assert ended.code == 0
        assert ended.facts["calls"]["made"] == 100
        assert set(service.asked.values()) == {1}
        assert records(tmp_path / "run")[:40] == small


def records(folder: Path) -> list[object]:
    paths = sorted((folder / "shards").glob("conversations_train*.json"))
    return [record for path in paths for record in json.loads(path.read_text())]


async def test_a_changed_job_keeps_the_earlier_files_and_the_paid_answers(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=30))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        before = files(tmp_path / "run")
        # The split does not shape an answer; the temperature does.
        moved = await edgen("generate", job, "-o", tmp_path / "run", "--json", "--set", "split.by=topic")
        assert moved.code == 0
        assert service.asked.total() == 30
        warm = await edgen(
            "generate",
            job,
            "-o",
            tmp_path / "run",
            "--json",
            "--yes",
            "--set",
            "backends.default.temperature=0.5",
        )
        assert warm.code == 0
        assert "has changed since" in warm.err
        assert service.asked.total() == 60
        kept = tmp_path / "run" / "previous"
        assert files(kept / "1") == before
        back = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert back.code == 0
        assert service.asked.total() == 60, "the first answers are still there"
        assert files(tmp_path / "run") == before


async def test_replies_are_read_again_and_not_asked_again(tmp_path: Path) -> None:
    """Outcomes are derived: without them, the stored replies give the same files."""
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=30))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        before = files(tmp_path / "run")
        with sqlite3.connect(tmp_path / "run" / "run.db") as ledger:
            ledger.execute("DELETE FROM outcomes")
            ledger.execute("DELETE FROM records")
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.facts["calls"] == {"made": 30, "replayed": 30, "retried": 0, "now": 0}
        assert service.asked.total() == 30
        assert files(tmp_path / "run") == before


async def test_a_cut_off_answer_is_asked_for_with_more_room(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        backend = {
            "type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 150,
            "retry_max_tokens": 2000, "forms": "prose",
        }  # fmt: skip
        job = write(
            tmp_path / "job.yaml", job_text(service.url, conversations=20, backends={"default": backend})
        )
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 0, ended.err
    assert ended.facts["calls"]["made"] > 20


async def test_top_up_plans_more_until_enough_are_accepted(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return completion("no") if seed % 3 == 0 else None

    async with serve(Service(trouble=trouble)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=60, asks=1, top_up=True))
        ended = await edgen("generate", job, "-o", tmp_path / "a", "--json")
        assert ended.code == 0, ended.err
        assert ended.facts["accepted"] == 60
        assert ended.facts["planned"] > 60
        other = await edgen("generate", job, "-o", tmp_path / "b", "--json", "--set", "limits.in_flight=1")
        assert other.facts["planned"] == ended.facts["planned"]
        again = await edgen("generate", job, "-o", tmp_path / "a", "--json")
        assert again.facts["calls"]["made"] == ended.facts["calls"]["made"]


async def test_top_up_gives_up_where_nothing_is_ever_accepted(tmp_path: Path) -> None:
    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return completion("no")

    async with serve(Service(trouble=trouble)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=5, asks=1, top_up=True))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
    assert ended.code == 3
    assert ended.facts["planned"] <= 60


async def test_a_budget_stops_the_run_before_it_is_passed(tmp_path: Path) -> None:
    async with serve(Service(latency=0.01)) as service:
        backend = {
            "type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 2000,
            "price": {"prompt": 1.0, "completion": 10.0},
        }  # fmt: skip
        job = write(
            tmp_path / "job.yaml",
            job_text(service.url, backends={"default": backend}, limits={"in_flight": 4, "max_cost": 0.12}),
        )
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 4
        assert "limits.max_cost" in ended.err
        assert 0 < ended.facts["cost_usd"] <= 0.12
        made = ended.facts["calls"]["made"]
        assert made > 50
        again = await edgen("generate", job, "-o", tmp_path / "run", "--json", "--set", "limits.max_cost=9")
        assert again.code == 0
        assert set(service.asked.values()) == {1}


async def test_concurrency_does_not_change_a_byte(tmp_path: Path) -> None:
    async with serve(Service(latency=0.002)) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=60))
        made = []
        for number in (1, 7, 64):
            folder = tmp_path / f"run{number}"
            ended = await edgen(
                "generate", job, "-o", folder, "--json", "--set", f"limits.in_flight={number}"
            )
            assert ended.code == 0
            made.append({name: data for name, data in files(folder).items() if name != "manifest.json"})
    assert made[0] == made[1] == made[2]


async def test_replicates_differ_and_share_their_side(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=20, replicates=3))
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.facts["accepted"] == 60
    sides: dict[int, set[str]] = {}
    texts = set()
    for path in (tmp_path / "run" / "shards").glob("conversations_*.json"):
        for record in json.loads(path.read_text()):
            sides.setdefault(record["provenance"]["scenario"], set()).add(path.name.split("_")[1][:4])
            texts.add(json.dumps(record["conversation"]))
    assert len(texts) == 60
    assert all(len(side) == 1 for side in sides.values())


async def test_a_run_can_be_made_again_from_its_own_folder(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=10))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        again = await edgen("generate", tmp_path / "run" / "job.yaml", "-o", tmp_path / "again", "--json")
        assert again.code == 0, again.err
    assert records(tmp_path / "run") == records(tmp_path / "again")


async def test_keys_are_nowhere_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-very-secret-1234567890"
    monkeypatch.setenv("MY_KEY", key)
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1=MY_KEY")

    async def trouble(service: Service, seed: int) -> web.StreamResponse | None:
        return error(400, f"the key {key} is odd") if service.asked.total() % 3 == 0 else None

    async with serve(Service(trouble=trouble)) as service:
        backend = {
            "type": "openai",
            "model": "m",
            "base_url": service.url,
            "api_key_env": "MY_KEY",
            "seed": "auto",
        }
        job = write(
            tmp_path / "job.yaml", job_text(service.url, conversations=30, backends={"default": backend})
        )
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.facts["failed"]
    held = [path.name for path in tmp_path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert held == []
    assert key not in ended.out + ended.err


async def test_what_the_simulator_made_is_marked_however_it_came(tmp_path: Path) -> None:
    from edgen.simulator.options import ServerOptions
    from edgen.simulator.service.server import serve_options

    async with serve_options(ServerOptions(port=0)) as address:
        for kind, base in (("openai", f"{address}/v1"), ("gemini", address)):
            backend = {"type": kind, "model": "any", "base_url": base}
            text = job_text("", conversations=3, backends={"default": backend}, split={"test": 0})
            ended = await edgen(
                "generate", write(tmp_path / "job.yaml", text), "-o", tmp_path / kind, "--json"
            )
            assert ended.code == 0, ended.err
            made = records(tmp_path / kind)
            assert [record["provenance"]["simulated"] for record in made] == [True] * 3  # type: ignore[index]
            assert json.loads(files(tmp_path / kind)["manifest.json"])["simulated"] is True
    async with serve(Service()) as service:  # another server, which does not identify itself as the simulator
        job = write(tmp_path / "job.yaml", job_text(service.url, conversations=3, split={"test": 0}))
        await edgen("generate", job, "-o", tmp_path / "other", "--json")
        assert json.loads(files(tmp_path / "other")["manifest.json"])["simulated"] is False
