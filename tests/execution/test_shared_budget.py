"""A budget over time that several runs share: counted at the server, through kills, over
processes and commands."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from edgen.api.objects.functions import generate
from edgen.core.errors import RunError
from edgen.store.budget_book import PICO, BudgetBook
from edgen.store.ledger import LedgerReader
from edgen.store.ledger.writer import Writer
from tests import ROOT
from tests.dose import dose
from tests.execution.service import edgen, end, job_text, serve, start, write
from tests.execution.test_budget import PRICE, Counting
from tests.privileges import bound_by_permissions


def job_file(folder: Path, service: Counting, budget: Path | str, **changes: Any) -> Path:
    backend = {
        "type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 900, "price": PRICE,
    }  # fmt: skip
    values = {"backends": {"default": backend}, "limits": {"in_flight": 6, "budget": str(budget)}, **changes}
    return write(folder / "job.yaml", job_text("", **values))


def budget_file(folder: Path, dollars: float, more: str = "") -> Path:
    return write(folder / "budget.yaml", f"{{per_day: {dollars:.6f}{more}}}")


async def test_a_run_stops_at_the_day_s_budget_and_so_does_the_next(tmp_path: Path) -> None:
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        budget = budget_file(tmp_path, 0.02)
        job = job_file(tmp_path, service, "budget.yaml", conversations=200)
        made = await edgen("generate", job, "-o", tmp_path / "first", "--json")
        assert made.code == 4, made.err
        assert "shared budget is used up until tomorrow 00:00" in made.err
        status = json.loads(made.out)
        assert status["stopped"]["reason"] == "budget"
        assert 0 < service.pico <= 0.02 * PICO
        assert round(status["cost_usd"] * PICO) == pytest.approx(
            BudgetBook(budget).list_current_use()[0].used, rel=1e-4
        )

        spent = service.pico
        other = await edgen("generate", job, "-o", tmp_path / "second")
        assert other.code == 4, other.err
        assert service.pico <= 0.02 * PICO
        assert service.pico - spent < 0.2 * spent
        told = await edgen("doctor", job, "--no-call")
        assert "per_day used" in told.out
        told = await edgen("estimate", job, "--runs", tmp_path)
        assert "budget per_day" in told.out
        budget.write_text("{per_day: 10}")
        more = await edgen("generate", job, "-o", tmp_path / "first", "--set", "conversations=20")
        assert more.code == 0, more.err


async def test_status_shows_what_is_left_of_it(tmp_path: Path) -> None:
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        budget = budget_file(tmp_path, 2, ", per_month: 3, tokens_per_day: 1000000")
        job, run = job_file(tmp_path, service, "budget.yaml", conversations=4), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 0
        shown = json.loads((await edgen("status", run, "--json")).out)["budget"]
        assert shown["file"] == str(budget)
        day, tokens, month = shown["caps"]
        assert (day["cap"], day["unit"], day["period"][:7]) == ("per_day", "usd", month["period"])
        assert day["used"] == month["used"] == pytest.approx(service.pico / PICO)
        assert [one["left"] for one in (day, month)] == pytest.approx(
            [most - service.pico / PICO for most in (2, 3)]
        )
        assert tokens == {
            "cap": "tokens_per_day", "period": day["period"], "unit": "tokens", "used": service.tokens,
            "left": 1_000_000 - service.tokens, "most": 1_000_000,
        }  # fmt: skip
        text = (await edgen("status", run)).out
        assert text.count("\nbudget     ") == 3
        assert f"tokens_per_day {day['period']}: {1_000_000 - service.tokens:,} tokens left" in text
        watched = await edgen("status", run, "--watch", "--json")
        assert json.loads(watched.out)["budget"] == shown

        budget.unlink()
        gone = await edgen("status", run)
        assert gone.code == 0
        assert f"{budget}: there is no such file" in gone.out


@pytest.mark.long
@pytest.mark.crash
async def test_kills_of_several_runs_never_get_past_it(tmp_path: Path) -> None:
    rng = random.Random(11)
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        cap = 0.05
        budget = budget_file(tmp_path, cap)
        job = job_file(tmp_path, service, budget, conversations=120)
        for _ in range(dose(2, 5)):
            started = [await start("generate", job, "-o", tmp_path / f"run{n}") for n in range(3)]
            await asyncio.sleep(rng.uniform(0.5, 1.5))
            for process in started:
                process.send_signal(signal.SIGKILL)
                await process.wait()
            assert service.pico <= BudgetBook(budget).list_current_use()[0].used <= cap * PICO
        ends = await asyncio.gather(
            *[edgen("generate", job, "-o", tmp_path / f"run{n}", "--json") for n in range(3)]
        )
        assert {one.code for one in ends} <= {0, 4}, [one.err for one in ends]
        assert service.pico <= BudgetBook(budget).list_current_use()[0].used <= cap * PICO
        # The owners settle open leases; the most that their calls can have cost stays counted.
        assert service.pico >= 0.5 * BudgetBook(budget).list_current_use()[0].used


async def test_whatever_asks_about_a_run_is_counted(tmp_path: Path) -> None:
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        budget = budget_file(tmp_path, 5)
        job, run = job_file(tmp_path, service, budget, conversations=6), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 0
        before = BudgetBook(budget).list_current_use()[0].used
        assert before == service.pico
        process = await start("annotate", run, "--labels", "teacher_moves", "--annotators", "2")
        assert (await end(process)).code in (0, 3)
        assert BudgetBook(budget).list_current_use()[0].used == service.pico > before


async def test_doctor_s_calls_are_counted_and_refused_like_any_others(tmp_path: Path) -> None:
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        budget = budget_file(tmp_path, 5)
        job = job_file(tmp_path, service, budget)
        looked = await edgen("doctor", job, "--dry-run")
        assert looked.code == 0, looked.out
        assert not BudgetBook(budget, create=False).path.exists()
        told = await edgen("doctor", job)
        assert told.code == 0, told.out
        assert BudgetBook(budget).list_current_use()[0].used == service.pico > 0

        spent = service.pico
        budget_file(tmp_path, 2 * spent / PICO)
        told = await edgen("doctor", job)
        assert told.code == 4, told.out
        assert "the shared budget is used up until tomorrow 00:00" in told.out
        assert service.pico == spent

        job = job_file(tmp_path, service, "none.yaml")
        told = await edgen("doctor", job, "--json")
        assert told.code == 2, told.out
        assert "call" not in [one["check"] for one in json.loads(told.out)["checks"]]
        assert service.pico == spent


async def test_a_budget_in_dollars_needs_prices(tmp_path: Path) -> None:
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        budget_file(tmp_path, 5)
        backend = {"type": "openai", "model": "m", "base_url": service.url}
        job = job_file(tmp_path, service, "budget.yaml", backends={"default": backend})
        made = await edgen("generate", job, "-o", tmp_path / "run")
        assert made.code == 2
        assert "limits.budget needs the price of m" in made.err
        assert "$.backends.default.max_tokens" in made.err
        gone = await edgen("generate", job, "-o", tmp_path / "run", "--set", "limits.budget=none.yaml")
        assert gone.code == 2
        assert "there is no such file" in gone.err
        assert not (tmp_path / "run").exists()
        assert not service.asked


def test_no_lease_is_taken_before_the_disk_has_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the two would leave a lease that no later start recognizes."""
    commit, lease, seen = Writer._commit, BudgetBook.take_lease, []

    def commit_late(self: Writer, *group: Any) -> int:
        time.sleep(0.1)  # a slow disk
        return commit(self, *group)

    def look_and_lease(self: BudgetBook, owner: str, *what: Any) -> Any:
        name, place = owner.split(maxsplit=1)
        with LedgerReader(Path(place)) as view:
            seen.append((view.read_fact("budget owner"), name, place))
        return lease(self, owner, *what)

    monkeypatch.setattr(Writer, "_commit", commit_late)
    monkeypatch.setattr(BudgetBook, "take_lease", look_and_lease)
    backends = {role: {"type": "simulator", "max_tokens": 3000} for role in ("student", "teacher", "judge")}
    limits = {"budget": str(write(tmp_path / "budget.yaml", "{tokens_per_day: 1000000}"))}
    run = generate(
        ROOT / "jobs" / "selfplay.yaml", conversations=1, replicates=2, backends=backends, limits=limits,
        output=tmp_path / "run", progress=False,
    )  # fmt: skip
    run.pairs("oracle", progress=False)
    assert len({place for _, _, place in seen}) == 2
    assert all(noted == name for noted, name, _ in seen)


