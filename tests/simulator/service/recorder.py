"""A recorder of the simulator's server: a broad set of requests, and every byte of the answers.

`python tests/simulator/service/recorder.py TREE FILE` records the server of a tree with all of the requests,
for comparing two trees. There the clock stands still and random ids are counted, so that all bytes are the
same. `record` yields the answers by group; random ids become numbers, and headers of the HTTP library are
left out.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"winner": {"enum": ["1", "2"]}, "reasons": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
    "required": ["winner", "reasons"],
    "additionalProperties": False,
}  # fmt: skip
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TALK = "Write a conversation of 6 turns between a teacher and a student about fractions."
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
CONTENT = "/v1beta/models/gem:generateContent"
STREAM = "/v1beta/models/gem:streamGenerateContent?alt=sse"

# By path: a body with as many fields as the dialect accepts.
RICH: dict[str, dict[str, Any]] = {
    CHAT: {
        "model": "m", "seed": 3, "temperature": 0.5, "max_tokens": 60, "max_completion_tokens": 50, "stop": ["zzz"], "n": 2,
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "developer", "content": [{"type": "text", "text": "and short"}]},
            {"role": "user", "content": [
                {"type": "text", "text": TALK},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
            ]},
            {"role": "assistant", "content": None},
            {"role": "tool", "content": "42"},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}], "tool_choice": "auto",
        "logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}, "top_p": 1, "logit_bias": {},
        "modalities": ["text"], "stream": False,
    },
    RESPONSES: {
        "model": "m", "instructions": "be kind", "temperature": 0, "max_output_tokens": 50, "metadata": {"a": "b"},
        "input": [
            {"role": "user", "content": TALK},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "short"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "output_text", "text": "42"}]},
            {"type": "reasoning", "id": "r", "summary": []},
        ],
        "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}, "verbosity": "low"}, "reasoning": {"effort": "low"},
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}], "tool_choice": "auto", "store": True, "background": False,
        "include": ["message.output_text.logprobs"], "top_logprobs": 3, "truncation": "auto", "stream": False,
    },
    MESSAGES: {
        "model": "m", "max_tokens": 50, "system": [{"type": "text", "text": "be kind"}], "temperature": 0.0, "stop_sequences": ["zzz"],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": TALK},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "42"}]}]},
        ],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        "tools": [{"name": "f", "input_schema": SCHEMA}], "tool_choice": {"type": "auto"}, "top_p": 1, "top_k": 3,
        "metadata": {"user_id": "u"}, "thinking": {"type": "disabled"}, "service_tier": "auto", "stream": False,
    },
    CONTENT: {
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "contents": [
            {"role": "user", "parts": [{"text": TALK}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"snake_case": 1}}}]},
            {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
        ],
        "generation_config": {
            "seed": 3, "temperature": 0.5, "max_output_tokens": "50", "stopSequences": ["zzz"], "candidateCount": 2, "topK": 3,
            "responseMimeType": "application/json", "responseJsonSchema": SCHEMA, "responseLogprobs": True, "logprobs": 2,
            "responseModalities": ["TEXT"], "thinkingConfig": {"thinkingBudget": 0},
            "responseSchema": {"type": "OBJECT", "properties": {"a_b": {"type": "STRING", "nullable": True, "maxLength": "9"}}},
        },
        "tools": [{"functionDeclarations": [
            {"name": "f", "description": "d", "parameters": {"type": "OBJECT", "properties": {"x_y": {"type": "INTEGER"}}}},
            {"name": "g", "parametersJsonSchema": SCHEMA},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["g"]}, "retrievalConfig": {}},
        "safetySettings": [{"category": "A", "threshold": "B"}], "labels": {"a": "b"},
    },
}  # fmt: skip
# By path: a body that requests a stream, a tool, a schema; and a plain body.
PLAIN: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": TALK}]},
    RESPONSES: {"model": "m", "input": TALK},
    MESSAGES: {"model": "m", "max_tokens": 400, "messages": [{"role": "user", "content": TALK}]},
    CONTENT: {"contents": [{"parts": [{"text": TALK}]}]},
}
KINDS: dict[str, list[dict[str, Any]]] = {
    CHAT: [
        {},
        {"n": 3, "logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}},
        {"max_tokens": 7, "logprobs": True},
        {"stop": "e", "temperature": 0},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
        {"response_format": {"type": "json_schema"}},
        {"tools": RICH[CHAT]["tools"], "tool_choice": "required", "logprobs": True, "n": 2},
        {"tools": RICH[CHAT]["tools"], "tool_choice": "required", "max_tokens": 3},
        {"tools": RICH[CHAT]["tools"], "tool_choice": RICH[CHAT]["tools"][0]},
        {"tool_choice": "required"},
        {"tools": RICH[CHAT]["tools"], "tool_choice": {"type": "function", "function": {"name": "h"}}},
    ],
    RESPONSES: [
        {},
        {"include": ["message.output_text.logprobs"], "top_logprobs": 2, "reasoning": {"effort": "high"}},
        {"max_output_tokens": 7, "temperature": 0},
        {"text": {"format": {"type": "json_object"}}},
        {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"tools": RICH[RESPONSES]["tools"], "tool_choice": "required", "reasoning": {"effort": "low"}},
        {"tools": RICH[RESPONSES]["tools"], "tool_choice": "required", "max_output_tokens": 3},
        {"tools": RICH[RESPONSES]["tools"], "tool_choice": {"type": "function", "name": "f"}},
        {"tools": RICH[RESPONSES]["tools"], "tool_choice": {"type": "function", "name": "h"}},
        {"tool_choice": "required"},
        {"previous_response_id": "resp_1"},
    ],
    MESSAGES: [
        {},
        {"max_tokens": 7, "temperature": 0},
        {"output_format": {"type": "json_schema", "schema": SCHEMA}},
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"tools": RICH[MESSAGES]["tools"], "tool_choice": {"type": "any"}},
        {"tools": RICH[MESSAGES]["tools"], "tool_choice": {"type": "any"}, "max_tokens": 3},
        {"tools": RICH[MESSAGES]["tools"], "tool_choice": {"type": "tool", "name": "f"}},
        {"tools": RICH[MESSAGES]["tools"], "tool_choice": {"type": "tool", "name": "h"}},
        {"tool_choice": {"type": "any"}},
        {"temperature": 1.5},
        {"messages": [{"role": "assistant", "content": "a"}]},
        {"system": [{"type": "image"}]},
    ],
    CONTENT: [
        {},
        {"generationConfig": {"candidateCount": 3, "responseLogprobs": True, "logprobs": 2}},
        {"generationConfig": {"maxOutputTokens": 7, "temperature": 0, "responseLogprobs": True}},
        {"generationConfig": {"responseMimeType": "application/json"}},
        {"generationConfig": {"responseJsonSchema": SCHEMA}},
        {"generationConfig": {"responseSchema": {"type": "ARRAY", "items": {"type": "STRING"}, "min_items": "2"}}},
        {"tools": RICH[CONTENT]["tools"], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        {"tools": RICH[CONTENT]["tools"], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
         "generationConfig": {"maxOutputTokens": 2, "responseLogprobs": True, "candidateCount": 2}},
        {"tools": RICH[CONTENT]["tools"],
         "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        {"generationConfig": {"responseModalities": ["AUDIO"]}},
        {"contents": [{"parts": [{"fileData": {"fileUri": "u"}}]}]},
    ],
}  # fmt: skip
COUNTS = {
    "/v1/responses/input_tokens": {"model": "m", "input": TALK, "tools": RICH[RESPONSES]["tools"], "instructions": "be kind"},
    "/v1/messages/count_tokens": {
        "model": "m", "messages": RICH[MESSAGES]["messages"], "system": "be kind", "tools": RICH[MESSAGES]["tools"],
    },
    "/v1beta/models/gem:countTokens": {
        "generateContentRequest": {"model": "models/gem", **{k: v for k, v in RICH[CONTENT].items() if k != "labels"}},
    },
}  # fmt: skip
STRANGE: list[Any] = [
    None,
    5,
    -1,
    0,
    1.5,
    10**20,
    "x",
    "",
    [],
    {},
    True,
    False,
    ["x"],
    [5],
    [{}],
    {"zzz": 1},
    {"type": "zzz"},
]
VERSION = {"anthropic-version": "2023-06-01"}
GOOGLE = {"x-goog-api-key": "k"}

# Ids that a server draws: of batches, files and uploads, not of answers.
_RANDOM = re.compile(
    rb"(?<![a-z0-9])(?:file-|batch_|msgbatch_|batch_req_|req_|results_|files/batch-|files/|batches/|upload-session/)"
    rb"([0-9a-f]{12}(?:[0-9a-f]{12})?)(?![0-9a-f])"
)
_HEADERS = re.compile(rb"\r\n(Date|Server|Last-Modified|ETag): [^\r]*", re.IGNORECASE)

Say = Callable[..., Awaitable[bytes]]


def mutate(value: Any) -> Iterator[Any]:
    """Yield the body with each part removed, replaced by strange values, or joined by an unknown field."""

    def rebuild(place: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
        whole = json.loads(json.dumps(value))
        holder = whole
        for key in place[:-1]:
            holder = holder[key]
        change(holder, place[-1])
        return whole

    for place in list(_list_places(value, ())):
        inner: Any = value
        for key in place:
            inner = inner[key]
        yield rebuild(place, lambda holder, key: holder.__delitem__(key))
        for strange in STRANGE:
            yield rebuild(place, lambda holder, key, s=strange: holder.__setitem__(key, s))  # type: ignore[misc]
        if isinstance(inner, dict):
            yield rebuild(place, lambda holder, key: holder[key].__setitem__("unknown_field", 1))
            yield rebuild(place, lambda holder, key: holder[key].__setitem__("unknownField", None))
    yield value | {"unknown_field": 1}
    yield value | {"unknownField": None}


def _list_places(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key != "properties":
            yield (*place, key)
            yield from _list_places(inner, (*place, key))


async def exchange(
    address: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> bytes:
    """Return the whole answer to a request, byte for byte."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    port = int(address.rsplit(":", 1)[1])
    lines = {"Host": "localhost", "Connection": "close", "Content-Length": str(len(data)), **(headers or {})}
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in lines.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    try:
        writer.write(head.encode() + b"\r\n" + data)
        return await reader.read()
    except ConnectionError:
        return b"connection broken"
    finally:
        writer.close()


