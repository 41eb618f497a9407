"""A ledger whose log was truncated after a crash: the next start reports the loss before it pays again."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from edgen.store.ledger.writer import read_acknowledged
from tests.execution.service import Service, edgen, end, job_text, serve, start

pytestmark = pytest.mark.crash


async def killed_run(service: Service, folder: Path, answers: int) -> Path:
    """Kill a run after this many answers, all of them in its log; return its job."""
    job = folder / "job.yaml"
    job.write_text(job_text(service.url, conversations=40, limits={"in_flight": 4}))
    process = await start("generate", job, "-o", folder / "run")
    while service.answered.total() < answers:
        await asyncio.sleep(0.01)
    while read_acknowledged(folder / "run" / "run.db") < answers:
        await asyncio.sleep(0.01)
    process.kill()
    await end(process)
    service.release()
    return job


async def test_what_a_cut_log_held_is_told_and_asked_again_only_with_consent(tmp_path: Path) -> None:
    async with serve(Service(hold_after=30)) as service:
        job = await killed_run(service, tmp_path, 30)
        asked = service.asked.total()
        log = tmp_path / "run" / "run.db-wal"
        data = log.read_bytes()
        log.write_bytes(data[: len(data) // 2])
        status = (await edgen("status", tmp_path / "run", "--json")).facts
        lost, kept = status["lost_replies"], status["calls"]["made"]
        assert lost > 0
        assert lost + kept >= 26  # the last four may not have been stored before the kill
        refused = await edgen("generate", job, "-o", tmp_path / "run")
        assert refused.code == 2
        assert f"run.db: {lost} answers that were stored are missing" in refused.err
        assert "--yes" in refused.err
        assert service.asked.total() == asked, "nothing is paid for before somebody agrees"
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--yes", "--json")
        assert ended.code == 0, ended.err
        assert ended.facts["accepted"] == 40
        assert ended.facts["lost_replies"] == lost
        again = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert again.code == 0, "what was agreed to is not asked about again"
        shown = await edgen("status", tmp_path / "run")
        assert f"lost       {lost} stored answers missing from the ledger" in shown.out


async def test_a_whole_log_and_a_copy_of_a_run_have_lost_nothing(tmp_path: Path) -> None:
    async with serve(Service(hold_after=30)) as service:
        job = await killed_run(service, tmp_path, 30)
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        for run in ("run", "copy"):
            ended = await edgen("generate", job, "-o", tmp_path / run, "--json")
            assert ended.code == 0, ended.err
            assert "lost_replies" not in ended.facts


@pytest.mark.parametrize("note", [b"", b"junk", b"0000000000000000099 00000000\n", b"\xff" * 28])
async def test_a_note_that_is_damaged_says_nothing(tmp_path: Path, note: bytes) -> None:
    async with serve(Service()) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=3))
        assert (await edgen("generate", job, "-o", tmp_path / "run")).code == 0
        (tmp_path / "run" / "run.db-acked").write_bytes(note)
        ended = await edgen("generate", job, "-n", "5", "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        assert "lost_replies" not in ended.facts


async def test_a_judge_that_lost_verdicts_says_so_and_goes_on(tmp_path: Path) -> None:
    async def run(*words: str | Path) -> Any:
        ended = await edgen(*words)
        assert ended.code == 0, ended.err
        return ended

    job = Path(__file__).parents[2] / "jobs" / "selfplay.yaml"
    made = ("-n", "2", "--set", "replicates=2", "--set", "selfplay.max_turns=4")
    await run("generate", job, *made, "-o", tmp_path / "run")
    judged = ("pairs", tmp_path / "run", "--by", "oracle", "--json")
    await run(*judged)
    (ledger,) = (tmp_path / "run" / "pairs" / "judged").glob("*.db")
    ledger.write_bytes(empty_ledger(tmp_path))
    ended = await run(*judged)
    assert f"{ledger.name}: 4 answers that were stored are missing" in ended.err
    assert json.loads(ended.out)["judged"] == 2


def empty_ledger(folder: Path) -> bytes:
    """Return a ledger without content, like an older copy."""
    from edgen.store.ledger.opening import connect

    connect(folder / "empty.db", create=True).close()
    return (folder / "empty.db").read_bytes()
