"""OpenAI's Responses dialect.

Nothing is stored, so each call must carry all of its input. Continuing an earlier answer is refused, like
every other unsupported field that would shape the answer. Errors and models are those of Chat Completions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from edgen.core.values import Message, Reply
from edgen.simulator.service.dialect import (
    MODEL,
    BadCall,
    WireCall,
    add_usage,
    check_call,
    check_fields,
    check_top_logprobs,
    decode,
    encode,
    find_tool,
    join_parts,
    pair_pieces_with_tokens,
    parse_schema,
    render_event,
    split_pieces,
)
from edgen.simulator.service.openai_chat import OpenAIErrors, list_logprobs
from edgen.simulator.text import count_tokens


class _Part(msgspec.Struct):
    type: str
    text: str = ""
    refusal: str = ""


class _Item(msgspec.Struct):
    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | list[_Part] | None = None
    arguments: str = ""  # in a function_call
    output: str | list[_Part] = ""  # in a function_call_output


class _Format(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"] = "text"
    schema: Any = True


class _TextConfig(msgspec.Struct):
    format: _Format | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class _Tool(msgspec.Struct):
    type: Literal["function"]
    name: str
    parameters: Any = True


class _Reasoning(msgspec.Struct):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


# Types of parts for tools and thoughts that the simulator lacks, and one that it has.
_Included = Literal[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
]


class _Body(msgspec.Struct):
    """A request for a response; field names are the vendor's."""

    input: str | list[_Item]  # the conversation
    model: str = MODEL  # any name
    instructions: str | None = None  # the system message
    temperature: float | None = None  # for sampling the answer
    max_output_tokens: int | None = None  # most tokens of the answer
    text: _TextConfig | None = None  # form of the answer
    reasoning: _Reasoning | None = None  # reasoning effort
    tools: list[_Tool] | None = None  # tools, one of which may be called
    tool_choice: Literal["none", "auto", "required"] | _Tool | None = None  # forces a tool
    stream: bool | None = None  # the answer is sent as events
    include: list[_Included] | None = None  # further parts of the answer, such as log probabilities
    top_logprobs: int | None = None  # likely tokens at each position
    metadata: dict[str, Any] | None = None  # repeated in the answer


_BODY, _REPEATED = msgspec.json.Decoder(_Body), msgspec.json.Decoder(dict[str, Any])
# Accepted and ignored.
_OF_NO_USE = (
    "max_tool_calls parallel_tool_calls prompt_cache_key prompt_cache_options prompt_cache_retention "
    "safety_identifier service_tier store stream_options top_p truncation user"
)
_KNOWN = {*_OF_NO_USE.split(), *_Body.__struct_fields__}
# Fields of a request for token counts.
_COUNTED_NAMES = "input instructions model parallel_tool_calls reasoning text tool_choice tools truncation"
_COUNTED = frozenset(_COUNTED_NAMES.split())
# Request fields that an answer repeats, with their defaults.
_AGAIN: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}


class OpenAIResponses(OpenAIErrors):
    """Responses."""

    paths: ClassVar = {r"(?:/v1)?/responses": "complete", r"/v1/responses/input_tokens": "count"}

    def read(self, body: bytes, model: str = "", *, stream: bool = False) -> WireCall:  # noqa: ARG002
        check_fields(body, _KNOWN, {"background": False})
        value = decode(_BODY, body)
        messages = _read_messages(value)
        check_call(messages, 1, value.max_output_tokens)
        form = None if value.text is None else value.text.format
        return WireCall(
            messages=messages,
            model=value.model,
            temperature=value.temperature,
            max_tokens=value.max_output_tokens,
            json_mode=form is not None and form.type != "text",
            stream=bool(value.stream),
            top_logprobs=_read_top_logprobs(value),
            repeated=_repeat_settings(body),
            **_choose_schema(value, form),
        )

    def count(self, body: bytes) -> bytes:
        check_fields(body, _COUNTED, {})
        value = decode(_BODY, body)
        said = sum(count_tokens(message.content) for message in _read_messages(value))
        said += sum(count_tokens(encode(tool).decode()) for tool in value.tools or ())
        return encode({"object": "response.input_tokens", "input_tokens": said})

    def answer(self, call: WireCall, replies: Sequence[Reply], name: str) -> bytes:
        return encode(_make_response(call, replies[0], name))

    def render_events(self, call: WireCall, replies: Sequence[Reply], name: str) -> Iterator[bytes]:
        """Yield the response without output, each item in pieces, and the whole response."""
        for number, (kind, fields) in enumerate(_list_events(_make_response(call, replies[0], name))):
            yield render_event(kind, {"sequence_number": number, **fields})


RESPONSES = OpenAIResponses()


def _read_top_logprobs(value: _Body) -> int | None:
    """Return the requested number of likely tokens at each position; None without log probabilities. Raises
    BadCall."""
    check_top_logprobs(value.top_logprobs)
    included = "message.output_text.logprobs" in (value.include or ())
    return (value.top_logprobs or 0) if included else None