class Recording:
    """The answers of one server, in order. Random ids become numbers, in the order in which they occur."""

    def __init__(
        self, address: str, mask: Callable[[bytes], bytes] = lambda answer: answer, pause: float = 0
    ) -> None:
        self._address = address
        self._pause = pause  # seconds before the first look at a batch
        self._mask = mask
        self._ids: dict[bytes, bytes] = {}
        self.answers: list[str] = []

    async def say(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        keep: bool = True,
    ) -> bytes:
        raw = await exchange(self._address, method, path, body, headers)
        if keep:
            shown = f"{method} {path}\n".encode() + _HEADERS.sub(rb"\r\n\1: -", raw)
            shown = _RANDOM.sub(self._number, shown)
            self.answers.append(self._mask(shown).decode("utf-8", "replace"))
        return raw

    def _number(self, found: re.Match[bytes]) -> bytes:
        number = self._ids.setdefault(found[1], b"<%d>" % len(self._ids))
        return found[0][: found.start(1) - found.start()] + number

    async def wait(self, path: str, found: bytes, headers: dict[str, str] | None = None) -> bytes:
        """Repeat a request until the answer has a part that matches, and keep that answer."""
        await asyncio.sleep(self._pause)
        for _ in range(6000):
            if re.search(found, await self.say("GET", path, headers=headers, keep=False)):
                return await self.say("GET", path, headers=headers)
            await asyncio.sleep(0.01)
        raise TimeoutError(path)


