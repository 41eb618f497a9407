"""A ledger's facts about its batches may be forged: nothing outside the run's own folder is
read or written."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from edgen.config import parse_job
from edgen.core.errors import CallError, DamagedError, FailureKind, ProviderError, RunError
from edgen.core.values import MAX_ANSWER
from edgen.execution.batch.manual import give_up
from edgen.execution.batch.ownership import find_batch_file
from edgen.execution.batch.results import read_results
from edgen.execution.progress import Events
from edgen.providers.batches import OversizedError
from edgen.store.ledger import Ledger, read_batches_at
from tests.execution.batch.desk import Desk
from tests.execution.batch.test_scheduler import broken_off, execute, job


def change(folder: Path, sql: str, *values: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute(sql, values)


async def ready(folder: Path) -> None:
    """Prepare a run whose batch is ready to be sent."""

    def refuse(step: str) -> None:
        if step == "upload":
            raise CallError(FailureKind.AUTHENTICATION, "no such key")

    desk = Desk()
    desk.trouble = refuse
    with pytest.raises(ProviderError):
        await execute(folder, desk)
    assert [batch.state for batch in read_batches_at(folder / "run.db")] == ["ready"]


def secret(folder: Path) -> Path:
    (path := folder.parent / "secret").write_text("a private key")
    return path


def elsewhere(folder: Path) -> None:
    change(folder, "UPDATE batches SET file = ?", str(secret(folder)))


def above(folder: Path) -> None:
    secret(folder)
    change(folder, "UPDATE batches SET file = 'run.batches/../../secret'")


def beside(folder: Path) -> None:
    change(folder, "UPDATE batches SET file = 'job.yaml'")


def link(folder: Path) -> None:
    file = folder / read_batches_at(folder / "run.db")[0].file
    file.unlink()
    file.symlink_to(secret(folder))


def linked_folder(folder: Path) -> None:
    (folder / "run.batches").rename(folder.parent / "other")
    (folder / "run.batches").symlink_to(folder.parent / "other")


def pipe(folder: Path) -> None:
    file = folder / read_batches_at(folder / "run.db")[0].file
    file.unlink()
    os.mkfifo(file)


def backend(folder: Path) -> None:
    change(folder, "UPDATE batches SET backend = 'judge'")


def file_id(folder: Path) -> None:
    change(folder, "UPDATE batches SET state = 'sending', file_id = '../../v1/models'")


def remote_id(folder: Path) -> None:
    change(folder, "UPDATE batches SET state = 'sent', remote_id = 'x/../../files?limit=1'")


def token(folder: Path) -> None:
    change(folder, "UPDATE batches SET token = ?", "x\r\nX-Header: y")


RUINS = (elsewhere, above, beside, link, linked_folder, pipe, backend, file_id, remote_id, token)


@pytest.mark.parametrize("ruin", RUINS, ids=lambda ruin: ruin.__name__)
async def test_a_batch_that_something_else_changed_is_not_gone_on_with(
    tmp_path: Path, ruin: Callable[[Path], None]
) -> None:
    await ready(tmp_path / "run")
    ruin(tmp_path / "run")
    desk = Desk()
    with pytest.raises(RunError, match="Nothing was read"):
        await execute(tmp_path / "run", desk)
    assert not desk.steps
    assert not desk.files


async def test_one_that_nobody_changed_is(tmp_path: Path) -> None:
    await ready(tmp_path / "run")
    desk = Desk()
    await execute(tmp_path / "run", desk)
    assert desk.steps[0] == "upload"


async def test_results_are_not_written_through_a_link(tmp_path: Path) -> None:
    """The name of a file of results follows from the batch, so an attacker can place a link there."""
    folder, victim = tmp_path / "run", tmp_path / "victim"
    await broken_off(folder, Desk(looks=10**6))
    victim.write_text("mine")
    desk = Desk()
    desk.begun["batch-0"] = read_batches_at(folder / "run.db")[0].token
    desk.content["batch-0"] = []
    mark = hashlib.sha256(b"out-batch-0").hexdigest()[:8]
    (folder / "run.batches" / f"00001.results-1-{mark}.jsonl").symlink_to(victim)
    with pytest.raises(RunError, match="is a link"):
        await execute(folder, desk)
    assert victim.read_text() == "mine"


async def test_results_that_are_too_large_are_a_sentence_and_may_be_given_up(tmp_path: Path) -> None:
    desk = Desk()

    def refuse(step: str) -> None:
        if step == "download":
            raise OversizedError(FailureKind.BAD_REQUEST, "what it answers is larger than 9 bytes")

    desk.trouble = refuse
    with pytest.raises(ProviderError, match="larger than 9 bytes") as told:
        await execute(tmp_path / "run", desk)
    assert "edgen batch cancel" in str(told.value)
    assert desk.steps.count("download") == 1
    async with Ledger(tmp_path / "run" / "run.db") as ledger:
        await give_up(parse_job(job(), "job.yaml"), ledger, {"default": desk}, [1], Events())
        tokens, _ = ledger.sum_charges(lambda prompt, completion: 0.0)
        assert tokens > 0
    assert [batch.state for batch in read_batches_at(tmp_path / "run" / "run.db")] == ["dropped"]


async def test_a_line_longer_than_an_answer_can_be_is_passed_over(tmp_path: Path) -> None:
    """In results that a person provides, too, a line longer than any service's answer is
    never held in memory."""
    folder = tmp_path / "run"
    await broken_off(folder, desk := Desk(looks=10**6))
    await desk.download("out-batch-0", results := tmp_path / "results")
    lines = results.read_bytes().splitlines(keepends=True)
    longest = b'{"x": "%s"}' % (b"x" * (MAX_ANSWER + 100_000))
    results.write_bytes(lines[0] + longest + b"\n" + b"".join(lines[1:]) + longest)
    async with Ledger(folder / "run.db") as ledger:
        reading = await read_results(results, desk.read, ledger, lambda _: None)
    assert (reading.answered, reading.unreadable) == (30, 2)


def test_places_of_a_run_s_own(tmp_path: Path) -> None:
    assert (
        find_batch_file(tmp_path / "run.db", "run.batches/1/00001.x.jsonl")
        == tmp_path / "run.batches/1/00001.x.jsonl"
    )
    for name in (
        "",
        "run.batches",
        "/run.batches/x",
        "x.batches/x",
        "run.batches/a/../../x",
        "run.batches/\x00",
    ):
        with pytest.raises(DamagedError):
            find_batch_file(tmp_path / "run.db", name)
