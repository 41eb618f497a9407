"""OpenAI's Chat Completions dialect.

Fields without effect here are accepted, including those of compatible servers. Unknown fields, and
unsupported fields that would shape the answer, are refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from edgen.core.values import Message, Reply
from edgen.simulator.service.dialect import (
    MODEL,
    BadCall,
    Dialect,
    Refusal,
    Trouble,
    WireCall,
    add_usage,
    check_call,
    check_fields,
    check_top_logprobs,
    decode,
    describe_picture,
    encode,
    find_tool,
    join_parts,
    pair_pieces_with_tokens,
    parse_schema,
)


class _ImageUrl(msgspec.Struct):
    url: str
    detail: Literal["auto", "low", "high"] = "auto"


class _Part(msgspec.Struct):
    type: str = "text"
    text: str = ""
    image_url: _ImageUrl | None = None


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None


class _JsonSchema(msgspec.Struct):
    schema: Any = True


class _ResponseFormat(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: _JsonSchema | None = None


class _Function(msgspec.Struct):
    name: str
    parameters: Any = True


class _Tool(msgspec.Struct):
    type: Literal["function"]
    function: _Function


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Body(msgspec.Struct):
    """A request for a chat completion; field names are the vendor's."""

    messages: list[_Message]  # the conversation
    model: str = MODEL  # any name
    seed: int | None = None  # for sampling the answer
    temperature: float | None = None  # for sampling the answer
    max_tokens: int | None = None  # earlier name of max_completion_tokens
    max_completion_tokens: int | None = None  # most tokens of the answer
    stop: str | list[str] | None = None  # texts at which the answer ends
    n: int | None = None  # number of answers
    response_format: _ResponseFormat | None = None  # text, JSON or a schema
    stream: bool | None = None  # the answer is sent in parts
    stream_options: _StreamOptions | None = None  # usage at the end of a stream
    tools: list[_Tool] | None = None  # tools, one of which may be called
    tool_choice: Literal["none", "auto", "required"] | _Tool | None = None  # forces a tool
    logprobs: bool | None = None  # log probabilities are requested
    top_logprobs: int | None = None  # likely tokens at each position


_BODY = msgspec.json.Decoder(_Body)
# Accepted and ignored: OpenAI's own, then those of compatible servers, for sampling, thinking and routing.
_OF_NO_USE = (
    "frequency_penalty metadata parallel_tool_calls presence_penalty prompt_cache_key prompt_cache_options "
    "prompt_cache_retention reasoning_effort safety_identifier service_tier store top_p user verbosity "
    "cache_prompt chat_template_kwargs drop_params enable_thinking include_reasoning min_p provider "
    "reasoning repeat_penalty repetition_penalty thinking top_a top_k typical_p"
)
_KNOWN = {*_OF_NO_USE.split(), *_Body.__struct_fields__}
_ONLY = {"modalities": ["text"], "logit_bias": {}, "functions": [], "function_call": "none"}
_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}
_INVALID = "invalid_request_error"


class OpenAIErrors(Dialect):
    """The errors and models that OpenAI's two dialects share."""

    other_kind = _INVALID
    faults: ClassVar = {
        "429": Trouble(429, "Rate limit reached (simulated).", "requests", "rate_limit_exceeded"),
        "500": Trouble(500, "The server had an error (simulated).", "server_error"),
        "503": Trouble(503, "The engine is overloaded (simulated).", "server_error"),
        "401": Trouble(401, "Incorrect API key provided (simulated).", _INVALID, "invalid_api_key"),
        "404": Trouble(404, "The model `{model}` does not exist (simulated).", _INVALID, "model_not_found"),
        "quota": Trouble(
            429, "You exceeded your quota (simulated).", "insufficient_quota", "insufficient_quota"
        ),
    }

    def make_error(self, status: int, message: str, field: str | None = None) -> Refusal:
        code = "unsupported_parameter" if field else None
        return self.render_error(Trouble(status, message, _INVALID, code, field))

    def render_error(self, trouble: Trouble, seconds: float | None = None) -> Refusal:
        headers = {}
        if seconds is not None:
            # The header takes whole seconds; the exact wait is in a second one, as at OpenAI.
            headers["Retry-After"] = str(math.ceil(seconds))
            if seconds % 1:
                headers["retry-after-ms"] = f"{seconds * 1000:g}"
        error = {
            "message": trouble.message,
            "type": trouble.kind,
            "param": trouble.field,
            "code": trouble.code,
        }
        return Refusal(trouble.status, encode({"error": error}), headers)

    def describe_model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 0, "owned_by": "edgen (simulated)"}

    def list_models(self, models: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"object": "list", "data": models}