async def record_single_calls(say: Say) -> None:
    for path, body in PLAIN.items():
        for change in KINDS[path]:
            await say("POST", path, body | change)
            streamed = (STREAM, {}) if path == CONTENT else (path, {"stream": True})
            await say("POST", streamed[0], body | change | streamed[1])
        await say("POST", path, RICH[path])
        await say("POST", path, RICH[path])
    for path, body in COUNTS.items():
        await say("POST", path, body)


async def record_mutations(say: Say, share: int = 1) -> None:
    for path, body in {**RICH, **COUNTS}.items():
        for number, changed in enumerate(mutate(body)):
            if number % share == 0:
                await say("POST", path, changed)
        for strange in (
            b"",
            b"{",
            b"[]",
            b"5",
            b'"x"',
            b"null",
            b"\xff",
            b"[" * 5000,
            b'{"model": "\xff"}',
            b"{}",
        ):
            await say("POST", path, strange)
    for path, body in PLAIN.items():
        for form in (CHAT, RESPONSES, MESSAGES, CONTENT):
            if form != path:
                await say("POST", form, body)


async def record_paths(say: Say) -> None:
    paths = [
        "/", "/v1", "/props", "/v1/models", "/models", "/v1/models/x", "/models/x", "/v1beta/models", "/v1alpha/models", "/v1beta/models/x",
        "/v1beta/models/x:count", "/v1beta/models/x:generateContent", "/v1/models/x:generateContent", "/models/x:countTokens",
        "/v1/projects/p/locations/l/publishers/google/models/x:generateContent", "/v1beta1/projects/p/locations/l/publishers/google/models/x",
        "/chat/completions", "/responses", "/v1/nothing", "/nothing", CHAT, RESPONSES, MESSAGES, *COUNTS, "/v1/models/", "/v1/models/a/b",
        "/v1/files", "/files", "/v1/files/x", "/v1/files/x/content", "/v1/files/x/cancel", "/v1/batches", "/batches", "/v1/batches/x",
        "/v1/batches/x/cancel", "/v1/batches/x/content", "/v1/messages/batches", "/v1/messages/batches/x", "/v1/messages/batches/x/cancel",
        "/v1/messages/batches/x/results", "/v1beta/files", "/v1beta/files/x", "/v1beta/files/x:download", "/v1beta/files:download",
        "/download/v1beta/files/x:download", "/upload/v1beta/files", "/upload-session/abc", "/v1beta/batches", "/v1beta/batches/x",
        "/v1beta/batches/x:cancel", "/v1beta/batches:cancel", "/v1beta/models/x:batchGenerateContent", "/v1/models/x:batchGenerateContent",
        "/v1/batches?limit=0", "/v1/batches?limit=x", "/v1/batches?after=x", "/v1/files?limit=10001", "/v1/files?purpose=a&order=asc",
        "/v1/messages/batches?limit=0", "/v1/messages/batches?after_id=x", "/v1/messages/batches?after_id=x&before_id=y",
        "/v1beta/files?pageSize=x", "/v1beta/files?pageSize=0", "/v1beta/files?pageToken=x", "/v1beta/batches?pageSize=3",
    ]  # fmt: skip
    for path in paths:
        for method in ("GET", "POST", "PUT", "DELETE", "HEAD"):
            for headers in ({}, VERSION, GOOGLE):
                await say(method, path, None, headers)
    await say("GET", "/v1/models", None, {"Host": "evil.example"})
    await say("GET", "/v1/models", None, {"Origin": "http://evil.example"})


