"""The Gemini API's generateContent format (v1beta).

Fields come in either spelling. Unknown fields are refused in the API's words, as are media, answers other
than text, and Google's own tools and caches; `gemini_fields` has the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from edgen.core.values import FinishReason, Message, Reply, Token, Usage
from edgen.simulator.faults import Fault
from edgen.simulator.service.gemini_fields import COUNTED, REQUEST, Fields, read_fields, to_camel
from edgen.simulator.service.wire import (
    BadCall,
    Refusal,
    WireCall,
    check_call,
    check_top_logprobs,
    decode,
    describe_picture,
    find_tool,
    list_tokens,
    pair_pieces_with_tokens,
    parse_schema,
)
from edgen.simulator.text import count_tokens


class _FunctionCall(msgspec.Struct, frozen=True):
    args: Any = None


class _FunctionResponse(msgspec.Struct, frozen=True):
    response: Any = None


class _Part(msgspec.Struct, rename="camel"):
    text: str = ""
    function_call: _FunctionCall = _FunctionCall()
    function_response: _FunctionResponse = _FunctionResponse()
    inline_data: Any = None
    file_data: Any = None


class _Content(msgspec.Struct):
    parts: list[_Part] = []
    role: Literal["user", "model", "system", "function"] | None = None


class _Generation(msgspec.Struct, rename="camel"):
    seed: int | None = None  # of the answer
    temperature: float | None = None  # of the answer
    max_output_tokens: int | None = None  # of the answer
    stop_sequences: list[str] = []  # texts at which the answer ends
    candidate_count: int = 1  # number of answers
    response_mime_type: str | None = None  # text or JSON
    response_schema: Any = None  # in OpenAPI's format
    response_json_schema: Any = None  # in JSON Schema's format
    response_logprobs: bool | None = None  # log probabilities are requested
    logprobs: int | None = None  # likely tokens at each position
    response_modalities: list[str] | None = None  # text only


class _Declaration(msgspec.Struct, rename="camel"):
    name: str
    parameters: Any = None
    parameters_json_schema: Any = None


class _Tool(msgspec.Struct, rename="camel"):
    function_declarations: list[_Declaration] = []


class _Calling(msgspec.Struct, rename="camel", frozen=True):
    mode: Literal["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"] = "AUTO"
    allowed_function_names: list[str] = []


class _ToolConfig(msgspec.Struct, rename="camel", frozen=True):
    function_calling_config: _Calling = _Calling()


class _Body(msgspec.Struct, rename="camel"):
    contents: list[_Content]
    system_instruction: _Content | None = None
    generation_config: _Generation | None = None
    tools: list[_Tool] = []
    tool_config: _ToolConfig = _ToolConfig()


class _Counted(msgspec.Struct, rename="camel"):
    contents: list[_Content] = []
    generate_content_request: _Body | None = None


_ANY = msgspec.json.Decoder()
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


def read(body: bytes, model: str, *, stream: bool) -> WireCall:
    """Read a call from a body; the path gives model and streaming. Raises BadCall."""
    value = _read(body, REQUEST, _Body)
    generation = value.generation_config or _Generation()
    check_call(value.contents, generation.candidate_count, generation.max_output_tokens)
    check_top_logprobs(generation.logprobs)
    _refuse(generation)
    return WireCall(
        messages=_read_messages(value),
        model=model,
        seed=generation.seed,
        temperature=generation.temperature,
        max_tokens=generation.max_output_tokens,
        stop=tuple(generation.stop_sequences),
        choices=generation.candidate_count,
        json_mode=generation.response_mime_type == "application/json",
        stream=stream,
        top_logprobs=(generation.logprobs or 0) if generation.response_logprobs else None,
        **_choose_schema(value, generation),
    )


T = TypeVar("T", "_Body", "_Counted")


def _read(body: bytes, fields: Fields, kind: type[T]) -> T:
    """Read a body of known fields. Raises BadCall."""
    plain = read_fields(decode(_ANY, body), fields)
    try:
        return msgspec.convert(plain, kind, strict=False)  # numbers may be texts, as in all of Google's JSON
    except msgspec.ValidationError as problem:
        raise BadCall(f"The request body cannot be read: {problem}.") from None


def _refuse(generation: _Generation) -> None:
    """Raise BadCall for unsupported values that would shape the answer."""
    if other := {kind.upper() for kind in generation.response_modalities or ()} - {"TEXT"}:
        raise BadCall(f"Answers are text alone; the modality {min(other)} cannot be simulated.")
    if generation.logprobs is not None and not generation.response_logprobs:
        raise BadCall("'logprobs' needs 'responseLogprobs': true.")
    if generation.response_mime_type not in (None, "", "text/plain", "application/json"):
        raise BadCall(f"The MIME type '{generation.response_mime_type}' cannot be simulated.")


def _choose_schema(value: _Body, generation: _Generation) -> dict[str, Any]:
    """Return the schema for the answer: a required function takes precedence over a format."""
    calling = value.tool_config.function_calling_config
    if calling.mode == "ANY":
        tools = {
            one.name: _pick_schema(one.parameters, one.parameters_json_schema)
            for tool in value.tools
            for one in tool.function_declarations
        }
        return find_tool(tools, next(iter(calling.allowed_function_names), None))
    if generation.response_schema is None and generation.response_json_schema is None:
        return {}
    return {"schema": parse_schema(_pick_schema(generation.response_schema, generation.response_json_schema))}


def _pick_schema(openapi: Any, json_schema: Any) -> Any:
    """Return the given one of the two schemas as a JSON Schema."""
    if json_schema is not None:
        return json_schema
    return True if openapi is None else _from_openapi(openapi)


def convert_to_camel(value: Any) -> Any:
    """Convert an object's keys to camel case: both spellings are accepted, and Google's client sends both."""
    if not isinstance(value, dict):
        return value
    return {to_camel(key): inner for key, inner in value.items()}


def _from_openapi(schema: Any) -> Any:
    """Convert Google's Schema object to a JSON Schema: types in capitals, `nullable`, numbers as texts, keys
    in either case."""
    if isinstance(schema, list):
        return [_from_openapi(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = convert_to_camel(schema)
    plain = {key: value for key, value in schema.items() if key not in ("nullable", "properties")}
    plain = {
        key: _from_openapi(value) if key in ("items", "anyOf") else value for key, value in plain.items()
    }
    for key in ("minItems", "maxItems", "minLength", "maxLength"):
        if isinstance(plain.get(key), str) and plain[key].isdecimal():
            plain[key] = int(plain[key])
    if isinstance(schema.get("properties"), dict):
        plain["properties"] = {name: _from_openapi(part) for name, part in schema["properties"].items()}
    if isinstance(kind := schema.get("type"), str):
        plain["type"] = [kind.lower(), "null"] if schema.get("nullable") else kind.lower()
    return plain


def _read_messages(value: _Body) -> tuple[Message, ...]:
    system = [] if value.system_instruction is None else [Message("system", _join(value.system_instruction))]
    said = [Message("assistant" if one.role == "model" else "user", _join(one)) for one in value.contents]
    return tuple(system + said)


def count(body: bytes) -> bytes:
    """Answer a body whose tokens are to count: contents, or a whole request. Raises BadCall."""
    value = _read(body, COUNTED, _Counted)
    asked = value.generate_content_request or _Body(value.contents)
    check_call(asked.contents, 1, None)
    said = [message.content for message in _read_messages(asked)] + [
        _encode(tool).decode() for tool in asked.tools
    ]
    return _encode({"totalTokens": sum(map(count_tokens, said))})


def _join(content: _Content) -> str:
    if any(part.file_data is not None for part in content.parts):
        raise BadCall("Only texts and pictures can be read; the contents hold a part of another type.")
    return "\n".join([part.text or _describe_part(part) for part in content.parts])


def _describe_part(part: _Part) -> str:
    """Return the words for a picture, or the arguments or result of a function call; else nothing."""
    if part.inline_data is not None:
        held = convert_to_camel(part.inline_data) if isinstance(part.inline_data, dict) else {}
        return describe_picture(str(held.get("mimeType")), str(held.get("data")))
    said = part.function_call.args if part.function_call.args is not None else part.function_response.response
    return "" if said is None else _encode(said).decode()


def answer(call: WireCall, replies: Sequence[Reply], name: str) -> bytes:
    """Return a GenerateContentResponse."""
    return _encode(_make_response(call, replies, name))


def _make_response(call: WireCall, replies: Sequence[Reply], name: str) -> dict[str, Any]:
    value: dict[str, Any] = {"modelVersion": call.model, "responseId": name, "simulated": True}
    if _is_blocked(replies, name):
        value["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
        value["usageMetadata"] = _make_usage(replies, completion=0)
        return value
    value["candidates"] = [
        _make_item(i, reply, _list_parts(call, reply)) | _make_logprobs(call, list_tokens(reply))
        for i, reply in enumerate(replies)
    ]
    value["usageMetadata"] = _make_usage(replies)
    return value


def _is_blocked(replies: Sequence[Reply], name: str) -> bool:
    """Return whether a filter blocks the prompt instead of the answer; half of the requests each."""
    return replies[0].finish_reason == "content_filter" and int(name[0], 16) % 2 == 0


def _choose_words(reply: Reply) -> str:
    """Return the text: Gemini has no refusal field, so the model declines in it."""
    return reply.refusal if reply.refusal and reply.finish_reason == "stop" else reply.text


def _list_parts(call: WireCall, reply: Reply) -> list[dict[str, Any]]:
    if call.tool and reply.finish_reason == "stop" and reply.refusal is None:
        return [{"functionCall": {"name": call.tool, "args": msgspec.Raw(reply.text.encode())}}]
    return [{"text": _choose_words(reply)}]


def _make_item(index: int, reply: Reply, parts: list[dict[str, Any]], *, last: bool = True) -> dict[str, Any]:
    value: dict[str, Any] = {"index": index}
    if reply.finish_reason != "content_filter":
        value["content"] = {"role": "model", "parts": parts}
    if last:
        value["finishReason"] = _FINISH[reply.finish_reason]
    return value


def _make_logprobs(call: WireCall, said: Sequence[Token]) -> dict[str, Any]:
    """Return a candidate's log probabilities of these tokens; empty if not requested, or for a call."""
    if not said or call.tool:
        return {}
    result: dict[str, Any] = {"chosenCandidates": [_make_token(token.text, token.logprob) for token in said]}
    if call.top_logprobs:
        result["topCandidates"] = [
            {"candidates": [_make_token(*likely) for likely in token.top]} for token in said
        ]
    mean = sum(token.logprob for token in said) / len(said)
    return {"avgLogprobs": mean, "logprobsResult": result}


