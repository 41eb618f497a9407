"""Rounds of batches with a service that fails on demand: no request is sent twice, no answer
is lost, same files."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.config import parse_job
from edgen.core.errors import (
    CallError,
    EdgenError,
    FailureKind,
    HandedOver,
    ProviderError,
    ShortError,
    StoppedError,
    UsageError,
    UselessError,
)
from edgen.core.values import Reply
from edgen.execution.batch.results import read_results
from edgen.execution.batch.scheduler import BatchScheduler
from edgen.execution.online_scheduler import make_online_scheduler
from edgen.execution.run import ActiveRun
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.store.budget_book import BudgetBook
from edgen.store.ledger import OPEN, Ledger, read_batches_at, read_summary, run_status
from edgen.store.run_folder import RunFolder
from tests.execution.batch.desk import Desk, Line, read_line
from tests.execution.making import begin
from tests.execution.making import execute as run_to_its_end
from tests.execution.service import files
from tests.execution.test_online_scheduler import Scripted

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


async def execute(
    folder: Path, desk: Desk | None, write_only: Path | None = None, **changes: Any
) -> ActiveRun:
    """Run the job, by batches at the desk, or online without one."""
    rundir = RunFolder(folder)
    rundir.prepare()
    plan = make_plan(parse_job(job(**changes), "job.yaml"), AllowedFiles.of(Path("job.yaml")))
    scheduler = (
        make_online_scheduler
        if desk is None
        else partial(BatchScheduler, services={"default": desk}, write_only=write_only)
    )
    async with Ledger(rundir.ledger) as ledger:
        run = begin(plan, {"default": Scripted()}, rundir, ledger, scheduler)
        await run_to_its_end(run)
    return run


@pytest.mark.parametrize("shape", [ONESHOT, SELFPLAY], ids=["oneshot", "selfplay"])
async def test_the_files_are_those_of_the_online_run(tmp_path: Path, shape: dict[str, Any]) -> None:
    desk, shape = Desk(), {"conversations": 12, **shape}
    await execute(tmp_path / "batch", desk, **shape)
    await execute(tmp_path / "online", None, **shape)
    assert files(tmp_path / "batch") == files(tmp_path / "online")
    assert set(desk.asked.values()) == {1}
    made, online = run_status(tmp_path / "batch" / "run.db"), run_status(tmp_path / "online" / "run.db")
    assert made.counts.made == online.counts.made == desk.asked.total()
    assert made.counts.completion_tokens == online.counts.completion_tokens
    assert made.counts.cost_usd == pytest.approx((online.counts.cost_usd or 0) / 2)
    batches = read_batches_at(tmp_path / "batch" / "run.db")
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
    """The end of the process."""


STEPS = ["upload", "create", "begun", "state", "download", "taken"]
FEW = {**SELFPLAY, "conversations": 6, "selfplay": {"closing": "student", "max_turns": 4}}


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate the run that nothing interrupts."""
    folder = tmp_path_factory.mktemp("online")
    asyncio.run(execute(folder, None, **FEW))
    return folder


@pytest.mark.parametrize("step", STEPS)
async def test_broken_off_at_any_step_it_goes_on_there(tmp_path: Path, online: Path, step: str) -> None:
    desk, struck = Desk(looks=1), []

    def strike(here: str) -> None:
        if here == step and not struck:
            struck.append(here)
            raise Killed

    desk.trouble = strike
    desk.after = lambda here: strike("begun")
    if step == "taken":  # after a file is read, before this is noted
        desk.trouble = lambda here: strike("taken") if here == "state" and len(desk.asked) > 5 else None
    with pytest.raises(Killed):
        await execute(tmp_path / "run", desk, **FEW)
    await execute(tmp_path / "run", desk, **FEW)
    assert struck
    assert files(tmp_path / "run") == files(online)
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
    # The next start retries the failed requests, as it does in online runs.
    desk.kind = lambda line: None
    await execute(tmp_path / "run", desk, limits={"attempts": 4, "give_up_after": 1}, asks=1)
    assert run_status(tmp_path / "run" / "run.db").accepted == 30