def _line(number: int, url: str, body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"custom_id": f"r{number}", "method": "POST", "url": url, "body": body, **changes}


def _form(*parts: tuple[str, str | None, bytes]) -> tuple[bytes, dict[str, str]]:
    body = b""
    for name, file, data in parts:
        body += f'--edge\r\nContent-Disposition: form-data; name="{name}"'.encode()
        body += (f'; filename="{file}"' if file else "").encode() + b"\r\n\r\n" + data + b"\r\n"
    return body + b"--edge--\r\n", {"Content-Type": "multipart/form-data; boundary=edge"}


def _jsonl(lines: list[Any]) -> bytes:
    return b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )


def _find(raw: bytes, pattern: str) -> str:
    found = re.search(pattern.encode(), raw)
    assert found is not None, raw
    return found[0].decode()


async def _upload(say: Say, data: bytes) -> str:
    raw = await say("POST", "/v1/files", *_form(("purpose", None, b"batch"), ("file", "in.jsonl", data)))
    return _find(raw, "file-[0-9a-f]{24}")


OPENAI_END = rb'"status":"(completed|failed|expired|cancelled)"'


async def record_openai_batches(recording: Recording, end: bytes = OPENAI_END) -> None:
    say = recording.say
    for url in (CHAT, RESPONSES):
        lines = [_line(i, url, PLAIN[url] | change) for i, change in enumerate(KINDS[url] * 4)] + [
            _line(1000, url, PLAIN[url] | {"stream": True}),
            _line(1001, url, PLAIN[url] | {"frobnicate": 1}),
        ]
        created = {
            "input_file_id": await _upload(say, _jsonl(lines)), "endpoint": url, "completion_window": "24h", "metadata": {"a": "b"},
        }  # fmt: skip
        batch = _find(await say("POST", "/v1/batches", created), "batch_[0-9a-f]{24}")
        whole = await recording.wait(f"/v1/batches/{batch}", end)
        for field in ("output_file_id", "error_file_id"):
            if found := re.search(f'"{field}":"([^"]*)"'.encode(), whole):
                await say("GET", f"/v1/files/{found[1].decode()}")
                await say("GET", f"/v1/files/{found[1].decode()}/content")
        await say("POST", f"/v1/batches/{batch}/cancel")
        await say("PUT", f"/v1/batches/{batch}")
        await say("GET", f"/v1beta/batches/{batch}", None, GOOGLE)
        await say("GET", f"/v1/messages/batches/{batch}", None, VERSION)
    for page in (
        "limit=1",
        f"after={batch}",
        "limit=1&after=x",
        "purpose=batch",
        "purpose=batch_output&order=asc",
        "",
    ):
        await say("GET", f"/v1/batches?{page}")
        await say("GET", f"/v1/files?{page}")
    first = _find(await say("GET", "/v1/files?order=asc&limit=1"), "file-[0-9a-f]{24}")
    for method, path in (
        ("GET", ""),
        ("GET", "/content"),
        ("POST", ""),
        ("DELETE", "/content"),
        ("DELETE", ""),
        ("GET", ""),
    ):
        await say(method, f"/v1/files/{first}{path}")


