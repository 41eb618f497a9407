"""The ledger's key of a request: its parts, and the unchanged key of a request without a schema."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from edgen.config import CallSettings, Job
from edgen.core.values import Address, Message, Request
from edgen.execution.session import make_clients
from edgen.providers import make
from edgen.simulator.config import SimulatorConfig

pytestmark = pytest.mark.unit

ASKED = Request(Address(3, 1), (Message("user", "hello"),), seed=5, max_tokens_scale=2)


def key(request: Request, **settings: Any) -> bytes:
    config = SimulatorConfig(**settings)
    job = Job(name="t", conversations=1, space="s", prompt="p", backends={"default": config})
    backend = make(config, timeout=1, connections=1, environ={})
    return make_clients(CallSettings.of(job), {"default": backend}, ["default"])["default"].make_key(request)


def test_a_key_without_a_schema_is_what_it_always_was() -> None:
    identity = dict(make(SimulatorConfig(), timeout=1, connections=1, environ={}).identity)
    digest = hashlib.sha256(msgspec.json.encode(identity, order="deterministic"))
    digest.update(msgspec.msgpack.encode((ASKED.address, ASKED.messages, ASKED.seed, ASKED.max_tokens_scale)))
    assert key(ASKED) == digest.digest()


def test_a_schema_is_part_of_the_key_and_who_asks_is_not() -> None:
    schemas = (None, b"{}", b'{"type":"object"}')
    assert len({key(msgspec.structs.replace(ASKED, schema=schema)) for schema in schemas}) == 3
    assert key(msgspec.structs.replace(ASKED, protocol="oneshot")) == key(ASKED)


def test_the_limit_of_retries_is_part_of_the_keys_of_retries_alone() -> None:
    first = msgspec.structs.replace(ASKED, max_tokens_scale=1)
    limits = (None, 20, 30)
    assert len({key(first, max_tokens=10, retry_max_tokens=limit) for limit in limits}) == 1
    assert len({key(ASKED, max_tokens=10, retry_max_tokens=limit) for limit in limits}) == 3
