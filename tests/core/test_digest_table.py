"""A table of digests contains all added digests, and takes little memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from edgen.core.digest import DigestTable, hash64


def test_it_answers_as_a_dict_does() -> None:
    draw = random.Random(5)
    table, plain, known = DigestTable(), DigestTable(numbered=False), dict[int, int]()
    for number in range(40_000):
        digest = hash64(str(draw.randrange(15_000)))
        assert table.get(digest) == known.get(digest)
        assert table.setdefault(digest, number) == known.get(digest)
        assert (plain.setdefault(digest) is None) is (digest not in known)
        known.setdefault(digest, number)
    assert len(table) == len(plain) == len(known)
    assert all(table.get(digest) == number for digest, number in known.items())


@pytest.mark.parametrize("digest", [0, 1, 2**64 - 1, 256, 2**63])
def test_any_digest_and_number(digest: int) -> None:
    table = DigestTable()
    assert table.get(digest) is None
    assert table.setdefault(digest, 2**64 - 1) is None
    assert table.setdefault(digest, 7) == 2**64 - 1
    assert table.get(digest) == 2**64 - 1


def test_digests_in_one_shard() -> None:
    table = DigestTable()
    for number in range(1_000):
        assert table.setdefault(number << 8 | 5, number) is None
    assert [table.get(number << 8 | 5) for number in range(1_000)] == list(range(1_000))


@pytest.mark.parametrize(("numbered", "most"), [(False, 23), (True, 45)])
def test_bytes_an_entry(numbered: bool, most: int) -> None:
    tracemalloc.start()
    table = DigestTable(numbered=numbered)
    for number in range(12_500):
        table.setdefault(hash64(str(number)), number)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used / len(table) < most
