"""The scheduler with scripted backends: bugs surface, many workers cost little, and refusals
delay no other call."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from edgen.config import Job
from edgen.core.errors import CallError, DataError, FailureKind, ProviderError, ShortError
from edgen.core.resources import find
from edgen.core.values import Reply, Request
from edgen.planning.plan import Plan
from edgen.prompting import load_prompt
from edgen.simulator.config import SimulatorConfig
from edgen.simulator.text import respond
from edgen.space import load_space
from edgen.store.ledger import Ledger, run_status
from edgen.store.run_folder import RunFolder
from tests.execution.making import begin
from tests.execution.making import execute as run_to_its_end
from tests.scenarios import DEFAULT_VARIABLES
from tests.timing import takes_under

pytestmark = pytest.mark.unit


class Scripted:
    """A backend that follows the test's script, call by call."""

    def __init__(self, *script: Exception | None, delay: float = 0.0) -> None:
        self.script = list(script)
        self.delay = delay
        self.calls = 0
        self.most = 0
        self._now = 0

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"type": "scripted"}

    @property
    def model(self) -> str:
        return "scripted"

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self._now -= 1
        if self.script and (trouble := self.script.pop(0)) is not None:
            raise trouble
        return respond(request.messages, seed=request.seed)

    async def models(self) -> list[str] | None:
        return None

    async def aclose(self) -> None:
        return


def plan(**changes: Any) -> Plan:
    values: dict[str, Any] = {
        "name": "t", "conversations": 30, "space": "s", "prompt": "p", "backends": {"default": SimulatorConfig()},
    }  # fmt: skip
    return Plan(
        Job(**(values | changes)),
        load_space(find("preference_space", "education_dialogue")),
        {"default": load_prompt(find("prompts", "education_dialogue"), DEFAULT_VARIABLES)},
    )


async def execute(folder: Path, backend: Scripted, **changes: Any) -> None:
    rundir = RunFolder(folder)
    rundir.prepare()
    async with Ledger(rundir.ledger) as ledger:
        await run_to_its_end(begin(plan(**changes), {"default": backend}, rundir, ledger))


async def test_a_bug_in_an_adapter_surfaces_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    backend = Scripted(*[None] * 10, ZeroDivisionError("a bug"), delay=0.01)
    with pytest.raises(ZeroDivisionError):
        await execute(tmp_path / "run", backend)
    assert run_status(tmp_path / "run" / "run.db").counts.made >= 10
    await execute(tmp_path / "run", Scripted())
    assert run_status(tmp_path / "run" / "run.db").accepted == 30


async def test_a_request_that_is_never_taken_fails_alone(tmp_path: Path) -> None:
    backend = Scripted(CallError(FailureKind.CONTEXT_OVERFLOW, "too long"))
    with pytest.raises(Exception, match="29 of 30"):
        await execute(tmp_path / "run", backend)
    assert backend.calls == 30, "it is not tried again within a run"
    assert run_status(tmp_path / "run" / "run.db").failed == {"context_overflow": 1}


@pytest.mark.parametrize("kind", sorted(FailureKind))
async def test_every_kind_of_failure_ends_in_an_outcome_or_a_sentence(
    tmp_path: Path, kind: FailureKind
) -> None:
    """No kind of failure loops for ever or ends in a traceback."""
    limits = {"attempts": 2, "stop_after_failures": 3, "give_up_after": 1}
    backend = Scripted(*[CallError(kind, "no", retry_after=0.01) for _ in range(5000)])
    from edgen.config import Limits

    # A person who leaves ends one conversation only.
    ends = (ShortError, "left 30") if kind is FailureKind.LEFT else (ProviderError, "same command again")
    with pytest.raises(ends[0], match=ends[1]):
        await execute(tmp_path / "run", backend, limits=Limits(**limits))
    status = run_status(tmp_path / "run" / "run.db")
    assert status.accepted == 0
    assert status.planned == status.pending + sum((status.failed | status.rejected).values())


async def test_never_more_calls_in_flight_than_allowed(tmp_path: Path) -> None:
    from edgen.config import Limits

    backend = Scripted(delay=random.Random(1).uniform(0.001, 0.004))
    await execute(tmp_path / "run", backend, conversations=100, limits=Limits(in_flight=7))
    assert 5 <= backend.most <= 7


class AskedTogether(Scripted):
    """A backend that answers nobody before this many calls wait for it."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._all = asyncio.Barrier(count)

    async def complete(self, request: Request) -> Reply:
        await self._all.wait()
        return await super().complete(request)


async def test_people_are_asked_for_all_conversations_however_few_calls_may_be_in_flight(
    tmp_path: Path,
) -> None:
    from edgen.config import Limits
    from edgen.providers.human.config import HumanConfig

    backends, limits = {"default": HumanConfig()}, Limits(in_flight=1)
    made = execute(tmp_path / "run", AskedTogether(40), conversations=40, backends=backends, limits=limits)
    await asyncio.wait_for(made, 60)
    assert run_status(tmp_path / "run" / "run.db").accepted == 40


async def test_a_ledger_that_fails_while_it_lists_units_loses_no_call_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgen.config import Limits

    failed = asyncio.Event()

    class Later(Scripted):
        async def complete(self, request: Request) -> Reply:
            reply = await super().complete(request)
            if request.address.scenario:
                await failed.wait()
                await asyncio.sleep(0.01)
            return reply

    def list_some(self: Ledger, *_: Any) -> Iterator[tuple[int, int, str, str]]:
        yield 4, 0, "accepted", ""
        failed.set()
        raise DataError("the ledger", "is damaged")

    backend = Later()
    monkeypatch.setattr(Ledger, "list_settled", list_some)
    with pytest.raises(DataError, match="damaged"):
        await execute(tmp_path / "run", backend, limits=Limits(in_flight=4))
    assert backend.calls == 4
    assert run_status(tmp_path / "run" / "run.db").counts.made == 4


def test_thousands_of_workers_end_as_quickly_as_few(tmp_path: Path) -> None:
    from edgen.config import Limits

    numbers = itertools.count()

    def run(in_flight: int) -> None:
        limits = Limits(in_flight=in_flight)
        folder = tmp_path / f"run{next(numbers)}"
        asyncio.run(execute(folder, Scripted(), conversations=50, limits=limits))

    assert takes_under(5, lambda: run(10_000), tries=3)
