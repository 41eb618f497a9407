"""Unmodified frameworks between a program and a model: the simulator answers their requests.

instructor and curator need older SDKs than edgen's own tools, so they are tried by hand:
docs/simulator_clients.md explains how.
"""

from __future__ import annotations

from typing import Any, Literal

import pydantic
import pytest

from edgen.providers.litellm.library import load_litellm

pytestmark = pytest.mark.integration


class Turn(pydantic.BaseModel):
    role: Literal["Teacher", "Student"]
    text: str


class Lesson(pydantic.BaseModel):
    """A lesson as a user's program declares it."""

    topic: str
    turns: list[Turn]
    probability: float
    note: str | None


class Bounded(Lesson):
    """A schema with bounds, which Anthropic's own formats cannot express."""

    turns: list[Turn] = pydantic.Field(min_length=2, max_length=4)
    probability: float = pydantic.Field(ge=0, le=1)


ASKED = "Write a lesson."


# --- pydantic-ai ---------------------------------------------------------------------------------


def model_of(kind: str, address: str) -> Any:
    """Return pydantic-ai's model for one of the simulator's formats."""
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.google import GoogleProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    match kind:
        case "chat":
            return OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{address}/v1", api_key="any"))
        case "responses":
            return OpenAIResponsesModel("m", provider=OpenAIProvider(base_url=f"{address}/v1", api_key="any"))
        case "google":
            return GoogleModel("gemini-2.5-flash", provider=GoogleProvider(api_key="any", base_url=address))
    return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(api_key="any", base_url=address))


MODELS = ("chat", "responses", "google", "anthropic")


@pytest.mark.parametrize("kind", MODELS)
async def test_pydantic_ai_gets_what_it_asks_for(address: str, kind: str) -> None:
    from pydantic_ai import Agent, NativeOutput

    model = model_of(kind, address)
    native = NativeOutput(Lesson if kind == "anthropic" else Bounded)
    for output in (Bounded, native):  # through a called tool, through the service's own formats
        agent: Any = Agent(model, output_type=output, retries=0)
        assert isinstance((await agent.run(ASKED)).output, Lesson)
        async with agent.run_stream(ASKED) as stream:
            assert isinstance(await stream.get_output(), Lesson)


@pytest.mark.parametrize("kind", MODELS)
async def test_pydantic_ai_talks_with_tools_and_a_history(address: str, kind: str) -> None:
    from pydantic_ai import Agent

    agent = Agent(model_of(kind, address), instructions="Be kind.", retries=0)

    @agent.tool_plain
    def look_up(topic: str) -> str:
        return f"facts about {topic}"

    first = await agent.run("hello")
    second = await agent.run("and then?", message_history=first.all_messages())
    assert first.output
    assert second.output
    assert second.usage.input_tokens > first.usage.input_tokens > 0


# --- langchain -----------------------------------------------------------------------------------


@pytest.mark.parametrize("responses", [False, True])
async def test_langchain_structures_streams_and_batches(address: str, responses: bool) -> None:
    from langchain_openai import ChatOpenAI

    options: Any = {"model": "m", "base_url": f"{address}/v1", "api_key": "any", "max_retries": 0}
    chat = ChatOpenAI(**options, use_responses_api=responses)
    for method in ("json_schema", "function_calling"):
        asked: Any = chat.with_structured_output(Bounded, method=method)
        assert isinstance(await asked.ainvoke(ASKED), Bounded)
    answer = await chat.ainvoke([("system", "Be kind."), ("user", "hello")])
    assert answer.text
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["input_tokens"] > 0
    assert "".join([chunk.text async for chunk in chat.astream("hello")])
    assert [one.text != "" for one in await chat.abatch(["hello", "and you?"])] == [True, True]


# --- litellm -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "below"),
    [("openai/m", "/v1"), ("anthropic/claude-sonnet-4-5", ""), ("gemini/gemini-2.5-flash", "/v1beta")],
)
async def test_litellm_structures_streams_and_calls_tools(address: str, model: str, below: str) -> None:
    complete = load_litellm().acompletion
    asked: Any = {"model": model, "api_base": address + below, "api_key": "any", "num_retries": 0}
    asked["messages"] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": ASKED}]
    answer = await complete(**asked, response_format=Lesson)
    Lesson.model_validate_json(answer.choices[0].message.content)
    assert answer.usage.prompt_tokens > 0
    pieces = [part async for part in await complete(**asked, stream=True)]
    assert "".join(part.choices[0].delta.content or "" for part in pieces)
    tool = {"type": "function", "function": {"name": "keep", "parameters": Bounded.model_json_schema()}}
    called = await complete(**asked, tools=[tool], tool_choice="required")
    (call,) = called.choices[0].message.tool_calls
    Bounded.model_validate_json(call.function.arguments)
