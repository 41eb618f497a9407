"""Structured outputs and tools of the simulator, requested by the vendors' own clients."""

from __future__ import annotations

import json
from typing import Any, Literal

import pydantic
import pytest

from tests.late import Late
from tests.simulator.sdks import anthropic_client, gemini_client, openai_client

anthropic, openai, types = Late("anthropic"), Late("openai"), Late("google.genai.types")

pytestmark = pytest.mark.integration


class Turn(pydantic.BaseModel):
    role: Literal["Teacher", "Student"]
    text: str = pydantic.Field(min_length=5)


class Lesson(pydantic.BaseModel):
    """A lesson as a user's program declares it."""

    topic: str
    turns: list[Turn] = pydantic.Field(min_length=2, max_length=4)
    probability: float = pydantic.Field(ge=0, le=1)
    note: str | None = None


ASKED: Any = [{"role": "user", "content": "Write a lesson."}]
TOOL = {"name": "keep", "description": "Keeps a lesson.", "parameters": Lesson.model_json_schema()}


def gpt(address: str) -> openai.AsyncOpenAI:
    return openai_client(address)


def claude(address: str) -> anthropic.AsyncAnthropic:
    return anthropic_client(address)


def gemini(address: str) -> Any:
    return gemini_client(address).aio.models


async def test_openai_parses(address: str) -> None:
    answer = await gpt(address).chat.completions.parse(
        model="m", messages=ASKED, response_format=Lesson, seed=3
    )
    again = await gpt(address).chat.completions.parse(
        model="m", messages=ASKED, response_format=Lesson, seed=3
    )
    assert isinstance(answer.choices[0].message.parsed, Lesson)
    assert answer.choices[0].message.content == again.choices[0].message.content


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "keep"}}])
async def test_openai_calls_the_tool_that_is_required(address: str, choice: Any) -> None:
    tools: Any = [{"type": "function", "function": TOOL}]
    answer = await gpt(address).chat.completions.create(
        model="m", messages=ASKED, tools=tools, tool_choice=choice
    )
    (call,) = answer.choices[0].message.tool_calls or ()
    assert answer.choices[0].finish_reason == "tool_calls"
    assert call.type == "function"
    assert call.function.name == "keep"
    Lesson.model_validate_json(call.function.arguments)
    result = [*ASKED, answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "kept"}]
    after = await gpt(address).chat.completions.create(model="m", messages=result, tools=tools)
    assert after.choices[0].message.content


async def test_openai_streams_a_call(address: str) -> None:
    tools: Any = [{"type": "function", "function": TOOL}]
    stream = await gpt(address).chat.completions.create(
        model="m", messages=ASKED, tools=tools, tool_choice="required", stream=True
    )
    text = ""
    async for chunk in stream:
        for call in chunk.choices[0].delta.tool_calls or ():
            assert call.function is not None
            text += call.function.arguments or ""
    Lesson.model_validate_json(text)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tool_choice": "required"}, "no tool to call"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}}, "'not' cannot be simulated"),
        ({"response_format": {"type": "grammar"}}, "grammar"),
        ({"tools": [{"type": "web_search"}]}, "web_search"),
        ({"n": 129}, "Between 1 and 128"),
    ],
)  # fmt: skip
async def test_openai_is_told_what_cannot_be_obeyed(address: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(openai.BadRequestError, match=said):
        await gpt(address).chat.completions.create(model="m", messages=ASKED, **more)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("modalities", ["text", "audio"]),
        ("web_search_options", {}),
        ("functions", [TOOL]),
        ("function_call", {"name": "keep"}),
        ("prediction", {"type": "content", "content": "A lesson."}),
        ("logit_bias", {"16": 100}),
        ("guided_json", {}),
        ("frobnicate", 1),
    ],
)
async def test_openai_is_told_which_field_is_not_obeyed(address: str, field: str, value: Any) -> None:
    with pytest.raises(openai.BadRequestError, match=f"'{field}' cannot be simulated") as caught:
        await gpt(address).chat.completions.create(model="m", messages=ASKED, extra_body={field: value})
    error = caught.value
    assert (error.type, error.param, error.code) == ("invalid_request_error", field, "unsupported_parameter")