async def record_refused_openai_batches(recording: Recording) -> None:
    say = recording.say
    good = _line(1, CHAT, PLAIN[CHAT])
    bad: list[list[Any]] = [
        [], [b"{"], [b"\xff"], [{}], [{**good, "method": "GET"}], [{**good, "url": "/v1/x"}], [good, good], [{**good, "custom_id": 5}],
        [good, _line(2, CHAT, {**PLAIN[CHAT], "model": "other"})], [{**good, "body": {"model": 5}}], [{**good, "body": 5}],
        [b"[]", b"{", good, good], [b"{"] * 102, [_line(i, CHAT, {}) for i in range(3)],
    ]  # fmt: skip
    for lines in bad:
        created = {
            "input_file_id": await _upload(say, _jsonl(lines)),
            "endpoint": CHAT,
            "completion_window": "24h",
        }
        batch = _find(await say("POST", "/v1/batches", created), "batch_[0-9a-f]{24}")
        await recording.wait(f"/v1/batches/{batch}", OPENAI_END)
    file = created["input_file_id"]
    for changed in mutate({**created, "metadata": {"a": "b"}}):
        raw = await say("POST", "/v1/batches", changed, keep=False)
        if b'"object":"batch"' not in raw:
            await say("POST", "/v1/batches", changed)
    for metadata in ({"a" * 65: "b"}, {"a": "b" * 513}, {f"{i}": "b" for i in range(17)}):
        await say("POST", "/v1/batches", {**created, "metadata": metadata})
    other = _find(
        await say("POST", "/v1/files", *_form(("purpose", None, b"assistants"), ("file", "a.txt", b"x"))),
        "file-[0-9a-f]{24}",
    )
    await say("POST", "/v1/batches", {**created, "input_file_id": other})
    await say("POST", "/v1/files", b"x", {"Content-Type": "text/plain"})
    for parts in (
        [("purpose", None, b"batch")], [("file", "a.jsonl", b"x")], [("purpose", None, b"batch"), ("file", "a.txt", b"x")],
        [("file", None, b"x"), ("purpose", None, b"batch")], [("other", None, b"x")], [("purpose", None, b"b" * 200), ("file", "a", b"")],
    ):  # fmt: skip
        await say("POST", "/v1/files", *_form(*parts))
    await say("POST", "/v1/files", b"--edge\r\n", {"Content-Type": "multipart/form-data; boundary=edge"})
    await say("POST", "/v1/files", b"x", {"Content-Type": "multipart/form-data"})
    await say("GET", f"/v1beta/files/{file}", None, GOOGLE)


async def record_anthropic_batches(
    recording: Recording, end: bytes = rb'"processing_status":"ended"'
) -> None:
    say, path = recording.say, "/v1/messages/batches"
    requests = [
        {"custom_id": f"r{i}", "params": PLAIN[MESSAGES] | change}
        for i, change in enumerate([*KINDS[MESSAGES] * 4, {"stream": True}, {"frobnicate": 1}])
    ]
    for some in (requests, requests[:1], requests[1:3]):
        batch = _find(await say("POST", path, {"requests": some}), "msgbatch_[0-9a-f]{24}")
        whole = await recording.wait(f"{path}/{batch}", end)
        await say("GET", f"{path}/{batch}/results")
        for method, action in (("POST", "/cancel"), ("PUT", ""), ("POST", "/results"), ("POST", "")):
            await say(method, f"{path}/{batch}{action}")
    assert whole
    for query in (
        "limit=1",
        f"after_id={batch}",
        f"before_id={batch}",
        "limit=1001",
        "limit=2",
        f"limit=1&after_id={batch}",
    ):
        listed = await say("GET", f"{path}?{query}")
    await say("GET", f"{path}?limit=1&before_id={_find(await say('GET', path), 'msgbatch_[0-9a-f]{24}')}")
    last = json.loads((await say("GET", path)).split(b"\r\n\r\n", 1)[1])["last_id"]
    await say("GET", f"{path}?limit=1&before_id={last}")
    assert listed
    await say("DELETE", f"{path}/{batch}")
    await say("GET", f"{path}/{batch}")


