"""The simulator's Responses format, used by OpenAI's client and by edgen's own runs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pydantic
import pytest

from edgen.core.values import Message
from edgen.providers import make
from edgen.providers.openai_responses.config import OpenAIResponsesConfig
from edgen.simulator.service.server import serve_options
from edgen.simulator.text import respond
from tests.execution.service import edgen, end, equation, files, job_text, start, write
from tests.late import Late
from tests.providers.fakes import TRUSTING, request
from tests.simulator import lessons
from tests.simulator.prompts import prompt
from tests.simulator.sdks import openai_client
from tests.simulator.server import options

openai = Late("openai")

pytestmark = pytest.mark.integration

STILL = {"temperature": 0}
ASKED: Any = {"model": "any", "input": prompt()[0].content, **STILL}
WHOLE = respond(prompt(), seed=0).text


class Lesson(pydantic.BaseModel):
    topic: str
    turns: list[str] = pydantic.Field(min_length=2, max_length=4)
    note: str | None


TOOL: Any = {
    "type": "function",
    "name": "keep",
    "description": "Keeps a lesson.",
    "parameters": Lesson.model_json_schema(),
    "strict": False,
}


def responses(address: str) -> Any:
    return openai_client(address, timeout=60).responses


async def test_a_response(address: str) -> None:
    first, rest = prompt()[0].content.split("\n", 1)
    reply = respond((Message("system", first), Message("user", rest)), seed=0)
    answer = await responses(address).create(model="any", instructions=first, input=rest, **STILL)
    assert answer.output_text == reply.text
    assert (answer.status, answer.model, answer.object) == ("completed", "any", "response")
    assert (answer.instructions, answer.error, answer.incomplete_details) == (first, None, None)
    assert reply.usage is not None
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (
        reply.usage.prompt_tokens, reply.usage.completion_tokens
    )  # fmt: skip
    pydantic.TypeAdapter(type(answer)).validate_python(answer.to_dict())


async def test_items_of_every_kind_that_says_something(address: str) -> None:
    for messages in lessons.samples():
        said: Any = [
            {"role": "developer" if one.role == "system" else one.role, "content": one.content}
            for one in messages
        ]
        answer = await responses(address).create(model="m", input=said, **STILL)
        assert answer.output_text == respond(messages, seed=0).text
    parts: Any = [{"role": "user", "content": [{"type": "input_text", "text": ASKED["input"]}]}]
    answer = await responses(address).create(model="m", input=parts, **STILL)
    assert answer.output_text == WHOLE
    more: Any = [*parts, *answer.output, {"role": "user", "content": "Thanks."}]
    again = await responses(address).create(model="m", input=more, reasoning={"effort": "low"})
    assert [item.type for item in again.output] == ["reasoning", "message"]
    assert again.output_text
    after = await responses(address).create(model="m", input=[*parts, *again.output])
    assert after.output_text


async def test_too_few_tokens_leave_it_incomplete(address: str) -> None:
    cut = await responses(address).create(**ASKED, max_output_tokens=20)
    assert (cut.status, cut.output_text) == ("incomplete", WHOLE[:80])
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"
    async with responses(address).stream(**ASKED, max_output_tokens=20) as stream:
        events = [event async for event in stream]
    assert events[-1].type == "response.incomplete"


async def test_a_stream_brings_the_same(address: str) -> None:
    async with responses(address).stream(**ASKED, reasoning={"effort": "high"}) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(pieces) == final.output_text == WHOLE
    assert len(pieces) > 10
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events if "item" in event.type] == [
        "response.output_item.added",
        "response.output_item.done",
    ] * 2
    assert final.usage is not None


async def test_a_format_is_obeyed(address: str) -> None:
    parsed = await responses(address).parse(model="m", input="Write a lesson.", text_format=Lesson)
    assert isinstance(parsed.output_parsed, Lesson)
    text: Any = {"format": {"type": "json_object"}, "verbosity": "low"}
    answer = await responses(address).create(model="m", input="Write a lesson as JSON.", text=text)
    assert json.loads(answer.output_text)
    async with responses(address).stream(model="m", input="Write a lesson.", text_format=Lesson) as stream:
        final = await stream.get_final_response()
    assert isinstance(final.output_parsed, Lesson)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "keep"}])
async def test_the_tool_that_is_required_is_called(address: str, choice: Any) -> None:
    asked: Any = {"model": "m", "input": "Write a lesson.", "tools": [TOOL]}
    answer = await responses(address).create(**asked, tool_choice=choice)
    (call,) = answer.output
    assert call.type == "function_call"
    assert (call.name, answer.tools[0].type) == ("keep", "function")
    Lesson.model_validate_json(call.arguments)
    async with responses(address).stream(**asked, tool_choice=choice) as stream:
        (streamed,) = (await stream.get_final_response()).output
    assert streamed.type == "function_call"
    Lesson.model_validate_json(streamed.arguments)
    kept = {"type": "function_call_output", "call_id": call.call_id, "output": "kept"}
    more: Any = [{"role": "user", "content": "Write a lesson."}, call, kept]
    after = await responses(address).create(model="m", input=more, tools=[TOOL])
    assert after.output_text


async def test_tokens_are_counted(address: str) -> None:
    counted = await responses(address).input_tokens.count(model="m", input="x" * 400, instructions="y" * 40)
    assert counted.input_tokens == 110


@pytest.mark.parametrize(
    ("change", "said", "field"),
    [
        ({"previous_response_id": "resp_1"}, "'previous_response_id' cannot be simulated", "previous_response_id"),
        ({"background": True}, "'background' cannot be simulated", "background"),
        ({"conversation": "conv_1"}, "'conversation' cannot be simulated", "conversation"),
        ({"extra_body": {"seed": 3}}, "'seed' cannot be simulated", "seed"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "'item_reference' cannot be simulated", "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "Only text", "input"),
        ({"input": []}, "no message", None),
        ({"max_output_tokens": 0}, "at least 1", None),
        ({"tools": [{"type": "web_search"}]}, "web_search", None),
        ({"tool_choice": "required"}, "no tool to call", None),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"not": {}}}}}, "'not' cannot be simulated", None),
    ],
)  # fmt: skip
async def test_what_cannot_be_obeyed_is_refused(
    address: str, change: dict[str, Any], said: str, field: str | None
) -> None:
    with pytest.raises(openai.BadRequestError, match=said) as caught:
        await responses(address).create(**{**ASKED, **change})
    assert (caught.value.type, caught.value.param) == ("invalid_request_error", field)


async def test_what_shapes_nothing_is_taken(address: str) -> None:
    answer = await responses(address).create(
        **ASKED, store=True, metadata={"a": "b"}, user="me", background=False, include=["reasoning.encrypted_content"]
    )  # fmt: skip
    assert answer.output_text == WHOLE
    assert (answer.metadata, answer.background) == ({"a": "b"}, False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("429", "RateLimitError"),
        ("500", "InternalServerError"),
        ("401", "AuthenticationError"),
        ("404", "NotFoundError"),
        ("quota", "RateLimitError"),
        ("reset", "APIConnectionError"),
    ],
)
async def test_faults(name: str, kind: str) -> None:
    async with serve_options(options(faults=f"{name}=1")) as address:
        with pytest.raises(getattr(openai, kind)):
            await responses(address).create(**ASKED)


async def test_refusals_and_filters() -> None:
    async with serve_options(options(faults="filtered=1")) as address:
        filtered = await responses(address).create(**ASKED)
    assert (filtered.status, filtered.output) == ("incomplete", [])
    assert filtered.incomplete_details is not None
    assert filtered.incomplete_details.reason == "content_filter"
    async with serve_options(options(faults="refusal=1")) as address:
        answers = [await responses(address).create(**{**ASKED, "temperature": 1}) for _ in range(20)]
        async with responses(address).stream(**ASKED) as stream:
            streamed = (await stream.get_final_response()).output[0]
    parts = [answer.output[0].content[0] for answer in answers]
    assert {part.type for part in parts} == {"output_text", "refusal"}
    assert streamed.type == "message"


# --- edgen's own backend -------------------------------------------------------------------------


async def test_edgens_own_backend_reads_it(address: str) -> None:
    config = OpenAIResponsesConfig(
        model="m", base_url=f"{address}/v1", temperature=0, reasoning_effort="low", verbosity="low", max_tokens=300
    )  # fmt: skip
    backend = make(config, timeout=60, connections=2, environ={"OPENAI_API_KEY": "k" * 20, **TRUSTING})
    reply = await backend.complete(request(prompt()[0].content))
    await backend.aclose()
    expected = respond(prompt(), seed=0, max_tokens=300)
    assert (reply.text, reply.usage, reply.simulated) == (expected.text, expected.usage, True)
    assert reply.finish_reason == expected.finish_reason


def said(folder: Path) -> list[Any]:
    """Return the conversations of a run's files."""
    return [
        [record["conversation"] for record in json.loads(content)]
        for name, content in files(folder).items()
        if name.startswith("conversations")
    ]


