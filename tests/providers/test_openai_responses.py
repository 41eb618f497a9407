"""The openai-responses adapter: requests, answers, failures, and whole runs with a strict server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import CallError, FailureKind, InputError
from edgen.core.values import Message, Reply, Usage
from edgen.providers import make, make_batch_service
from edgen.providers.openai_responses import PROVIDER
from edgen.providers.openai_responses.config import OpenAIResponsesConfig
from edgen.providers.openai_responses.online import read_reply
from edgen.simulator.text import respond
from tests.cli.command import Command
from tests.providers.dialects import Dialect, Server, listed, openai_error, serving
from tests.providers.fakes import TRUSTING, FakeServer, answer, request

KEY = "sk-0123456789abcdef"


def message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "m-2026-01-01",
    "output": [{"type": "reasoning", "id": "r", "summary": []}, message("hi")],
    "usage": {"input_tokens": 3, "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 36}},
}


def backend(fake: FakeServer, **settings: Any) -> Any:
    config = OpenAIResponsesConfig(model="m", base_url=f"{fake.url}/v1", **settings)
    return make(config, timeout=60, connections=4, environ={"OPENAI_API_KEY": KEY, **TRUSTING})


async def ask(it: Any, *texts: str, **more: Any) -> Reply:
    try:
        reply: Reply = await it.complete(request(*texts, **more))
    finally:
        await it.aclose()
    return reply


# --- requests ------------------------------------------------------------------------------------


async def test_the_least_that_is_sent(fake: FakeServer) -> None:
    fake.says(answer(RESPONSE))
    await ask(backend(fake), "hello", system="be kind")
    (seen,) = fake.seen
    assert (seen.method, seen.path) == ("POST", "/v1/responses")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.json == {
        "model": "m",
        "store": False,
        "input": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}],
    }


async def test_every_setting_is_sent(fake: FakeServer) -> None:
    fake.says(answer(RESPONSE))
    it = backend(
        fake,
        temperature=0.9,
        top_p=0.5,
        max_tokens=100,
        retry_max_tokens=300,
        reasoning_effort="low",
        verbosity="high",
        service_tier="flex",
        extra_body={
            "reasoning": {"summary": "auto"},
            "text": {"verbosity": "low"},
            "user": "me",
            "input": [],
        },
    )
    await ask(it, scale=3)
    sent = fake.seen[0].json
    del sent["input"]
    assert sent == {
        "model": "m",
        "store": False,
        "temperature": 0.9,
        "top_p": 0.5,
        "max_output_tokens": 300,
        "service_tier": "flex",
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"},
        "user": "me",
    }


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"input": "x"}, "input"),
        ({"instructions": "x"}, "instructions"),
        ({"stream": True}, "stream"),
        ({"background": True}, "background"),
        ({"reasoning": "low"}, "reasoning must be a mapping"),
    ],
)
def test_an_extra_body_that_cannot_be_sent_is_refused(extra: dict[str, Any], said: str) -> None:
    config = OpenAIResponsesConfig(model="m", base_url="http://localhost/v1", extra_body=extra)
    with pytest.raises(InputError, match=said):
        make(config, timeout=1, connections=1, environ={})


def test_what_the_api_lacks_is_a_sentence() -> None:
    config = OpenAIResponsesConfig(
        model="m", seed="auto", stop=("END",), auth="api-key", headers={"api-key": "${K}"}
    )
    assert {problem.path for problem in PROVIDER.problems(config)} == {"seed", "stop", "headers.api-key"}


def test_it_has_the_list_s_prices() -> None:
    assert PROVIDER.list_price(OpenAIResponsesConfig(model="gpt-4o-mini")) is not None


async def test_a_batch_s_line_holds_what_a_call_sends_and_its_answer_is_read_as_a_call_s() -> None:
    config = OpenAIResponsesConfig(model="m", base_url="http://localhost/v1", max_tokens=9)
    it: Any = make(config, timeout=1, connections=1, environ={})
    batches = make_batch_service(config, it, environ={})
    line = json.loads(batches.line("1-0-0", request("hi")))
    assert line["url"] == "/v1/responses"
    assert line["body"] == json.loads(it.body(request("hi")))

    def read(body: dict[str, Any]) -> Any:
        response = {"status_code": 200, "body": body}
        return batches.read(json.dumps({"custom_id": "1-0-0", "response": response, "error": None}).encode())

    said = {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]}
    assert read({"status": "completed", "output": [said]}).reply.text == "Hello."
    failed = read(
        {"status": "failed", "output": [], "error": {"code": "rate_limit_exceeded", "message": "wait"}}
    )
    assert failed.failure.kind is FailureKind.RATE_LIMIT
    await batches.aclose()
    await it.aclose()


@given(st.text())
def test_any_prompt_is_written_as_json(text: str) -> None:
    config = OpenAIResponsesConfig(model="m", base_url="http://localhost/v1")
    it: Any = make(config, timeout=1, connections=1, environ={})
    assert json.loads(it.body(request(text)))["input"] == [{"role": "user", "content": text}]


# --- answers -------------------------------------------------------------------------------------


async def test_a_reply(fake: FakeServer) -> None:
    fake.says(answer(RESPONSE))
    assert await ask(backend(fake)) == Reply("hi", "stop", None, Usage(3, 40), "m-2026-01-01")


def changed(**changes: Any) -> Any:
    return {"output": [message("a")], "status": "completed"} | changes


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (changed(), Reply("a")),
        (
            changed(output=[message("a"), {"type": "web_search_call", "status": "done"}, message("b")]),
            Reply("ab"),
        ),
        (
            changed(output=[{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}]),
            Reply(""),
        ),
        (
            changed(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            Reply("a", "length"),
        ),
        (
            changed(status="incomplete", incomplete_details={"reason": "content_filter"}),
            Reply("a", "content_filter"),
        ),
        (changed(status="incomplete", incomplete_details={"reason": "steered"}), Reply("a", "other")),
        (changed(status="incomplete", incomplete_details=None), Reply("a", "other")),
        (
            changed(output=[{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]),
            Reply("", refusal="I cannot."),
        ),
        (changed(usage={"input_tokens": 3}), Reply("a")),
        (changed(output=[message("half \ud83d")]), Reply("half �")),
        (changed(status="failed", error={"code": "server_error", "message": "oops"}), None),
        (changed(status="in_progress"), None),
        ({"choices": []}, None),
        ([], None),
    ],
)
def test_replies_of_every_shape(body: Any, reply: Reply | None) -> None:
    assert read_reply(json.dumps(body).encode()) == reply


@given(st.binary(max_size=300))
def test_no_body_makes_the_reader_raise(body: bytes) -> None:
    read_reply(body)


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (
            answer(changed(status="failed", error={"code": "server_error", "message": "m"})),
            FailureKind.SERVER_ERROR,
        ),
        (
            answer(changed(status="failed", error={"code": "rate_limit_exceeded", "message": "m"})),
            FailureKind.RATE_LIMIT,
        ),
        (
            answer(changed(status="failed", error={"code": "invalid_prompt", "message": "m"})),
            FailureKind.BAD_REQUEST,
        ),
        (answer(changed(status="in_progress")), FailureKind.BAD_RESPONSE),
        (answer(openai_error("no", code="invalid_api_key"), 401), FailureKind.AUTHENTICATION),
        (answer(openai_error("m", code="model_not_found"), 404), FailureKind.NOT_FOUND),
        (answer(openai_error("m", code="context_length_exceeded"), 400), FailureKind.CONTEXT_OVERFLOW),
    ],
)
async def test_failures_have_their_kind(fake: FakeServer, script: Any, kind: FailureKind) -> None:
    fake.says(script)
    with pytest.raises(CallError) as caught:
        await ask(backend(fake))
    assert caught.value.kind is kind


async def test_moderation_s_word_on_a_prompt_is_a_refusal(fake: FakeServer) -> None:
    fake.says(answer(openai_error("The prompt was flagged by moderation."), 400))
    assert await ask(backend(fake)) == Reply("", "content_filter", "The prompt was flagged by moderation.")


async def test_what_is_odd_is_said_once(fake: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    fake.says(answer(changed(status="incomplete", incomplete_details={"reason": "tired"}, usage={})))
    it = backend(fake)
    for _ in range(3):
        await it.complete(request())
    await it.aclose()
    assert ["(tired)" in text for text in caplog.messages] == [True, False]
    assert "reports no token counts" in caplog.messages[1]


# --- whole runs ----------------------------------------------------------------------------------

DIALECT = Dialect(
    path="/v1/responses",
    model="m",
    fields=frozenset(
        {"model", "input", "store", "max_output_tokens", "temperature", "top_p", "reasoning", "text"}
    ),
    models=listed("m"),
    bad_field=(
        400,
        openai_error("Unsupported parameter: '{}'. In the Responses API, it has moved or has no place."),
    ),
)


class Responses(Server):
    """A server of the Responses API that accepts no other API's requests."""

    def _completion(self, body: dict[str, Any]) -> Any:
        assert body["store"] is False
        messages = [Message(m["role"], m["content"]) for m in body["input"]]
        reply = respond(messages, seed=len(self.bodies), max_tokens=body.get("max_output_tokens"))
        cut = reply.finish_reason == "length"
        return RESPONSE | {
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [RESPONSE["output"][0], message(reply.text)],
        }


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.mark.parametrize(("kind", "code"), [("openai-responses", 0), ("openai", 5)])
def test_a_run_of_it_is_whole_where_that_api_is_spoken(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1=OPENAI_API_KEY")
    with serving(DIALECT, KEY, made=Responses) as server:
        config = {
            "type": kind,
            "model": "m",
            "base_url": f"{server.url}/v1",
            "max_tokens": 400,
            "reasoning_effort": "low",
        }
        job = {
            "name": "j", "seed": 1, "conversations": 4, "space": "education_dialogue", "prompt": "education_dialogue",
            "backends": {"default": config}, "limits": {"max_tokens": 1_000_000, "attempts": 2},
        }  # fmt: skip
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump(job))
        run = command("generate", path, "-o", tmp_path / "run", "--json")
        assert run.code == code, run.err
        doctor = command("doctor", path)
        assert doctor.code == code
    assert {body["max_output_tokens"] for body in server.bodies} <= {400, 800, 1600}
    assert json.loads(run.out)["accepted"] == (4 if code == 0 else 0)
