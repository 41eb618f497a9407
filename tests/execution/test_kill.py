"""A run that is killed repeatedly ends like one without interruption."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import msgspec
import pytest

from edgen.api.status import read_status
from edgen.core.values import Address
from edgen.protocols.base import make_call_seed
from tests.dose import dose
from tests.execution.service import Service, edgen, end, equation, files, job_text, serve, start

pytestmark = pytest.mark.crash

KILLS = dose(4, 12)
CONVERSATIONS = dose(120, 300)
IN_FLIGHT = 16


def stored_calls(folder: Path) -> set[int]:
    """Return the seeds of the calls whose answers the ledger holds."""
    if not (folder / "run.db").exists():
        return set()
    with sqlite3.connect(folder / "run.db") as ledger:
        try:
            rows = ledger.execute("SELECT scenario, task, step, attempt FROM replies").fetchall()
        except sqlite3.OperationalError:  # killed before the tables existed
            return set()
    return {make_call_seed(3, Address(*row)) for row in rows}


@pytest.mark.long
async def test_killed_at_random_moments_a_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    rng = random.Random(21)
    async with serve(Service(latency=0.02)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=CONVERSATIONS, limits={"in_flight": IN_FLIGHT}))
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0, calm.err
        assert calm.facts["accepted"] == CONVERSATIONS
        assert set(service.asked.values()) == {1}

        service.asked.clear()
        folder = tmp_path / "killed"
        kills = repeated = 0
        while kills < KILLS:
            before, asked = stored_calls(folder), service.asked.copy()
            process = await start("generate", job, "-o", folder, "--json")
            # Some kills hit the start-up; most hit the middle of the work.
            if rng.random() < 0.2:
                await asyncio.sleep(rng.uniform(0, 0.2))
            else:
                aim = service.asked.total() + rng.randint(1, CONVERSATIONS // KILLS)
                while process.returncode is None and service.asked.total() < aim:
                    await asyncio.sleep(0.005)
            if process.returncode is None:
                process.kill()
                kills += 1
            await end(process)
            again = {seed for seed in service.asked if service.asked[seed] > asked[seed]}
            assert not again & before, "an answer that was stored was asked for again"
            repeated += sum(1 for seed in again if asked[seed])
            if (folder / "run.db").exists() and stored_calls(folder):
                status = read_status(folder)
                assert equation(msgspec.to_builtins(status))
                assert status.state in ("stopped", "complete")
        assert repeated <= KILLS * IN_FLIGHT, "more was asked again than can have been in flight"

        ended = await edgen("generate", job, "-o", folder, "--json")
        assert ended.code == 0, ended.err
        assert ended.facts["state"] == "complete"
        assert ended.facts["calls"]["made"] == CONVERSATIONS
        assert files(folder) == files(tmp_path / "calm")
