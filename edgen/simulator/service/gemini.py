"""The Gemini API's generateContent dialect (v1beta).

Fields come in either spelling. Unknown fields are refused in the API's words, and so are media, answers other
than text, and Google's own tools and caches. `gemini_request` has the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from edgen.core.values import FinishReason, Message, Reply, Token
from edgen.simulator.service.dialect import (
    VERTEX,
    BadCall,
    Dialect,
    Refusal,
    Trouble,
    WireCall,
    add_usage,
    check_call,
    check_top_logprobs,
    choose_words,
    describe_picture,
    encode,
    find_tool,
    is_whole_call,
    pair_pieces_with_tokens,
    parse_schema,
)
from edgen.simulator.service.gemini_request import (
    Content,
    CountedRequest,
    GeminiPart,
    GeminiRequest,
    Generation,
    convert_to_camel,
    read_request,
)
from edgen.simulator.text import count_tokens

_MODEL = f"(?:/(?:v1|v1beta|v1alpha))?{VERTEX}/models/([^:]+)"
_FINISH: dict[FinishReason, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "other": "OTHER",
}


class Gemini(Dialect):
    """generateContent, streamed or not."""

    paths: ClassVar = {
        f"{_MODEL}:generateContent": "complete",
        f"{_MODEL}:streamGenerateContent": "stream",
        f"{_MODEL}:countTokens": "count",
        "/(?:v1beta|v1alpha)/models": "models",
        f"/(?:v1beta|v1alpha){VERTEX}/models/([^:]+)": "model",
    }
    headers = ("x-goog-api-key", "x-goog-api-client")
    other_kind = "UNKNOWN"
    kinds: ClassVar = {
        400: "INVALID_ARGUMENT",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        405: "UNIMPLEMENTED",
        409: "ALREADY_EXISTS",
        413: "INVALID_ARGUMENT",
    }
    faults: ClassVar = {
        "429": Trouble(429, "Resource has been exhausted (simulated).", "RESOURCE_EXHAUSTED"),
        "500": Trouble(500, "An internal error has occurred (simulated).", "INTERNAL"),
        "503": Trouble(503, "The model is overloaded (simulated).", "UNAVAILABLE"),
        "401": Trouble(
            401, "The request has invalid authentication credentials (simulated).", "UNAUTHENTICATED"
        ),
        "404": Trouble(404, "models/{model} is not found (simulated).", "NOT_FOUND"),
        "quota": Trouble(
            429,
            "You exceeded your current quota (simulated).",
            "RESOURCE_EXHAUSTED",
            "GenerateRequestsPerDayPerProjectPerModel",
        ),
    }

    def read(self, body: bytes, model: str = "", *, stream: bool = False) -> WireCall:
        value = read_request(body, GeminiRequest)
        generation = value.generation_config or Generation()
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

    def count(self, body: bytes) -> bytes:
        """Answer a request to count tokens of contents, or of a whole request. Raises BadCall."""
        value = read_request(body, CountedRequest)
        asked = value.generate_content_request or GeminiRequest(value.contents)
        check_call(asked.contents, 1, None)
        said = [message.content for message in _read_messages(asked)]
        said += [encode(tool).decode() for tool in asked.tools]
        return encode({"totalTokens": sum(map(count_tokens, said))})

    def answer(self, call: WireCall, replies: Sequence[Reply], name: str) -> bytes:
        return encode(_make_response(call, replies, name))

    def render_events(self, call: WireCall, replies: Sequence[Reply], name: str) -> Iterator[bytes]:
        """Yield GenerateContentResponse objects, one per piece of text, the last with finish reason and
        usage."""
        if not _is_blocked(replies, name):
            for i, reply in enumerate(replies):
                for piece, told in _list_pieces(call, reply):
                    item = _make_item(i, reply, [piece], last=False) | _make_logprobs(call, told)
                    part = {"candidates": [item], "modelVersion": call.model, "responseId": name}
                    yield b"data: " + encode(part) + b"\r\n\r\n"
        end = _make_response(call, replies, name)
        for i, reply in enumerate(replies):
            if "candidates" in end:
                end["candidates"][i] = _make_item(i, reply, [{"text": ""}])
        yield b"data: " + encode(end) + b"\r\n\r\n"

    def render_error(self, trouble: Trouble, seconds: float | None = None) -> Refusal:
        """Return an error in Google's format: the wait is in RetryInfo, not in a header."""
        value: dict[str, Any] = {"code": trouble.status, "message": trouble.message, "status": trouble.kind}
        if trouble.code is not None:
            limit = {"quotaId": trouble.code, "quotaValue": "0"}
            value["details"] = [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [limit]}
            ]
        elif seconds is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            value["details"] = [{"@type": kind, "retryDelay": f"{seconds:g}s"}]
        return Refusal(trouble.status, encode({"error": value}), {})

    def describe_model(self, name: str) -> dict[str, Any]:
        return {
            "name": f"models/{name}",
            "displayName": f"{name} (simulated)",
            "version": "1",
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
        }

    def list_models(self, models: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"models": models}


