"""Units at workers: their calls need no task; failures, losses and stops end as in a local run."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.config import Job, Limits
from edgen.core.errors import CallError, EdgenError, FailureKind, ProviderError, StoppedError
from edgen.core.plugins.faults import FaultyPluginError
from edgen.core.resources import find
from edgen.core.values import Reply, Request
from edgen.execution import online_scheduler
from edgen.execution.client.model_client import ModelClient
from edgen.execution.cluster import worker as worker_module
from edgen.execution.cluster.messages import AttemptResult, FirstReply, OpenRequest, Permit, UnitOutcome
from edgen.execution.cluster.plain_call import PlainCall
from edgen.execution.cluster.pool import Pool
from edgen.execution.cluster.scheduler import ClusterScheduler
from edgen.execution.cluster.units import Units
from edgen.execution.cluster.worker import Worker
from edgen.execution.online_scheduler import SLACK, make_online_scheduler
from edgen.execution.rollout import OutcomeRecorder, Rollout
from edgen.execution.scheduler import Work
from edgen.planning.plan import Plan
from edgen.prompting import load_prompt
from edgen.simulator.config import SimulatorConfig
from edgen.simulator.text import respond
from edgen.space import load_space
from edgen.store.ledger import Ledger, run_status
from edgen.store.ledger.writer import Statement, Writer
from edgen.store.run_folder import RunFolder
from tests.dose import dose
from tests.execution.in_process_cluster import InProcessCluster
from tests.execution.making import begin
from tests.execution.making import execute as run_to_its_end
from tests.scenarios import DEFAULT_VARIABLES

pytestmark = pytest.mark.unit

COUNT, IN_FLIGHT = 60, 16
HANGING = 600.0  # seconds after which a run counts as hanging, on the busiest machine


class Server:
    """A backend that fails a share of its calls, with the kinds of failure in a fixed order.
    `most`: the most calls at once."""

    def __init__(self, *failing: FailureKind, share: float = 0.0, delay: float = 0.005) -> None:
        self.failing, self.share, self.delay = failing, share, delay
        self.calls = self.now = self.most = 0
        self.tasks: list[int] = []  # the number of calls' tasks, at each call
        self.hear: Callable[[int], None] = lambda _calls: None
        self._rng = random.Random(5)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"type": "scripted"}

    @property
    def model(self) -> str:
        return "scripted"

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        self.hear(self.calls)
        names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
        self.tasks.append(names.count("Units._ask"))
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.now -= 1
        if self.failing and self._rng.random() < self.share:
            raise CallError(self._rng.choice(self.failing), "not now", retry_after=0.01)
        return respond(request.messages, seed=request.seed)

    async def models(self) -> list[str] | None:
        return None

    async def aclose(self) -> None:
        return


class Mumbling(Server):
    """A backend whose later answers are no conversations."""

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        return reply if self.calls < 350 else Reply("Hm.", "stop")


class Made:
    """A run, and its parts at the end."""

    def __init__(
        self, folder: Path, server: Server, error: BaseException | None, scheduler: Any, heard: Counter[type]
    ) -> None:
        self.folder, self.server, self.error, self.heard = folder, server, error, heard
        self.scheduler, self.work = scheduler, scheduler._work
        self.status = run_status(folder / "run.db")
        self.admission = self.work.clients["default"].admission

    @property
    def stored(self) -> set[tuple[int, bytes]]:
        """Return the scenarios and keys of the replies in the ledger."""
        with sqlite3.connect(self.folder / "run.db") as ledger:
            return {*ledger.execute("SELECT scenario, key FROM replies")}

    @property
    def files(self) -> dict[str, bytes]:
        """Return the shards."""
        return {path.name: path.read_bytes() for path in (self.folder / "shards").glob("conv*.json")}


async def make(
    folder: Path,
    server: Server,
    disturb: Callable[[InProcessCluster, ClusterScheduler], None] = lambda *_: None,
    *,
    local: bool = False,
    kind: type[InProcessCluster] = InProcessCluster,
    **changes: Any,
) -> Made:
    """Make a run by two workers, or by this process."""
    limits = {"in_flight": IN_FLIGHT, "give_up_after": HANGING, **changes.pop("limits", {})}
    values: dict[str, Any] = {
        "name": "t", "conversations": COUNT, "space": "s", "prompt": "p", "backends": {"default": SimulatorConfig()},
        "limits": Limits(**limits), "forms": "prose", **changes,
    }  # fmt: skip
    plan = Plan(
        Job(**values),
        load_space(find("preference_space", "education_dialogue")),
        {"default": load_prompt(find("prompts", "education_dialogue"), DEFAULT_VARIABLES)},
    )
    rundir = RunFolder(folder)
    rundir.prepare()
    cluster = kind({"default": server})
    factory = make_online_scheduler if local else partial(ClusterScheduler, cluster=cluster)
    async with Ledger(rundir.ledger) as ledger:
        run = begin(plan, {"default": server} if local else cluster.wrapped, rundir, ledger, factory)
        scheduler: Any = run.session.scheduler
        server.hear = lambda calls: disturb(cluster, scheduler) if calls == COUNT // 2 else None
        error: BaseException | None = None
        try:
            async with asyncio.timeout(HANGING):
                await run_to_its_end(run)
        except (EdgenError, ZeroDivisionError) as problem:
            error = problem
        finally:
            await cluster.aclose()
    return Made(folder, server, error, scheduler, cluster.heard)


async def test_a_conversation_of_one_reply_takes_one_message_to_the_head(tmp_path: Path) -> None:
    """All but the first units, which are handed out before any of them has sent a request."""
    local = await make(tmp_path / "local", Server(delay=0.0), local=True, conversations=600)
    made = await make(tmp_path / "cluster", Server(delay=0.0), conversations=600)
    most = IN_FLIGHT + SLACK + IN_FLIGHT
    assert made.files == local.files
    assert made.heard[OpenRequest] == made.heard[AttemptResult] <= most
    assert made.heard[FirstReply] == 600 - made.heard[AttemptResult]
    assert made.heard[UnitOutcome] == made.heard[AttemptResult]


async def test_an_outcome_that_came_with_its_reply_is_stored_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction stores both, and the reply's text as in a local run."""
    put_for, together = Writer.put_for, Counter[str]()

    def put(writer: Writer, callers: int, statements: Sequence[Statement]) -> asyncio.Future[None]:
        together.update(sql.partition(" INTO ")[2].partition(" ")[0] for sql, _ in statements)
        return put_for(writer, callers, statements)

    monkeypatch.setattr(Writer, "put_for", put)
    made = await make(tmp_path / "cluster", Server(delay=0.0), conversations=600)
    assert together["replies"] == 600
    assert together["outcomes"] == together["records"] >= made.heard[FirstReply]
    local = await make(tmp_path / "local", Server(delay=0.0), local=True, conversations=600)
    texts = "SELECT scenario, text, typeof(text), checksum & 4294967295 FROM replies ORDER BY scenario, step, attempt"
    with sqlite3.connect(made.folder / "run.db") as ours, sqlite3.connect(local.folder / "run.db") as theirs:
        assert ours.execute(texts).fetchall() == theirs.execute(texts).fetchall()