@pytest.mark.parametrize("by_hand", [False, True], ids=["sent", "by hand"])
async def test_what_fails_for_good_in_one_round_stays_failed_in_the_next(
    tmp_path: Path, by_hand: bool
) -> None:
    """Different turns of different conversations fail: each request is sent once before the
    run is complete."""
    desk, asked = Desk(), Counter[str]()

    def kind(line: Line) -> FailureKind | None:
        asked[line.id] += 1
        index, step, *_ = map(int, line.id.split("-")[:3])
        return FailureKind.CONTEXT_OVERFLOW if index < 6 and step == index else None

    desk.kind = kind
    shape = {"protocol": "selfplay", "conversations": 10, "selfplay": {"max_turns": 8}}
    if by_hand:
        folder, out = tmp_path / "run", tmp_path / "out"
        for _ in range(30):
            try:
                await execute(folder, desk, out, **shape)
            except HandedOver:
                await answer_by_hand(desk, folder, **shape)
            except EdgenError as short:
                assert "6" in str(short) or "context_overflow" in str(short)  # noqa: PT017
                break
        else:
            raise AssertionError("it never came to an end")
    else:
        with pytest.raises(EdgenError, match="context_overflow"):
            await execute(tmp_path / "run", desk, **shape)
    assert run_status(tmp_path / "run" / "run.db").failed["context_overflow"] >= 4
    assert set(asked.values()) == {1}
    assert files(tmp_path / "run")


async def answer_by_hand(desk: Desk, folder: Path, **shape: Any) -> None:
    """Act as a person with the written files: let the desk answer each line, and read the
    results into the run."""
    async with Ledger(folder / "run.db") as ledger:
        for batch in ledger.list_batches("written"):
            number = f"hand-{len(desk.content)}"
            path = Path(batch.file) if Path(batch.file).is_absolute() else folder / batch.file
            desk.content[number] = [read_line(line) for line in path.read_bytes().splitlines()]
            await desk.download(f"out-{number}", folder.with_name(number))
            await read_results(folder.with_name(number), desk.read, ledger, lambda row: None)
            await ledger.out.note(msgspec.structs.replace(batch, state="read"), clear=True)


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
    with pytest.raises(ProviderError, match=r"rejected as a whole.*no such parameter"):
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
    assert run.counts.made == run_status(tmp_path / "online" / "run.db").counts.made


@pytest.mark.parametrize("ahead", [-(10**6), 10**6], ids=["long ago", "in the future"])
async def test_a_clock_that_jumped_between_two_starts(tmp_path: Path, ahead: float) -> None:
    """The first batch seems to be days old, or of the future: the wait ends at once, or begins again."""
    desk, rundir = Desk(looks=10**6), RunFolder(tmp_path / "run")
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
    """Begin the job, and stop it after looks at its batch."""
    run = asyncio.create_task(execute(folder, desk, **changes))
    while desk.steps.count("state") < 3:
        await asyncio.sleep(0.01)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_rounds_that_bring_nothing_end_the_run(tmp_path: Path) -> None:
    desk = Desk()
    desk.judge = lambda batch, lines: ("expired", 0)
    with pytest.raises(ProviderError, match="without any answer"):
        await execute(tmp_path / "run", desk)
    assert len(desk.begun) == 6


async def test_a_stop_leaves_the_batch_known(tmp_path: Path) -> None:
    desk = Desk(looks=10**6)
    rundir = RunFolder(tmp_path / "run")
    rundir.prepare()
    plan = make_plan(parse_job(job(), "job.yaml"), AllowedFiles.of(Path("job.yaml")))
    async with Ledger(rundir.ledger) as ledger:
        scheduler = partial(BatchScheduler, services={"default": desk})
        run = begin(plan, {"default": Scripted()}, rundir, ledger, scheduler)

        def stop_at(step: str) -> None:
            if step == "state":  # the batch is sent and observed
                run.session.scheduler.stop(StoppedError("time is up"))

        desk.trouble = stop_at
        with pytest.raises(StoppedError, match="time is up"):
            await run_to_its_end(run)
        assert run.session.scheduler.in_flight == 30
    assert [batch.state for batch in read_batches_at(rundir.ledger)] == ["sent"]


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
    with pytest.raises(HandedOver, match="still out"):
        await execute(tmp_path / "run", desk, out)
    assert len(list(out.iterdir())) == 1
    assert [batch.state for batch in read_batches_at(tmp_path / "run" / "run.db")] == ["written"]
    for way in (None, desk):
        with pytest.raises(UsageError, match="edgen batch read"):
            await execute(tmp_path / "run", way)


