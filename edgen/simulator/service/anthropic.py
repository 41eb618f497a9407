"""Anthropic's Messages dialect, version 2023-06-01.

Required tools are called, and formats are obeyed. Unsupported features and unknown fields are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from edgen.core.values import FinishReason, Message, Reply
from edgen.simulator.service.dialect import (
    BadCall,
    Dialect,
    Refusal,
    Trouble,
    WireCall,
    add_usage,
    check_call,
    choose_words,
    decode,
    describe_picture,
    encode,
    find_tool,
    is_whole_call,
    join_parts,
    parse_schema,
    render_event,
    split_pieces,
)
from edgen.simulator.text import count_tokens


class _Source(msgspec.Struct):
    type: str = ""
    media_type: str = ""
    data: str = ""


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    source: _Source | None = None
    input: msgspec.Raw = msgspec.Raw(b"")
    content: str | list[_Block] = ""


class _Format(msgspec.Struct):
    type: Literal["json_schema"]
    schema: Any


class _Tool(msgspec.Struct):
    name: str
    input_schema: Any


class _ToolChoice(msgspec.Struct):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None


class _Message(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str | list[_Block]


class _OutputConfig(msgspec.Struct, forbid_unknown_fields=True):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: _Format | None = None


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """A request for a message; field names are the vendor's."""

    model: str  # any name
    max_tokens: int  # most tokens of the answer
    messages: list[_Message]  # the conversation
    system: str | list[_Block] = ""  # the system message
    temperature: float | None = None  # in [0, 1]
    stop_sequences: list[str] = []  # texts at which the answer ends
    stream: bool = False  # the answer is sent as events
    output_config: _OutputConfig | None = None  # format of the answer
    output_format: _Format | None = None  # earlier name of output_config.format
    tools: list[_Tool] = []  # tools, one of which may be called
    tool_choice: _ToolChoice | None = None  # forces a tool
    # Accepted and ignored.
    top_p: float | None = None
    top_k: int | None = None  # ignored, as all below
    service_tier: Literal["auto", "standard_only"] | None = None  # ignored
    metadata: dict[str, Any] | None = None  # ignored
    thinking: dict[str, Any] | None = None  # ignored
    cache_control: dict[str, Any] | None = None  # ignored
    inference_geo: str | None = None  # ignored


class _Counted(msgspec.Struct, forbid_unknown_fields=True):
    """A request to count tokens; field names are the vendor's."""

    model: str  # any name
    messages: list[_Message]  # counted
    system: str | list[_Block] = ""  # counted
    tools: msgspec.Raw = msgspec.Raw(b"")  # counted
    # Accepted and ignored.
    cache_control: dict[str, Any] | None = None
    output_config: _OutputConfig | None = None  # ignored
    thinking: dict[str, Any] | None = None  # ignored
    tool_choice: _ToolChoice | None = None  # ignored


_BODY, _COUNTED = msgspec.json.Decoder(_Body), msgspec.json.Decoder(_Counted)
_FINISH: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "other": "pause_turn",
}


