"""Batches without names: after a lost creation, the run's batch is found by its requests,
once it has ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from edgen.config import parse_job
from edgen.core.errors import CallError, FailureKind, ProviderError
from edgen.execution.batch.lifecycle import BatchLifecycle
from edgen.execution.batch.manual import give_up
from edgen.execution.progress import Events
from edgen.store.ledger import Ledger, read_batches_at
from tests.execution.batch.desk import Line, NamelessDesk
from tests.execution.batch.test_scheduler import SELFPLAY, STEPS, Killed, execute, job
from tests.execution.service import files

# Three batches of one size, so that any of them could be the lost one.
ALIKE: dict[str, Any] = {"batch": {"poll": "0.02s", "max_requests": 10}}


def sent_once(desk: NamelessDesk) -> bool:
    return len(set(desk.begun.values())) <= 1 and set(desk.asked.values()) == {1}


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("online")
    asyncio.run(execute(folder / "oneshot", None, **ALIKE))
    return files(folder / "oneshot")


@pytest.mark.parametrize("step", STEPS)
async def test_broken_off_at_any_step_nothing_is_asked_twice(
    tmp_path: Path, step: str, online: dict[str, bytes]
) -> None:
    desk, struck = NamelessDesk(looks=2), []

    def strike(here: str) -> None:
        if here == step and not struck:
            struck.append(here)
            raise Killed

    desk.trouble = strike
    desk.after = lambda here: strike("begun")
    if step == "taken":
        desk.trouble = lambda here: strike("taken") if here == "state" and len(desk.asked) > 5 else None
    with pytest.raises(Killed):
        await execute(tmp_path / "run", desk, **ALIKE)
    await execute(tmp_path / "run", desk, **ALIKE)
    assert struck
    assert files(tmp_path / "run") == online
    assert set(desk.asked.values()) == {1}
    assert len(desk.begun) == len(read_batches_at(tmp_path / "run" / "run.db")), "one submission for each"


async def test_turn_by_turn_the_files_are_those_of_the_online_run(tmp_path: Path) -> None:
    desk, few = NamelessDesk(), SELFPLAY | {"conversations": 4}
    await execute(tmp_path / "run", desk, **few)
    await execute(tmp_path / "online", None, **few)
    assert files(tmp_path / "run") == files(tmp_path / "online")
    assert set(desk.asked.values()) == {1}


def losing(desk: NamelessDesk, failure: CallError, *, begun: bool) -> None:
    """Make the first creation fail, before or after the batch has begun."""
    lost = [failure]

    def lose(step: str) -> None:
        if step == "create" and lost:
            raise lost.pop()

    if begun:
        desk.after = lose
    else:
        desk.trouble = lose


GONE = CallError(FailureKind.CONNECTION, "gone")


async def test_one_that_was_begun_is_waited_for_and_not_sent_again(tmp_path: Path) -> None:
    desk = NamelessDesk(looks=5)
    losing(desk, GONE, begun=True)
    await execute(tmp_path / "run", desk)
    assert desk.steps.count("find") == 6, "at work it tells nothing"
    assert sent_once(desk)


async def test_one_that_is_listed_late_is_found_all_the_same(tmp_path: Path) -> None:
    desk = NamelessDesk()
    losing(desk, GONE, begun=True)
    desk.late = {"batch-0"}
    desk.trouble = lambda step: desk.late.clear() if desk.steps.count("find") > 3 else None
    await execute(tmp_path / "run", desk)
    assert desk.steps.count("create") == 1
    assert sent_once(desk)


async def test_one_that_was_not_begun_is_sent_anew_when_no_call_can_be_under_way(tmp_path: Path) -> None:
    desk = NamelessDesk()
    losing(desk, GONE, begun=False)
    await execute(tmp_path / "run", desk)
    assert desk.steps.count("create") == 2
    assert desk.steps.count("find") > 2
    assert sent_once(desk)


@pytest.mark.parametrize(
    "failure",
    [
        CallError(FailureKind.RATE_LIMIT, "slow down", status=429),
        CallError(FailureKind.OVERLOADED, "full", status=529),
        CallError(FailureKind.CONNECTION, "nobody there", unsent=True),
    ],
    ids=["429", "529", "unsent"],
)
async def test_what_was_refused_is_sent_again_without_a_search(tmp_path: Path, failure: CallError) -> None:
    desk = NamelessDesk()
    losing(desk, failure, begun=False)
    await execute(tmp_path / "run", desk)
    assert "find" not in desk.steps
    assert sent_once(desk)


@pytest.mark.parametrize("status", [401, 400])
async def test_what_is_refused_for_good_stops_the_run(tmp_path: Path, status: int) -> None:
    desk = NamelessDesk()
    kind = FailureKind.AUTHENTICATION if status == 401 else FailureKind.BAD_REQUEST
    losing(desk, CallError(kind, "no", status=status), begun=False)
    with pytest.raises(ProviderError, match="no"):
        await execute(tmp_path / "run", desk)
    await execute(tmp_path / "run", desk)
    assert "find" not in desk.steps
    assert sent_once(desk)


async def test_another_s_batch_of_the_same_size_is_waited_for_and_left_alone(tmp_path: Path) -> None:
    desk = NamelessDesk(looks=4)
    theirs = [Line(f"{number}-0-0-{number:032x}-aaaaaaaa", [], number) for number in range(30)]

    def strike(step: str) -> None:
        if step == "create" and not desk.begun:
            desk.begun["theirs"], desk.content["theirs"] = "another", theirs
            raise GONE

    desk.trouble = strike
    await execute(tmp_path / "run", desk)
    assert desk.listed["theirs"] > desk.looks, "it was waited for"
    assert "theirs" not in desk.seen
    assert desk.cancelled == set()
    assert list(desk.begun) == ["theirs", "batch-1"]
    assert set(desk.asked.values()) == {1}


async def test_given_up_it_is_looked_for_and_what_it_answered_is_kept(tmp_path: Path) -> None:
    desk = NamelessDesk(looks=2)

    def strike(step: str) -> None:
        raise Killed

    desk.after = strike
    with pytest.raises(Killed):
        await execute(tmp_path / "run", desk)
    desk.after = lambda step: None
    made = parse_job(job(), "job.yaml")
    async with Ledger(tmp_path / "run" / "run.db") as ledger:
        [batch] = ledger.list_batches()
        assert batch.state == "sending"
        [counts] = await give_up(made, ledger, {"default": desk}, [batch.number], Events())
    assert counts.answered == 30
    await execute(tmp_path / "run", desk)
    assert sent_once(desk)


async def test_whoever_waits_for_an_unheard_create_hears_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider has no batch that may belong to the run; edgen reports this before it waits."""
    desk, told = NamelessDesk(), list[str]()

    def strike(step: str) -> None:
        if step == "create":
            desk.trouble = lambda _step: None
            raise Killed

    desk.trouble = strike
    with pytest.raises(Killed):
        await execute(tmp_path / "run", desk, **ALIKE)
    monkeypatch.setattr(BatchLifecycle, "_tell", lambda _self, _batch, text, **_facts: told.append(text))
    await execute(tmp_path / "run", desk, **ALIKE)
    assert any("unknown whether the provider has started it; edgen looks for it" in text for text in told)
    assert set(desk.asked.values()) == {1}