async def record_refused_anthropic_batches(recording: Recording) -> None:
    say, path = recording.say, "/v1/messages/batches"
    good = {"custom_id": "r", "params": PLAIN[MESSAGES]}
    for changed in mutate({"requests": [good]}):
        raw = await say("POST", path, changed, keep=False)
        if b"msgbatch_" not in raw:
            await say("POST", path, changed)
    for bad in (
        [good, good],
        [{**good, "custom_id": "a b"}],
        [{**good, "custom_id": ""}],
        [{**good, "custom_id": "a" * 65}],
    ):
        await say("POST", path, {"requests": bad})
    for strange in (b"", b"{", b"[]"):
        await say("POST", path, strange)


async def _send_file(say: Say, data: bytes, **about: Any) -> str:
    start = {
        **GOOGLE,
        "X-Goog-Upload-Command": "start",
        "X-Goog-Upload-Header-Content-Length": str(len(data)),
    }
    raw = await say("POST", "/upload/v1beta/files", {"file": about}, start)
    path = _find(raw, "/upload-session/[0-9a-f]{24}")
    half = len(data) // 2
    command = {**GOOGLE, "X-Goog-Upload-Command": "upload", "X-Goog-Upload-Offset": "0"}
    await say("POST", path, data[:half], command)
    await say("POST", path, data[:half], command)
    await say("POST", path, None, {**GOOGLE, "X-Goog-Upload-Command": "query"})
    early = await say("POST", path, None, {**GOOGLE, "X-Goog-Upload-Command": "finalize"})
    if b'"file"' in early:  # without content
        return _find(early, "files/[a-z0-9-]+")
    rest = {**GOOGLE, "X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": str(half)}
    raw = await say("PUT", path, data[half:], rest)
    return _find(raw, "files/[a-z0-9-]+")


GEMINI_END = rb'"done":true'


async def record_gemini_batches(recording: Recording, end: bytes = GEMINI_END) -> None:
    say, create = recording.say, "/v1beta/models/gem:batchGenerateContent"
    requests = [PLAIN[CONTENT] | change for change in KINDS[CONTENT] * 4] + [{"frobnicate": 1}]
    file = await _send_file(
        say, _jsonl([{"key": f"r{i}", "request": one} for i, one in enumerate(requests)]), displayName="in"
    )
    named = await _send_file(
        say, _jsonl([{"request": requests[0]}]), name="files/my-own", mime_type="text/plain"
    )
    for config in (
        {"file_name": file}, {"fileName": named}, {"requests": {"requests": [{"request": one} for one in requests]}},
    ):  # fmt: skip
        raw = await say("POST", create, {"batch": {"display_name": "b", "input_config": config}}, GOOGLE)
        batch = _find(raw, "batches/[0-9a-f]{24}")
        whole = await recording.wait(f"/v1beta/{batch}", end, GOOGLE)
        if found := re.search(rb'"responsesFile":"([^"]*)"', whole):
            for place in ("", ":download"):
                await say("GET", f"/v1beta/{found[1].decode()}{place}", None, GOOGLE)
            await say("GET", f"/download/v1beta/{found[1].decode()}:download?alt=media", None, GOOGLE)
        for method, action in (("POST", ":cancel"), ("PUT", ""), ("GET", ":cancel"), ("DELETE", ":cancel")):
            await say(method, f"/v1beta/{batch}{action}", None, GOOGLE)
    for query in ("", "pageSize=1", f"pageToken={batch}", "pageSize=x", "pageSize=0"):
        await say("GET", f"/v1beta/batches?{query}", None, GOOGLE)
        await say("GET", f"/v1beta/files?{query}", None, GOOGLE)
    for method, path in (
        ("DELETE", batch), ("GET", batch), ("GET", named), ("GET", f"{named}:download"), ("POST", named), ("DELETE", named), ("GET", named),
    ):  # fmt: skip
        await say(method, f"/v1beta/{path}", None, GOOGLE)


