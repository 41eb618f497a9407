"""The number of calls that a server on this machine or in a private network answers at once.

Hosted services are never asked. Servers that get a key are not asked either, since they may forward to a
hosted service.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from yarl import URL

from edgen.plugin import CallError, FailureKind
from edgen.plugin.providers import append_path, decode

_PATIENCE = 5.0  # seconds for all requests together
_MOST = 100_000  # slots: a larger number is a mistake
# The server is not up yet; it may answer later.
_NOT_YET = (FailureKind.CONNECTION, FailureKind.OVERLOADED)

Get = Callable[[URL], Awaitable[bytes]]


async def find_slots(base: URL, get: Get) -> int | None:
    """Return how many calls the server at `base` (with or without /v1) answers at once; None if it does not
    say. Raises CallError while the server is not up."""
    root = base.with_path(base.path.rstrip("/").removesuffix("/v1") or "/")
    try:
        async with asyncio.timeout(_PATIENCE):
            for path, read in _SOURCES.items():
                try:
                    body = await get(append_path(root, path))
                except CallError as failure:
                    if failure.kind in _NOT_YET:
                        raise
                    continue
                if (slots := read(body)) is not None and 0 < slots <= _MOST:
                    return slots
    except TimeoutError:
        pass
    return None


async def find_load(base: URL, get: Get) -> int | None:
    """Return the number of running and queued calls of the server, from all clients, by the metrics of vLLM,
    SGLang and llama.cpp; None if it does not say."""
    root = base.with_path(base.path.rstrip("/").removesuffix("/v1") or "/")
    try:
        async with asyncio.timeout(_PATIENCE):
            body = await get(append_path(root, "metrics"))
    except (CallError, TimeoutError):
        return None
    found = [_read_number(value) for value in _LOAD.findall(body)]
    return int(sum(found)) if found and 0 <= sum(found) <= _MOST else None


class _Props(msgspec.Struct):
    total_slots: int


class _Limit(msgspec.Struct):
    """The limit of one of SGLang's schedulers, or of the whole server."""

    effective_max_running_requests_per_dp: int | None = None
    max_running_requests: int | None = None


class _Info(_Limit):
    internal_states: list[_Limit] = []


_PROPS = msgspec.json.Decoder(_Props)
_SLOTS = msgspec.json.Decoder(list[dict[str, Any]])
_INFO = msgspec.json.Decoder(_Info)
# A sample of a metric: its labels and its value. Standard builds of vLLM lack this metric; others have one of
# their own, or a label of another one. SGLang has a sample for each rank.
_SAMPLE = re.compile(
    rb"^(?:(?:vllm|sglang)[:_](max_num_seqs|max_running_requests)|[a-zA-Z_][\w:]*)"
    rb"(?:\{((?:[^\"}\n]|\"(?:[^\"\\\n]|\\.)*\")*)\})?[ \t]+([-+.\deE]{1,24})(?:[ \t]+\d{1,16})?[ \t\r]*$",
    re.M,
)
# Each engine or rank has a sample of its own.
_LOAD = re.compile(
    rb"^(?:vllm:num_requests_(?:running|waiting)|sglang[:_]num_(?:running|queue)_reqs|"
    rb"llamacpp:requests_(?:processing|deferred))(?:\{[^}\n]*\})?[ \t]+([-+.\deE]{1,24})",
    re.M,
)
_LABEL = re.compile(rb'max_num_seqs="(\d{1,6})"')
_REPLICA = re.compile(rb'\b(?:engine|dp_rank)="(\d{1,6})"')  # each replica answers its own requests


def _read_props(body: bytes) -> int | None:
    props = decode(_PROPS, body)
    return None if props is None else props.total_slots


def _read_slots(body: bytes) -> int | None:
    slots = decode(_SLOTS, body)
    return None if slots is None else len(slots)


def _read_info(body: bytes) -> int | None:
    info = decode(_INFO, body)
    if info is None:
        return None
    each = [
        state.effective_max_running_requests_per_dp or state.max_running_requests
        for state in info.internal_states
    ]
    known = [slots for slots in each if slots]
    return sum(known) if known else info.max_running_requests


def _read_metrics(body: bytes) -> int | None:
    """Return the sum over replicas. The samples of one replica repeat its number."""
    slots: dict[bytes, float] = {}
    for name, labels, value in _SAMPLE.findall(body):
        label = _LABEL.search(labels)
        number = float(label[1]) if label else _read_number(value) if name else 0.0
        if number > 0:
            replica = _REPLICA.search(labels)
            place = replica[1] if replica else b""
            slots[place] = max(number, slots.get(place, 0.0))
    total = sum(slots.values())
    return int(total) if 0 < total <= _MOST else None


def _read_number(value: bytes) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0


_SOURCES: dict[str, Callable[[bytes], int | None]] = {
    "props": _read_props,  # llama.cpp
    "slots": _read_slots,  # llama.cpp, if it does not show its properties
    "get_server_info": _read_info,  # SGLang, under an older name
    "server_info": _read_info,
    "metrics": _read_metrics,  # vLLM, and SGLang with --enable-metrics
}