def _make_token(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logProbability": logprob}


def _make_usage(replies: Sequence[Reply], completion: int | None = None) -> dict[str, int]:
    counts = [reply.usage or Usage(0, 0) for reply in replies]
    if completion is None:
        completion = sum([usage.completion_tokens for usage in counts])
    return {
        "promptTokenCount": counts[0].prompt_tokens,
        "candidatesTokenCount": completion,
        "totalTokenCount": counts[0].prompt_tokens + completion,
    }


def render_events(call: WireCall, replies: Sequence[Reply], name: str) -> Iterator[bytes]:
    """Yield GenerateContentResponse objects, one per piece of text, the last with finish reason and usage."""
    if not _is_blocked(replies, name):
        for i, reply in enumerate(replies):
            for piece, told in _list_pieces(call, reply):
                part = {
                    "candidates": [_make_item(i, reply, [piece], last=False) | _make_logprobs(call, told)],
                    "modelVersion": call.model,
                    "responseId": name,
                }
                yield b"data: " + _encode(part) + b"\r\n\r\n"
    end = _make_response(call, replies, name)
    for i, reply in enumerate(replies):
        if "candidates" in end:
            end["candidates"][i] = _make_item(i, reply, [{"text": ""}])
    yield b"data: " + _encode(end) + b"\r\n\r\n"


def _list_pieces(call: WireCall, reply: Reply) -> Iterator[tuple[dict[str, Any], Sequence[Token]]]:
    """Yield the parts of a stream with their tokens: a call comes whole."""
    (whole,) = _list_parts(call, reply)
    if "text" not in whole:
        yield whole, ()
        return
    for text, told in pair_pieces_with_tokens(whole["text"], list_tokens(reply)):
        yield {"text": text}, told


def make_fault(struck: Fault, call: WireCall) -> Refusal:
    """Return a transport fault in Google's words: the wait is in RetryInfo, not in a header."""
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
    return Refusal(status, _render_error(status, message, word, details), {})


def make_error(status: int, message: str, field: str | None = None) -> Refusal:  # noqa: ARG001
    """Return an error that the caller can fix."""
    return Refusal(status, _render_error(status, message, _STATUS.get(status, "UNKNOWN"), []), {})


def _render_error(status: int, message: str, word: str, details: list[dict[str, Any]]) -> bytes:
    value: dict[str, Any] = {"code": status, "message": message, "status": word}
    if details:
        value["details"] = details
    return _encode({"error": value})


def _make_model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": f"{name} (simulated)",
        "version": "1",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
    }


def render_models(names: Sequence[str]) -> bytes:
    """Return a page of models."""
    return _encode({"models": [_make_model(name) for name in names]})


def encode_model(name: str) -> bytes:
    """Return one model."""
    return _encode(_make_model(name))
