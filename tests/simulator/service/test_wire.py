"""Every byte of the server's output, by digests: a change of a dialect shows which requests it changes.

The model is replaced, so that the digests depend on the dialects alone. For an intended change, the failed
assertion names the groups, and `recorder.py` compares both trees answer by answer.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any

import msgspec
import pytest

from edgen.core.values import Reply, Token, Usage
from edgen.simulator.service import answering
from edgen.simulator.service.server import serve_options
from tests.simulator.server import options
from tests.simulator.service import recorder

# Times, and messages of msgspec and aiohttp, which differ between their versions.
MASKS = (
    (rb"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)", b"<time>"),
    (rb'("created|_at)":\d{9,}', rb'\1":<time>'),
    (rb'cannot be read: (?:[^"\\]|\\.)*', b"cannot be read"),
)
OWN_HEADERS = (b"x-", b"retry-after", b"content-type", b"cache-control")
pytestmark = pytest.mark.integration

DIGESTS = {
    "single calls": "05d2ce6b98a8",
    "seed": "088b9baa422b",
    "paths": "9d998f78c5b0",
    "slots": "0e4b5ba2c56a",
    "refusal": "6904d233b7c9",
    "filtered": "88db0b59221c",
    "empty": "059ee3f65059",
    "truncated": "aabb8481fbc6",
    "garbage": "8e1ef6f263f4",
    "429=1": "bd66aa7e9a3f",
    "429=1:0.5": "81b1546d53b4",
    "429=1:2.5": "304ed1db8b59",
    "500=1": "e7702eacb883",
    "503=1": "dc7d5ff86bb5",
    "401=1": "f1df44de2543",
    "404=1": "a3b37d49f801",
    "quota=1": "2970d282a528",
    "reset=1": "dbd982378a21",
    "slow=1:0.01": "108e180fbd69",
    "OpenAI's batches": "29437241ff1a",
    "Anthropic's batches": "62e3f9f4ed28",
    "Gemini's batches": "44f51597f702",
    "refused batches of OpenAI's": "46ec0688a894",
    "refused batches of Anthropic's": "6fd84fe5d18b",
    "refused batches of Gemini's": "bd2144d54d9a",
    "429=0.3,quota=0.2,slow=0.1:9,reset=0.1 record_openai_batches": "9cad55f24fcd",
    "429=0.3,quota=0.2,slow=0.1:9,reset=0.1 record_anthropic_batches": "7a2bc62ff347",
    "429=0.3,quota=0.2,slow=0.1:9,reset=0.1 record_gemini_batches": "e115575422a3",
    "refusal=0.5,filtered=0.5 record_openai_batches": "fd75f3d7cb69",
    "refusal=0.5,filtered=0.5 record_anthropic_batches": "8567da23c450",
    "refusal=0.5,filtered=0.5 record_gemini_batches": "9f962834b35d",
    "404=1 record_openai_batches": "e42ed5de2056",
    "404=1 record_anthropic_batches": "2fd253a4ee14",
    "404=1 record_gemini_batches": "9cc4200af1ff",
    "batch_slow=1:0.01 record_openai_batches": "29437241ff1a",
    "batch_slow=1:0.01 record_anthropic_batches": "62e3f9f4ed28",
    "batch_slow=1:0.01 record_gemini_batches": "44f51597f702",
    "batch_create_lost=1:0.01": "f943158d30ca",
    "cancelled": "455a9641465d",
    "expired": "7d26bc1d712e",
    "changed bodies": "ea6d8d5647a9",
}
TEXT = "Teacher: Hello. What is a half?\nStudent: One of two – \u00fcberall the same parts, I think.\n" * 2


def mask(answer: bytes) -> bytes:
    """Return the request, the status, the dialect's headers and the body."""
    head, _, body = answer.partition(b"\r\n\r\n")
    asked, _, lines = head.partition(b"\n")
    status, *headers = lines.split(b"\r\n")
    if b"Transfer-Encoding: chunked" in headers:
        body = b"".join(re.split(rb"(?:\A|\r\n)[0-9a-f]+\r\n(?:\r\n)?", body))
    own = sorted(line for line in headers if line.lower().startswith(OWN_HEADERS))
    shown = b"\n".join([asked, status[:12], *own, body])
    for pattern, instead in MASKS:
        shown = re.sub(pattern, instead, shown)
    return shown


def respond(messages: Any, *, top: int | None, **asked: Any) -> Reply:
    """Return a reply without a model. `top`: with log probabilities of at most so many tokens."""
    reply = make_reply(messages, **asked)
    if top is None:
        return reply
    said = [reply.text[i : i + 4] for i in range(0, len(reply.text), 4)]
    tokens = tuple(Token(one, -0.5, ((one, -0.5),) * min(top, 2)) for one in said)
    return msgspec.structs.replace(reply, tokens=tokens)


def make_reply(
    messages: Any, *, seed: int, max_tokens: int | None, faults: Any, stop: Any, json_mode: bool, **more: Any
) -> Reply:
    """Return a reply of the fault, an object, or a text that names the seed."""
    usage = Usage(sum(len(message.content) for message in messages), 9)
    match faults.content[0].name if faults.content else None:
        case "filtered":
            return Reply("", "content_filter", "The answer was blocked by a content filter.", usage)
        case "refusal" if seed % 2:
            return Reply("", "stop", "I cannot help with that, and never could at any time.", usage)
        case "refusal" | "garbage":
            return Reply("no", "stop", None, usage)
        case "empty":
            return Reply("", "stop", None, usage)
        case "truncated":
            return Reply(TEXT[:70], "length", None, usage)
    text = json.dumps({"winner": "1", "reasons": [TEXT]}) if json_mode else f"{TEXT}{seed % 1000}"
    return Reply(
        text[: (max_tokens or 999) * 4],
        "stop" if max_tokens is None or max_tokens > 9 else "length",
        None,
        usage,
    )


@pytest.mark.only_long
async def test_every_byte_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "respond", respond)

    def serve(**changes: Any) -> Any:
        return serve_options(options(**changes))

    digests = {
        name: blake2b("\0".join(answers).encode(), digest_size=6).hexdigest()
        async for name, answers in recorder.record(serve, mask, share=23)
    }
    assert digests == DIGESTS, json.dumps(digests)


@pytest.mark.parametrize("fault", ["refusal", "empty", "garbage"])
@pytest.mark.parametrize("path", [recorder.MESSAGES, recorder.CONTENT])
async def test_a_model_that_declines_calls_no_tool(fault: str, path: str) -> None:
    """Arguments are an object within the answer, so other text would not be JSON."""
    tool = next(change for change in recorder.KINDS[path] if "tools" in change)
    async with serve_options(options(faults=f"{fault}=1")) as address:
        raw = await recorder.exchange(address, "POST", path, recorder.PLAIN[path] | tool)
    body = json.loads(raw.partition(b"\r\n\r\n")[2])
    assert "tool_use" not in str(body)
    assert "functionCall" not in str(body)


@pytest.mark.parametrize("more", [{"stop": ["", "zzz"]}, {"response_format": {"type": "json_schema"}}])
async def test_a_form_that_says_nothing_is_answered(more: dict[str, Any]) -> None:
    async with serve_options(options()) as address:
        raw = await recorder.exchange(address, "POST", recorder.CHAT, recorder.PLAIN[recorder.CHAT] | more)
    assert raw.startswith(b"HTTP/1.1 200 ")
