"""Facts of a ledger have checksums: a damaged one is reported, and rebuilt where possible."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import msgspec
import pytest

from edgen.core.errors import DamagedError
from edgen.store.ledger import Ledger, LedgerReader, RunPlan, read_summary
from edgen.store.ledger.checking import find_ledger_damage
from edgen.store.ledger.merge import SourceLedger

PLAN = RunPlan("run", "f", 4, 1, 4)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    async with Ledger(tmp_path / "run.db") as ledger:
        ledger.begin_session(1, "host", "0")
        ledger.set_fact("plan", msgspec.json.encode(PLAN).decode())
        ledger.set_fact("job", '{"topic": "rivers"}')
        ledger.set_fact("simulated", "f")
    return tmp_path / "run.db"


def change(path: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql).rowcount == 1


DAMAGES = ("value = replace(value, 'rivers', 'rivets')", "value = CAST(x'ff' AS TEXT)", "value = 7")


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_fact_is_reported_and_noted_again(path: Path, tmp_path: Path, damage: str) -> None:
    assert not [*find_ledger_damage(path)]
    change(path, f"UPDATE meta SET {damage} WHERE name = 'job'")
    assert any("'job' in this ledger is damaged" in one for one in find_ledger_damage(path))
    with pytest.raises(DamagedError):
        SourceLedger(path, "r", tmp_path)
    with pytest.raises(DamagedError):
        read_summary(path)
    async with Ledger(path) as ledger:
        ledger.prepare_session()
        assert ledger.read_fact("job") is None
        ledger.set_fact("job", "{}")
    assert not [*find_ledger_damage(path)]
    assert read_summary(path).facts["job"] == "{}"


@pytest.mark.parametrize("name", ["plan", "simulated"])
async def test_a_fact_that_nothing_else_says_is_kept_and_refused(path: Path, name: str) -> None:
    change(path, f"UPDATE meta SET value = replace(value, 'f', 'g') WHERE name = '{name}'")
    async with Ledger(path) as ledger:
        ledger.prepare_session()
        with pytest.raises(DamagedError, match="from a copy"):
            ledger.read_fact(name)


async def test_the_end_of_a_round_that_is_gone_is_noted_again_and_a_changed_one_refused(path: Path) -> None:
    name = "end of round 0 of 2, 1 each"
    async with Ledger(path) as ledger:
        ledger.set_fact(name, "{}")
    change(path, f"DELETE FROM meta WHERE name = '{name}'")
    assert any(name in one and "again" in one for one in find_ledger_damage(path))
    async with Ledger(path) as ledger:
        ledger.prepare_session()
        assert ledger.read_fact(name) is None
        ledger.set_fact(name, "{}")
    change(path, f"UPDATE meta SET value = '[]' WHERE name = '{name}'")
    async with Ledger(path) as ledger:
        ledger.prepare_session()
        with pytest.raises(DamagedError, match="from a copy"):
            ledger.read_fact(name)


async def test_a_fact_of_an_older_edgen_is_read_as_it_is(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM meta WHERE name LIKE 'crc32 of %' OR name = 'tally'")
    change(path, "UPDATE meta SET value = '{}' WHERE name = 'job'")
    assert read_summary(path).facts["job"] == "{}"
    assert not [*find_ledger_damage(path)]


async def test_an_outcome_with_an_impossible_status_is_not_left_out(path: Path) -> None:
    row = "(0, 0, 'f', 'akcepted', NULL, NULL, 7, NULL, 1)"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"INSERT INTO outcomes VALUES {row}")
    with LedgerReader(path) as view, pytest.raises(DamagedError, match=r"scenario 0 .*made again"):
        [*view.iterate_records()]
    async with Ledger(path) as ledger:
        ledger.prepare_session()
        assert ledger.damaged_outcomes == 1
    with LedgerReader(path) as view:
        assert not [*view.list_settled()]