async def record_refused_gemini_batches(recording: Recording) -> None:
    say, create = recording.say, "/v1beta/models/gem:batchGenerateContent"
    file = await _send_file(say, _jsonl([{"key": "r", "request": PLAIN[CONTENT]}]))
    for data in (
        b"",
        b"{\n",
        b"\xff\n",
        b"{}\n",
        b'{"key": 5, "request": {}}\n',
        b'{"request": {}}\n{\n',
        b'{"request": {}}\n',
    ):
        bad = await _send_file(say, data)
        raw = await say("POST", create, {"batch": {"inputConfig": {"fileName": bad}}}, GOOGLE)
        await recording.wait(f"/v1beta/{_find(raw, 'batches/[0-9a-f]{24}')}", GEMINI_END, GOOGLE)
    for config in ({"file_name": file}, {"requests": {"requests": [{"request": PLAIN[CONTENT]}]}}):
        for changed in mutate({"batch": {"displayName": "b", "inputConfig": config}}):
            raw = await say("POST", create, changed, GOOGLE, keep=False)
            if b'"error"' in raw:
                await say("POST", create, changed, GOOGLE)
    start = {**GOOGLE, "X-Goog-Upload-Command": "start"}
    for body, headers in (
        ({}, GOOGLE), (b"{", start), ({"file": {"name": "x"}}, start), ({"file": {"name": file}}, start), ({"file": 5}, start), (None, start),
        ({"file": {"name": 5}}, start), ({}, {**start, "X-Goog-Upload-Header-Content-Length": "99999999999"}),
    ):  # fmt: skip
        raw = await say("POST", "/upload/v1beta/files", body, headers)
    raw = await say("POST", "/upload/v1beta/files", {}, start)
    path = _find(raw, "/upload-session/[0-9a-f]{24}")
    for command in ("", "cancel", "query"):
        await say("POST", path, b"x", {**GOOGLE, "X-Goog-Upload-Command": command})


async def record_batch_ends(recording: Recording, *, cancel: bool) -> None:
    """Record batches that end without their answers: cancelled, or expired."""
    say, messages, create = recording.say, "/v1/messages/batches", "/v1beta/models/gem:batchGenerateContent"
    lines = [_line(i, CHAT, PLAIN[CHAT]) for i in range(3)]
    created = {
        "input_file_id": await _upload(say, _jsonl(lines)),
        "endpoint": CHAT,
        "completion_window": "24h",
    }
    requests = [{"custom_id": f"r{i}", "params": PLAIN[MESSAGES]} for i in range(3)]
    inline = {"batch": {"inputConfig": {"requests": {"requests": [{"request": PLAIN[CONTENT]}] * 3}}}}
    openai = "/v1/batches/" + _find(await say("POST", "/v1/batches", created), "batch_[0-9a-f]{24}")
    anthropic = f"{messages}/" + _find(
        await say("POST", messages, {"requests": requests}), "msgbatch_[0-9a-f]{24}"
    )
    gemini = "/v1beta/" + _find(await say("POST", create, inline, GOOGLE), "batches/[0-9a-f]{24}")
    if cancel:
        await recording.wait(openai, rb'"status":"in_progress"')
        await recording.wait(gemini, rb"BATCH_STATE_RUNNING", GOOGLE)
        await say("GET", anthropic)
        await say("DELETE", anthropic)
        await say("GET", f"{anthropic}/results")
        for path in (f"{openai}/cancel", f"{anthropic}/cancel", f"{gemini}:cancel"):
            await say("POST", path)
    whole = await recording.wait(openai, OPENAI_END)
    for found in re.findall(rb'"((?:output|error)_file_id)":"([^"]*)"', whole):
        await say("GET", f"/v1/files/{found[1].decode()}/content")
    await recording.wait(anthropic, rb'"ended"')
    await say("GET", f"{anthropic}/results")
    await recording.wait(gemini, GEMINI_END, GOOGLE)


