"""The guard of an environment's server: a token, names of this machine alone, and bounds."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from edgen.core.errors import UsageError
from edgen.env.guard import MAX_BODY, MAX_DISCARDED, Message, Receive, Scope, Send, TokenGuard

pytestmark = pytest.mark.unit
TOKEN = "a-token-of-enough-characters"
HOST = (b"host", b"127.0.0.1:8000")


class Inner:
    """An application that keeps what reaches it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.seen.append((scope["path"], (await receive())["body"]))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            return
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] != "websocket.disconnect":
            self.seen.append((scope["path"], message.get("text")))


async def play(
    guard: TokenGuard,
    kind: str,
    path: str,
    *headers: tuple[bytes, bytes],
    messages: list[Message] | None = None,
) -> list[Message]:
    """Return the answer to one request or one WebSocket."""
    told = iter(messages or [{"type": "http.request", "body": b"{}"}])
    sent: list[Message] = []

    async def receive() -> Message:
        return next(told, {"type": "websocket.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    await guard({"type": kind, "path": path, "headers": [*headers]}, receive, send)
    return sent


def status(sent: list[Message]) -> int:
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/reset", (HOST,), 401),
        ("/wrong/reset", (HOST,), 401),
        (f"/{TOKEN}/reset", (HOST,), 200),
        (f"/{TOKEN}", (HOST,), 200),
        ("/reset", (HOST, (b"authorization", f"Bearer {TOKEN}".encode())), 200),
        ("/reset", (HOST, (b"authorization", b"Basic " + base64.b64encode(f"me:{TOKEN}".encode()))), 200),
        ("/reset", (HOST, (b"authorization", b"Basic %%%")), 401),
        ("/reset", (HOST, (b"authorization", b"Bearer \xff")), 401),
        (f"/{TOKEN}/reset", ((b"host", b"evil.example"),), 403),
        (f"/{TOKEN}/reset", ((b"host", b"lab.example:80"),), 200),
        (f"/{TOKEN}/reset", (HOST, (b"origin", b"https://evil.example")), 403),
        (f"/{TOKEN}/reset", (HOST, (b"origin", b"null")), 403),
        (f"/{TOKEN}/reset", (HOST, (b"origin", b"http://localhost:3000")), 200),
        (f"/{TOKEN}/reset", (HOST, (b"host", b"evil.example")), 400),
    ],
)  # fmt: skip
async def test_who_is_answered(path: str, headers: tuple[tuple[bytes, bytes], ...], expected: int) -> None:
    inner = Inner()
    guard = TokenGuard(inner, TOKEN, allow_hosts=["lab.example"])
    assert status(await play(guard, "http", path, *headers)) == expected
    assert [path for path, _ in inner.seen] == (
        ["/" if path == f"/{TOKEN}" else "/reset"] if expected == 200 else []
    )
    sent = await play(guard, "websocket", path, *headers, messages=[{"type": "websocket.connect"}])
    assert sent[0]["type"] == ("websocket.accept" if expected == 200 else "websocket.close")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", 200), (b'{"a": 1}', 200), (b"[1]", 422), (b"{", 422), (b'{"seed": NaN}', 422), (b'{"a": "\\ud800"}', 422),
        (b'{"a": 1' + b"0" * 5000 + b"}", 422), (b"[" * 100_000, 422), (b"\xff", 422), (b" " * (MAX_BODY + 1), 413),
    ],
)  # fmt: skip
async def test_what_is_read(body: bytes, expected: int) -> None:
    inner = Inner()
    half = len(body) // 2
    pieces: list[Message] = [
        {"type": "http.request", "body": body[:half], "more_body": True},
        {"type": "http.request", "body": body[half:]},
    ]
    sent = await play(TokenGuard(inner, TOKEN), "http", f"/{TOKEN}/step", HOST, messages=pieces)
    assert status(sent) == expected
    assert inner.seen == ([("/step", body)] if expected == 200 else [])


async def test_a_message_that_is_no_json_is_answered_and_a_large_one_ends_it() -> None:
    inner = Inner()
    texts = [
        '{"type": "state"}',
        "{",
        '{"a": NaN}',
        '{"type": "reset"}',
        json.dumps({"a": "x" * MAX_BODY}),
        "{}",
    ]
    messages: list[Message] = [{"type": "websocket.receive", "text": text} for text in texts]
    sent = await play(TokenGuard(inner, TOKEN), "websocket", f"/{TOKEN}/ws", HOST, messages=messages)
    assert [text for _, text in inner.seen] == [texts[0], texts[3]]
    assert [message["type"] for message in sent] == [
        "websocket.accept",
        *["websocket.send"] * 2,
        "websocket.close",
    ]
    assert json.loads(sent[1]["text"])["data"]["code"] == "INVALID_JSON"
    assert sent[-1]["code"] == 1009


async def test_no_more_requests_at_once_than_conversations() -> None:
    guard = TokenGuard(Inner(), TOKEN, at_once=0)
    assert status(await play(guard, "http", f"/{TOKEN}/reset", HOST)) == 503


def test_a_token_is_drawn_or_has_to_be_long() -> None:
    one, other = TokenGuard(Inner()), TokenGuard(Inner())
    assert one.token != other.token
    assert one.address("http://127.0.0.1:8000/") == f"http://127.0.0.1:8000/{one.token}"
    for short in ("", "short", "a/b" * 9, "é" * 30):
        with pytest.raises(UsageError, match="at least 16"):
            TokenGuard(Inner(), short)


@pytest.mark.parametrize("length", [str(MAX_BODY + 1).encode(), b"9" * 5000])
async def test_an_announced_length_beyond_the_limit_is_refused_before_the_body(length: bytes) -> None:
    inner = Inner()
    headers = (HOST, (b"content-length", length))
    sent = await play(TokenGuard(inner, TOKEN), "http", f"/{TOKEN}/reset", *headers)
    assert (status(sent), inner.seen) == (413, [])


@pytest.mark.parametrize(("path", "expected"), [("/reset", 401), (f"/{TOKEN}/reset", 413)])
async def test_a_refused_body_is_discarded_before_the_answer(path: str, expected: int) -> None:
    """A server closes the connection of an unread body, and the client would lose the answer."""
    happened: list[str] = []
    piece, pieces = b" " * (MAX_BODY // 2), 8

    async def receive() -> Message:
        happened.append("read")
        return {"type": "http.request", "body": piece, "more_body": len(happened) < pieces}

    async def send(message: Message) -> None:
        happened.append(message["type"])

    guard = TokenGuard(Inner(), TOKEN)
    await guard({"type": "http", "path": path, "headers": [HOST]}, receive, send)
    assert happened == ["read"] * pieces + ["http.response.start", "http.response.body"]

    happened, pieces, sizes = [], 10**9, len(piece)
    await guard({"type": "http", "path": path, "headers": [HOST]}, receive, send)
    assert happened.count("read") * sizes <= 2 * MAX_DISCARDED, "a body without end is not read for ever"


async def test_nothing_is_sent_to_a_client_that_is_gone() -> None:
    async def closing(_: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        await send({"type": "websocket.close"})

    messages: list[Message] = [{"type": "websocket.connect"}, {"type": "websocket.disconnect"}]
    sent = await play(TokenGuard(closing, TOKEN), "websocket", f"/{TOKEN}/ws", HOST, messages=messages)
    assert [one["type"] for one in sent] == ["websocket.accept"]