GEMINI = Gemini()


def _refuse(generation: Generation) -> None:
    """Raise BadCall for unsupported values that would shape the answer."""
    if other := {kind.upper() for kind in generation.response_modalities or ()} - {"TEXT"}:
        raise BadCall(f"Answers are text alone; the modality {min(other)} cannot be simulated.")
    if generation.logprobs is not None and not generation.response_logprobs:
        raise BadCall("'logprobs' needs 'responseLogprobs': true.")
    if generation.response_mime_type not in (None, "", "text/plain", "application/json"):
        raise BadCall(f"The MIME type '{generation.response_mime_type}' cannot be simulated.")


def _choose_schema(value: GeminiRequest, generation: Generation) -> dict[str, Any]:
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
    """Return the schema that is given, of the two, as a JSON Schema."""
    if json_schema is not None:
        return json_schema
    return True if openapi is None else _from_openapi(openapi)


def _from_openapi(schema: Any) -> Any:
    """Convert Google's Schema object to a JSON Schema: types in capitals, `nullable`, numbers as texts, keys
    in either spelling."""
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


def _read_messages(value: GeminiRequest) -> tuple[Message, ...]:
    system = [] if value.system_instruction is None else [Message("system", _join(value.system_instruction))]
    said = [Message("assistant" if one.role == "model" else "user", _join(one)) for one in value.contents]
    return tuple(system + said)


def _join(content: Content) -> str:
    if any(part.file_data is not None for part in content.parts):
        raise BadCall("Only texts and pictures can be read; the contents hold a part of another type.")
    return "\n".join([part.text or _describe_part(part) for part in content.parts])


def _describe_part(part: GeminiPart) -> str:
    """Return placeholder words for a picture, or the arguments or result of a function call; empty for other
    parts."""
    if part.inline_data is not None:
        held = convert_to_camel(part.inline_data) if isinstance(part.inline_data, dict) else {}
        return describe_picture(str(held.get("mimeType")), str(held.get("data")))
    said = part.function_call.args if part.function_call.args is not None else part.function_response.response
    return "" if said is None else encode(said).decode()


def _make_response(call: WireCall, replies: Sequence[Reply], name: str) -> dict[str, Any]:
    value: dict[str, Any] = {"modelVersion": call.model, "responseId": name, "simulated": True}
    if _is_blocked(replies, name):
        value["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
        value["usageMetadata"] = _make_usage(replies, completion=0)
        return value
    value["candidates"] = [
        _make_item(i, reply, _list_parts(call, reply)) | _make_logprobs(call, reply.tokens or ())
        for i, reply in enumerate(replies)
    ]
    value["usageMetadata"] = _make_usage(replies)
    return value


def _is_blocked(replies: Sequence[Reply], name: str) -> bool:
    """Return whether a filter blocks the prompt instead of the answer, for half of the requests."""
    return replies[0].finish_reason == "content_filter" and int(name[0], 16) % 2 == 0


def _list_parts(call: WireCall, reply: Reply) -> list[dict[str, Any]]:
    if is_whole_call(call, reply):
        return [{"functionCall": {"name": call.tool, "args": msgspec.Raw(reply.text.encode())}}]
    return [{"text": choose_words(reply)}]


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
    usage = add_usage(replies)
    completion = usage.completion_tokens if completion is None else completion
    return {
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": completion,
        "totalTokenCount": usage.prompt_tokens + completion,
    }


def _list_pieces(call: WireCall, reply: Reply) -> Iterator[tuple[dict[str, Any], Sequence[Token]]]:
    """Yield the parts of a stream with their tokens. A call is one part."""
    (whole,) = _list_parts(call, reply)
    if "text" not in whole:
        yield whole, ()
        return
    for text, told in pair_pieces_with_tokens(whole["text"], reply.tokens or ()):
        yield {"text": text}, told
