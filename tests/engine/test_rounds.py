"""Rounds of batches, against a service that does wrong on order: nothing asked twice, nothing lost, same files."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from edgen.config import parse_job
from edgen.engine.load import plan_of
from edgen.engine.rounds import BatchWay
from edgen.engine.run import Run
from edgen.errors import (
    CallError,
    EdgenError,
    FailureKind,
    HandedOver,
    ProviderError,
    StoppedError,
    UsageError,
)
from edgen.ledger import OPEN, Ledger, batches_at, run_status
from edgen.rundir import RunDir
from tests.engine.desk import Desk, Line
from tests.engine.service import files
from tests.engine.test_drive import Scripted

ONESHOT: dict[str, Any] = {"prompt": "education_dialogue"}
SELFPLAY: dict[str, Any] = {
    "protocol": "selfplay",
    "replicates": 2,
    "branch": {"at": "sampled"},
    "selfplay": {"closing": "student", "max_turns": 8},
}
PRICE = {"prompt": 1.0, "completion": 2.0, "batch": 0.5}


def job(**changes: Any) -> dict[str, Any]:
    backend = {"type": "simulator", "max_tokens": 2000, "price": PRICE}
    values: dict[str, Any] = {
        "name": "t", "seed": 3, "conversations": 30, "space": "education_dialogue", "backends": {"default": backend},
        "batch": {"poll": "0.02s"}, "limits": {"give_up_after": 1},
    }  # fmt: skip
    return values | (changes if "protocol" in changes else ONESHOT | changes)


async def execute(folder: Path, desk: Desk | None, write_only: Path | None = None, **changes: Any) -> Run:
    """The job, by batches at the desk; online without one."""
    rundir = RunDir(folder)
    rundir.prepare()
    plan = plan_of(parse_job(job(**changes), "job.yaml"), Path())
    way = None if desk is None else BatchWay({"default": desk}, write_only)
    async with Ledger(rundir.ledger) as ledger:
        run = Run(plan, {"default": Scripted()}, rundir, ledger, way=way)
        run.adopt(lambda _: None)
        await run.execute()
    return run


@pytest.mark.parametrize("shape", [ONESHOT, SELFPLAY], ids=["oneshot", "selfplay"])
async def test_the_files_are_those_of_the_online_run(tmp_path: Path, shape: dict[str, Any]) -> None:
    desk = Desk()
    await execute(tmp_path / "batch", desk, **shape)
    await execute(tmp_path / "online", None, **shape)
    assert files(tmp_path / "batch") == files(tmp_path / "online")
    assert set(desk.asked.values()) == {1}
    made, online = run_status(tmp_path / "batch" / "run.db"), run_status(tmp_path / "online" / "run.db")
    assert made.counts.made == online.counts.made == desk.asked.total()
    assert made.counts.completion_tokens == online.counts.completion_tokens
    assert made.counts.cost_usd == pytest.approx((online.counts.cost_usd or 0) / 2)
    batches = batches_at(tmp_path / "batch" / "run.db")
    assert {batch.state for batch in batches} == {"read"}
    assert [batch.round for batch in batches] == list(range(1, len(batches) + 1)), "one batch a round"
    assert await finished_asks_nothing(tmp_path / "batch", shape)


async def finished_asks_nothing(folder: Path, shape: dict[str, Any]) -> bool:
    desk = Desk()
    await execute(folder, desk, **shape)
    return not desk.steps


async def test_a_round_is_split_by_what_a_batch_can_hold(tmp_path: Path) -> None:
    desk = Desk(requests=50)
    await execute(tmp_path / "run", desk, batch={"poll": "0.02s", "max_requests": 13})
    sizes = [len(lines) for lines in desk.content.values()]
    assert sizes[:3] == [13, 13, 4]
    small = Desk(size=20_000)
    await execute(tmp_path / "small", small)
    assert len(small.files) > 1
    assert max(map(len, small.files.values())) <= 20_000


@pytest.mark.parametrize("accepted", [True, False], ids=["accepted", "refused"])
async def test_a_create_whose_answer_is_lost_makes_one_batch(tmp_path: Path, accepted: bool) -> None:
    desk, lost = Desk(), [1]

    def lose(step: str) -> None:
        if step == "create" and lost:
            lost.pop()
            raise CallError(FailureKind.CONNECTION, "gone")

    if accepted:
        desk.after = lose
    else:
        desk.trouble = lose
    await execute(tmp_path / "run", desk)
    assert len(set(desk.begun.values())) == len(desk.begun)
    assert set(desk.asked.values()) == {1}
    assert ("forget" in desk.steps) is not accepted


class Killed(Exception):  # noqa: N818 - stands for a kill
    """The process ends here."""


STEPS = ["upload", "create", "begun", "state", "download", "taken"]


@pytest.mark.parametrize("step", STEPS)
async def test_broken_off_at_any_step_it_goes_on_there(tmp_path: Path, step: str) -> None:
    desk, struck = Desk(looks=1), []

    def strike(here: str) -> None:
        if here == step and not struck:
            struck.append(here)
            raise Killed

    desk.trouble = strike
    desk.after = lambda here: strike("begun")
    if step == "taken":  # between a file that was read and the note that it was
        desk.trouble = lambda here: strike("taken") if here == "state" and len(desk.asked) > 5 else None
    with pytest.raises(Killed):
        await execute(tmp_path / "run", desk, **SELFPLAY)
    await execute(tmp_path / "run", desk, **SELFPLAY)
    await execute(tmp_path / "online", None, **SELFPLAY)
    assert struck
    assert files(tmp_path / "run") == files(tmp_path / "online")
    assert set(desk.asked.values()) == {1}
    assert len(set(desk.begun.values())) == len(desk.begun)


@pytest.mark.parametrize("outcome", ["expired", "cancelled"])
async def test_what_an_unfinished_batch_answered_is_kept(tmp_path: Path, outcome: str) -> None:
    desk = Desk()
    desk.judge = lambda batch, lines: (outcome, lines // 2) if batch == "batch-0" else ("completed", lines)
    await execute(tmp_path / "run", desk)
    await execute(tmp_path / "online", None)
    assert files(tmp_path / "run") == files(tmp_path / "online")
    assert set(desk.asked.values()) == {1}
    assert len(desk.content["batch-1"]) >= 15


async def test_lines_that_fail_are_tried_again_as_online(tmp_path: Path) -> None:
    desk, tried = Desk(), Counter[str]()

    def kind(line: Line) -> FailureKind | None:
        tried[line.id] += 1
        index = int(line.id.split("-")[0])
        if index == 4:
            return FailureKind.CONTEXT_OVERFLOW
        if index == 5:
            return FailureKind.SERVER_ERROR
        return FailureKind.RATE_LIMIT if index == 6 and tried[line.id] < 3 else None

    desk.kind = kind
    with pytest.raises(EdgenError, match="28 of 30"):
        await execute(tmp_path / "run", desk, limits={"attempts": 4, "give_up_after": 1}, asks=1)
    status = run_status(tmp_path / "run" / "run.db")
    assert status.failed == {"context_overflow": 1, "server_error": 1}
    by_index = {int(name.split("-")[0]): count for name, count in tried.items()}
    assert (by_index[4], by_index[5], by_index[6], by_index[7]) == (1, 4, 3, 1)


async def test_a_refused_key_in_a_line_stops_the_run_and_keeps_the_rest(tmp_path: Path) -> None:
    desk = Desk()
    desk.kind = lambda line: FailureKind.AUTHENTICATION if line.id.startswith("7-") else None
    with pytest.raises(ProviderError, match="key"):
        await execute(tmp_path / "run", desk)
    assert run_status(tmp_path / "run" / "run.db").counts.made == 29
    desk.kind = lambda line: None
    await execute(tmp_path / "run", desk)
    assert set(desk.asked.values()) == {1}


async def test_a_batch_for_which_there_is_no_room_is_sent_again(tmp_path: Path) -> None:
    desk = Desk()
    desk.failure = CallError(FailureKind.RATE_LIMIT, "enqueued token limit reached")
    desk.judge = lambda batch, lines: (
        ("failed", 0) if batch in ("batch-0", "batch-1") else ("completed", lines)
    )
    await execute(tmp_path / "run", desk)
    assert len(set(desk.begun.values())) == len(desk.begun) >= 3
    assert set(desk.asked.values()) == {1}


async def test_a_batch_refused_as_a_whole_stops_the_run(tmp_path: Path) -> None:
    desk = Desk()
    desk.failure = CallError(FailureKind.BAD_REQUEST, "line 3: no such parameter")
    desk.judge = lambda batch, lines: ("failed", 0)
    with pytest.raises(ProviderError, match=r"refused as a whole.*no such parameter"):
        await execute(tmp_path / "run", desk)
    desk.judge = lambda batch, lines: ("completed", lines)
    await execute(tmp_path / "run", desk)
    assert set(desk.asked.values()) == {1}


async def test_a_batch_that_the_provider_lost_is_not_asked_again_unasked(tmp_path: Path) -> None:
    desk = Desk()
    desk.trouble = lambda step: desk.begun.clear() if step == "state" else None
    with pytest.raises(ProviderError, match="edgen batch cancel"):
        await execute(tmp_path / "run", desk)
    with pytest.raises(ProviderError, match="not at the provider"):
        await execute(tmp_path / "run", desk)
    assert desk.steps.count("create") == 1


async def test_call_by_call_is_refused_while_a_batch_is_out(tmp_path: Path) -> None:
    desk = Desk(looks=10**6)
    await broken_off(tmp_path / "run", desk)
    with pytest.raises(UsageError, match="--via batch"):
        await execute(tmp_path / "run", None)
    with pytest.raises(UsageError, match="another form"):
        await execute(tmp_path / "run", desk, seed=4)
    desk.looks = 0
    await execute(tmp_path / "run", desk)
    assert desk.steps.count("create") == len(desk.begun)
    assert set(desk.asked.values()) == {1}


async def test_after_a_while_the_rest_is_asked_online(tmp_path: Path) -> None:
    desk = Desk(looks=10**6)
    desk.judge = lambda batch, lines: ("cancelled", 11)
    batch = {"poll": "0.02s", "online_after": "0.3s"}
    run = await execute(tmp_path / "run", desk, batch=batch)
    await execute(tmp_path / "online", None, batch=batch)
    assert desk.cancelled == {"batch-0"}
    assert files(tmp_path / "run") == files(tmp_path / "online")
    assert desk.asked.total() == 11
    assert run.tally.made == run_status(tmp_path / "online" / "run.db").counts.made


@pytest.mark.parametrize("ahead", [-(10**6), 10**6], ids=["long ago", "in the future"])
async def test_a_clock_that_jumped_between_two_starts(tmp_path: Path, ahead: float) -> None:
    """The first batch seems to have been sent days ago, or not yet: late in one case, afresh in the other."""
    desk, rundir = Desk(looks=10**6), RunDir(tmp_path / "run")
    batch = {"poll": "0.02s", "online_after": "1h"}
    await broken_off(rundir.path, desk, batch=batch)
    async with Ledger(rundir.ledger) as ledger:
        ledger.set_fact("batches_since", repr(time.time() + ahead))
    if ahead > 0:
        desk.looks = 0
    await execute(rundir.path, desk, batch=batch)
    assert bool(desk.cancelled) == (ahead < 0)
    await execute(tmp_path / "online", None, batch=batch)
    assert files(rundir.path) == files(tmp_path / "online")
    assert set(desk.asked.values()) <= {1}


async def broken_off(folder: Path, desk: Desk, **changes: Any) -> None:
    """Begin the job, and end when its batch has been looked at."""
    run = asyncio.create_task(execute(folder, desk, **changes))
    while desk.steps.count("state") < 3:
        await asyncio.sleep(0.01)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_rounds_that_bring_nothing_end_the_run(tmp_path: Path) -> None:
    desk = Desk()
    desk.judge = lambda batch, lines: ("expired", 0)
    with pytest.raises(ProviderError, match="without one answer"):
        await execute(tmp_path / "run", desk)
    assert len(desk.begun) == 6


async def test_a_stop_leaves_the_batch_known(tmp_path: Path) -> None:
    desk = Desk(looks=10**6)
    rundir = RunDir(tmp_path / "run")
    rundir.prepare()
    plan = plan_of(parse_job(job(), "job.yaml"), Path())
    async with Ledger(rundir.ledger) as ledger:
        run = Run(plan, {"default": Scripted()}, rundir, ledger, way=BatchWay({"default": desk}))
        run.adopt(lambda _: None)
        asyncio.get_running_loop().call_later(0.2, run.driver.stop, StoppedError("time is up"))
        with pytest.raises(StoppedError, match="time is up"):
            await run.execute()
        assert run.driver.in_flight == 30
    assert [batch.state for batch in batches_at(rundir.ledger)] == ["sent"]


async def test_a_budget_covers_what_is_out_and_is_never_passed(tmp_path: Path) -> None:
    await execute(tmp_path / "free", Desk())
    free = run_status(tmp_path / "free" / "run.db").counts
    whole = free.prompt_tokens + free.completion_tokens
    desk, caps = Desk(), [int(whole * 0.5), int(whole * 0.8), None]
    for cap in caps:
        limits = {"give_up_after": 1} | ({} if cap is None else {"max_tokens": cap})
        if cap is None:
            await execute(tmp_path / "run", desk, limits=limits)
            continue
        with pytest.raises(StoppedError, match="max_tokens"):
            await execute(tmp_path / "run", desk, limits=limits)
        used = run_status(tmp_path / "run" / "run.db").counts
        assert 0 < used.prompt_tokens + used.completion_tokens <= cap
    assert files(tmp_path / "run") == files(tmp_path / "free")
    assert set(desk.asked.values()) == {1}


async def test_lines_of_another_run_are_left_aside(tmp_path: Path) -> None:
    desk = Desk()
    desk.extra = [
        b'{"id": "0-0-0-0-' + b"ab" * 16 + b'", "reply": {"text": "x"}}',
        b"no json",
        b'{"id": "zzz"}',
    ]
    await execute(tmp_path / "run", desk)
    await execute(tmp_path / "online", None)
    assert files(tmp_path / "run") == files(tmp_path / "online")


async def test_written_files_are_handed_over_and_not_written_twice(tmp_path: Path) -> None:
    desk, out = Desk(), tmp_path / "out"
    with pytest.raises(HandedOver, match="30 requests"):
        await execute(tmp_path / "run", desk, out)
    assert not desk.steps
    with pytest.raises(HandedOver, match="30 requests"):
        await execute(tmp_path / "run", desk, out)
    assert len(list(out.iterdir())) == 1
    assert [batch.state for batch in batches_at(tmp_path / "run" / "run.db")] == ["written"]
    for way in (None, desk):
        with pytest.raises(UsageError, match="edgen batch read"):
            await execute(tmp_path / "run", way)
    assert OPEN
