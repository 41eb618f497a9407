"""The fields of Gemini's requests, in either spelling: read, ignored, or refused.

Unknown fields are refused in the API's own words. The names are those of google-genai 3.4 (for the Gemini
API) and of google-generativeai's protocol buffers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from edgen.simulator.service.wire import BadCall

_UNDERSCORE = re.compile("_([a-z])")
_CAPITAL = re.compile("(?<!^)([A-Z])")


class Fields(NamedTuple):
    """The fields of one message: `read`, with the fields of those that are messages themselves (None: any
    value); `taken`, which are ignored; `refused`."""

    read: Mapping[str, Fields | None]
    taken: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


def _list_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _list_leaves(text: str) -> dict[str, Fields | None]:
    return dict.fromkeys(text.split())


_CALL = Fields(_list_leaves("args"), _list_names("id name"), _list_names("partialArgs willContinue"))
_RESPONSE = Fields(
    _list_leaves("response"), _list_names("id name"), _list_names("parts scheduling willContinue")
)
_PART = Fields(
    {"functionCall": _CALL, "functionResponse": _RESPONSE, **_list_leaves("text inlineData fileData")},
    _list_names("thought thoughtSignature partMetadata"),
    _list_names(
        "audioMetadata audioTranscription codeExecutionResult documentMetadata executableCode "
        "mediaProcessing "
        "mediaResolution speechMetadata spreadsheetMetadata toolCall toolResponse videoMetadata"
    ),
)
_CONTENT = Fields({"parts": _PART, **_list_leaves("role")})
_GENERATION = Fields(
    _list_leaves(
        "candidateCount logprobs maxOutputTokens responseJsonSchema responseLogprobs responseMimeType "
        "responseModalities responseSchema seed stopSequences temperature"
    )
    | {"thinkingConfig": Fields({}, _list_names("includeThoughts thinkingBudget thinkingLevel"))},
    _list_names("enableEnhancedCivicAnswers frequencyPenalty mediaResolution presencePenalty topK topP"),
    _list_names(
        "audioTimestamp audioTranscriptionConfig enableAffectiveDialog imageConfig modelSelectionConfig "
        "responseFormat routingConfig speechConfig translationConfig"
    ),
)
_DECLARATION = Fields(
    _list_leaves("name parameters parametersJsonSchema"),
    _list_names("description response responseJsonSchema"),
    _list_names("behavior"),
)
_TOOL = Fields(
    {"functionDeclarations": _DECLARATION},
    refused=_list_names(
        "codeExecution computerUse enterpriseWebSearch exaAiSearch fileSearch googleMaps googleSearch "
        "googleSearchRetrieval mcpServers parallelAiSearch retrieval urlContext"
    ),
)
_CALLING = Fields(
    _list_leaves("mode allowedFunctionNames"), refused=_list_names("streamFunctionCallArguments")
)
_TOOL_CONFIG = Fields(
    {"functionCallingConfig": _CALLING}, _list_names("includeServerSideToolInvocations retrievalConfig")
)
REQUEST = Fields(
    {
        "contents": _CONTENT,
        "systemInstruction": _CONTENT,
        "generationConfig": _GENERATION,
        "tools": _TOOL,
        "toolConfig": _TOOL_CONFIG,
        "safetySettings": Fields({}, _list_names("category threshold"), _list_names("method")),
    },
    _list_names("labels model serviceTier store"),
    _list_names("cachedContent continuationToken"),
)
COUNTED = Fields({"contents": _CONTENT, "generateContentRequest": REQUEST}, _list_names("model"))


def read_fields(value: Any, fields: Fields, place: str = "") -> Any:
    """Return a message, or a list of them, with camel-case keys and without nulls. `place` is its path.
    Raises BadCall for an unknown or unsupported field."""
    if isinstance(value, list):
        return [read_fields(one, fields, f"{place}[{i}]") for i, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    plain = {}
    for name, inner in value.items():
        if (key := to_camel(name)) in fields.refused and inner is not None:
            raise BadCall(f"The field '{key}' cannot be simulated; leave it out.")
        if key not in fields.read and key not in fields.taken and key not in fields.refused:
            raise _make_unknown_field_error(name, place)
        below = fields.read.get(key)
        if inner is not None:
            within = f"{place}.{_to_snake(key)}" if place else _to_snake(key)
            plain[key] = inner if below is None else read_fields(inner, below, within)
    return plain


def to_camel(name: str) -> str:
    """Convert a field's name to camel case: the API takes both spellings, and Google's clients send both."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), name)


def _to_snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: f"_{found[1].lower()}", name)


def _make_unknown_field_error(name: str, place: str) -> BadCall:
    """Return the error in the service's own words."""
    where = f" at '{place}'" if place else ""
    return BadCall(f'Invalid JSON payload received. Unknown name "{name[:100]}"{where}: Cannot find field.')
