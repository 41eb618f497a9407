"""Batches through the whole program, the vendors' SDKs and a real server, killed at any moment. Each round is
one batch, no answer is lost, and the files equal those of the online run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import RunError
from edgen.core.files import find_target
from edgen.store.ledger import NotedBatch, read_batches_at
from tests.dose import dose
from tests.execution.service import Ended, edgen, end, equation, files, start

pytestmark = pytest.mark.crash

CONVERSATIONS = 24


@contextlib.asynccontextmanager
async def simulator(*options: str) -> AsyncIterator[str]:
    """Run `edgen simulator` in its own process; yield its address."""
    process = await start("simulator", "--port", "0", *options)
    try:
        async with asyncio.timeout(120):
            line = (await process.stderr.readline()).decode()
        assert "http://" in line, line + (await process.stderr.read()).decode()
        yield "http://" + line.partition("http://")[2].split("/")[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def backend(kind: str, url: str) -> dict[str, Any]:
    if kind == "openai":
        return {"type": "openai", "model": "m", "base_url": f"{url}/v1", "seed": "auto", "max_tokens": 3000}
    if kind in (
        "anthropic",
        "openai-responses",
    ):  # without a seed, only temperature 0 repeats an answer
        place = url if kind == "anthropic" else f"{url}/v1"
        return {"type": kind, "model": "m", "base_url": place, "temperature": 0, "max_tokens": 3000}
    return {"type": "gemini", "model": "gemini-m", "base_url": url, "seed": "auto", "max_tokens": 3000}


SHAPES: dict[str, dict[str, Any]] = {
    "oneshot": {"prompt": "education_dialogue", "conversations": CONVERSATIONS},
    "selfplay": {
        "protocol": "selfplay",
        "conversations": CONVERSATIONS // 4,
        "selfplay": {"max_turns": 4, "closing": "student"},
    },
}


def write_job(path: Path, kind: str, url: str, shape: str, **changes: Any) -> Path:
    job = {
        "name": "t",
        "seed": 5,
        "space": "education_dialogue",
        "backends": {"default": backend(kind, url)},
        "batch": {"poll": "0.2s"},
        **SHAPES[shape],
        **changes,
    }
    path.write_text(json.dumps(job))
    return path


def tokens(kind: str, url: str) -> list[str]:
    """Return the names of all batches that the provider has begun, or their ids if batches have no names."""
    if kind == "anthropic":
        headers, path = (
            {"x-api-key": "k", "anthropic-version": "2023-06-01"},
            "/v1/messages/batches?limit=1000",
        )
    elif kind.startswith("openai"):
        headers, path = {"Authorization": "Bearer k"}, "/v1/batches?limit=100"
    else:
        headers, path = {"x-goog-api-key": "k"}, "/v1beta/batches?pageSize=1000"
    with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=60) as answer:
        said = json.loads(answer.read())
    if kind == "anthropic":
        return [batch["id"] for batch in said["data"]]
    if kind.startswith("openai"):
        assert not said.get("has_more")
        return [batch["metadata"]["edgen"] for batch in said["data"]]
    listed = said.get("operations") or said.get("batches") or []
    return [(batch.get("metadata") or batch)["displayName"] for batch in listed]


def names(kind: str, made: Iterable[NotedBatch]) -> list[str]:
    """Return the names of a run's batches at the provider."""
    return sorted(str(batch.remote_id) if kind == "anthropic" else batch.token for batch in made)


@pytest.mark.parametrize("kind", ["openai", "gemini", "anthropic", "openai-responses"])
async def test_by_batch_the_files_are_those_of_the_online_run(tmp_path: Path, kind: str) -> None:
    """In one round; the kills below compare runs of many rounds with their online runs."""
    async with simulator("--batch-seconds", "0.3") as url:
        job = write_job(tmp_path / "job.yaml", kind, url, "oneshot")
        batch = await edgen(
            "generate", job, "-o", tmp_path / "batch", "--via", "batch", "--json", timeout=120
        )
        online = await edgen("generate", job, "-o", tmp_path / "online", "--json")
        named = tokens(kind, url)
    assert batch.code == online.code, batch.err
    assert equation(batch.facts)
    assert files(tmp_path / "batch") == files(tmp_path / "online")
    assert batch.facts["calls"]["made"] == online.facts["calls"]["made"]
    made = read_batches_at(tmp_path / "batch" / "run.db")
    assert sorted(named) == names(kind, made)
    assert set(Counter(batch.round for batch in made).values()) == {1}


