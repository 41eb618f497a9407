"""A template's JSON Schema in requests: each provider's own form, with a server that accepts no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

from edgen.config.backends import BackendConfig, find_features
from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Address, Message, Request
from edgen.providers import make, make_batch_service
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.function import make_config
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.openai.answer_schema import is_strict, make_schema_settings
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai_responses.config import OpenAIResponsesConfig
from edgen.providers.vertex.config import VertexConfig
from edgen.simulator.config import SimulatorConfig
from tests.providers.schema_server import SchemaServer, serving_schemas

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"said": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["said", "sure"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"said": {"type": "string"}}}


def text(schema: Any) -> bytes:
    return msgspec.json.encode(schema)


def request(schema: Any = None, scale: int = 1) -> Request:
    messages = (Message("user", "hello"),)
    made = None if schema is None else text(schema)
    return Request(Address(0, 0), messages, seed=7, max_tokens_scale=scale, schema=made)


def configs(url: str, **more: Any) -> dict[str, BackendConfig]:
    """Return a backend of each type that supports schemas, all at one server."""
    known: dict[str, Any] = {"model": "m", **more}
    return {
        "openai": OpenAIConfig(base_url=f"{url}/v1", **known),
        "openai-responses": OpenAIResponsesConfig(base_url=f"{url}/v1", **known),
        "gemini": GeminiConfig(base_url=url, **known),
        "vertex": VertexConfig(base_url=url, project="my-project", **known),
        "anthropic": AnthropicConfig(base_url=url, **known),
    }


SENT = [*configs("http://127.0.0.1:1")]


@pytest.fixture
def server() -> Iterator[SchemaServer]:
    with serving_schemas() as running:
        yield running


def opened(config: BackendConfig) -> Any:
    return make(config, timeout=60, connections=2, environ={})


@pytest.mark.parametrize("kind", SENT)
async def test_a_schema_is_sent_in_the_providers_form_and_obeyed(server: SchemaServer, kind: str) -> None:
    it = opened(configs(server.url)[kind])
    try:
        reply = await it.complete(request(SCHEMA))
    finally:
        await it.aclose()
    jsonschema.validate(json.loads(reply.text), SCHEMA)


@pytest.mark.parametrize("kind", SENT)
async def test_without_a_schema_the_body_is_as_it_was(server: SchemaServer, kind: str) -> None:
    it = opened(configs(server.url, max_tokens=100)[kind])
    try:
        before = it.body(request())
        with_schema = it.body(request(SCHEMA))
        await it.complete(request())
    finally:
        await it.aclose()
    assert it.body(request()) == before != with_schema
    assert b"schema" not in before.lower()
    assert b"format" not in before


@pytest.mark.parametrize("kind", SENT)
def test_the_schema_goes_where_the_provider_says_and_room_is_scaled_beside_it(kind: str) -> None:
    config = configs("http://127.0.0.1:1", max_tokens=100, retry_max_tokens=200)[kind]
    body = json.loads(opened(config).body(request(SCHEMA, scale=2)))
    assert b"200" in opened(config).body(request(SCHEMA, scale=2))
    for key in find_features(config).schema_field.split("."):
        body = body[key]
    found = body.get("json_schema", body).get("schema", body)
    assert found == SCHEMA


@pytest.mark.parametrize("kind", SENT)
async def test_what_the_server_refuses_is_a_bad_request_in_its_words(server: SchemaServer, kind: str) -> None:
    server.refuses = "This model does not support structured outputs."
    it = opened(configs(server.url)[kind])
    try:
        with pytest.raises(CallError, match="does not support structured outputs") as refused:
            await it.complete(request(SCHEMA))
    finally:
        await it.aclose()
    assert refused.value.kind is FailureKind.BAD_REQUEST


@pytest.mark.parametrize("kind", ["openai", "openai-responses"])
async def test_a_schema_beyond_strict_is_sent_without_it(server: SchemaServer, kind: str) -> None:
    it = opened(configs(server.url)[kind])
    try:
        await it.complete(request(OPEN))
        await it.complete(request(SCHEMA))
    finally:
        await it.aclose()
    sent = [json.dumps(body) for body in server.bodies]
    assert ['"strict": true' in body for body in sent] == [False, True]


@pytest.mark.parametrize(
    ("change", "strict"),
    [
        ({}, True),
        ({"description": "Words."}, True),
        ({"additionalProperties": True}, False),
        ({"required": ["said"]}, False),
        ({"anyOf": [SCHEMA]}, False),
        ({"type": "array", "items": SCHEMA}, False),
        ({"properties": {"said": {"type": "string", "minLength": 1}, "sure": True}}, False),
        ({"properties": {"said": {"type": "string", "format": "uri"}, "sure": {"type": "null"}}}, False),
        ({"properties": {"said": OPEN, "sure": {"type": "boolean"}}}, False),
        ({"properties": {"said": {"anyOf": [SCHEMA, {"type": "null"}]}, "sure": SCHEMA}}, True),
        ({"$defs": {"one": SCHEMA}}, True),
        ({"$defs": {"one": OPEN}}, False),
    ],
)
def test_what_strict_takes(change: dict[str, Any], strict: bool) -> None:
    assert is_strict(text(SCHEMA | change)) is strict


def test_openai_gets_a_schema_without_lengths_so_that_it_is_enforced() -> None:
    from edgen.core.forms import turn_form, without_bounds

    asked = turn_form().schema
    hosted, other = (make_schema_settings(asked, hosted=hosted) for hosted in (True, False))
    assert hosted["strict"] is True
    assert bytes(hosted["schema"]) == without_bounds(asked)
    assert bytes(other["schema"]) == asked
    beyond = text(SCHEMA | {"patternProperties": {}})
    assert make_schema_settings(beyond) == {"name": "answer", "schema": msgspec.Raw(beyond), "strict": False}


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_a_line_of_a_batch_holds_the_same_body(kind: str) -> None:
    config = configs("http://127.0.0.1:1")[kind]
    it = opened(config)
    line = make_batch_service(config, it, environ={}, offline=True).line("0-0-0-a", request(SCHEMA))
    assert json.loads(it.body(request(SCHEMA))) in json.loads(line).values()


@pytest.mark.parametrize("kind", SENT)
def test_an_extra_body_that_says_another_schema_is_refused(kind: str) -> None:
    plain = configs("http://127.0.0.1:1")[kind]
    field = find_features(plain).schema_field
    extra: Any = {"type": "text"}
    for key in reversed(field.split(".")):
        extra = {key: extra}
    config = configs("http://127.0.0.1:1", extra_body=extra)[kind]
    wrong = find_features(config).schema_problem(config, text(SCHEMA))
    assert wrong is not None
    assert f"its extra_body sets {field}, too" in wrong
    assert find_features(plain).schema_problem(plain, text(SCHEMA)) is None


def test_who_cannot_be_sent_one_says_so() -> None:
    config = GoogleGenerativeAIConfig(model="m")
    assert "`type: gemini` reaches the same models" in str(
        find_features(config).schema_problem(config, text(SCHEMA))
    )
    simulator = SimulatorConfig()
    assert find_features(simulator).schema_problem(simulator, text(SCHEMA)) is None
    wrong = find_features(simulator).schema_problem(simulator, text({"not": SCHEMA}))
    assert wrong == "the simulator cannot obey it: 'not' cannot be simulated"


async def test_a_function_is_handed_the_schema() -> None:
    async def answered(asked: Request) -> str:
        return (asked.schema or b"none").decode()

    from edgen.providers.function import FunctionBackend

    config = make_config(answered)
    it = FunctionBackend(answered, config, 5)
    assert json.loads((await it.complete(request(SCHEMA))).text) == SCHEMA
    assert (await it.complete(request())).text == "none"
    assert find_features(config).schema_problem(config, text(SCHEMA)) is None


async def test_the_embedded_simulator_obeys_or_refuses_as_a_server() -> None:
    it = opened(SimulatorConfig())
    reply = await it.complete(request(SCHEMA))
    jsonschema.validate(json.loads(reply.text), SCHEMA)
    assert await it.complete(request(SCHEMA)) == reply
    with pytest.raises(CallError, match="The schema cannot be obeyed: 'not' cannot be simulated"):
        await it.complete(request({"not": SCHEMA}))
