"""The Gemini API's generateContent format (v1beta).

Fields that the simulator has no use for are tolerated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from edgen.core.values import FinishReason, Message, Reply, Usage
from edgen.simulator.faults import Fault
from edgen.simulator.text import tokens
from edgen.simulator.wire import Call, Refusal, check_call, decode, pieces


class _Part(msgspec.Struct):
    text: str = ""


class _Content(msgspec.Struct):
    parts: list[_Part] = []
    role: Literal["user", "model", "system", "function"] | None = None


class _Generation(msgspec.Struct, rename="camel"):
    seed: int | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    stop_sequences: list[str] = []
    candidate_count: int = 1
    response_mime_type: str | None = None


class _Body(msgspec.Struct, rename="camel"):
    contents: list[_Content]
    system_instruction: _Content | None = None
    generation_config: _Generation | None = None


class _Counted(msgspec.Struct, rename="camel"):
    contents: list[_Content] = []
    generate_content_request: _Body | None = None


_BODY, _COUNTED = msgspec.json.Decoder(_Body), msgspec.json.Decoder(_Counted)
_encode = msgspec.json.Encoder().encode
_FINISH: dict[FinishReason, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "other": "OTHER",
}
_STATUS = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "ALREADY_EXISTS",
    413: "INVALID_ARGUMENT",
}
# fault -> (HTTP status, Google's status, message)
_FAULTS = {
    "429": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (simulated)."),
    "500": (500, "INTERNAL", "An internal error has occurred (simulated)."),
    "503": (503, "UNAVAILABLE", "The model is overloaded (simulated)."),
    "401": (401, "UNAUTHENTICATED", "The request has invalid authentication credentials (simulated)."),
    "404": (404, "NOT_FOUND", "The model is not found (simulated)."),
    "quota": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota (simulated)."),
}


def read(body: bytes, model: str, *, stream: bool) -> Call:
    """The call that a body holds; the model and whether to stream stand in the path. Raises BadCall."""
    value = decode(_BODY, body)
    generation = value.generation_config or _Generation()
    check_call(value.contents, generation.candidate_count, generation.max_output_tokens)
    return Call(
        messages=_messages(value),
        model=model,
        seed=generation.seed,
        temperature=generation.temperature,
        max_tokens=generation.max_output_tokens,
        stop=tuple(generation.stop_sequences),
        choices=generation.candidate_count,
        json_mode=generation.response_mime_type == "application/json",
        stream=stream,
    )


def _messages(value: _Body) -> tuple[Message, ...]:
    system = [] if value.system_instruction is None else [Message("system", _text(value.system_instruction))]
    said = [Message("assistant" if one.role == "model" else "user", _text(one)) for one in value.contents]
    return tuple(system + said)


def count(body: bytes) -> bytes:
    """The answer to a body whose tokens are to be counted: contents, or a whole request. Raises BadCall."""
    value = decode(_COUNTED, body)
    asked = value.generate_content_request or _Body(value.contents)
    check_call(asked.contents, 1, None)
    return _encode({"totalTokens": sum(tokens(message.content) for message in _messages(asked))})


def _text(content: _Content) -> str:
    return "\n".join([part.text for part in content.parts])


def answer(call: Call, replies: Sequence[Reply], name: str) -> bytes:
    """A GenerateContentResponse."""
    return _encode(_response(call, replies, name))


def _response(call: Call, replies: Sequence[Reply], name: str) -> dict[str, Any]:
    value: dict[str, Any] = {"modelVersion": call.model, "responseId": name, "simulated": True}
    if _is_blocked(replies, name):
        value["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
        value["usageMetadata"] = _usage(replies, completion=0)
        return value
    value["candidates"] = [_candidate(i, reply, _words(reply)) for i, reply in enumerate(replies)]
    value["usageMetadata"] = _usage(replies)
    return value


def _is_blocked(replies: Sequence[Reply], name: str) -> bool:
    """A filter blocks either the prompt or the answer; half of the requests each."""
    return replies[0].finish_reason == "content_filter" and int(name[0], 16) % 2 == 0


def _words(reply: Reply) -> str:
    """Gemini has no refusal field: the model declines in its text."""
    return reply.refusal if reply.refusal and reply.finish_reason == "stop" else reply.text


def _candidate(index: int, reply: Reply, text: str, *, last: bool = True) -> dict[str, Any]:
    value: dict[str, Any] = {"index": index}
    if reply.finish_reason != "content_filter":
        value["content"] = {"role": "model", "parts": [{"text": text}]}
    if last:
        value["finishReason"] = _FINISH[reply.finish_reason]
    return value


def _usage(replies: Sequence[Reply], completion: int | None = None) -> dict[str, int]:
    counts = [reply.usage or Usage() for reply in replies]
    if completion is None:
        completion = sum([usage.completion_tokens for usage in counts])
    return {
        "promptTokenCount": counts[0].prompt_tokens,
        "candidatesTokenCount": completion,
        "totalTokenCount": counts[0].prompt_tokens + completion,
    }


def events(call: Call, replies: Sequence[Reply], name: str) -> Iterator[bytes]:
    """GenerateContentResponse objects, a piece of text each, the last with finish reason and usage."""
    if not _is_blocked(replies, name):
        for i, reply in enumerate(replies):
            for piece in pieces(_words(reply)):
                part = {
                    "candidates": [_candidate(i, reply, piece, last=False)],
                    "modelVersion": call.model,
                    "responseId": name,
                }
                yield b"data: " + _encode(part) + b"\r\n\r\n"
    end = _response(call, replies, name)
    for i, reply in enumerate(replies):
        if "candidates" in end:
            end["candidates"][i] = _candidate(i, reply, "")
    yield b"data: " + _encode(end) + b"\r\n\r\n"


def fault(struck: Fault, call: Call) -> Refusal:
    """A transport fault as Google words it: the wait stands in RetryInfo, not in a header."""
    status, word, message = _FAULTS[struck.name]
    details: list[dict[str, Any]] = []
    if struck.name == "404":
        message = f"models/{call.model} is not found (simulated)."
    if struck.name == "quota":
        limit = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaValue": "0"}
        kind = "type.googleapis.com/google.rpc.QuotaFailure"
        details.append({"@type": kind, "violations": [limit]})
    elif struck.seconds is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details.append({"@type": kind, "retryDelay": f"{struck.seconds:g}s"})
    return Refusal(status, _error(status, message, word, details), {})


def error(status: int, message: str) -> Refusal:
    """An error that the caller can mend."""
    return Refusal(status, _error(status, message, _STATUS.get(status, "UNKNOWN"), []), {})


def _error(status: int, message: str, word: str, details: list[dict[str, Any]]) -> bytes:
    value: dict[str, Any] = {"code": status, "message": message, "status": word}
    if details:
        value["details"] = details
    return _encode({"error": value})


def _model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": f"{name} (simulated)",
        "version": "1",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
    }


def models(names: Sequence[str]) -> bytes:
    """A page of models."""
    return _encode({"models": [_model(name) for name in names]})


def one_model(name: str) -> bytes:
    """One model."""
    return _encode(_model(name))
