"""Helpers of the tests of the served batches: clients, input files, and waiting for an end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.late import Late
from tests.simulator import sdks

openai, genai, types = Late("openai"), Late("google.genai"), Late("google.genai.types")

ENDPOINT: Any = "/v1/chat/completions"
OPENAI_ENDED = ("completed", "failed", "expired", "cancelled")
GEMINI_ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")


def openai_client(address: str) -> openai.AsyncOpenAI:
    return sdks.openai_client(address, timeout=60)


def gemini_client(address: str) -> genai.Client:
    """Return a client that makes each call once: by default, it repeats a call whose connection dropped."""
    return sdks.gemini_client(address, retry_options=types.HttpRetryOptions(attempts=1))


def openai_line(number: int, **changes: Any) -> dict[str, Any]:
    body = {"model": "m", "seed": number, "messages": [{"role": "user", "content": f"hello {number}"}]}
    return {"custom_id": f"r{number}", "method": "POST", "url": ENDPOINT, "body": body} | changes


def gemini_line(number: int) -> dict[str, Any]:
    contents = [{"role": "user", "parts": [{"text": f"hello {number}"}]}]
    return {"key": f"r{number}", "request": {"contents": contents, "generationConfig": {"seed": number}}}


def jsonl(lines: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def rows(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


async def upload(api: openai.AsyncOpenAI, data: bytes, name: str = "in.jsonl") -> str:
    return (await api.files.create(file=(name, data), purpose="batch")).id


async def create(api: openai.AsyncOpenAI, file: str, **more: Any) -> openai.types.Batch:
    return await api.batches.create(input_file_id=file, endpoint=ENDPOINT, completion_window="24h", **more)


async def ended(api: openai.AsyncOpenAI, id_: str) -> openai.types.Batch:
    return await until(lambda: api.batches.retrieve(id_), lambda batch: batch.status in OPENAI_ENDED)


async def content(api: openai.AsyncOpenAI, id_: str | None) -> list[dict[str, Any]]:
    assert id_ is not None
    return rows((await api.files.content(id_)).content)


async def gemini_ended(api: Any, name: str) -> types.BatchJob:
    return await until(lambda: api.batches.get(name=name), lambda job: job.state.value in GEMINI_ENDED)


async def until(look: Callable[[], Any], found: Callable[[Any], bool], seconds: float = 120) -> Any:
    """Return the value of `look` as soon as it is the expected one."""
    end = time.monotonic() + seconds
    while not found(seen := await look()):
        assert time.monotonic() < end, seen
        await asyncio.sleep(0.02)
    return seen
