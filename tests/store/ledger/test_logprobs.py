"""The tokens of replies: stored on request, with their reply or not at all."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from edgen.core.values import Address, Reply, Token
from edgen.store.ledger import Ledger, RunPlan
from edgen.store.ledger.merge import MergedLedger, SourceLedger
from tests.store.ledger import store_reply
from tests.store.ledger.test_ledger import fill, key

TOKENS = (Token("1", -0.25, (("1", -0.25), ("2", -1.5))), Token("✔", -3.0))


async def store(path: Path, *, logprobs: bool, number: int = 7, reply: Reply | None = None) -> None:
    async with Ledger(path, logprobs=logprobs) as ledger:
        await fill(ledger, 2)
        await store_reply(
            ledger, Address(number, "r0~r1", 1), key(number), reply or Reply("1", tokens=TOKENS), 0.1, 1
        )


def tables(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


async def test_tokens_come_back_with_their_reply(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    await store(path, logprobs=True)
    for asked in (True, False):
        async with Ledger(path, logprobs=asked) as ledger:
            assert ledger.read_replies(7, "r0~r1")[key(7)].tokens == TOKENS
            again = ledger.read_reply(Address(7, "r0~r1", 1), key(7))
            assert again == Reply("1", tokens=TOKENS)
            assert ledger.read_replies(0, 0)[key(0)].tokens is None


async def test_without_them_a_ledger_is_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    await store(path, logprobs=False)
    assert "logprobs" not in tables(path)
    async with Ledger(path) as ledger:
        assert ledger.read_replies(7, "r0~r1")[key(7)] == Reply("1")
    async with Ledger(path, logprobs=True) as ledger:  # from now on
        assert ledger.read_replies(7, "r0~r1")[key(7)] == Reply("1")
    assert "logprobs" in tables(path)
    async with Ledger(path) as ledger:  # as `edgen batch read` opens it
        await store_reply(ledger, Address(8, "r0~r1", 1), key(8), Reply("1", tokens=TOKENS), 0.1, 1)
        assert ledger.read_replies(8, "r0~r1")[key(8)].tokens == TOKENS


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE logprobs SET data = x'00'",
        "UPDATE logprobs SET data = substr(data, 1, 20)",
        "UPDATE logprobs SET checksum = 1",
        "UPDATE logprobs SET step = 2",
    ],
)
async def test_damaged_tokens_leave_the_reply(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run.db"
    await store(path, logprobs=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(damage).rowcount == 1
    async with Ledger(path) as ledger:
        assert ledger.read_replies(7, "r0~r1") == {key(7): Reply("1")}


async def test_tokens_of_an_answer_that_was_given_up_are_not_the_next_ones(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    await store(path, logprobs=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM replies WHERE scenario = 7")
    async with Ledger(path) as ledger:  # retried, and the second answer has no log probabilities
        await store_reply(ledger, Address(7, "r0~r1", 1), key(7), Reply("2"), 0.1, 1)
        assert ledger.read_replies(7, "r0~r1") == {key(7): Reply("2")}
    other = Reply("2", tokens=TOKENS[:1])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM replies WHERE scenario = 7")
    async with Ledger(path, logprobs=True) as ledger:
        await store_reply(ledger, Address(7, "r0~r1", 1), key(7), other, 0.1, 1)
        assert ledger.read_replies(7, "r0~r1") == {key(7): other}


async def test_merged_ledgers_keep_the_tokens_of_what_they_keep(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("one.db", "two.db", "three.db"))
    other = Reply("2", tokens=TOKENS[1:])
    await store(one, logprobs=False, number=6)
    await store(two, logprobs=True)
    await store(three, logprobs=True, reply=other)
    await store(three, logprobs=True, number=8)
    (tmp_path / "scratch").mkdir()
    made = tmp_path / "merged.db"
    with MergedLedger(made, "f", lambda _row: None) as merged:
        for path in (one, two, three):
            merged.add(SourceLedger(path, path.name, tmp_path / "scratch"))
        merged.close(
            RunPlan(name="t", fingerprint="f", scenarios=10, replicates=1, asked=10), {}, lambda _: None
        )
    async with Ledger(made) as ledger:
        found = {n: ledger.read_replies(n, "r0~r1")[key(n)] for n in (6, 7, 8)}
    kept = [Reply("1", tokens=TOKENS)] * 2
    assert [found[7], found[8]] == kept
    assert found[6] == Reply("1")