def stored(folder: Path) -> int:
    """Return the number of replies in the run's ledger."""
    try:
        with sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True) as ledger:
            return int(ledger.execute("SELECT COUNT(*) FROM replies").fetchone()[0])
    except sqlite3.OperationalError:  # missing, or without tables
        return 0


def job(address: str, kind: str, **changes: Any) -> str:
    backend = {"type": kind, "model": "any", "base_url": f"{address}/v1", "temperature": 0}
    return job_text("", backends={"default": backend}, **changes)


@pytest.mark.parametrize(
    "how", [{"conversations": 40}, {"conversations": 10, "protocol": "selfplay", "prompt": None}]
)
async def test_runs_have_the_conversations_of_chat_completions(tmp_path: Path, how: dict[str, Any]) -> None:
    counts = []
    async with serve_options(options(faults="429=0.1:0.01,truncated=0.02")) as address:
        for kind in ("openai", "openai-responses"):
            path = write(tmp_path / f"{kind}.yaml", job(address, kind, **how))
            ended = await edgen("generate", path, "-o", tmp_path / kind, "--json")
            assert equation(ended.facts), ended.err
            counts.append((ended.code, ended.facts["accepted"], ended.facts["rejected"]))
    assert counts[0] == counts[1]
    assert said(tmp_path / "openai") == said(tmp_path / "openai-responses")


@pytest.mark.crash
async def test_a_killed_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    async with serve_options(options(latency_ms=40)) as address:
        path = write(
            tmp_path / "job.yaml",
            job(address, "openai-responses", conversations=200, limits={"in_flight": 8}),
        )
        calm = await edgen("generate", path, "-o", tmp_path / "calm", "--json")
        assert calm.code == 0, calm.err
        for _ in range(3):
            process = await start("generate", path, "-o", tmp_path / "killed", "--json")
            before = stored(tmp_path / "killed")
            while process.returncode is None and stored(tmp_path / "killed") < before + 20:
                await asyncio.sleep(0.01)
            process.kill()
            await end(process)
        ended = await edgen("generate", path, "-o", tmp_path / "killed", "--json")
        assert ended.code == 0, ended.err
        assert ended.facts["calls"]["made"] == 200
    assert files(tmp_path / "killed") == files(tmp_path / "calm")