@pytest.mark.parametrize("unsettled", [True, False])
async def test_a_worker_gives_a_permit_back_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsettled: bool
) -> None:
    """The request then goes to the head like any other. Here the permit is for another backend, or the form
    that the service supports is not known yet."""
    first_call = Worker._call_first

    async def call_first(worker: Worker, permit: Permit, rollout: Rollout) -> tuple[FirstReply, Reply] | None:
        changes: dict[str, Any] = {"way": ""} if unsettled else {"backend": "other"}
        if unsettled:
            rollout.request = msgspec.structs.replace(rollout.request, prose=rollout.request.messages)  # type: ignore
        return await first_call(worker, msgspec.structs.replace(permit, **changes), rollout)

    monkeypatch.setattr(Worker, "_call_first", call_first)
    local = await make(tmp_path / "local", Server(delay=0.0), local=True, conversations=400)
    made = await make(tmp_path / "cluster", Server(delay=0.0), conversations=400)
    assert made.error is None
    assert made.files == local.files
    assert made.heard[FirstReply] == 0
    assert made.heard[OpenRequest] == made.server.calls == 400
    assert made.heard[AttemptResult] > 400
    assert is_quiet(made)


async def test_the_request_of_an_unusable_first_reply_is_known_to_the_head(tmp_path: Path) -> None:
    """The head shows the request if the run stops as useless."""
    made = await make(tmp_path, Mumbling(delay=0.0), conversations=400)
    latest = made.scheduler._recorder._usefulness._latest
    assert made.heard[FirstReply]
    assert latest.reply.text == "Hm."
    assert latest.request.messages
    assert latest.request.address.step == 0


