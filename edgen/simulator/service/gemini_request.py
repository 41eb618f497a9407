"""The fields of Gemini's requests, in either spelling: read, ignored, or refused.

Unknown fields are refused in the API's own words. The names are those of google-genai 3.4 (for the Gemini
API) and of google-generativeai's protocol buffers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, get_args

import msgspec

from edgen.simulator.service.dialect import BadCall, decode

_UNDERSCORE = re.compile("_([a-z])")
_CAPITAL = re.compile("(?<!^)([A-Z])")
_ANY = msgspec.json.Decoder()
_REFUSED = object()


class GeminiFields(msgspec.Struct, rename="camel", frozen=True):
    """Known fields of one message. Lists of names state how the others are handled."""

    IGNORED: ClassVar[str] = ""
    """Accepted without effect."""
    REFUSED: ClassVar[str] = ""
    """Not simulated."""
    CHECKED: ClassVar[Mapping[str, type[GeminiFields]]] = {}
    """Accepted without effect, if its own fields are known."""


class FunctionCall(GeminiFields, frozen=True):
    IGNORED = "id name"
    REFUSED = "partialArgs willContinue"

    args: Any = None


class FunctionResponse(GeminiFields, frozen=True):
    IGNORED = "id name"
    REFUSED = "parts scheduling willContinue"

    response: Any = None


class GeminiPart(GeminiFields, frozen=True):
    IGNORED = "thought thoughtSignature partMetadata"
    REFUSED = (
        "audioMetadata audioTranscription codeExecutionResult documentMetadata executableCode "
        "mediaProcessing mediaResolution speechMetadata spreadsheetMetadata toolCall toolResponse videoMetadata"
    )

    text: str = ""
    function_call: FunctionCall = FunctionCall()
    function_response: FunctionResponse = FunctionResponse()
    inline_data: Any = None
    file_data: Any = None


class Content(GeminiFields, frozen=True):
    parts: list[GeminiPart] = []
    role: Literal["user", "model", "system", "function"] | None = None


class _Thinking(GeminiFields, frozen=True):
    IGNORED = "includeThoughts thinkingBudget thinkingLevel"


class _Safety(GeminiFields, frozen=True):
    IGNORED = "category threshold"
    REFUSED = "method"


class Generation(GeminiFields, frozen=True):
    IGNORED = "enableEnhancedCivicAnswers frequencyPenalty mediaResolution presencePenalty topK topP"
    REFUSED = (
        "audioTimestamp audioTranscriptionConfig enableAffectiveDialog imageConfig modelSelectionConfig "
        "responseFormat routingConfig speechConfig translationConfig"
    )
    CHECKED: ClassVar = {"thinkingConfig": _Thinking}  # see GeminiFields

    seed: int | None = None  # for sampling the answer
    temperature: float | None = None  # for sampling the answer
    max_output_tokens: int | None = None  # most tokens of the answer
    stop_sequences: list[str] = []  # texts at which the answer ends
    candidate_count: int = 1  # number of answers
    response_mime_type: str | None = None  # text or JSON
    response_schema: Any = None  # schema of the answer, in OpenAPI's format
    response_json_schema: Any = None  # schema of the answer, in JSON Schema's format
    response_logprobs: bool | None = None  # log probabilities are requested
    logprobs: int | None = None  # likely tokens at each position
    response_modalities: list[str] | None = None  # text only


class Declaration(GeminiFields, frozen=True):
    IGNORED = "description response responseJsonSchema"
    REFUSED = "behavior"

    name: str
    parameters: Any = None
    parameters_json_schema: Any = None


class Tool(GeminiFields, frozen=True):
    REFUSED = (
        "codeExecution computerUse enterpriseWebSearch exaAiSearch fileSearch googleMaps googleSearch "
        "googleSearchRetrieval mcpServers parallelAiSearch retrieval urlContext"
    )

    function_declarations: list[Declaration] = []


class Calling(GeminiFields, frozen=True):
    REFUSED = "streamFunctionCallArguments"

    mode: Literal["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"] = "AUTO"
    allowed_function_names: list[str] = []


class ToolConfig(GeminiFields, frozen=True):
    IGNORED = "includeServerSideToolInvocations retrievalConfig"

    function_calling_config: Calling = Calling()


class GeminiRequest(GeminiFields, frozen=True):
    """A request for content; field names are the vendor's."""

    IGNORED = "labels model serviceTier store"
    REFUSED = "cachedContent continuationToken"
    CHECKED: ClassVar = {"safetySettings": _Safety}  # see GeminiFields

    contents: list[Content]  # the conversation
    system_instruction: Content | None = None  # the system message
    generation_config: Generation | None = None  # settings of the answer
    tools: list[Tool] = []  # tools, one of which may be called
    tool_config: ToolConfig = ToolConfig()  # forces a tool


