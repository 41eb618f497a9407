"""The ledger keeps its entries, confirms them only when they are on the disk, and refuses foreign data."""

from __future__ import annotations

import asyncio
import sqlite3
import textwrap
from pathlib import Path

import msgspec
import pytest

from edgen.core.errors import RunError
from edgen.core.values import Address, Reply, Status, Usage
from edgen.store.ledger import Ledger, LedgerReader, Outcome, RunPlan, Scope, run_status
from edgen.store.ledger.opening import run_when_free
from tests import fork_server
from tests.store.ledger import store_reply

PLAN = RunPlan(name="t", fingerprint="f", scenarios=10, replicates=1, asked=10)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def outcome(scenario: int, status: Status = Status.ACCEPTED, reason: str | None = None) -> Outcome:
    return Outcome(scenario, 0, status, reason, None, group=scenario * 7, reply_key=key(scenario))


async def fill(ledger: Ledger, count: int) -> None:
    ledger.begin_session(1, "host", "0")
    ledger.set_fact("plan", msgspec.json.encode(PLAN).decode())
    for i in range(count):
        await store_reply(
            ledger,
            Address(i, 0),
            key(i),
            Reply(f"text {i}", usage=Usage(3, 4)),
            0.1,
            1,
            charged_tokens=7,
            cost_usd=0.5,
        )
        ledger.settle(outcome(i), "f", b'{"n": %d}' % i)


async def test_what_is_stored_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    reply = Reply("téxt\x00 \N{PILE OF POO}", "length", "no", Usage(3, 4), "m")
    async with Ledger(path) as ledger:
        ledger.begin_session(1, "host", "0")
        await store_reply(ledger, Address(2, 1, 3, 4), key(9), reply, 0.1, 2)
        assert ledger.read_replies(2, 1) == {key(9): reply}, "what is stored is there at once"
    async with Ledger(path) as ledger:
        assert ledger.read_replies(2, 1) == {key(9): reply}
        assert ledger.read_replies(2, 0) == {}


async def test_a_reply_without_usage_has_none_when_read_back(tmp_path: Path) -> None:
    async with Ledger(tmp_path / "run.db") as ledger:
        await store_reply(ledger, Address(0, 0), key(1), Reply("x"), 0.1, 1)
    async with Ledger(tmp_path / "run.db") as ledger:
        assert ledger.read_replies(0, 0)[key(1)].usage is None


async def test_the_same_answer_stored_twice_is_kept_once(tmp_path: Path) -> None:
    async with Ledger(tmp_path / "run.db") as ledger:
        ledger.begin_session(1, "host", "0")
        await store_reply(ledger, Address(0, 0), key(1), Reply("first"), 0.1, 1)
        await store_reply(ledger, Address(0, 0), key(1), Reply("second"), 0.1, 1)
    async with Ledger(tmp_path / "run.db") as ledger:
        assert ledger.read_replies(0, 0)[key(1)].text == "first"
        assert ledger.read_status().counts.made == 1


async def test_store_returns_when_another_connection_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        for i in range(5):
            await store_reply(ledger, Address(i, 0), key(i), Reply("x"), 0.1, 1)
            with sqlite3.connect(path) as other:
                assert other.execute("SELECT COUNT(*) FROM replies").fetchone()[0] == i + 1


