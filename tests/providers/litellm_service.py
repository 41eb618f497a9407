"""Backends through litellm for the tests, with the requests and answers of services in several dialects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgen.core.errors import CallError
from edgen.core.values import Reply
from edgen.providers import make
from edgen.providers.litellm.config import LitellmConfig
from tests.providers.fakes import TRUSTING, Seen, request

KEY = "the-key-of-this-service-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"said": {"type": "string"}},
    "required": ["said"],
    "additionalProperties": False,
}


def backend(url: str | None, model: str = "openai/m", environ: Any = None, **settings: Any) -> Any:
    named = {"api_key_env": "MY_KEY"} if settings.get("auth") != "library" else {}
    config = LitellmConfig(**{"model": model, "base_url": url, **named, **settings})
    return make(
        config, timeout=60, connections=4, environ={"MY_KEY": KEY, **TRUSTING} if environ is None else environ
    )


async def ask(it: Any, *texts: str, schema: Any = None, **more: Any) -> Reply:
    asked = request(*texts, **more)
    if schema is not None:
        asked = msgspec.structs.replace(asked, schema=msgspec.json.encode(schema))
    try:
        reply: Reply = await it.complete(asked)
    finally:
        await it.aclose()
    return reply


async def failure(it: Any, **more: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        await ask(it, **more)
    return caught.value


# --- requests and answers by dialect -------------------------------------------------------------

CHAT: Any = {
    "id": "c",
    "object": "chat.completion",
    "model": "m-001",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
MESSAGE: Any = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "m-001",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}
CONTENT: Any = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
    "modelVersion": "m-001",
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
SAID = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
BLOCKS = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
# model, path below the address, settings; then the expected path, header of the key and body; then the answer
DIALECTS: dict[str, Any] = {
    "openai": (
        ("openai/gpt-5-mini", "/v1", {"max_tokens": 50, "retry_max_tokens": 100, "reasoning_effort": "low", "verbosity": "low", "service_tier": "flex"}),
        ("/v1/chat/completions", ("authorization", f"Bearer {KEY}"), {
            "model": "gpt-5-mini", "messages": SAID, "max_completion_tokens": 100, "reasoning_effort": "low", "verbosity": "low",
            "service_tier": "flex", "response_format": FORMAT,
        }),
        CHAT,
    ),
    "openai-compatible": (
        ("hosted_vllm/m", "/v1", {
            "max_tokens": 50, "retry_max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop": ("END",), "seed": "auto", "options": {"top_k": 4},
        }),
        ("/v1/chat/completions", ("authorization", f"Bearer {KEY}"), {
            "model": "m", "messages": SAID, "max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7,
            "top_k": 4, "response_format": FORMAT,
        }),
        CHAT,
    ),
    "anthropic": (
        ("anthropic/claude-sonnet-4-5", "", {"max_tokens": 50, "retry_max_tokens": 100, "temperature": 0.5, "stop": ("END",), "options": {"top_k": 4}}),
        ("/v1/messages", ("x-api-key", KEY), {
            "model": "claude-sonnet-4-5", "messages": BLOCKS, "system": [{"type": "text", "text": "be kind"}], "max_tokens": 100,
            "temperature": 0.5, "stop_sequences": ["END"], "top_k": 4, "output_format": {"type": "json_schema", "schema": SCHEMA},
        }),
        MESSAGE,
    ),
    "gemini": (
        ("gemini/gemini-2.5-flash", "/v1beta", {"max_tokens": 50, "retry_max_tokens": 100, "seed": "auto", "reasoning_effort": "low"}),
        ("/v1beta/models/gemini-2.5-flash:generateContent", ("x-goog-api-key", KEY), {
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "system_instruction": {"parts": [{"text": "be kind"}]},
            "generationConfig": {
                "max_output_tokens": 100, "seed": 7, "response_mime_type": "application/json", "response_json_schema": SCHEMA,
                "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024},
            },
        }),
        CONTENT,
    ),
    "azure": (
        ("azure/DEPLOYMENT", "", {"max_tokens": 50, "retry_max_tokens": 100, "temperature": 0.5, "api_version": "2024-10-21"}),
        ("/openai/deployments/DEPLOYMENT/chat/completions?api-version=2024-10-21", ("api-key", KEY), {
            "model": "DEPLOYMENT", "messages": SAID, "max_tokens": 100, "temperature": 0.5, "response_format": FORMAT,
        }),
        CHAT,
    ),
}  # fmt: skip


def keys_of(seen: Seen) -> dict[str, str]:
    """Return the headers of a request that hold the key."""
    return {name: value for name, value in seen.headers.items() if KEY in value}


def chat(**choice: Any) -> Any:
    return CHAT | {"choices": [CHAT["choices"][0] | choice]}


def worded(message: str, **more: Any) -> Any:
    return {"error": {"message": message, "type": "t", "param": None, "code": None, **more}}
