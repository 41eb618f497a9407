"""Runs in the caller's own process: functions as backends, cancelled tasks, two runs of one
folder, closed loops."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from edgen.config import parse_job
from edgen.core.errors import LockedError, ProviderError, UsageError
from edgen.core.values import Request
from edgen.execution import online_scheduler
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.providers.function import AnswerFunction, FunctionBackend, make_config
from edgen.simulator.text import respond
from edgen.store.ledger import Ledger, run_status
from edgen.store.run_folder import RunFolder
from tests.execution.making import begin, execute

pytestmark = pytest.mark.unit


class Answering:
    """A function with a version that counts its calls."""

    def __init__(self, version: int = 1, delay: float = 0.0) -> None:
        self.version = version
        self.delay = delay
        self.asked: Counter[int] = Counter()
        self.answered = 0

    async def __call__(self, request: Request) -> str:
        self.asked[request.seed] += 1
        await asyncio.sleep(self.delay)
        self.answered += 1
        return respond(request.messages, seed=request.seed).text


async def make(
    folder: Path, function: AnswerFunction, *, in_flight: int = 8, conversations: int = 40
) -> None:
    """Make the run as far as possible."""
    config = make_config(function)
    values = {
        "name": "t", "conversations": conversations, "space": "education_dialogue", "prompt": "education_dialogue",
        "backends": {"default": {"type": "function", "model": config.model, "version": config.version}},
        "limits": {"in_flight": in_flight, "attempts": 2},
    }  # fmt: skip
    plan = make_plan(parse_job(values, "job.yaml"), AllowedFiles.of(Path("job.yaml")))
    run_folder = RunFolder(folder)
    run_folder.prepare()
    with run_folder.lock_for_writing():
        async with Ledger(run_folder.ledger) as ledger:
            backend = FunctionBackend(function, config, 5.0)
            await execute(begin(plan, {"default": backend}, run_folder, ledger))


async def test_a_function_makes_a_run(tmp_path: Path) -> None:
    function = Answering()
    await make(tmp_path / "run", function)
    status = run_status(tmp_path / "run" / "run.db")
    assert (status.accepted, status.counts.made, sum(function.asked.values())) == (40, 40, 40)
    again = Answering()
    await make(tmp_path / "run", again)
    assert not again.asked, "what it answered is in the ledger"


async def test_another_version_of_it_is_asked_anew(tmp_path: Path) -> None:
    await make(tmp_path / "run", Answering(1))
    later = Answering(2)
    await make(tmp_path / "run", later)
    assert sum(later.asked.values()) == 40
    assert (tmp_path / "run" / "previous").exists()


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.2])
async def test_a_cancelled_run_keeps_what_was_in_flight(tmp_path: Path, moment: float) -> None:
    function = Answering(delay=0.03)
    task = asyncio.create_task(make(tmp_path / "run", function, conversations=200))
    await asyncio.sleep(moment)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert function.answered == sum(function.asked.values()), "what was begun was waited for"
    function.delay = 0.0
    await make(tmp_path / "run", function, conversations=200)
    assert run_status(tmp_path / "run" / "run.db").accepted == 200
    assert set(function.asked.values()) == {1}, "nothing was asked twice"


async def test_a_second_cancellation_waits_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_scheduler, "GRACE", 3600.0)
    monkeypatch.setattr(online_scheduler, "UNPAID_GRACE", 3600.0)
    function = Answering(delay=3600.0)
    task = asyncio.create_task(make(tmp_path / "run", function))
    while not function.asked:
        await asyncio.sleep(0.01)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
    await asyncio.wait([task], timeout=600)
    assert task.cancelled()


async def test_two_runs_of_one_folder_in_one_process(tmp_path: Path) -> None:
    function = Answering(delay=0.2)
    first = asyncio.create_task(make(tmp_path / "run", function))
    while not function.asked:
        await asyncio.sleep(0.01)
    with pytest.raises(LockedError, match="another call in this process works on this run"):
        await make(tmp_path / "run", Answering())
    await first
    assert run_status(tmp_path / "run" / "run.db").accepted == 40


def run_when_free(make_run: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Run it once the closed loop has released the folder; its threads may hold the folder for a while."""
    for _ in range(6000):
        gc.collect()
        try:
            asyncio.run(make_run())
        except LockedError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the folder is still held")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python reports pending tasks
def test_a_loop_that_is_closed_loses_nothing(tmp_path: Path) -> None:
    function = Answering(delay=0.01)
    loop = asyncio.new_event_loop()
    task = loop.create_task(make(tmp_path / "run", function, in_flight=4, conversations=400))

    async def wait_for_some() -> None:
        while function.answered < 20:
            await asyncio.sleep(0.01)

    loop.run_until_complete(wait_for_some())
    assert sum(function.asked.values()) < 400
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "call_exception_handler", lambda _: None)  # do not report pending tasks
        loop.close()
        del task
        run_when_free(lambda: make(tmp_path / "run", function, conversations=400))
    assert run_status(tmp_path / "run" / "run.db").accepted == 400
    assert sum(function.asked.values()) <= 400 + 4


async def test_a_function_that_uses_a_closed_loop_is_told_so(tmp_path: Path) -> None:
    async def failing(_: Request) -> str:
        raise RuntimeError("Event loop is closed")

    with pytest.raises(UsageError, match="a client of a closed event loop, or of another one"):
        await make(tmp_path / "run", failing)


async def test_a_function_that_always_fails_stops_the_run(tmp_path: Path) -> None:
    async def failing(_: Request) -> str:
        raise KeyError("text")

    with pytest.raises(ProviderError, match=r"25 scenarios in a row got no answer.*KeyError: 'text'"):
        await make(tmp_path / "run", failing, conversations=60)