async def test_a_batch_that_was_to_be_cancelled_is_cancelled_by_the_next_start(tmp_path: Path) -> None:
    """The kill comes between the note that the batch will be cancelled and the call that cancels it."""
    desk = Desk(looks=10**6)
    batch = {"poll": "0.02s", "online_after": "0.2s"}

    def refuse(step: str) -> None:
        if step == "cancel":
            raise Killed

    desk.trouble = refuse
    with pytest.raises(Killed):
        await execute(tmp_path / "run", desk, batch=batch)
    assert [batch.state for batch in read_batches_at(tmp_path / "run" / "run.db")] == ["cancelling"]
    desk.trouble = lambda step: None
    await execute(tmp_path / "run", desk, batch=batch)
    assert desk.cancelled == {"batch-0"}


async def test_who_only_writes_files_never_asks(tmp_path: Path) -> None:
    rundir, desk = RunFolder(tmp_path / "run"), Desk()
    batch = {"online_after": "1s"}
    with pytest.raises(HandedOver):
        await execute(rundir.path, desk, tmp_path / "out", batch=batch)
    async with Ledger(rundir.ledger) as ledger:
        ledger.set_fact("batches_since", "1.0")
    with pytest.raises(HandedOver, match="still out"):
        await execute(rundir.path, desk, tmp_path / "elsewhere", batch=batch)
    assert run_status(rundir.ledger).counts.made == 0
    assert not desk.steps


async def test_two_runs_write_into_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in ("one", "two"):
        with pytest.raises(HandedOver):
            await execute(tmp_path / name, Desk(), out)
    assert len(list(out.iterdir())) == 2


async def test_each_sending_of_a_batch_has_a_token_of_its_own(tmp_path: Path) -> None:
    """The service refuses a batch for lack of room, and each new sending is followed by a
    kill: no token is used twice."""
    desk = Desk()
    desk.failure = CallError(FailureKind.RATE_LIMIT, "enqueued token limit reached")
    desk.judge = lambda batch, lines: ("failed", 0) if batch < "batch-3" else ("completed", lines)

    def strike(step: str) -> None:
        if step == "upload" and desk.steps.count("upload") in (2, 3):
            raise Killed

    desk.trouble = strike
    for _ in range(2):
        with pytest.raises(Killed):
            await execute(tmp_path / "run", desk)
    await execute(tmp_path / "run", desk)
    assert len(set(desk.begun.values())) == len(desk.begun) >= 4


async def test_want_of_room_is_no_failure_while_others_are_worked_on(tmp_path: Path) -> None:
    desk, working = Desk(looks=120), []
    desk.failure = CallError(FailureKind.RATE_LIMIT, "enqueued token limit reached")

    def judge(batch: str, lines: int) -> tuple[str, int]:
        return ("completed", lines) if batch == "batch-0" or desk.seen["batch-0"] > 120 else ("failed", 0)

    state = desk.state

    async def at_once(remote_id: str) -> Any:  # the others fail at the first look
        if remote_id != "batch-0" and desk.seen["batch-0"] <= 120:
            desk.seen[remote_id] = 10**6
        working.append(remote_id)
        return await state(remote_id)

    desk.judge, desk.state = judge, at_once  # type: ignore[method-assign]
    limits = {"give_up_after": 1, "attempts": 3}
    await execute(tmp_path / "run", desk, batch={"poll": "0.02s", "max_requests": 10}, limits=limits)
    assert len(desk.begun) > 6
    assert set(desk.asked.values()) == {1}


@pytest.mark.parametrize("limits", [{"max_cost": 100.0}, {}], ids=["budget", "free"])
async def test_what_may_have_been_paid_is_charged(tmp_path: Path, limits: dict[str, Any]) -> None:
    """An unreadable answer, and a batch that answers none of its completed lines."""
    desk = Desk()
    desk.kind = lambda line: FailureKind.BAD_RESPONSE if line.id.startswith("3-") else None
    with pytest.raises(EdgenError, match="29 of 30"):
        await execute(tmp_path / "run", desk, limits={"give_up_after": 1, "attempts": 2} | limits, asks=1)
    tokens, dollars = read_summary(tmp_path / "run" / "run.db").unanswered
    assert tokens > 2 * 2000
    assert dollars > 0
    mute = Desk()
    mute.judge = lambda batch, lines: ("completed", 0)
    download = mute.download

    async def empty(file_id: str, to: Path, limit: int = 0) -> None:
        await download(file_id, to)
        to.write_bytes(b"")

    mute.download = empty  # type: ignore[method-assign]
    with pytest.raises(ProviderError, match="answer none"):
        await execute(tmp_path / "mute", mute, limits={"give_up_after": 1} | limits)
    assert len(mute.begun) == 1, "it is not paid again at once"
    assert read_summary(tmp_path / "mute" / "run.db").unanswered[0] > 30 * 2000


