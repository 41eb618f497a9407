"""Every field of the official SDKs is obeyed, ignored by design, or refused by name; no other is taken."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from edgen.simulator.service.anthropic import MESSAGES
from edgen.simulator.service.dialect import BadCall
from edgen.simulator.service.gemini import GEMINI
from edgen.simulator.service.openai_chat import CHAT
from edgen.simulator.service.openai_responses import RESPONSES
from tests.late import Late

types = Late("google.genai.types")

SAID: Any = [{"role": "user", "content": "hello"}]
CONTENTS: Any = [{"parts": [{"text": "hello"}]}]


def gemini(**body: Any) -> Any:
    return GEMINI.read(json.dumps({"contents": CONTENTS} | body).encode(), "m", stream=False)


# By endpoint: the function that reads a body, a valid body, the SDK's request type, and its refused fields.
ENDPOINTS: dict[str, tuple[Callable[[bytes], Any], dict[str, Any], str, set[str]]] = {
    "chat completions": (
        CHAT.read,
        {"model": "m", "messages": SAID},
        "openai.types.chat.completion_create_params:CompletionCreateParamsBase",
        {"audio", "moderation", "prediction", "web_search_options", "functions", "function_call", "logit_bias", "modalities"},
    ),
    "responses": (
        RESPONSES.read,
        {"model": "m", "input": "hello"},
        "openai.types.responses.response_create_params:ResponseCreateParamsBase",
        {
            "access_programs", "background", "context_management", "conversation", "image", "moderation", "previous_response_id",
            "prompt",
        },
    ),
    "input tokens": (
        RESPONSES.count,
        {"model": "m", "input": "hello"},
        "openai.types.responses.input_token_count_params:InputTokenCountParams",
        {"conversation", "personality", "previous_response_id"},
    ),
    "messages": (
        MESSAGES.read,
        {"model": "m", "max_tokens": 9, "messages": SAID},
        "anthropic.types.message_create_params:MessageCreateParamsBase",
        {"container", "diagnostics", "speed", "user_profile_id", "workspace_id"},
    ),
    "count tokens": (
        MESSAGES.count,
        {"model": "m", "messages": SAID},
        "anthropic.types.message_count_tokens_params:MessageCountTokensParams",
        {"speed", "user_profile_id", "workspace_id"},
    ),
}  # fmt: skip


def refused(read: Callable[[bytes], Any], body: dict[str, Any], field: str) -> str | None:
    """Return the error for a body with a field that no format could use; None if it is accepted."""
    for value in ({"no": "such value"}, "no such value"):
        try:
            read(json.dumps(body | {field: value}).encode())
        except BadCall as problem:
            return str(problem)
    return None


@pytest.mark.parametrize("name", ENDPOINTS)
def test_fields_of_an_sdk_are_known_or_refused_by_name(name: str) -> None:
    read, body, place, not_obeyed = ENDPOINTS[name]
    module, _, kind_name = place.partition(":")
    kind = getattr(importlib.import_module(module), kind_name)
    read(json.dumps(body).encode())
    assert not_obeyed <= set(kind.__annotations__)
    for field in not_obeyed:
        assert field in str(refused(read, body, field))
    unknown = {
        field
        for field in kind.__annotations__
        if any(f"{said}{field}" in str(refused(read, body, field)) for said in ("field '", "unknown field `"))
    }
    assert unknown == not_obeyed, "a field that is new in the SDK is refused until somebody looks at it"


@pytest.mark.parametrize("name", ENDPOINTS)
def test_what_nobody_has_is_refused(name: str) -> None:
    read, body, _, _ = ENDPOINTS[name]
    assert "frobnicate" in str(refused(read, body, "frobnicate"))


# --- Gemini --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"frobnicate": 1}, 'Unknown name "frobnicate": Cannot find field.'),
        ({"generation_config": {"topQ": 1}}, "Unknown name \"topQ\" at 'generation_config': Cannot find field."),
        ({"contents": [{"parts": [{"text": "a", "txt": "b"}]}]}, "Unknown name \"txt\" at 'contents[0].parts[0]'"),
        ({"toolConfig": {"functionCallingConfig": {"moda": "ANY"}}}, "at 'tool_config.function_calling_config'"),
        ({"tools": [{"functionDeclarations": [{"name": "a", "strict": True}]}]}, "at 'tools[0].function_declarations[0]'"),
        ({"safetySettings": [{"category": "A", "level": 1}]}, "at 'safety_settings[0]'"),
        ({"messages": []}, 'Unknown name "messages"'),
        ({"cached_content": "cachedContents/1"}, "'cachedContent' cannot be simulated"),
        ({"generationConfig": {"speechConfig": {}}}, "'speechConfig' cannot be simulated"),
        ({"generationConfig": {"responseMimeType": "text/x.enum"}}, "'text/x.enum' cannot be simulated"),
        ({"tools": [{"url_context": {}}]}, "'urlContext' cannot be simulated"),
        ({"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, "Invalid enum value 'SOME'"),
        ({"generationConfig": {"maxOutputTokens": "many"}}, "cannot be read"),
        ({"generationConfig": []}, "cannot be read"),
        ({"contents": 1}, "cannot be read"),
        ({"contents": [{"parts": [{"videoMetadata": {}}]}]}, "'videoMetadata' cannot be simulated"),
    ],
)  # fmt: skip
def test_gemini_is_told_what_is_not_known_or_not_obeyed(body: dict[str, Any], said: str) -> None:
    with pytest.raises(BadCall) as caught:
        gemini(**body)
    assert said in str(caught.value)


def test_gemini_takes_either_spelling_and_numbers_as_texts() -> None:
    camel = {
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "generationConfig": {"maxOutputTokens": 20, "stopSequences": ["x"], "seed": 3, "thinkingConfig": {"thinkingBudget": 0}},
        "safetySettings": [{"category": "A", "threshold": "B"}],
    }  # fmt: skip
    snake = {
        "system_instruction": {"parts": [{"text": "be kind"}]},
        "generation_config": {"max_output_tokens": "20", "stop_sequences": ["x"], "seed": "3", "top_k": 4, "topP": None},
        "cachedContent": None,
    }  # fmt: skip
    call = gemini(**camel)
    assert gemini(**snake) == call
    assert (call.max_tokens, call.seed, call.messages[0].content) == (20, 3, "be kind")


def test_names_within_schemas_and_arguments_are_the_callers() -> None:
    schema = {"type": "OBJECT", "properties": {"snake_case": {"type": "STRING"}}, "required": ["snake_case"]}
    call = gemini(generationConfig={"responseSchema": schema, "responseMimeType": "application/json"})
    assert b"snake_case" in call.schema
    said = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"snake_case": 1}}}]}
    assert "snake_case" in gemini(contents=[*CONTENTS, said]).messages[1].content


# Of the SDK's config: fields of the client alone, and those of another service of Google's.
CLIENTS = {
    "http_options",
    "should_return_http_response",
    "automatic_function_calling",
    "automatic_continuation",
}
ELSEWHERE = {"model_armor_config", "generation_output_config"}
REFUSED = {
    "audio_timestamp", "audio_transcription_config", "cached_content", "continuation_token", "image_config", "model_selection_config",
    "routing_config", "speech_config",
}  # fmt: skip


def test_fields_of_googles_sdk_are_known_or_refused_by_name() -> None:
    request = {
        "system_instruction",
        "tools",
        "tool_config",
        "safety_settings",
        "labels",
        "service_tier",
        "store",
    }
    request |= {"cached_content", "continuation_token", "model_armor_config", "generation_output_config"}
    found = set()
    for field in set(types.GenerateContentConfig.model_fields) - CLIENTS:
        body = (
            {field: "no such value"} if field in request else {"generation_config": {field: "no such value"}}
        )
        try:
            gemini(**body)
        except BadCall as problem:
            if "Cannot find field" in str(problem):
                assert field in ELSEWHERE
            if "The field" in str(problem):
                found.add(field)
    assert found == REFUSED


def test_gemini_counts_strictly() -> None:
    count = GEMINI.count
    assert json.loads(count(json.dumps({"contents": CONTENTS}).encode())) == {"totalTokens": 2}
    whole = {
        "generate_content_request": {
            "model": "models/m",
            "contents": CONTENTS,
            "systemInstruction": CONTENTS[0],
        }
    }
    assert json.loads(count(json.dumps(whole).encode())) == {"totalTokens": 4}
    whole["generate_content_request"]["tools"] = [{"functionDeclarations": [{"name": "a_tool"}]}]
    assert json.loads(count(json.dumps(whole).encode()))["totalTokens"] > 4
    with pytest.raises(BadCall, match="Unknown name \"tols\" at 'generate_content_request'"):
        count(b'{"generateContentRequest": {"contents": [], "tols": []}}')
