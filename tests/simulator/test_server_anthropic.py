"""The simulator over HTTP, used by Anthropic's client."""

from __future__ import annotations

from typing import Any

import pytest

from edgen.core.values import Message
from edgen.providers import make
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.simulator.service.server import serve_options
from edgen.simulator.text import respond
from tests.late import Late
from tests.providers.fakes import TRUSTING, request
from tests.simulator import lessons
from tests.simulator.prompts import prompt, turns_of
from tests.simulator.sdks import anthropic_client
from tests.simulator.server import options

anthropic = Late("anthropic")

pytestmark = pytest.mark.integration


# The client has no temperature any more; the service accepts it for its older models.
STILL = {"temperature": 0}


def client(address: str) -> anthropic.AsyncAnthropic:
    return anthropic_client(address)


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "any", "max_tokens": 4000, "messages": [{"role": "user", "content": text}], **more}


async def test_a_message(address: str) -> None:
    first, rest = prompt()[0].content.split("\n", 1)
    answer = await client(address).messages.create(**asked(rest, system=first, extra_body=STILL))
    reply = respond((Message("system", first), Message("user", rest)), seed=0)
    assert reply.usage is not None
    assert [block.text for block in answer.content] == [reply.text]
    assert (answer.stop_reason, answer.model, answer.type) == ("end_turn", "any", "message")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (
        reply.usage.prompt_tokens, reply.usage.completion_tokens
    )  # fmt: skip
    assert len(turns_of(reply.text)) >= 10


async def test_turns_closings_and_verdicts(address: str) -> None:
    for messages in lessons.samples():
        said = [
            {"role": message.role, "content": message.content}
            for message in messages
            if message.role != "system"
        ]
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        answer = await client(address).messages.create(
            model="m", max_tokens=4000, extra_body=STILL, messages=said, system=system
        )
        assert answer.content[0].text == respond(messages, seed=0).text


async def test_blocks_of_text_stop_sequences_and_too_few_tokens(address: str) -> None:
    text = prompt()[0].content
    whole = respond(prompt(), seed=0).text
    blocks = [{"type": "text", "text": text}]
    said = {
        "model": "m",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": blocks}],
        "extra_body": STILL,
    }
    cut = await client(address).messages.create(**said)
    assert (cut.stop_reason, cut.content[0].text) == ("max_tokens", whole[:40])
    stopped = await client(address).messages.create(
        **asked(text, stop_sequences=["Student"], extra_body=STILL)
    )
    assert stopped.content[0].text == whole.split("Student", 1)[0]


async def test_a_stream_brings_the_same(address: str) -> None:
    async with client(address).messages.stream(**asked(prompt()[0].content, extra_body=STILL)) as stream:
        texts = [text async for text in stream.text_stream]
        final = await stream.get_final_message()
    assert "".join(texts) == respond(prompt(), seed=0).text == final.content[0].text
    assert len(texts) > 10
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens > 100


async def test_tokens_are_counted_and_models_listed(address: str) -> None:
    counted = await client(address).messages.count_tokens(
        model="m", messages=[{"role": "user", "content": "x" * 400}], system="y" * 40
    )
    assert counted.input_tokens == 110
    assert [model.id async for model in client(address).models.list()] == ["edgen-simulator"]
    assert (await client(address).models.retrieve("mine")).id == "mine"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tool_choice": {"type": "any"}}, "no tool to call"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"not": {}}}}}, "'not' cannot be simulated"),
        ({"extra_body": {"temperature": 1.5}}, "range: 0..1"),
        ({"max_tokens": 0}, "at least 1"),
        ({"messages": []}, "no message"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, "user role"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "Only text"),
        ({"extra_body": {"frobnicate": 1}}, "frobnicate"),
    ],
)  # fmt: skip
async def test_what_it_does_not_know_is_refused_as_the_service_refuses(
    address: str, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=said) as caught:
        await client(address).messages.create(**{**asked("hello"), **change})
    assert caught.value.body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("429", "RateLimitError"),
        ("500", "InternalServerError"),
        ("503", "APIStatusError"),
        ("401", "AuthenticationError"),
        ("404", "NotFoundError"),
        ("quota", "BadRequestError"),
    ],
)
async def test_faults_are_worded_as_the_service_words_them(name: str, kind: str) -> None:
    async with serve_options(options(faults=f"{name}=1")) as address:
        with pytest.raises(getattr(anthropic, kind)) as caught:
            await client(address).messages.create(**asked("hello"))
    if name == "503":
        assert caught.value.status_code == 529
    if name == "429":
        assert int(caught.value.response.headers["Retry-After"]) >= 1


async def test_edgens_own_backend_reads_it(address: str) -> None:
    config = AnthropicConfig(model="m", base_url=address, temperature=0)
    backend = make(config, timeout=60, connections=2, environ={"ANTHROPIC_API_KEY": "k" * 20, **TRUSTING})
    reply = await backend.complete(request(prompt()[0].content))
    assert await backend.models() == ["edgen-simulator"]
    await backend.aclose()
    expected = respond(prompt(), seed=0)
    assert (reply.text, reply.usage, reply.simulated) == (expected.text, expected.usage, True)
