"""A Chat Completions server that is not edgen's: canned replies in ten layouts, each after a fixed latency.

python -m bench.canned_server serves on a free port of this machine and prints its address. The base URL of a
layout is ADDRESS/N/v1, where N is its place in `bench.replies.LAYOUTS`. Standard library only, and one
process.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence

from bench.measure import ROOT
from bench.replies import LAYOUTS

LATENCY = 0.1  # seconds
_latency = LATENCY
DIFFERENT = 200  # replies of each layout, given out in turn
_PATH = re.compile(rb"POST /(\d+)/v1/chat/completions ")
_LENGTH = re.compile(rb"\r\ncontent-length:[ ]*(\d+)", re.IGNORECASE)


def answer(text: str, number: int) -> bytes:
    """Return a reply as HTTP bytes."""
    value = {
        "id": f"chatcmpl-{number:08d}",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "canned-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 310,
            "completion_tokens": len(text) // 4,
            "total_tokens": 310 + len(text) // 4,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }
    body = json.dumps(value).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"x-request-id: req_{number:08d}\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """A connection that answers one request after another, as HTTP/1.1 keeps a connection open."""

    def __init__(self, replies: Sequence[Iterator[bytes]]) -> None:
        self._replies = replies
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.startswith(b"GET ") and self._received.endswith(b"\r\n\r\n"):
            self._received = b""  # a server without a list of its models
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _LENGTH.search(self._received, 0, head)
        end = head + 4 + (int(length[1]) if length is not None else 0)
        if len(self._received) < end:
            return
        path = _PATH.match(self._received)
        assert path is not None, self._received[:80]
        self._received = self._received[end:]
        asyncio.get_running_loop().call_later(_latency, self._answer, next(self._replies[int(path[1])]))

    def _answer(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


async def _serve() -> None:
    replies = [
        itertools.cycle([answer(make(number), number) for number in range(DIFFERENT)])
        for make in LAYOUTS.values()
    ]
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(replies), "127.0.0.1", 0, backlog=1024
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def canned(latency: float = LATENCY) -> Iterator[str]:
    """Run the server, with this latency in seconds, in a process of its own; yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.canned_server", str(latency)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait(10)


if __name__ == "__main__":
    _latency = float(sys.argv[1]) if len(sys.argv) > 1 else LATENCY
    asyncio.run(_serve())