NAMED = {"type": "function", "function": {"name": "keep"}}
SCHEMA = {"name": "Lesson", "schema": Lesson.model_json_schema(), "strict": True}
FORMAT = {"type": "json_schema", "json_schema": SCHEMA}


@pytest.mark.parametrize(
    "fields",
    [
        {  # as langchain-openai sends them
            "n": 1,
            "temperature": 0.7,
            "stream": False,
            "tools": [{"type": "function", "function": TOOL | {"strict": True}}],
            "tool_choice": NAMED,
            "parallel_tool_calls": False,
        },
        {"response_format": FORMAT, "seed": None, "logit_bias": None, "stop": None, "max_completion_tokens": 4000},
        # as instructor sends them
        {"tools": [{"type": "function", "function": TOOL}], "tool_choice": NAMED, "metadata": {"a": "b"}},
        {"response_format": FORMAT, "user": "me", "store": False, "functions": None},
        # all fields without effect
        {
            "response_format": FORMAT,
            "modalities": ["text"],
            "top_p": 0.9,
            "presence_penalty": 0.1,
            "frequency_penalty": 0.1,
            "reasoning_effort": "low",
            "verbosity": "low",
            "service_tier": "auto",
            "prompt_cache_key": "k",
            "top_k": 40,
            "chat_template_kwargs": {"enable_thinking": False},
        },
    ],
)  # fmt: skip
async def test_what_frameworks_send_is_answered(address: str, fields: dict[str, Any]) -> None:
    answer: Any = await gpt(address).chat.completions.create(model="m", messages=ASKED, extra_body=fields)
    message = answer.choices[0].message
    Lesson.model_validate_json(
        message.tool_calls[0].function.arguments if message.tool_calls else message.content
    )


async def test_anthropic_obeys_a_format_and_calls_a_tool(address: str) -> None:
    asked: Any = {"model": "m", "max_tokens": 4000, "messages": ASKED}
    form: Any = {"format": {"type": "json_schema", "schema": Lesson.model_json_schema()}}
    answer = await claude(address).messages.create(**asked, output_config=form)
    Lesson.model_validate_json(answer.content[0].text)
    tools = [{"name": "keep", "input_schema": Lesson.model_json_schema()}]
    for choice in ({"type": "any"}, {"type": "tool", "name": "keep"}):
        called = await claude(address).messages.create(**asked, tools=tools, tool_choice=choice)
        assert called.stop_reason == "tool_use"
        Lesson.model_validate(called.content[0].input)
    async with claude(address).messages.stream(**asked, tools=tools, tool_choice={"type": "any"}) as stream:
        final = await stream.get_final_message()
    Lesson.model_validate(final.content[0].input)
    result = [
        *ASKED,
        {"role": "assistant", "content": called.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": called.content[0].id, "content": "ok"}]},
    ]  # fmt: skip
    after = await claude(address).messages.create(**{**asked, "messages": result}, tools=tools)
    assert after.content[0].text


async def test_gemini_obeys_a_schema_and_calls_a_function(address: str) -> None:
    wanted = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Lesson)
    answer = await gemini(address).generate_content(model="g", contents="Write a lesson.", config=wanted)
    assert isinstance(answer.parsed, Lesson)
    as_json = types.GenerateContentConfig(
        response_mime_type="application/json", response_json_schema=Lesson.model_json_schema()
    )
    answer = await gemini(address).generate_content(model="g", contents="Write a lesson.", config=as_json)
    Lesson.model_validate_json(answer.text)
    declared = types.FunctionDeclaration(name="keep", parameters_json_schema=Lesson.model_json_schema())
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
    tools = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        tool_config=types.ToolConfig(function_calling_config=calling),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    answer = await gemini(address).generate_content(model="g", contents="Write a lesson.", config=tools)
    (call,) = answer.function_calls
    assert call.name == "keep"
    Lesson.model_validate(call.args)


async def test_an_answer_of_edgens_own_that_fits_stays(address: str) -> None:
    """A known prompt keeps its usual answer if the schema allows it."""
    from tests.simulator.prompts import prompt

    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "any", "schema": schema}}
    answer = await gpt(address).chat.completions.create(
        model="m", messages=[{"role": "user", "content": prompt()[0].content}], response_format=form, seed=1
    )
    assert json.loads(answer.choices[0].message.content or "")