async def test_what_a_failed_batch_answered_is_not_asked_again(tmp_path: Path) -> None:
    desk = Desk()
    desk.failure = CallError(FailureKind.SERVER_ERROR, "broke down")
    desk.judge = lambda batch, lines: ("failed", lines // 2) if batch == "batch-0" else ("completed", lines)
    await execute(tmp_path / "run", desk)
    await execute(tmp_path / "online", None)
    assert files(tmp_path / "run") == files(tmp_path / "online")
    assert set(desk.asked.values()) == {1}
    assert [len(lines) for lines in desk.content.values()][:2] == [30, 15]


async def test_a_gateway_says_no_to_what_was_begun(tmp_path: Path) -> None:
    desk, once = Desk(), [1]

    def refuse(step: str) -> None:
        if once:
            once.pop()
            raise CallError(FailureKind.PERMISSION, "no")

    desk.after = refuse
    await execute(tmp_path / "run", desk)
    assert len(set(desk.begun.values())) == len(desk.begun)
    assert set(desk.asked.values()) == {1}


@pytest.mark.parametrize("step", ["create", "state", "find"])
async def test_a_service_that_hangs_is_given_up_in_time(tmp_path: Path, step: str) -> None:
    desk = Desk()
    desk.hangs = {step, "create"} if step == "find" else {step}
    began = time.monotonic()
    with pytest.raises(ProviderError, match="no answer within"):
        await execute(tmp_path / "run", desk, limits={"give_up_after": 2, "timeout": 600})
    assert (
        time.monotonic() - began < 300
    )  # not 600: after a hanging creation, edgen looks for the batch and tries once more
    desk.hangs = set()
    await execute(tmp_path / "run", desk)
    assert set(desk.asked.values()) == {1}


async def test_a_budget_does_not_end_in_ever_smaller_rounds(tmp_path: Path) -> None:
    desk = Desk()
    with pytest.raises(StoppedError, match="too few for another round"):
        await execute(tmp_path / "run", desk, conversations=200, limits={"max_cost": 0.1, "give_up_after": 1})
    sizes = [len(lines) for lines in desk.content.values()]
    assert min(sizes) * 4 >= max(sizes)
    assert not [batch for batch in read_batches_at(tmp_path / "run" / "run.db") if batch.state in OPEN]


async def test_a_hopeless_round_is_the_last(tmp_path: Path) -> None:
    """Sent requests are paid for; their answers are read before any request is retried."""
    desk = Desk()
    desk.answer = lambda _line: Reply("No turns in here.")
    with pytest.raises(UselessError, match="0 of 40 answers are usable"):
        await execute(tmp_path / "run", desk, conversations=200)
    assert desk.asked.total() == 200
    assert not batches_open(tmp_path / "run")
    with pytest.raises(UselessError, match="Nothing was requested"):
        await execute(tmp_path / "run", desk, conversations=200)
    assert desk.asked.total() == 200
    with pytest.raises(ShortError):
        await execute(tmp_path / "run", desk, conversations=200, stop_when_useless=False)
    assert desk.asked.total() == 600


def batches_open(run: Path) -> list[str]:
    """Return the states of open batches."""
    return [batch.state for batch in read_batches_at(run / "run.db") if batch.state in OPEN]


async def test_batches_are_set_aside_of_a_shared_budget(tmp_path: Path) -> None:
    budget = tmp_path / "budget.yaml"
    budget.write_text("{per_day: 0.06}")
    seen: list[float] = []

    def look(step: str) -> None:
        if step == "create":
            seen.append(BudgetBook(budget).list_current_use()[0].used / 1e12)

    desk = Desk()
    desk.trouble = look
    limits = {"give_up_after": 1, "budget": str(budget)}
    with pytest.raises(StoppedError, match="shared budget is used up"):
        await execute(tmp_path / "run", desk, conversations=300, limits=limits)
    assert seen
    assert 0.03 < seen[0] <= 0.06
    used = BudgetBook(budget).list_current_use()[0].used / 1e12
    assert used == pytest.approx(run_status(tmp_path / "run" / "run.db").counts.cost_usd, abs=1e-6)
    assert used <= 0.06