class CountedRequest(GeminiFields, frozen=True):
    """A request to count tokens."""

    IGNORED = "model"

    contents: list[Content] = []  # counted if there is no whole request
    generate_content_request: GeminiRequest | None = None  # counted instead of the contents


T = TypeVar("T", bound=GeminiFields)


def read_request(body: bytes, kind: type[T]) -> T:
    """Read a body of known fields. Raises BadCall."""
    plain = _read_fields(decode(_ANY, body), kind)
    try:
        return msgspec.convert(plain, kind, strict=False)  # numbers may be texts, as in all of Google's JSON
    except msgspec.ValidationError as problem:
        raise BadCall(f"The request body cannot be read: {problem}.") from None


@cache
def _list_fields(kind: type[GeminiFields]) -> Mapping[str, Any]:
    """Return the handling of each known field: the type of the message within it, None to ignore it, or
    REFUSED."""
    return {
        **dict.fromkeys(kind.REFUSED.split(), _REFUSED),
        **dict.fromkeys(kind.IGNORED.split()),
        **kind.CHECKED,
        **{one.encode_name: next(_find_messages(one.type), None) for one in msgspec.structs.fields(kind)},
    }


def _find_messages(hint: Any) -> Iterator[type[GeminiFields]]:
    """Yield the messages that a field's type names."""
    if isinstance(hint, type) and issubclass(hint, GeminiFields):
        yield hint
    for inner in get_args(hint):
        yield from _find_messages(inner)


def _read_fields(value: Any, kind: type[GeminiFields], place: str = "") -> Any:
    """Return a message, or a list of them, with camel-case keys and without nulls. `place` is its path.
    Raises BadCall for an unknown or unsupported field."""
    if isinstance(value, list):
        return [_read_fields(one, kind, f"{place}[{i}]") for i, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    fields, plain = _list_fields(kind), {}
    for name, inner in value.items():
        if (key := to_camel(name)) not in fields:
            raise _make_unknown_field_error(name, place)
        below = fields[key]
        if inner is None:
            continue
        if below is _REFUSED:
            raise BadCall(f"The field '{key}' cannot be simulated; leave it out.")
        within = f"{place}.{_to_snake(key)}" if place else _to_snake(key)
        plain[key] = inner if below is None else _read_fields(inner, below, within)
    return plain


def convert_to_camel(value: Any) -> Any:
    """Convert an object's keys to camel case, since the API accepts both spellings and Google's client sends
    both."""
    return {to_camel(key): inner for key, inner in value.items()} if isinstance(value, dict) else value


def to_camel(name: str) -> str:
    """Convert a field's name to camel case, since the API accepts both spellings and Google's clients send
    both."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), name)


def _to_snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: f"_{found[1].lower()}", name)


def _make_unknown_field_error(name: str, place: str) -> BadCall:
    """Return the error in the service's own words."""
    where = f" at '{place}'" if place else ""
    return BadCall(f'Invalid JSON payload received. Unknown name "{name[:100]}"{where}: Cannot find field.')
