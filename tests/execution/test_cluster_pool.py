"""Workers that die at the start or later, and signals while a cluster starts. Ray is a fake."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from edgen.config import CallSettings, Limits
from edgen.config.job import BatchSettings
from edgen.core.errors import EdgenError, ProviderError, SignalError, UsageError
from edgen.execution.cluster import pool as pool_module
from edgen.execution.cluster.connect import ClusterConnection, describe_few_cores
from edgen.execution.cluster.pool import Pool
from edgen.execution.cluster.worker import WorkerSetup
from edgen.providers.trust import Consents
from tests.execution.fake_ray import FakeRay

pytestmark = pytest.mark.integration  # the pool listens at a port


@contextlib.asynccontextmanager
async def opened(
    monkeypatch: pytest.MonkeyPatch, *fates: str, count: int = 1, room: int = 100
) -> AsyncIterator[tuple[Pool, FakeRay, list[str]]]:
    """Open a pool of workers whose actors have these fates; yield it, the fake Ray, and the
    pool's messages."""
    ray = FakeRay(fates)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(pool_module, "_PAUSE", 0.0)
    settings = CallSettings("t", Limits(), BatchSettings(), {})
    pool, told = Pool(count, WorkerSetup(settings, (), (), {}, Consents(), (), b""), 1.0, "f"), list[str]()
    pool.tell = told.append
    ray.is_lost = lambda number: any(link.number == number and link.lost for link in pool.links)
    await pool.open("127.0.0.1", room)
    try:
        yield pool, ray, told
    finally:
        await pool.aclose()


@pytest.mark.parametrize("fate", ["dies", "leaves"])
async def test_a_worker_that_dies_while_it_starts_is_replaced(
    monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    async with opened(monkeypatch, fate, "works", fate, count=2) as (pool, ray, told):
        assert [link.ready for link in pool.links] == [True, True]
        assert len(ray.actors) == 4
        assert len(told) == 2
        assert all("died" in text and "Another one is started." in text for text in told)
        assert all(actor.killed == (actor.fate == fate) for actor in ray.actors)


async def test_workers_that_all_die_while_they_start_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ProviderError, match="A worker could not start: The actor died"):
        async with opened(monkeypatch, *["dies"] * 9, count=2):
            pass
    ray = sys.modules["ray"]
    assert isinstance(ray, FakeRay)
    assert all(actor.killed for actor in ray.actors)


async def test_workers_that_the_cluster_has_no_room_for_hold_up_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They start once a node joins."""
    async with opened(monkeypatch, "works", "hangs", count=3, room=1) as (pool, ray, _):
        assert [link.ready for link in pool.links] == [True]
        async with asyncio.timeout(600):
            while sum(link.ready for link in pool.links) < 2:
                await asyncio.sleep(0.01)
        assert [actor.fate for actor in ray.actors] == ["works", "hangs", "works"]


async def test_a_worker_with_another_edgen_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are ended, including those that still start."""
    with pytest.raises(UsageError, match=r"has edgen 0\.1, the head"):
        async with opened(monkeypatch, "works", "hangs", "old", count=3):
            pass
    ray = sys.modules["ray"]
    assert isinstance(ray, FakeRay)
    assert len(ray.actors) == 3
    assert all(actor.killed for actor in ray.actors)


async def test_a_lost_worker_is_replaced_as_long_as_others_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another edgen is installed on the lost worker's node at first."""
    async with opened(monkeypatch, "works", "works", "old", "old", count=2) as (pool, ray, told):
        ray.actors[0].kill()
        async with asyncio.timeout(600):
            while len(ray.actors) < 5 or not all(link.ready for link in pool.links):
                await asyncio.sleep(0.01)
        assert len(pool.links) == 2
        assert not pool.broken.done()
        assert "was lost" in told[0]
        assert "The other workers go on" in told[1]
        assert len(told) == 2


async def test_a_last_worker_without_a_replacement_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(monkeypatch, "works", "old") as (pool, ray, _):
        ray.actors[0].kill()
        with pytest.raises(EdgenError, match=r"has edgen 0\.1"):
            async with asyncio.timeout(600):
                await pool.broken


async def test_a_cluster_whose_head_is_gone_ends_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(monkeypatch, "works") as (pool, ray, _):

        def check() -> None:
            raise ProviderError("No Ray cluster answers at there:6379.")

        pool.check_cluster = check
        ray.actors[0].kill()
        with pytest.raises(EdgenError, match="No Ray cluster answers"):
            async with asyncio.timeout(600):
                await pool.broken
        assert len(ray.actors) == 1, "Ray is asked for nothing"


def test_more_workers_than_cores_are_noted() -> None:
    assert describe_few_cores(3, 3) == ""
    assert describe_few_cores(1, 4).startswith("The cluster has 1 core, and each of 4 workers takes one.")


def test_ray_leaves_the_handler_of_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    before = signal.getsignal(signal.SIGTERM)
    with ClusterConnection(""):
        assert signal.getsignal(signal.SIGTERM) is before
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_while_ray_starts_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    ray.on_init = lambda: signal.raise_signal(signal.SIGTERM)
    monkeypatch.setitem(sys.modules, "ray", ray)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SignalError, match="Interrupted") as caught, ClusterConnection(""):
        pass
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert ray.shut_down == 1