async def test_status_counts_and_the_equation_holds(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        await fill(ledger, 4)
        ledger.settle(outcome(4, Status.REJECTED, "refused"), "f", None)
        ledger.settle(outcome(5, Status.FAILED, "timeout"), "f", None)
        ledger.settle(outcome(6), "another", b"{}")  # of an earlier form of the job
        ledger.settle(outcome(11), "f", b"{}")  # beyond what is planned now
        await ledger.flush()
    status = run_status(path)
    assert (status.planned, status.accepted, status.pending) == (10, 4, 4)
    assert status.rejected == {"refused": 1}
    assert status.failed == {"timeout": 1}
    assert status.counts.made == 4
    assert (status.counts.prompt_tokens, status.counts.completion_tokens) == (12, 16)
    assert status.counts.cost_usd == 2.0
    assert status.find_state(held=False) == "stopped"


async def test_settled_leaves_out_failures_and_other_fingerprints(tmp_path: Path) -> None:
    async with Ledger(tmp_path / "run.db") as ledger:
        ledger.settle(outcome(0), "f", b"{}")
        ledger.settle(outcome(1, Status.FAILED, "timeout"), "f", None)
        ledger.settle(outcome(2), "old", b"{}")
        ledger.settle(outcome(3, Status.REJECTED, "empty"), "f", None)
        await ledger.flush()
        assert [row[0] for row in ledger.list_settled("f", 0, 10)] == [0, 3]
        assert [row[0] for row in ledger.list_settled("f", 1, 3)] == []


async def test_settled_pages_through_many(tmp_path: Path) -> None:
    async with Ledger(tmp_path / "run.db") as ledger:
        for i in range(1_203):
            ledger.settle(outcome(i), "f", b"{}")
        await ledger.flush()
        assert [row[0] for row in ledger.list_settled("f", 0, 5_000)] == list(range(1_203))


async def test_records_groups_and_refusals_come_in_order(tmp_path: Path) -> None:
    async with Ledger(tmp_path / "run.db") as ledger:
        await fill(ledger, 3)
        await store_reply(ledger, Address(3, 0), key(3), Reply("raw words"), 0.1, 1)
        ledger.settle(outcome(3, Status.REJECTED, "no_turns"), "f", None)
        await ledger.flush()
        outcomes = ledger.open_outcomes(Scope("f", 10, 1))
        assert [row[2:] for row in outcomes.iterate_records()] == [
            (0, b'{"n": 0}'), (7, b'{"n": 1}'), (14, b'{"n": 2}')]  # fmt: skip
        assert list(outcomes.iterate_groups()) == [(0, 1), (7, 1), (14, 1)]
        assert list(ledger.open_outcomes(Scope("f", 2, 1)).iterate_groups()) == [(0, 1), (7, 1)]
        assert [row[:5] for row in outcomes.list_refused()] == [(3, 0, "rejected", "no_turns", None)]
        assert [row[5].text for row in outcomes.list_refused() if row[5] is not None] == ["raw words"]


async def test_tasks_are_any_numbers_and_texts(tmp_path: Path) -> None:
    """Tasks are any numbers and texts.

    Numbers come first, in their order, and then texts in theirs. A plan's number of replicates leaves out the
    numbers from it on, and texts; None leaves out nothing.
    """
    path, tasks = tmp_path / "run.db", [0, 2, 10, 2**62, "r0~r1", "r10~r2", "ü"]
    async with Ledger(path) as ledger:
        for task in reversed(tasks):
            await store_reply(ledger, Address(1, task), key(1), Reply(f"{task}", usage=Usage(1, 1)), 0.1, 1)
            ledger.settle(
                Outcome(1, task, Status.ACCEPTED, None, None, 0, None), "f", b'"%s"' % str(task).encode()
            )
        await ledger.flush()
        assert [row[1] for row in ledger.open_outcomes(Scope("f", 2)).iterate_records()] == tasks
        assert [row[1] for row in ledger.open_outcomes(Scope("f", 2, 3)).iterate_records()] == [0, 2]
        assert [row[1] for row in ledger.list_settled("f", 0, 2)] == tasks
        assert [ledger.read_replies(1, task)[key(1)].text for task in tasks] == list(map(str, tasks))
        plan = RunPlan(name="t", fingerprint="f", scenarios=2, replicates=0, asked=7, planned=7)
        ledger.set_fact("plan", msgspec.json.encode(plan).decode())
    with LedgerReader(path) as view:
        assert (
            [row[1] for row in view.list_spending()]
            == [row[1] for row in view.list_counted_replies()]
            == tasks
        )
        assert list(view.read_outcomes(1)) == tasks
        assert view.read_record(1, "ü") == '"ü"'.encode()
        assert view.status.pending == 0


async def test_a_view_is_of_the_present_plan_alone(tmp_path: Path) -> None:
    """A view shows the present plan alone.

    Outcomes of another form of the job, or of an unplanned scenario or replicate, are missing.
    """
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        await fill(ledger, 2)
        ledger.settle(outcome(2, Status.REJECTED, "no_turns"), "f", None)
        for scenario, status in ((3, Status.ACCEPTED), (4, Status.REJECTED), (5, Status.FAILED)):
            ledger.settle(outcome(scenario, status, "other"), "another", b"{}")
        ledger.settle(outcome(11, Status.REJECTED, "beyond"), "f", None)
        ledger.settle(Outcome(1, 1, Status.REJECTED, "replicate", None, 7, None), "f", None)
        await store_reply(ledger, Address(4, 0), key(4), Reply("old", usage=Usage(30, 40)), 0.1, 1)
    with LedgerReader(path) as view:
        assert list(view.list_settled()) == [
            (0, 0, "accepted", None),
            (1, 0, "accepted", None),
            (2, 0, "rejected", "no_turns"),
        ]
        assert list(view.list_refused()) == [(2, 0, "rejected", "no_turns", None, None)]
        assert list(view.list_accepted()) == [(0, 0), (1, 0)]
        assert [row[:2] for row in view.iterate_records()] == [(0, 0), (1, 0)]
        # Replies keep their cost for any form of the job.
        assert list(view.list_spending()) == [
            (0, 0, 1, 3, 4, 0.5),
            (1, 0, 1, 3, 4, 0.5),
            (4, 0, 1, 30, 40, None),
        ]


async def test_a_view_pages_through_many(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        plan = msgspec.structs.replace(PLAN, scenarios=1_203)
        ledger.set_fact("plan", msgspec.json.encode(plan).decode())
        for i in range(1_203):
            ledger.settle(outcome(i, Status.REJECTED, "empty"), "f", None)
    with LedgerReader(path) as view:
        assert [row[0] for row in view.list_settled()] == list(range(1_203))
        assert [row[0] for row in view.list_refused()] == list(range(1_203))


async def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        await asyncio.gather(
            *(store_reply(ledger, Address(i, 0), key(i), Reply("x"), 0.1, 1) for i in range(3_000))
        )
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT COUNT(*) FROM replies").fetchone()[0] == 3_000


def damaged(kind: str, path: Path) -> None:
    data = path.read_bytes()
    if kind == "text":
        path.write_text("this is a letter to the editor, long enough to be read as a page\n" * 100)
    elif kind == "cut in half":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "cut in a page":
        path.write_bytes(data[: len(data) // 2 + 100])
    elif kind == "holes":
        path.write_bytes(data[:8192] + bytes(len(data) - 8192))


@pytest.mark.parametrize("kind", ["text", "cut in half", "cut in a page", "holes"])
async def test_a_torn_ledger_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        await fill(ledger, 200)
    damaged(kind, path)
    before = path.read_bytes()
    with pytest.raises(RunError, match=r"run\.db.*(damaged|not an edgen ledger)"):
        Ledger(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(RunError, match="not an edgen ledger"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_ledger_of_a_later_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    asyncio.run(_make(path))
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(RunError, match="layout 99"):
        Ledger(path)


async def _make(path: Path) -> None:
    async with Ledger(path) as ledger:
        await fill(ledger, 3)


def test_status_of_a_folder_without_a_ledger_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no ledger"):
        run_status(tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


@pytest.mark.integration
def test_a_full_disk_stops_with_a_sentence_and_keeps_what_was_stored(tmp_path: Path) -> None:
    """The operating system refuses to let a file grow past a limit: a write fails as on a full disk."""
    script = textwrap.dedent(
        """
        import asyncio, pathlib, resource, signal, sys
        from edgen.core.errors import StoppedError
        from edgen.store.ledger import Ledger
        from edgen.core.values import Address, Reply

        async def main(path):
            stored = 0
            try:
                async with Ledger(path) as ledger:
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
                    for i in range(10_000):
                        answer = (Address(i, 0), i.to_bytes(32, "big"), Reply("x" * 2000), 0, None)
                        await ledger.store([answer], 0.1, 1)
                        stored += 1
            except StoppedError as error:
                print(stored)
                print(error)

        asyncio.run(main(pathlib.Path(sys.argv[1])))
        """
    )
    path = tmp_path / "run.db"
    done = fork_server.run(path, code=script)
    assert done.returncode == 0, done.stderr
    stored, sentence = done.stdout.split("\n", 1)
    assert int(stored) > 10, done.stderr
    assert "cannot be written" in sentence
    assert "Free some space" in sentence
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT COUNT(*) FROM replies").fetchone()[0] >= int(stored)
        assert other.execute("PRAGMA quick_check").fetchone()[0] == "ok"


async def test_a_ledger_that_another_program_holds_is_waited_for_with_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.db"
    async with Ledger(path) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        storing = asyncio.ensure_future(store_reply(ledger, Address(0, 0), key(0), Reply("kept"), 0.1, 1))
        mine = sqlite3.connect(path, isolation_level=None)
        spoken = 0

        def begin() -> None:
            nonlocal spoken
            spoken = len(caplog.records)
            if spoken:
                other.execute("ROLLBACK")
            mine.execute("BEGIN IMMEDIATE")

        run_when_free(mine, path, begin, speak=(0.1, 60.0))
        mine.execute("ROLLBACK")
        await storing
        assert ledger.read_replies(0, 0)[key(0)].text == "kept"
        for connection in (mine, other):
            connection.close()
    assert spoken == 1
    assert "another program has held the ledger" in caplog.text
    assert str(path) in caplog.text


async def test_a_ledger_that_is_held_is_not_waited_for_for_ever_once_the_run_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    ledger = await Ledger(path).__aenter__()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ledger.set_fact("some", "thing")
    ledger.writer.stop_waiting()
    with pytest.raises(RunError, match="another program keeps the ledger locked"):
        await ledger.__aexit__(None, None, None)
    other.close()