class OpenAIChat(OpenAIErrors):
    """Chat Completions."""

    paths: ClassVar = {r"(?:/v1)?/chat/completions": "complete"}

    def read(self, body: bytes, model: str = "", *, stream: bool = False) -> WireCall:  # noqa: ARG002
        check_fields(body, _KNOWN, _ONLY)
        value = decode(_BODY, body)
        max_tokens = value.max_tokens if value.max_completion_tokens is None else value.max_completion_tokens
        messages = tuple(
            [Message(_ROLES[m.role], join_parts(m.content, _read_words)) for m in value.messages]
        )
        choices = 1 if value.n is None else value.n
        check_call(messages, choices, max_tokens)
        return WireCall(
            messages=messages,
            model=value.model,
            seed=value.seed,
            temperature=value.temperature,
            max_tokens=max_tokens,
            stop=(value.stop,) if isinstance(value.stop, str) else tuple(value.stop or ()),
            choices=choices,
            json_mode=value.response_format is not None and value.response_format.type != "text",
            stream=bool(value.stream),
            include_usage=value.stream_options is not None and bool(value.stream_options.include_usage),
            top_logprobs=_read_top_logprobs(value),
            **_choose_schema(value),
        )

    def answer(self, call: WireCall, replies: Sequence[Reply], name: str) -> bytes:
        value = _make_head(call, name, "chat.completion")
        value["choices"] = [
            {
                "index": i,
                "message": {"role": "assistant", **_make_content(call, reply, name)},
                "logprobs": _make_logprobs(call, reply, list_logprobs(reply)),
                "finish_reason": _finish(reply, call),
            }
            for i, reply in enumerate(replies)
        ]
        return encode(value | {"usage": _make_usage(replies)})

    def render_events(self, call: WireCall, replies: Sequence[Reply], name: str) -> Iterator[bytes]:
        """Yield chat.completion.chunk objects, then [DONE]."""
        head = _make_head(call, name, "chat.completion.chunk")
        if call.include_usage:
            head["usage"] = None
        for i, reply in enumerate(replies):
            for delta, finish, logprobs in _list_deltas(call, reply, name):
                choice = {"index": i, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
                yield b"data: " + encode(head | {"choices": [choice]}) + b"\n\n"
        if call.include_usage:
            yield b"data: " + encode(head | {"choices": [], "usage": _make_usage(replies)}) + b"\n\n"
        yield b"data: [DONE]\n\n"


CHAT = OpenAIChat()


def _read_top_logprobs(value: _Body) -> int | None:
    """Return the requested number of likely tokens at each position; None without log probabilities. Raises
    BadCall."""
    check_top_logprobs(value.top_logprobs)
    if value.top_logprobs is not None and not value.logprobs:
        raise BadCall("'top_logprobs' needs 'logprobs': true.", "top_logprobs")
    return (value.top_logprobs or 0) if value.logprobs else None


def _choose_schema(value: _Body) -> dict[str, Any]:
    """Return the schema for the answer: a required tool takes precedence over a format."""
    tools = {tool.function.name: tool.function.parameters for tool in value.tools or ()}
    if isinstance(value.tool_choice, _Tool):
        return find_tool(tools, value.tool_choice.function.name)
    if value.tool_choice == "required":
        return find_tool(tools, None)
    form = value.response_format
    if form is None or form.type != "json_schema":
        return {}
    return {"schema": parse_schema(True if form.json_schema is None else form.json_schema.schema)}


def _read_words(part: _Part) -> str:
    if part.type == "text":
        return part.text
    if part.type == "image_url" and part.image_url is not None:
        return describe_picture(*part.image_url.url.removeprefix("data:").split(";base64,", 1))
    raise BadCall("Only texts and pictures can be read; a message holds a part of another type.")


def _make_head(call: WireCall, name: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{name}",
        "object": kind,
        "created": int(time.time()),
        "model": call.model,
        "system_fingerprint": MODEL,
        "simulated": True,
    }


def _finish(reply: Reply, call: WireCall) -> str:
    return "tool_calls" if call.tool and reply.finish_reason == "stop" else reply.finish_reason


def _make_tool_call(call: WireCall, reply: Reply, name: str) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": reply.text}
    return {"index": 0, "id": f"call_{name}", "type": "function", "function": function}


def _make_usage(replies: Sequence[Reply]) -> dict[str, int]:
    prompt, completion = (usage := add_usage(replies)).prompt_tokens, usage.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _make_content(call: WireCall, reply: Reply, name: str) -> dict[str, Any]:
    if _is_withheld(reply):
        return {"content": None, "refusal": reply.refusal}
    if call.tool:
        return {"content": None, "refusal": None, "tool_calls": [_make_tool_call(call, reply, name)]}
    return {"content": reply.text, "refusal": None}


def list_logprobs(reply: Reply) -> list[dict[str, Any]]:
    """Return the tokens of a reply in OpenAI's format."""
    return [
        _make_token(token.text, token.logprob)
        | {"top_logprobs": [_make_token(*likely) for likely in token.top]}
        for token in reply.tokens or ()
    ]


def _make_token(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "bytes": list(text.encode()), "logprob": logprob}


def _make_logprobs(call: WireCall, reply: Reply, tokens: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the log probabilities of the text; None if not requested. A call's arguments have none."""
    if call.top_logprobs is None:
        return None
    field = "refusal" if _is_withheld(reply) else "content"
    told = None if call.tool and field == "content" else tokens
    return {"content": None, "refusal": None, field: told}


def _is_withheld(reply: Reply) -> bool:
    """Return whether the answer has a refusal field instead of text. After a content filter there is no text
    at all."""
    return reply.refusal is not None and reply.finish_reason == "stop"


def _list_deltas(
    call: WireCall, reply: Reply, name: str
) -> Iterator[tuple[dict[str, Any], str | None, dict[str, Any] | None]]:
    """Yield the pieces of one answer, each with its finish reason and log probabilities."""
    yield {"role": "assistant", "content": ""}, None, None
    if call.tool and not _is_withheld(reply):
        yield {"tool_calls": [_make_tool_call(call, reply, name)]}, None, None
    else:
        field, text = ("refusal", reply.refusal or "") if _is_withheld(reply) else ("content", reply.text)
        for piece, tokens in pair_pieces_with_tokens(text, list_logprobs(reply)):
            yield {field: piece}, None, _make_logprobs(call, reply, tokens)
    yield {}, _finish(reply, call), None
