"""A full disk, a torn or foreign ledger, and a folder that belongs to another program."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from pathlib import Path

import pytest

from tests import fork_server
from tests.execution.service import Ended, Service, edgen, end, equation, files, job_text, serve, start


async def edgen_with_small_files(kilobytes: int, *arguments: str | Path) -> Ended:
    """Run `edgen` with a limit on file sizes: its writes fail as on a full disk."""
    return await end(await fork_server.start(*arguments, limits={resource.RLIMIT_FSIZE: kilobytes * 1024}))


async def test_a_disk_that_fills_up_while_answers_come_in(tmp_path: Path) -> None:
    async with serve(Service(latency=0.01)) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=300, limits={"in_flight": 16}))
        ended = await edgen_with_small_files(1200, "generate", job, "-o", tmp_path / "run")
        assert ended.code == 4, ended.err
        assert "cannot be written" in ended.err
        assert "Free some space" in ended.err
        assert "Traceback" not in ended.err
        status = await edgen("status", tmp_path / "run", "--json")
        assert equation(status.facts)
        stored = status.facts["calls"]["made"]
        assert stored > 20
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        again = sum(count - 1 for count in service.asked.values())
        assert again <= service.asked.total() - 300
        assert service.asked.total() <= 300 + 16
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0
    assert files(tmp_path / "run") == files(tmp_path / "calm")


async def test_a_disk_that_fills_up_while_files_are_written(tmp_path: Path) -> None:
    """The ledger has room for everything, the second set of shards has not: the first set stays unchanged."""
    async with serve(Service()) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=200, shards={"train": 1, "test": 1}))
        await edgen("generate", job, "-n", "100", "-o", tmp_path / "run", "--json")
        before = files(tmp_path / "run")
        await edgen("generate", job, "-o", tmp_path / "other", "--json")
        size = max(path.stat().st_size for path in (tmp_path / "other" / "shards").iterdir())
        ledger = (tmp_path / "other" / "run.db").stat().st_size
        assert ledger > size, "else this test cannot tell the two apart"
        # Fill the ledger first, then stop only the writing of files.
        with sqlite3.connect(tmp_path / "other" / "run.db") as other:
            other.execute("DELETE FROM meta WHERE name = 'written'")
        shards = files(tmp_path / "other")
        ended = await edgen_with_small_files(
            size // 1024 - 50, "generate", job, "-o", tmp_path / "other", "--set", "split.test=0.0"
        )
        assert ended.code == 4, ended.err
        assert "Traceback" not in ended.err
        assert files(tmp_path / "other") == shards
        assert before == files(tmp_path / "run")
        ended = await edgen("generate", job, "-o", tmp_path / "other", "--set", "split.test=0.0", "--json")
        assert ended.code == 0


async def test_a_torn_ledger_is_exit_2_and_nothing_changes(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=50))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        asked = service.asked.total()
        for damage in (lambda data: data[: len(data) // 2], lambda data: b"hello" * 1000, lambda data: b""):
            path = tmp_path / "run" / "run.db"
            whole = path.read_bytes()
            path.write_bytes(damage(whole))
            torn = path.read_bytes()
            for command in (["generate", job, "-o", tmp_path / "run"], ["status", tmp_path / "run"]):
                ended = await edgen(*command)
                assert ended.code == 2, (command, ended)
                assert "run.db" in ended.err
                assert "Traceback" not in ended.err
            assert path.read_bytes() == torn
            path.write_bytes(whole)
        assert service.asked.total() == asked
        assert (await edgen("generate", job, "-o", tmp_path / "run", "--json")).code == 0


async def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("mine")
    job = tmp_path / "job.yaml"
    job.write_text(job_text("http://127.0.0.1:9/v1"))
    ended = await edgen("generate", job, "-o", folder)
    assert ended.code == 2
    assert "chapter1.txt" in ended.err
    assert sorted(p.name for p in folder.iterdir()) == ["chapter1.txt"]
    ended = await edgen("generate", job, "-o", folder / "chapter1.txt")
    assert ended.code == 2
    assert "Traceback" not in ended.err


async def test_more_calls_than_the_system_allows_open_files_is_a_sentence(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(job_text("http://127.0.0.1:9/v1", limits={"in_flight": 500}))
    arguments = ("generate", job, "-o", tmp_path / "run")
    process = await fork_server.start(*arguments, limits={resource.RLIMIT_NOFILE: 300})
    ended = await end(process)
    assert ended.code == 2
    assert "in_flight" in ended.err
    assert not (tmp_path / "run").exists()


async def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=60))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        ended = await edgen_with_small_files(8, "generate", job, "-n", "90", "-o", tmp_path / "run")
        assert ended.code == 4, ended.err
        assert "Free some space" in ended.err
        assert "damaged" not in ended.err
        assert (await edgen("generate", job, "-n", "90", "-o", tmp_path / "run", "--json")).code == 0
        assert set(service.asked.values()) == {1}


@pytest.mark.crash
async def test_files_that_are_missing_or_torn_are_made_again(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=40))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        whole = files(tmp_path / "run")
        shards = tmp_path / "run" / "shards"
        for damage in (
            lambda: (shards / "conversations_train2.json").unlink(),
            lambda: (shards / "conversations_train1.json").write_text("x"),
            lambda: (shards / "manifest.json").write_text(""),
            lambda: (tmp_path / "run" / "rejected.jsonl").unlink(),
        ):
            damage()
            ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
            assert ended.code == 0
            assert files(tmp_path / "run") == whole
            assert (tmp_path / "run" / "rejected.jsonl").exists()
        assert service.asked.total() == 40


KILL_AT_THE_THIRD_RENAME = """
import os, signal, sys
from edgen.core.files import Part
publish, count = Part.publish, []
def killed(part):
    count.extend([part] if part.path.parent.name == "shards" else [])
    if len(count) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    publish(part)
Part.publish = killed
from edgen.__main__ import main
main()
"""


async def test_a_publishing_that_was_killed_is_done_again(tmp_path: Path) -> None:
    """Shards of two layouts in one folder are not a finished run, regardless of the last mark."""
    async with serve(Service()) as service:
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=40))
        await edgen("generate", job, "-o", tmp_path / "run", "--json")
        small = files(tmp_path / "run")
        arguments = ("generate", job, "-n", "60", "-o", tmp_path / "run")
        process = await fork_server.start(*arguments, code=KILL_AT_THE_THIRD_RENAME)
        assert (await end(process)).code == -9
        assert files(tmp_path / "run") != small
        ended = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert ended.code == 0
        assert files(tmp_path / "run") == small


@pytest.mark.crash
async def test_a_ledger_whose_log_is_lost_is_not_begun_anew(tmp_path: Path) -> None:
    async with serve(Service(latency=0.02, hold_after=30)) as service:  # few enough for the log to hold all
        job = tmp_path / "job.yaml"
        job.write_text(job_text(service.url, conversations=200, limits={"in_flight": 4}))
        process = await start("generate", job, "-o", tmp_path / "run")
        while service.answered.total() < 30:
            await asyncio.sleep(0.01)
        process.kill()
        await end(process)
        service.release()
        for name in ("run.db-wal", "run.db-shm"):
            (tmp_path / "run" / name).unlink(missing_ok=True)
        asked = service.asked.total()
        ended = await edgen("generate", job, "-o", tmp_path / "run")
        assert ended.code == 2
        assert "run.db-wal" in ended.err
        assert service.asked.total() == asked