# The steps at which a run is killed, in the order within a round, but for the last one: so most starts have
# little to do. The next start settles a batch whose creation was interrupted, and does not wait for it again.
AIMS = ("preparing", "uploading", "waiting", "downloading", "reading", "creating")
SHORT = ("preparing", "reading")  # steps that take milliseconds
# One provider is killed at every step, the others at the steps that are special to them. If no file is uploaded
# and batches have no names, the run waits for a batch whose creation was lost while the state is `creating`.
OF_KIND = {
    "openai": AIMS,
    "gemini": ("uploading", "downloading", "creating"),
    "anthropic": ("downloading", "creating"),
}
HELD = 0.3  # seconds; the least time that the simulator takes for each of the other steps


def at(folder: Path) -> tuple[int, str]:
    """Return the number of a run's last batch, and its current step."""
    try:
        made = read_batches_at(folder / "run.db")
    except RunError:  # the ledger is just being created
        return 0, ""
    if not made:
        return 0, ""
    batch = made[-1]
    if batch.state != "sent":
        known = {"preparing": "preparing", "ready": "uploading", "sending": "creating"}
        return batch.number, known.get(batch.state, "")
    names = [path.name for path in (folder / "run.batches").glob(f"*{batch.number:05d}.results-*")]
    if any(map(find_target, names)):
        return batch.number, "downloading"
    return batch.number, "reading" if names else "waiting"


def kill_at(aim: str, folder: Path, pid: int, delay: float, over: threading.Event) -> None:
    """Kill a process `delay` seconds after it reaches the step `aim`, or at once if the step is short. Do
    nothing if the step was current at the start, or once `over` is set."""
    before = at(folder)
    while (seen := at(folder)) == before or seen[1] != aim:
        if over.wait(0.001 if aim in SHORT else 0.04):
            return
    if aim not in SHORT:
        time.sleep(delay)
    if not over.is_set():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.long
async def test_killed_at_any_moment_no_batch_is_sent_twice_and_none_is_lost(tmp_path: Path) -> None:
    kinds = dose([*OF_KIND][:1], [*OF_KIND])
    for kind in kinds:
        (tmp_path / kind).mkdir()
    await asyncio.gather(*(killed_again_and_again(tmp_path / kind, kind) for kind in kinds))


async def killed_again_and_again(tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    folder = tmp_path / "run"
    aims, enough = OF_KIND[kind], len(OF_KIND[kind])
    faults = f"batch_create_lost=1:{HELD},batch_slow=1:{HELD}"
    async with simulator("--batch-seconds", str(4 * HELD), "--latency-ms", "0", "--faults", faults) as url:
        job = write_job(tmp_path / "job.yaml", kind, url, "selfplay")
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        kills, hits, ours = 0, Counter[str](), list[str]()
        while kills < enough or (kills < 4 * enough and not all(hits[aim] for aim in aims)):
            ended = await killed(job, folder, aims[kills % len(aims)], rng.uniform(0, HELD / 2))
            if ended.code == calm.code:
                # The run is complete, and kills are left: start a new run.
                ours += names(kind, assert_whole(folder, tmp_path / "calm"))
                shutil.rmtree(folder)
                continue
            assert ended.code == -signal.SIGKILL, ended.err
            kills += 1
            hits[at(folder)[1]] += 1
        ended = await end(await generate(job, folder))
        assert ended.code == calm.code, ended.err
        named = tokens(kind, url)
    ours += names(kind, assert_whole(folder, tmp_path / "calm"))
    assert sorted(named) == sorted(ours), "one submission for each batch of a run, and no other"
    assert ended.facts["calls"]["made"] == calm.facts["calls"]["made"]
    assert all(hits[aim] for aim in aims), hits


async def generate(job: Path, folder: Path) -> asyncio.subprocess.Process:
    arguments = ("generate", job, "-o", folder, "--via", "batch", "--json")
    return await start(*arguments, module="tests.execution.batch.settled")


async def killed(job: Path, folder: Path, aim: str, delay: float) -> Ended:
    """Start or resume a run, and kill it at the step `aim`."""
    over = threading.Event()
    process = await generate(job, folder)
    killing = asyncio.create_task(asyncio.to_thread(kill_at, aim, folder, process.pid, delay, over))
    try:
        return await end(process)
    finally:
        over.set()
        await killing


def assert_whole(folder: Path, calm: Path) -> list[NotedBatch]:
    """Assert that the run is complete and equals the undisturbed one; return its batches."""
    made = read_batches_at(folder / "run.db")
    assert {batch.state for batch in made} == {"read"}
    assert set(Counter(batch.round for batch in made).values()) == {1}, "one submission a round"
    assert files(folder) == files(calm)
    return made