@pytest.mark.parametrize(
    ("where", "step"),
    [(Rollout, "answer"), (worker_module, "compute_outcome_checksums")],
    ids=["reading", "outcome"],
)
async def test_a_bug_after_a_reply_loses_no_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, step: str
) -> None:
    """The worker sends the reply although its outcome is never made. The run waits for calls in flight."""
    right, calls, taken = getattr(where, step), 0, note_taken(monkeypatch)
    broken: list[int] = []  # its scenario

    def fail_late(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != 350:
            return right(*given)
        broken.append(given[0].request.address.scenario if where is Rollout else given[0][0])
        return 1 / 0

    monkeypatch.setattr(where, step, fail_late)
    made = await make(tmp_path, Server(delay=0.0), conversations=400)
    assert isinstance(made.error, EdgenError)
    assert "ZeroDivisionError" in str(made.error)
    assert made.heard[FirstReply]
    assert taken <= made.stored
    assert broken[0] in {scenario for scenario, _ in taken}
    assert len(made.stored) == made.server.calls < 400
    assert is_quiet(made)


@pytest.mark.parametrize("step", ["_call_first", "_attempt"])
async def test_a_bug_before_a_reply_loses_no_other_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The permit of the broken call returns, so that no call waits for it."""
    right, calls = getattr(Worker, step), 0

    async def fail_late(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return 1 / 0 if calls == (50 if step == "_call_first" else 20) else await right(*given)

    monkeypatch.setattr(Worker, step, fail_late)
    monkeypatch.setattr(online_scheduler, "GRACE", HANGING)
    made = await make(tmp_path, Server(delay=0.01), conversations=400)
    assert "ZeroDivisionError" in str(made.error)
    assert len(made.stored) == made.server.calls < 400
    assert is_quiet(made)


async def test_an_error_at_a_worker_ends_the_run_as_it_does_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise FaultyPluginError("The measure of a plugin failed.")

    monkeypatch.setattr(worker_module, "compute_outcome_checksums", fail)
    made = await make(tmp_path, Server(delay=0.0))
    assert isinstance(made.error, EdgenError)
    assert (str(made.error), made.error.exit_code, made.error.reason) == (
        "The measure of a plugin failed.",
        2,
        "plugin",
    )


def note_taken(monkeypatch: pytest.MonkeyPatch) -> set[tuple[int, bytes]]:
    """Return the scenarios and keys of all replies that the head accepts from now on."""
    taken: set[tuple[int, bytes]] = set()
    keep_answer = Units.keep_answer

    def note(units: Units, plain: PlainCall) -> None:
        taken.add((plain.call.request.address.scenario, plain.call.key))
        keep_answer(units, plain)

    monkeypatch.setattr(Units, "keep_answer", note)
    return taken


@pytest.mark.long
@pytest.mark.parametrize("step", ["make_statements", "make_reply_statements", "end_answered"])
@pytest.mark.parametrize(
    "bug",
    dose([EdgenError("a plugin's bug")], [ZeroDivisionError("a bug"), EdgenError("a plugin's bug")]),
    ids=repr,
)
async def test_a_bug_at_the_head_keeps_no_reply_of_its_moment_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, bug: Exception
) -> None:
    """All replies of that moment are stored, except one whose own row has the bug. The next
    start repeats the missing calls."""
    owners = {
        "make_statements": OutcomeRecorder,
        "make_reply_statements": Ledger,
        "end_answered": ModelClient,
    }
    where: Any = owners[step]
    right, failed = getattr(where, step), list[int]()

    def fail_once(self: Any, place: Any, *given: Any) -> Any:
        address = place.request.address if where is ModelClient else place
        scenario = place[0] if where is OutcomeRecorder else address.scenario
        if scenario >= 350 and not failed:
            failed.append(scenario)
            raise bug
        return right(self, place, *given)

    monkeypatch.setattr(where, step, fail_once)
    taken = note_taken(monkeypatch)
    made = await make(tmp_path, Server(delay=0.0), conversations=400)
    assert made.error is bug
    assert failed[0] in {scenario for scenario, _ in taken}
    stored = made.stored
    assert {scenario for scenario, _ in taken - stored} == ({*failed} if where is Ledger else set())
    again = await make(tmp_path, Server(delay=0.0), conversations=400)
    assert again.error is None
    assert again.server.calls == 400 - len(stored)


def is_quiet(made: Made) -> bool:
    """Return whether every place of the service is free again."""
    return (made.admission.running, made.admission.unstored, made.work.clients["default"].in_flight) == (
        0,
        0,
        0,
    )


async def test_the_files_are_those_of_a_local_run_and_no_call_has_a_task(tmp_path: Path) -> None:
    """The first units, all that are open at once, wait until the server has reported its number of calls."""
    local = await make(tmp_path / "local", Server(delay=0.0), local=True, conversations=400)
    made = await make(tmp_path / "cluster", Server(delay=0.0), conversations=400)
    assert made.error is None
    assert made.files == local.files
    assert made.server.calls == made.status.counts.made == 400
    assert made.server.most <= IN_FLIGHT
    assert made.server.tasks[0] == IN_FLIGHT + SLACK
    assert made.server.tasks[-50:] == [0] * 50
    assert is_quiet(made)


@pytest.mark.parametrize("kind", [FailureKind.SERVER_ERROR, FailureKind.RATE_LIMIT, FailureKind.TIMEOUT])
async def test_a_call_that_fails_is_made_again(tmp_path: Path, kind: FailureKind) -> None:
    local = await make(tmp_path / "local", Server(), local=True)
    made = await make(tmp_path / "cluster", Server(kind, share=0.2), limits={"attempts": 8})
    assert made.error is None
    assert made.files == local.files
    assert made.work.counts.retried == made.server.calls - COUNT > 0
    assert is_quiet(made)


async def test_a_form_that_no_answer_has_shown_yet_is_asked_in_tasks(tmp_path: Path) -> None:
    made = await make(tmp_path / "cluster", Server(), forms="schema")
    assert made.error is None
    assert made.server.tasks[0] == COUNT
    assert is_quiet(made)


@pytest.mark.parametrize("slow", [{}, {"max_tokens": 10_000_000}])
async def test_a_lost_worker_costs_its_calls_in_flight(tmp_path: Path, slow: dict[str, int]) -> None:
    """With a budget, each call has a task of its own."""
    local = await make(tmp_path / "local", Server(), local=True)
    made = await make(
        tmp_path / "cluster",
        Server(),
        lambda cluster, scheduler: cluster.lose(scheduler._work),
        limits={"attempts": 3, **slow},
        backends={"default": SimulatorConfig(max_tokens=2000)},
    )
    assert made.error is None
    assert made.files == local.files
    assert COUNT < made.server.calls <= COUNT + IN_FLIGHT
    assert made.status.counts.made == COUNT
    assert is_quiet(made)


async def test_a_budget_holds(tmp_path: Path) -> None:
    made = await make(
        tmp_path / "cluster",
        Server(),
        limits={"max_tokens": 20_000},
        backends={"default": SimulatorConfig(max_tokens=2000)},
    )
    assert made.error is not None
    assert "max_tokens" in str(made.error)
    assert 0 < made.server.calls < COUNT
    assert made.status.counts.prompt_tokens + made.status.counts.completion_tokens <= 20_000
    assert is_quiet(made)


async def test_a_key_that_is_refused_stops_the_run(tmp_path: Path) -> None:
    made = await make(tmp_path / "cluster", Server(FailureKind.AUTHENTICATION, share=1.0))
    assert isinstance(made.error, ProviderError)
    assert made.server.calls <= 3 * IN_FLIGHT, "until the worker has told the head"
    assert made.status.accepted == 0
    assert is_quiet(made)


async def test_a_stop_waits_for_calls_in_flight_and_keeps_them(tmp_path: Path) -> None:
    def stop(_cluster: InProcessCluster, scheduler: ClusterScheduler) -> None:
        scheduler.stop(StoppedError("Enough."))

    made = await make(tmp_path / "cluster", Server(), stop)
    assert str(made.error) == "Enough."
    assert COUNT // 2 <= made.server.calls <= COUNT // 2 + IN_FLIGHT
    assert made.status.counts.made == made.server.calls
    assert is_quiet(made)
    again = await make(tmp_path / "cluster", Server())
    assert again.error is None
    assert made.server.calls + again.server.calls == COUNT


class Starting(InProcessCluster):
    """A cluster that never gets a worker. The run is stopped meanwhile."""

    ended = False

    async def open(self, work: Work) -> Pool:
        for scheduler in work.schedulers:
            scheduler.stop(StoppedError("Enough."))
        try:
            await asyncio.Event().wait()
        finally:
            Starting.ended = True
        return await super().open(work)


async def test_a_stop_does_not_wait_for_workers_that_start(tmp_path: Path) -> None:
    made = await make(tmp_path / "cluster", Server(), kind=Starting)
    assert str(made.error) == "Enough."
    assert Starting.ended
    assert made.server.calls == 0
    assert (await make(tmp_path / "cluster", Server())).error is None


async def test_answers_that_are_of_no_use_stop_the_run(tmp_path: Path) -> None:
    class Useless(Server):
        async def complete(self, request: Request) -> Reply:
            await super().complete(request)
            return Reply(text="I would rather not.", finish_reason="stop")

    made = await make(tmp_path / "cluster", Useless())
    assert made.error is not None
    assert "usable" in str(made.error)
    assert is_quiet(made)


async def test_a_ledger_that_cannot_be_written_ends_all_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgen.store.ledger import writer

    real, commits = writer.Writer._commit, 0

    def fail(self: Any, *args: Any) -> int:
        nonlocal commits
        commits += any(
            sql.startswith("INSERT OR IGNORE INTO replies") for item in args[1] for sql, _ in item[0]
        )
        if commits > 2:
            raise OSError("disk I/O error")
        return real(self, *args)

    monkeypatch.setattr(writer.Writer, "_commit", fail)
    server = Server()
    with pytest.raises(EdgenError, match="cannot be written"):
        await make(tmp_path / "cluster", server)
    assert server.calls < COUNT, "an answer that is not stored keeps its place"


async def test_a_bug_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(OutcomeRecorder, "settle", fail)
    made = await make(tmp_path / "cluster", Server())
    assert isinstance(made.error, ZeroDivisionError)


async def test_a_bug_after_the_commit_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends at once, even while it stops and waits for its calls in flight."""
    right, fault = OutcomeRecorder.count_outcome, EdgenError("a plugin's bug")

    def fail(self: OutcomeRecorder, *given: Any) -> None:
        if self._work.counts.accepted >= 380:
            raise fault
        right(self, *given)

    monkeypatch.setattr(OutcomeRecorder, "count_outcome", fail)
    made = await make(tmp_path / "cluster", Server(delay=0.0), conversations=400)
    assert made.error is fault
    assert made.scheduler._units._open == {}


async def test_stored_replies_that_cannot_be_read_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, read = Ledger.read_replies, 0

    def fail(self: Ledger, *unit: Any) -> dict[bytes, Reply]:
        nonlocal read
        read += 1
        if read == 10:
            raise EdgenError("It is damaged.")
        return real(self, *unit)

    monkeypatch.setattr(Ledger, "read_replies", fail)
    made = await make(tmp_path / "cluster", Server())
    assert str(made.error) == "It is damaged."
    assert made.status.counts.made == made.server.calls <= 9
    assert is_quiet(made)
