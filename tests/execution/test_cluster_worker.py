"""A worker of a cluster makes a call only under a permit that follows a recent heartbeat of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from edgen.core.values import Address, Message, Reply, Request
from edgen.execution.cluster.messages import LEASE, AttemptResult, Permit
from edgen.execution.cluster.worker import Worker


class Server:
    """A server that counts its attempts."""

    def __init__(self) -> None:
        self.identity, self.model, self.attempts = {"type": "simulator"}, "m", 0

    async def complete(self, _request: Request) -> Reply:
        self.attempts += 1
        return Reply(text="yes", finish_reason="stop", model="m")


class Sent:
    """The messages of the worker to its head."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def send(self, message: Any) -> None:
        self.messages.append(message)


@pytest.mark.parametrize(
    ("age", "made"), [(0.0, True), (LEASE - 1, True), (LEASE + 0.1, False), (3600.0, False)]
)
async def test_a_permit_holds_from_the_sign_of_life_that_it_answers(age: float, made: bool) -> None:
    worker, server, sent = Worker(), Server(), Sent()
    unit = (3, 0)
    vars(worker).update(_wire=sent, _backends={"default": server})
    worker._asked[unit] = Request(Address(3, 0, 0, 0), (Message("user", "Say yes."),), 1), bytes(32)
    heard = asyncio.get_running_loop().time() - age
    await worker._call(Permit(7, "default", "http://a", unit, heard=heard))
    (called,) = sent.messages
    assert isinstance(called, AttemptResult)
    assert called.number == 7
    assert (server.attempts, called.reply is not None) == (made, made)
    assert made or (called.failure is not None and called.failure.unsent)