async def record(
    serve: Callable[..., Any],
    mask: Callable[[bytes], bytes] = lambda answer: answer,
    share: int = 1,
    more_faults: Sequence[str] = (),
) -> AsyncIterator[tuple[str, list[str]]]:
    """Yield the name and the answers of each group of requests.

    `serve` opens a server with options; of the changed bodies, one in `share` is sent; batches are recorded
    with `more_faults` as well.
    """

    async def group(work: Callable[[Recording], Awaitable[None]], **options: Any) -> list[str]:
        async with serve(**options) as address:
            # A fault that is drawn for each call needs the same number of calls.
            recording = Recording(address, mask, 0.5 if "batch_503" in options.get("faults", "") else 0)
            await work(recording)
            return recording.answers

    yield "single calls", await group(lambda r: record_single_calls(r.say))
    yield "seed", await group(lambda r: record_single_calls(r.say), seed=7)
    yield "paths", await group(lambda r: record_paths(r.say))
    yield "slots", await group(_record_slots, slots=4)
    for name in ("refusal", "filtered", "empty", "truncated", "garbage"):
        yield name, await group(lambda r: record_single_calls(r.say), faults=f"{name}=1")
    for name in (
        "429=1",
        "429=1:0.5",
        "429=1:2.5",
        "500=1",
        "503=1",
        "401=1",
        "404=1",
        "quota=1",
        "reset=1",
        "slow=1:0.01",
    ):
        yield name, await group(lambda r: _record_each(r.say), faults=name)
    yield "OpenAI's batches", await group(record_openai_batches, batch_seconds=0)
    yield "Anthropic's batches", await group(record_anthropic_batches, batch_seconds=0)
    yield "Gemini's batches", await group(record_gemini_batches, batch_seconds=0)
    yield "refused batches of OpenAI's", await group(record_refused_openai_batches, batch_seconds=0)
    yield "refused batches of Anthropic's", await group(record_refused_anthropic_batches, batch_seconds=0)
    yield "refused batches of Gemini's", await group(record_refused_gemini_batches, batch_seconds=0)
    for faults in (
        "429=0.3,quota=0.2,slow=0.1:9,reset=0.1",
        "refusal=0.5,filtered=0.5",
        "404=1",
        "batch_slow=1:0.01",
        *more_faults,
    ):
        for work in (
            _survive(record_openai_batches),
            _survive(record_anthropic_batches),
            _survive(record_gemini_batches),
        ):
            yield f"{faults} {work.__name__}", await group(work, faults=faults, batch_seconds=0)
    lost = "batch_create_lost=1:0.01"
    yield lost, await group(_record_lost, faults=lost, batch_seconds=0)
    yield "cancelled", await group(lambda r: record_batch_ends(r, cancel=True), batch_seconds=600)
    yield (
        "expired",
        await group(lambda r: record_batch_ends(r, cancel=False), batch_seconds=600, batch_window=0.3),
    )
    yield "changed bodies", await group(lambda r: record_mutations(r.say, share))


def _survive(work: Callable[[Recording], Awaitable[None]]) -> Callable[[Recording], Awaitable[None]]:
    """Return the work, ending at the first answer that lacks a value for the next request."""

    async def run(recording: Recording) -> None:
        try:
            await work(recording)
        except (AssertionError, TimeoutError) as problem:
            recording.answers.append(type(problem).__name__)

    run.__name__ = getattr(work, "__name__", "")
    return run


async def _record_slots(recording: Recording) -> None:
    await recording.say("GET", "/props")


async def _record_each(say: Say) -> None:
    for path, body in PLAIN.items():
        await say("POST", path, body)
        await say("POST", *((STREAM, body) if path == CONTENT else (path, body | {"stream": True})))


async def _record_lost(recording: Recording) -> None:
    say = recording.say
    created = {
        "input_file_id": await _upload(say, _jsonl([_line(1, CHAT, PLAIN[CHAT])])), "endpoint": CHAT, "completion_window": "24h",
    }  # fmt: skip
    inline = {
        "batch": {
            "displayName": "b",
            "inputConfig": {"requests": {"requests": [{"request": PLAIN[CONTENT]}]}},
        }
    }
    for _ in range(2):
        await say("POST", "/v1/batches", created)
        await say("POST", "/v1/batches", {**created, "metadata": {"a": "b"}})
        await say(
            "POST", "/v1/messages/batches", {"requests": [{"custom_id": "r", "params": PLAIN[MESSAGES]}]}
        )
        await say("POST", "/v1beta/models/gem:batchGenerateContent", inline, GOOGLE)


def main(tree: str, file: str) -> None:
    """Record the server of a tree, with a clock that stands still and counted ids, as JSON."""
    import itertools
    import os
    import time

    count = itertools.count(1)
    os.urandom = lambda size: (b"\xfa\xce" + next(count).to_bytes(14, "big"))[:16].ljust(size, b"\0")[:size]
    time.time = lambda: 1_700_000_000.25
    sys.path.insert(0, tree)
    import edgen

    assert str(edgen.__file__).startswith(tree), edgen.__file__
    from edgen.simulator.options import ServerOptions
    from edgen.simulator.service.server import serve_options

    async def collect() -> dict[str, list[str]]:
        def serve(**changes: Any) -> Any:
            return serve_options(ServerOptions(**{"port": 0, **changes}))

        return {name: answers async for name, answers in record(serve, more_faults=["batch_503=0.2"])}

    with open(file, "w") as into:
        json.dump(asyncio.run(collect()), into, indent=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