async def test_a_book_that_becomes_unusable_loses_nothing_and_is_settled_later(tmp_path: Path) -> None:
    """Another version rebuilds the book during calls. Held amounts count as spent until the same command
    starts again, even if the run is complete."""
    async with serve(Counting()) as service:
        assert isinstance(service, Counting)
        budget = budget_file(tmp_path, 5)
        job, run = job_file(tmp_path, service, "budget.yaml", conversations=30), tmp_path / "run"
        process = await start("generate", job, "-o", run)
        book = BudgetBook(budget)
        while not service.pico:
            await asyncio.sleep(0.02)
        with contextlib.closing(sqlite3.connect(book.path, timeout=30)) as other:
            other.execute("CREATE TABLE of_another_version (n)")
        ended = await end(process)
        assert ended.code in (0, 2), ended.err
        assert "another version of edgen made the budget's book" in ended.err
        assert "counts as spent until the run starts again" in ended.err
        with LedgerReader(run / "run.db") as ledger:
            stored = sum(1 for _ in ledger.list_spending())
        assert stored > 0
        refused = await edgen("generate", job, "-o", run)
        assert "another version of edgen" in refused.err

        with contextlib.closing(sqlite3.connect(book.path)) as other:
            other.execute("DROP TABLE of_another_version")
        again = await edgen("generate", job, "-o", run, "--json")
        assert again.code == 0, again.err
        assert json.loads(again.out)["calls"]["made"] == 30
        assert book.list_current_use()[0].used == pytest.approx(service.pico, rel=1e-6)


@pytest.mark.parametrize("what", ["book", "folder"])
def test_a_read_only_book_is_a_sentence_before_any_call(tmp_path: Path, what: str) -> None:
    (place := tmp_path / "budgets").mkdir()
    budget = write(place / "budget.yaml", "tokens_per_day: 1000000")
    book = BudgetBook(budget).path
    backends = {"default": {"type": "simulator", "max_tokens": 3000}}
    job = write(
        tmp_path / "job.yaml",
        job_text("", backends=backends, limits={"budget": str(budget)}, conversations=2),
    )
    (book if what == "book" else place).chmod(0o444 if what == "book" else 0o555)
    with (
        bound_by_permissions(),
        pytest.raises(RunError, match=r"cannot be written .*make the book and its folder writable"),
    ):
        generate(job, output=tmp_path / "run", progress=False)
    place.chmod(0o755)
    book.chmod(0o644)
    assert generate(job, output=tmp_path / "run", progress=False).status.accepted == 2