class AnthropicMessages(Dialect):
    """Messages."""

    paths: ClassVar = {r"/v1/messages": "complete", r"/v1/messages/count_tokens": "count"}
    headers = ("anthropic-version",)
    other_kind = "api_error"
    kinds: ClassVar = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        405: "invalid_request_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        529: "overloaded_error",
    }
    faults: ClassVar = {
        "429": Trouble(429, "This request would exceed your organization's rate limit (simulated)."),
        "500": Trouble(500, "Internal server error (simulated)."),
        "503": Trouble(529, "Overloaded (simulated)."),  # a status of its own
        "401": Trouble(401, "invalid x-api-key (simulated)"),
        "404": Trouble(404, "model: {model} (simulated)"),
        "quota": Trouble(400, "Your credit balance is too low to access the Anthropic API (simulated)."),
    }

    def read(self, body: bytes, model: str = "", *, stream: bool = False) -> WireCall:  # noqa: ARG002
        value = decode(_BODY, body)
        if value.temperature is not None and not 0 <= value.temperature <= 1:
            raise BadCall("temperature: range: 0..1")
        check_call(value.messages, 1, value.max_tokens)
        if value.messages[0].role != "user":
            raise BadCall("messages: first message must use the user role")
        return WireCall(
            messages=_read_messages(value),
            model=value.model,
            temperature=value.temperature,
            max_tokens=value.max_tokens,
            stop=tuple(value.stop_sequences),
            stream=value.stream,
            **_choose_schema(value),
        )

    def count(self, body: bytes) -> bytes:
        value = decode(_COUNTED, body)
        said = [*[one.content for one in _read_messages(value)], bytes(value.tools).decode()]
        return encode({"input_tokens": sum(map(count_tokens, said))})

    def answer(self, call: WireCall, replies: Sequence[Reply], name: str) -> bytes:
        return encode(_make_message(call, replies[0], name))

    def render_events(self, call: WireCall, replies: Sequence[Reply], name: str) -> Iterator[bytes]:
        """Yield the message without content, its text in pieces, and its end."""
        for kind, fields in _list_events(_make_message(call, replies[0], name)):
            yield render_event(kind, fields)

    def render_error(self, trouble: Trouble, seconds: float | None = None) -> Refusal:
        headers = {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}
        error = {"type": trouble.kind, "message": trouble.message}
        return Refusal(trouble.status, encode({"type": "error", "error": error, "request_id": None}), headers)

    def describe_model(self, name: str) -> dict[str, Any]:
        created = "1970-01-01T00:00:00Z"
        return {"type": "model", "id": name, "display_name": f"{name} (simulated)", "created_at": created}

    def list_models(self, models: Sequence[dict[str, Any]]) -> dict[str, Any]:
        first, last = models[0]["id"], models[-1]["id"]
        return {"data": models, "has_more": False, "first_id": first, "last_id": last}


MESSAGES = AnthropicMessages()


def _choose_schema(value: _Body) -> dict[str, Any]:
    """Return the schema for the answer: a required tool takes precedence over a format."""
    if value.tool_choice is not None and value.tool_choice.type in ("any", "tool"):
        return find_tool({tool.name: tool.input_schema for tool in value.tools}, value.tool_choice.name)
    form = value.output_format if value.output_config is None else value.output_config.format
    return {} if form is None else {"schema": parse_schema(form.schema)}


def _read_messages(value: _Body | _Counted) -> tuple[Message, ...]:
    if not isinstance(value.system, str) and any(block.type != "text" for block in value.system):
        raise BadCall("system: only text blocks are taken")
    system = join_parts(value.system, _read_words)
    said = [Message(one.role, join_parts(one.content, _read_words)) for one in value.messages]
    return tuple([Message("system", system), *said] if system else said)


def _read_words(block: _Block) -> str:
    match block.type:
        case "text":
            return block.text
        case "tool_use":
            return bytes(block.input).decode()
        case "tool_result":
            return join_parts(block.content, _read_words)
        case "image" if block.source is not None:
            return describe_picture(block.source.media_type, block.source.data)
    raise BadCall("Only texts and pictures can be read; a message holds a block of another type.")


def _make_message(call: WireCall, reply: Reply, name: str) -> dict[str, Any]:
    text, refused = choose_words(reply), reply.finish_reason == "content_filter"
    value: dict[str, Any] = {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": _FINISH[reply.finish_reason],
        "stop_sequence": None,
        "usage": _make_usage(reply),
        "simulated": True,
    }
    if is_whole_call(call, reply):
        called = {
            "type": "tool_use",
            "id": f"toolu_{name}",
            "name": call.tool,
            "input": msgspec.Raw(text.encode()),
        }
        value |= {"content": [called], "stop_reason": "tool_use"}
    if refused:
        value["stop_details"] = {"type": "refusal", "category": None, "explanation": reply.refusal}
    return value


def _make_usage(reply: Reply) -> dict[str, int]:
    usage = add_usage([reply])
    return {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}


def _list_events(whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each event's type and fields."""
    begun = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 0}}
    yield "message_start", {"message": begun}
    for block in whole["content"]:
        if block["type"] == "text":
            begun, text, kind, field = block | {"text": ""}, block["text"], "text_delta", "text"
        else:
            begun, text = block | {"input": {}}, bytes(block["input"]).decode()
            kind, field = "input_json_delta", "partial_json"
        yield "content_block_start", {"index": 0, "content_block": begun}
        for piece in split_pieces(text):
            yield "content_block_delta", {"index": 0, "delta": {"type": kind, field: piece}}
        yield "content_block_stop", {"index": 0}
    end = {key: whole[key] for key in ("stop_reason", "stop_sequence", "stop_details") if key in whole}
    yield "message_delta", {"delta": end, "usage": whole["usage"]}
    yield "message_stop", {}
