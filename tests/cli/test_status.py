"""`edgen status`: open batches, charges without an answer, and a run that is followed while
it is in progress."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import sqlite3
import subprocess
from pathlib import Path

import msgspec
import pytest

from edgen.core.values import Address
from edgen.store.ledger import Ledger
from tests import fork_server
from tests.cli.command import Command
from tests.cli.test_generate import job
from tests.execution.service import Service, edgen, end, job_text, serve, start, write


async def _send(folder: Path) -> None:
    """Leave two open batches and a held call in the ledger, like a run whose process died."""
    async with Ledger(folder / "run.db", create=False) as ledger:
        for number, requests in ((1, 3), (2, 2)):
            batch = await ledger.out.begin(fingerprint="f", backend="default", token=f"t{number}", round_=1)
            for step in range(requests):
                ledger.out.put(batch.number, Address(7, 0, number * 10 + step, 0), b"k", 100, 0.001)
            sent = msgspec.structs.replace(
                batch,
                state="sent",
                requests=requests,
                remote_id=f"batch_{number}",
                sent_at=1_700_000_000.0 + number,
            )
            await ledger.out.note(sent)
        await ledger.out.hold(Address(8, 0, 0, 0), b"k", 50, 0.5)


def test_batches_and_what_they_may_cost_are_told(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("generate", job(tmp_path), "-o", run).code == 0
    before = json.loads(command("status", run, "--json").out)
    assert "batches" not in before
    assert "unanswered" not in before
    asyncio.run(_send(run))
    facts = json.loads(command("status", run, "--json").out)
    assert facts["batches"] == [
        {"number": n, "state": "sent", "backend": "default", "id": f"batch_{n}", "requests": r, "sent_at": at}
        for n, r, at in ((1, 3, "2023-11-14T22:13:21Z"), (2, 2, "2023-11-14T22:13:22Z"))
    ]
    assert facts["out"] == {"tokens": 550, "cost_usd": 0.505}
    assert "unanswered" not in facts
    out = command("status", run).out
    assert re.search(r"^batches    2 open: 5 requests, sent 2023-11-1\d \d\d:13$", out, re.MULTILINE)
    assert "reserved   550 tokens, $0.51 at most, for open batches and calls" in out
    assert "charged" not in out
    (row,) = json.loads(command("runs", run, "--json").out)["runs"]
    assert len(row["batches"]) == 2


def test_what_is_lost_is_told_apart_from_what_is_out(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("generate", job(tmp_path), "-o", run).code == 0
    asyncio.run(_send(run))
    with contextlib.closing(sqlite3.connect(run / "run.db")) as connection, connection:
        connection.execute("UPDATE sessions SET lost_tokens = 7, lost_usd = 0.25")
    facts = json.loads(command("status", run, "--json").out)
    assert facts["unanswered"] == {"tokens": 7, "cost_usd": 0.25}
    assert facts["out"]["tokens"] == 550
    out = command("status", run).out
    assert "unanswered 7 tokens, $0.25 at most, charged for answers not kept" in out
    (row,) = json.loads(command("runs", run, "--json").out)["runs"]
    assert (row["out"], row["unanswered"]) == (facts["out"], facts["unanswered"])


async def test_a_run_is_followed_until_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    watching = await start("status", folder, "--watch")
    asjson = await start("status", folder, "--watch", "--json")
    assert watching.stderr is not None
    assert b"there is no run here yet" in await watching.stderr.readline()
    async with serve(Service(latency=0.3)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url, conversations=40, limits={"in_flight": 4}))
        made = await edgen("generate", path, "-o", folder)
    assert made.code == 0
    text, objects = await end(watching), await end(asjson)
    assert (text.code, objects.code) == (0, 0)
    lines = text.out.splitlines()
    assert len(lines) >= 3
    assert re.match(r"\d\d:\d\d:\d\d running: \d+/40 · \d+ accepted", lines[0])
    assert "/s, " in text.out
    assert " complete: 40/40 · 40 accepted" in lines[-1]
    facts = [json.loads(line) for line in objects.out.splitlines()]
    assert [fact["accepted"] for fact in facts] == sorted(fact["accepted"] for fact in facts)
    assert facts[0]["state"] == "running"
    assert (facts[-1]["state"], facts[-1]["accepted"]) == ("complete", 40)


@pytest.mark.crash
async def test_a_run_that_is_killed_is_followed_to_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    async with serve(Service(latency=0.1)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url, limits={"in_flight": 4}))
        process = await start("generate", path, "-o", folder)
        watching = await start("status", folder, "--watch", "--json")
        while service.answered.total() < 20:
            await asyncio.sleep(0.02)
        process.kill()
        await end(process)
        ended = await end(watching)
    assert ended.code == 0
    assert json.loads(ended.out.splitlines()[-1])["state"] == "stopped"
    told = rf"process {process.pid} on \S+ was killed or crashed, or its disk was full"
    assert re.search(rf"^last       {told}$", (await edgen("status", folder)).out, re.MULTILINE)
    (row,) = (await edgen("runs", folder, "--json")).facts["runs"]
    assert re.fullmatch(told, row["last"])


def test_on_a_terminal_the_screen_changes_in_place(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert command("generate", job(tmp_path), "-o", tmp_path / "run").code == 0
    ours, theirs = pty.openpty()
    watching = fork_server.Popen(
        "status", str(tmp_path / "run"), "--watch", stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    _, problems = watching.communicate(timeout=120)
    seen = os.read(ours, 100_000).decode()
    os.close(ours)
    assert watching.returncode == 0, problems
    assert "\x1b[?25h" in seen  # the cursor is visible again
    assert "state      complete" in seen


def test_what_is_no_run_is_not_waited_for(command: Command, tmp_path: Path) -> None:
    path = job(tmp_path)
    assert command("status", path, "--watch").code == 2
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.db").write_bytes(b"no ledger")
    assert command("status", tmp_path / "run", "--watch").code == 2
