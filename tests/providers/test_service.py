"""A job's settings for calls of a service: headers, query, auth, the field for max_tokens,
several servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgen.config import load_job
from edgen.core.errors import CallError, InputError, JobError, ProviderError
from edgen.core.values import Reply
from edgen.providers import list_key_requests, list_servers, make, make_batch_service
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.trust import gather_consents
from tests.providers.fakes import TRUSTING, FakeServer, answer, request

KEY = "sk-0123456789abcdef"
OTHER = "other-0123456789"
COMPLETION = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
ENVIRON = {"OPENAI_API_KEY": KEY, "OTHER_KEY": OTHER, **TRUSTING}


def backend(fake: FakeServer, environ: dict[str, str] | None = None, **settings: Any) -> Any:
    config = OpenAIConfig(model="m", base_url=f"{fake.url}/v1", **settings)
    return make(config, timeout=60, connections=4, environ=ENVIRON if environ is None else environ)


async def ask(it: Any) -> Reply:
    try:
        reply: Reply = await it.complete(request())
    finally:
        await it.aclose()
    return reply


# --- headers, query, auth ------------------------------------------------------------------------


async def test_headers_and_query_go_with_every_call(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    it = backend(
        fake,
        headers={"X-Title": "lessons", "X-Other": "Token ${OTHER_KEY}"},
        query={"api-version": "2024-10-21", "a b": "ü&c"},
    )
    await it.models()
    await ask(it)
    assert [seen.path for seen in fake.seen] == [
        "/v1/models?api-version=2024-10-21&a+b=%C3%BC%26c",
        "/v1/chat/completions?api-version=2024-10-21&a+b=%C3%BC%26c",
    ]
    for seen in fake.seen:
        assert seen.headers["x-title"] == "lessons"
        assert seen.headers["x-other"] == f"Token {OTHER}"
        assert seen.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        ("bearer", {"authorization": f"Bearer {KEY}"}),
        ("api-key", {"api-key": KEY}),
        ("none", {}),
    ],
)
async def test_how_the_key_is_sent(fake: FakeServer, auth: Any, sent: dict[str, str]) -> None:
    fake.says(answer(COMPLETION))
    await ask(backend(fake, auth=auth))
    headers = fake.seen[0].headers
    assert {name: headers[name] for name in ("authorization", "api-key") if name in headers} == sent


def test_a_header_s_variable_goes_where_its_owner_sent_it_and_nowhere_else() -> None:
    away = OpenAIConfig(model="m", base_url="https://llm.example/v1", auth="none", headers={"X": "${MY_KEY}"})
    options: dict[str, Any] = {"timeout": 1, "connections": 1, "environ": {"MY_KEY": OTHER}}
    with pytest.raises(InputError, match=r"wants the key in MY_KEY sent to llm\.example, .*--trust-host"):
        make(away, **options)
    make(away, **options, consents=gather_consents({}, ["llm.example=MY_KEY"]))
    with pytest.raises(InputError, match=r"sent to llm\.example"):
        make(away, **options, consents=gather_consents({}, ["llm.example=ANOTHER_KEY"]))
    with pytest.raises(
        ProviderError, match=r"header X for llm.example needs MY_KEY, which is not set: export MY_KEY"
    ):
        make(away, timeout=1, connections=1, environ={})


async def test_a_server_on_this_machine_is_sent_no_header_with_a_key_without_consent(
    fake: FakeServer,
) -> None:
    fake.says(answer({"error": {"message": "who is there?"}}, 401))
    it = backend(fake, {"OTHER_KEY": OTHER}, headers={"X-Other": "${OTHER_KEY}", "X-Title": "lessons"})
    with pytest.raises(
        CallError, match=r"the key in OTHER_KEY is not sent to 127\.0\.0\.1; it would be with"
    ):
        await ask(it)
    assert fake.seen[0].headers["x-title"] == "lessons"
    assert "x-other" not in fake.seen[0].headers


async def test_no_value_of_a_header_is_shown(fake: FakeServer) -> None:
    echo = f"you sent {OTHER} and {KEY}"
    fake.says(
        answer({"choices": [{"message": {"content": echo, "refusal": echo}}], "model": OTHER}),
        answer({"error": {"message": echo}}, 400),
        answer({"what": echo}),
    )
    it = backend(fake, headers={"X-Other": "Token ${OTHER_KEY}"})
    shown = [repr(it), repr(it.identity), repr(await it.complete(request()))]
    for _ in range(2):
        with pytest.raises(CallError) as caught:
            await it.complete(request())
        shown.append(repr(caught.value))
    await it.aclose()
    assert "[key] and [key]" in shown[2]
    assert not [text for text in shown if OTHER in text or KEY in text]


def test_the_ledger_s_identity_is_what_it_was_and_changes_with_what_shapes_answers_alone() -> None:
    def identity(**settings: Any) -> Any:
        config = OpenAIConfig(model="m", base_url="http://localhost:1/v1", **settings)
        return make(config, timeout=1, connections=1, environ={}).identity

    plain = {"type": "openai", "base_url": "http://localhost:1/v1", "model": "m"}
    assert identity() == plain
    assert (
        identity(
            headers={"X-Title": "t", "X-Key": "${MY_KEY}"},
            auth="api-key",
            key_command=("true",),
            max_tokens_field="max_completion_tokens",
            more_base_urls=("http://localhost:2/v1",),
            service_tier="flex",
        )
        == plain
    )
    assert identity(query={"api-version": "1"}) == plain | {"query": {"api-version": "1"}}
    assert identity(reasoning_effort="low") == plain | {"reasoning_effort": "low"}
    assert identity(verbosity="low") == plain | {"verbosity": "low"}


async def test_batches_carry_headers_query_and_auth(fake: FakeServer) -> None:
    batch = {"id": "batch_1", "object": "batch", "status": "in_progress", "created_at": 1,
             "endpoint": "/v1/chat/completions", "input_file_id": "f", "completion_window": "24h"}  # fmt: skip
    config = OpenAIConfig(
        model="m", base_url=f"{fake.url}/v1", auth="api-key", headers={"X-Other": "${OTHER_KEY}"},
        query={"api-version": "1"},
    )  # fmt: skip
    made = make(config, timeout=60, connections=1, environ=ENVIRON)
    it = make_batch_service(config, made, environ=ENVIRON)
    fake.says(answer(batch))
    await it.state("batch_1")
    await it.aclose()
    await made.aclose()
    seen = fake.seen[0]
    assert seen.path == "/v1/batches/batch_1?api-version=1"
    assert (seen.headers["api-key"], seen.headers["x-other"]) == (KEY, OTHER)
    assert "authorization" not in seen.headers


# --- invalid settings ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "path", "said"),
    [
        ({"headers": {"Authorization": f"Token {KEY}"}}, "headers.Authorization", "auth: none"),
        (
            {"auth": "none", "headers": {"Authorization": f"Bearer {KEY}"}},
            "headers.Authorization",
            "in clear text; export it, and name its variable: Authorization: Bearer ${MY_KEY}",
        ),
        ({"headers": {"X-Api-Key": "abc"}}, "headers.X-Api-Key", "X-Api-Key: ${MY_KEY}"),
        ({"headers": {"X-Who": KEY}}, "headers.X-Who", "in clear text"),
        ({"headers": {"X-Who": "a1b2c3d4" * 4}}, "headers.X-Who", "in clear text"),
        ({"headers": {"Cookie": "session=abc"}}, "headers.Cookie", "in clear text"),
        ({"headers": {"X-Who": "${my_key}"}}, "headers.X-Who", "in upper case"),
        ({"headers": {"Content-Type": "text/plain"}}, "headers.Content-Type", "edgen writes this header"),
        ({"headers": {"X A": "b"}}, "headers.X A", "not a valid header name"),
        ({"headers": {"X-A": "b", "x-a": "c"}}, "headers.x-a", "twice"),
        ({"headers": {"X-A": "b\nX-B: c"}}, "headers.X-A", "printable ASCII"),
        ({"headers": {"X-A": 1234567890}}, "headers.X-A", "expected a text"),
        (
            {"auth": "api-key", "headers": {"API-Key": "${K}"}},
            "headers.API-Key",
            "the service's key goes here",
        ),
        ({"query": {"key": "abc"}}, "query.key", "no key goes into an address"),
        ({"query": {"v": KEY}}, "query.v", "no key goes into an address"),
        ({"query": {"v": "${MY_KEY}"}}, "query.v", "send it in a header"),
        ({"auth": "none", "key_command": ["true"]}, "key_command", "sends no key"),
        ({"key_command": ["echo", KEY]}, "key_command", "in clear text"),
        ({"auth": "basic"}, "auth", "unknown value 'basic'"),
        (
            {"more_base_urls": ["https://me:abc@llm.example/v1"]},
            "more_base_urls[0]",
            "without user or password",
        ),
        ({"more_base_urls": ["https://api.openai.com/v1"]}, "base_url", "twice"),
        ({"base_url": ["http://gpu-1:8000/v1", "http://gpu-1:8000/v1/"]}, "base_url", "twice"),
        ({"base_url": ["http://gpu-1:8000/v1", "http://GPU-1:8000/v1"]}, "base_url", "twice"),
        ({"base_url": ["http://gpu-1/v1", "ftp://gpu-2/v1"]}, "base_url[1]", "expected an address like"),
        ({"base_url": []}, "base_url", "expected an address like"),
        ({"reasoning_effort": "very"}, "reasoning_effort", "unknown value 'very'"),
    ],
)
def test_what_cannot_be_said_is_a_sentence_that_repeats_no_key(
    tmp_path: Path, settings: dict[str, Any], path: str, said: str
) -> None:
    with pytest.raises(JobError) as caught:
        load_job(job(tmp_path, {"type": "openai", "model": "m"} | settings))
    text = str(caught.value)
    assert caught.value.exit_code == 2
    assert f"$.backends.default.{path}: " in text
    assert said in text
    for secret in (KEY, "session=abc", "1234567890", "a1b2c3d4" * 4, "me:abc"):
        assert secret not in text


@pytest.mark.parametrize(
    "headers",
    [
        {"HTTP-Referer": "https://lessons.example/a-b?c=d", "X-Title": "My lessons, 2nd edition"},
        {"OpenAI-Organization": "org-AbCdEfGhIjKlMnOpQrStUvW1", "OpenAI-Beta": "assistants=v2"},
        {"X-Request-Id": "123e4567-e89b-12d3-a456-426614174000"},
        {"Authorization-Like": "Basic ${MY_KEY}", "X-Auth-Token": "${A_KEY}.${B_KEY}"},
    ],
)
def test_headers_that_are_no_keys_are_taken(tmp_path: Path, headers: dict[str, str]) -> None:
    load_job(job(tmp_path, {"type": "openai", "model": "m", "headers": headers}))


def job(folder: Path, backend: dict[str, Any], **more: Any) -> Path:
    path = folder / "job.yaml"
    whole = {"name": "j", "conversations": 1, "space": "broad", "prompt": "education_dialogue"}
    path.write_text(yaml.safe_dump(whole | {"backends": {"default": backend}} | more))
    return path


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("simulator", "reasoning_effort: low"),
        ("gemini", "verbosity: low"),
        ("google-generativeai", "service_tier: flex"),
    ],
)
def test_a_setting_that_a_provider_lacks_is_a_sentence(tmp_path: Path, kind: str, setting: str) -> None:
    name = setting.partition(":")[0]
    backend = {"type": kind, "model": "m"} | yaml.safe_load(setting)
    with pytest.raises(
        JobError, match=rf"backends\.default\.{name}: a backend of type {kind} has no such setting"
    ):
        load_job(job(tmp_path, backend))


def test_a_tier_of_its_own_price_is_not_charged_at_the_list_s(tmp_path: Path) -> None:
    capped = {"limits": {"max_cost": 1.0}}
    model = {"type": "openai", "model": "gpt-4o-mini", "max_tokens": 10}
    assert load_job(job(tmp_path, model, **capped)).backends["default"].price is not None
    with pytest.raises(JobError, match="needs the price of gpt-4o-mini"):
        load_job(job(tmp_path, model | {"service_tier": "priority"}, **capped))


# --- requests ------------------------------------------------------------------------------------


async def test_effort_verbosity_and_tier_are_fields_of_the_request(fake: FakeServer) -> None:
    fake.says(answer(COMPLETION))
    await ask(backend(fake, reasoning_effort="none", verbosity="low", service_tier="flex"))
    sent = fake.seen[0].json
    assert (sent["reasoning_effort"], sent["verbosity"], sent["service_tier"]) == ("none", "low", "flex")


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
async def test_the_field_for_max_tokens_is_as_the_job_says(fake: FakeServer, field: Any) -> None:
    fake.says(answer(COMPLETION))
    await ask(backend(fake, max_tokens=7, max_tokens_field=field))
    assert fake.seen[0].json == {
        "model": "m", "messages": [{"role": "user", "content": "hello"}], field: 7,
    }  # fmt: skip


NEWER = {
    "error": {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
}


async def test_auto_learns_the_field_from_the_service_s_refusal_once(fake: FakeServer) -> None:
    fake.says(answer(NEWER, 400), answer(COMPLETION))
    it = backend(fake, max_tokens=7, retry_max_tokens=14)
    assert (await it.complete(request())).text == "hi"
    assert (await it.complete(request(scale=2))).text == "hi"
    await it.aclose()
    sent = [{k: v for k, v in seen.json.items() if k.startswith("max")} for seen in fake.seen]
    assert sent == [{"max_tokens": 7}, {"max_completion_tokens": 7}, {"max_completion_tokens": 14}]


async def test_a_field_that_the_job_names_is_not_changed(fake: FakeServer) -> None:
    fake.says(answer(NEWER, 400))
    with pytest.raises(CallError, match="max_completion_tokens"):
        await ask(backend(fake, max_tokens=7, max_tokens_field="max_tokens"))
    assert len(fake.seen) == 1


# --- several servers -----------------------------------------------------------------------------


async def test_all_servers_have_the_identity_of_the_first_or_the_one_that_is_named() -> None:
    urls = ("http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1")
    for known in (None, "http://127.0.0.1:7/v1/"):
        config = OpenAIConfig(model="m", base_url=urls[0], more_base_urls=urls[1:], known_as=known)
        it = make(config, timeout=60, connections=1, environ={})
        single = make(
            OpenAIConfig(model="m", base_url=known or urls[0]), timeout=60, connections=1, environ={}
        )
        each = list_servers(it)
        assert tuple(each) == urls
        assert {repr(one.identity) for one in (it, single, *each.values())} == {repr(single.identity)}


def test_each_server_is_asked_for_consent_and_none_takes_a_batch() -> None:
    config = OpenAIConfig(model="m", more_base_urls=("https://llm.example/v1",))
    assert [list_key_requests(one)[0].service for one in config.each_server] == [
        "api.openai.com",
        "llm.example",
    ]
    options: dict[str, Any] = {"timeout": 1, "connections": 1, "environ": {"OPENAI_API_KEY": KEY}}
    with pytest.raises(InputError, match=r"sent to llm\.example"):
        make(config, **options)
    made = make(config, **options, consents=gather_consents({}, ["llm.example=OPENAI_API_KEY"]))
    with pytest.raises(InputError, match="a batch goes to one server"):
        make_batch_service(config, made, environ={})


def test_the_identity_can_be_kept() -> None:
    config = OpenAIConfig(model="m", base_url="http://localhost:1/v1", query={"a": "b"})
    made = make(config, timeout=1, connections=1, environ={})
    assert json.loads(json.dumps(made.identity)) == made.identity
