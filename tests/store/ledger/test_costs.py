"""The time and cost of a stored answer have a checksum, except in older ledgers: changes are reported."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from edgen.core.values import Address, Reply, Usage
from edgen.store.ledger import Ledger, LedgerReader
from edgen.store.ledger.checking import find_ledger_damage
from tests.store.ledger import store_reply


async def ledger_at(path: Path) -> None:
    async with Ledger(path) as ledger:
        ledger.begin_session(1, "host", "0")
        for scenario in range(3):
            await store_reply(
                ledger,
                Address(scenario, 0),
                bytes([scenario] * 32),
                Reply(f"text {scenario}", usage=Usage(10, 2)),
                1,
                1,
                charged_tokens=12,
                cost_usd=0.25 * scenario or None,
            )
        await ledger.flush()


def change(path: Path, what: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE replies SET {what} WHERE scenario = 1")


@pytest.mark.parametrize(
    "what",
    [
        "answered_at = answered_at + 1",
        "latency = 2",
        "tries = 2",
        "charged_tokens = 0",
        "cost_usd = 0.5",
        "cost_usd = NULL",
    ],
)
async def test_a_changed_time_or_cost_is_reported(tmp_path: Path, what: str) -> None:
    path = tmp_path / "run.db"
    await ledger_at(path)
    assert [*find_ledger_damage(path)] == []
    change(path, what)
    (problem,) = find_ledger_damage(path)
    assert "scenario 1, task 0" in problem
    assert "cost" in problem
    with LedgerReader(path) as reader:
        assert reader.status.counts.made == 3, "the answers can be read all the same"


async def test_a_ledger_of_an_older_edgen_has_no_such_checksum(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    await ledger_at(path)
    change(path, "checksum = checksum & 4294967295")
    change(path, "tries = 2")
    assert [*find_ledger_damage(path)] == []
