"""Ledgers of layout 5, whose replies a trigger counts, are read unchanged; a session upgrades them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from edgen.core.errors import DamagedError
from edgen.core.values import Address, Reply, Usage
from edgen.store.ledger import Ledger, read_summary
from edgen.store.ledger.opening import render_empty_ledger
from edgen.store.ledger.reader import LedgerReader
from edgen.store.ledger.schema import UPGRADED, VERSION
from tests.store.ledger import store_reply

pytestmark = pytest.mark.unit


async def store(ledger: Ledger, scenarios: range) -> None:
    for scenario in scenarios:
        reply = Reply(text=f"reply {scenario}", finish_reason="stop", usage=Usage(10, 3, 2, 1))
        await store_reply(
            ledger,
            Address(scenario, 0),
            scenario.to_bytes(32),
            reply,
            0.1,
            1,
            charged_tokens=13,
            cost_usd=0.25,
        )


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a ledger as an edgen of layout 5 made it, with two replies that its trigger counted."""
    path = tmp_path / "run.db"
    path.write_bytes(render_empty_ledger(UPGRADED))
    row = (0, 0, 0, 0, b"", "stop", None, None, 0, 10, 3, 2, 1, 1.0, 0.1, 1, 13, 0.25, "reply", 0)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO sessions (started_at, pid, host, edgen) VALUES (1, 1, 'host', '1')")
        for scenario in range(2):
            values = (scenario, *row[1:4], scenario.to_bytes(32), *row[5:])
            connection.execute(f"INSERT INTO replies VALUES ({','.join('?' * len(values))})", values)
    return path


def layout(path: Path) -> tuple[int, int]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()[
            0
        ]
        return connection.execute("PRAGMA user_version").fetchone()[0], triggers


def counts(path: Path) -> list[tuple[int | float, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT made, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, cost_usd FROM sessions"
        ).fetchall()


def test_it_is_read_without_a_change(old: Path) -> None:
    before = old.read_bytes()
    with LedgerReader(old) as reader:
        assert reader.read_fact("plan") is None
    assert old.read_bytes() == before
    assert layout(old) == (UPGRADED, 1)


async def test_a_session_upgrades_it_and_counts_each_reply_once(old: Path) -> None:
    async with Ledger(old, create=False) as ledger:
        ledger.prepare_session()
        ledger.begin_session(os.getpid(), "host", "2")
        await store(ledger, range(1, 5))  # the first of them exists already
    assert layout(old) == (VERSION, 0)
    assert counts(old) == [(2, 20, 6, 4, 2, 0.5), (3, 30, 9, 6, 3, 0.75)]
    assert read_summary(old).lost_replies == 0


async def test_replies_without_a_price_leave_the_cost_open(tmp_path: Path) -> None:
    async with Ledger(tmp_path / "run.db") as ledger:
        ledger.prepare_session()
        ledger.begin_session(os.getpid(), "host", "2")
        reply = Reply(text="x", finish_reason="stop", usage=Usage(1 << 62, 1))
        for scenario in range(2):
            await store_reply(ledger, Address(scenario, 0), bytes(32), reply, 0.1, 1)
    assert counts(tmp_path / "run.db") == [(2, 1 << 62, 2, 0, 0, None)]


@pytest.mark.parametrize("version", [UPGRADED, VERSION])
def test_each_layout_has_its_own_triggers(tmp_path: Path, version: int) -> None:
    """The trigger of layout 5 in a ledger of layout 6, or none in one of layout 5, is a foreign change."""
    other = VERSION if version == UPGRADED else UPGRADED
    path = tmp_path / "run.db"
    path.write_bytes(render_empty_ledger(version))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {other}")
    with pytest.raises(DamagedError, match="another program changed this ledger"):
        LedgerReader(path)