def _choose_schema(value: _Body, form: _Format | None) -> dict[str, Any]:
    """Return the schema for the answer: a required tool takes precedence over a format."""
    if value.tool_choice == "required" or isinstance(value.tool_choice, _Tool):
        tools = {tool.name: tool.parameters for tool in value.tools or ()}
        return find_tool(tools, None if value.tool_choice == "required" else value.tool_choice.name)
    if form is None or form.type != "json_schema":
        return {}
    return {"schema": parse_schema(form.schema)}


def _repeat_settings(body: bytes) -> dict[str, Any]:
    said = {name: value for name, value in decode(_REPEATED, body).items() if value is not None}
    return {
        name: usual | said.get(name, {}) if isinstance(usual, dict) else said.get(name, usual)
        for name, usual in _AGAIN.items()
    }


def _read_messages(value: _Body) -> tuple[Message, ...]:
    said = [Message("system", value.instructions)] if value.instructions else []
    if isinstance(value.input, str):
        return (*said, Message("user", value.input))
    return (*said, *[message for item in value.input for message in _read_item(item)])


def _read_item(item: _Item) -> list[Message]:
    """Return an input item as a message. Thoughts of earlier answers become empty. Raises BadCall."""
    match item.type:
        case "message":
            role = "system" if item.role == "developer" else item.role
            return [Message(role, join_parts(item.content, _read_words))]
        case "function_call":
            return [Message("assistant", item.arguments)]
        case "function_call_output":
            return [Message("user", join_parts(item.output, _read_words))]
        case "reasoning":
            return []
    raise BadCall(f"An input item of type '{item.type}' cannot be simulated; leave it out.", "input")


def _read_words(part: _Part) -> str:
    if part.type not in ("input_text", "output_text", "refusal"):
        raise BadCall("Only text can be read; the input holds a part of another type.", "input")
    return part.text or part.refusal


def _make_response(call: WireCall, reply: Reply, name: str) -> dict[str, Any]:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.finish_reason)
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if reason else "completed",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": call.model,
        "output": _list_output(call, reply, name),
        "previous_response_id": None,
        "usage": _make_usage(reply),
        **(call.repeated or _AGAIN),
        "simulated": True,
    }


def _list_output(call: WireCall, reply: Reply, name: str) -> list[dict[str, Any]]:
    """Return the items of an answer: an empty thought if effort was requested, then a call or a message."""
    reasoning = (call.repeated or _AGAIN)["reasoning"]
    items: list[dict[str, Any]] = []
    if reasoning.get("effort") not in (None, "none"):
        items.append({"type": "reasoning", "id": f"rs_{name}", "summary": []})
    if reply.finish_reason == "content_filter":
        return items
    status = "incomplete" if reply.finish_reason == "length" else "completed"
    if call.tool and reply.refusal is None:
        called = {"call_id": f"call_{name}", "name": call.tool, "arguments": reply.text}
        return [*items, {"type": "function_call", "id": f"fc_{name}", "status": status, **called}]
    content = [_make_content(reply)]
    message = {"type": "message", "id": f"msg_{name}", "status": status, "role": "assistant"}
    return [*items, message | {"content": content}]


def _make_content(reply: Reply) -> dict[str, Any]:
    if reply.refusal is not None:
        return {"type": "refusal", "refusal": reply.refusal}
    return {
        "type": "output_text",
        "text": reply.text,
        "annotations": [],
        "logprobs": list_logprobs(reply),
    }


def _make_usage(reply: Reply) -> dict[str, Any]:
    usage = add_usage([reply])
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


_Event = tuple[str, dict[str, Any]]


def _list_events(whole: dict[str, Any]) -> Iterator[_Event]:
    """Yield each event's type and fields."""
    begun = whole | {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(whole["output"]):
        empty: dict[str, Any] = (
            {"content": []} if "content" in item else {"arguments": ""} if "arguments" in item else {}
        )
        state = {"status": "in_progress"} if "status" in item else {}
        yield "response.output_item.added", {"output_index": index, "item": item | empty | state}
        place = {"item_id": item["id"], "output_index": index}
        if "content" in item:
            yield from _list_message_events(item, place)
        elif "arguments" in item:
            yield from _list_argument_events(item, place)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield f"response.{whole['status']}", {"response": whole}


def _list_argument_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[_Event]:
    for piece in split_pieces(item["arguments"]):
        yield "response.function_call_arguments.delta", {**place, "delta": piece}
    said = {"name": item["name"], "arguments": item["arguments"]}
    yield "response.function_call_arguments.done", {**place, **said}


def _list_message_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[_Event]:
    (part,) = item["content"]
    place = {**place, "content_index": 0}
    field = "refusal" if part["type"] == "refusal" else "text"
    kind = f"response.{part['type']}"
    begun = {**part, field: ""} | ({"logprobs": []} if field == "text" else {})
    yield "response.content_part.added", {**place, "part": begun}
    for piece, said in pair_pieces_with_tokens(part[field], part.get("logprobs", ())):
        scored = {"logprobs": said} if field == "text" else {}
        yield f"{kind}.delta", {**place, "delta": piece, **scored}
    scored = {"logprobs": part["logprobs"]} if field == "text" else {}
    yield f"{kind}.done", {**place, field: part[field], **scored}
    yield "response.content_part.done", {**place, "part": part}
