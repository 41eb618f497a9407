"""Servers that demand what well-known services demand, and refuse everything else.

Each `Dialect` follows its service's documentation and SDK (openai 3.52 for Azure, Bedrock and Vertex). The
bodies of refusals use the services' words, shortened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from edgen.core.values import Message
from edgen.simulator.text import respond

# Fields that all services accept.
COMMON = frozenset({"model", "messages", "temperature", "top_p", "stop"})
PENALTIES = frozenset({"frequency_penalty", "presence_penalty"})
OLDER, NEWER = "max_tokens", "max_completion_tokens"


def openai_error(message: str, kind: str = "invalid_request_error", code: Any = None) -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@dataclass(frozen=True)
class Dialect:
    """The demands of one service. `key`: the key's header, with `{}` for the key; None: the service needs no
    key. `query` must match exactly. `fields`: the accepted fields; any other is refused with `bad_field`.
    `settings`: further settings of a job that the service must accept. `models`: the body of its list of
    models; None: it has no list."""

    path: str
    model: str
    fields: frozenset[str]
    key: tuple[str, str] | None = ("Authorization", "Bearer {}")
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    models: Any = None
    unauthorised: tuple[int, Any] = (
        401,
        openai_error("Incorrect API key provided: {}.", code="invalid_api_key"),
    )
    no_path: tuple[int, Any] = (404, openai_error("Invalid URL"))
    no_model: tuple[int, Any] = (404, openai_error("The model does not exist", code="model_not_found"))
    bad_field: tuple[int, Any] = (400, openai_error("Unrecognized request argument supplied: {}"))


def listed(*names: str) -> Any:
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


_AZURE_401 = {
    "code": "401",
    "message": "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key.",
}
_AZURE = {
    "fields": COMMON | PENALTIES | {NEWER, "seed", "reasoning_effort", "verbosity"},
    "key": ("api-key", "{}"),
    "settings": {"seed": "auto", "reasoning_effort": "low"},
    "unauthorised": (401, {"error": _AZURE_401}),
    "no_path": (404, {"error": {"code": "404", "message": "Resource not found"}}),
    "bad_field": (
        400,
        openai_error(
            "Unsupported parameter: '{}' is not supported with this model. Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
        ),
    ),
}
_LOCAL_FIELDS = COMMON | PENALTIES | {OLDER, NEWER, "seed"}

DIALECTS: dict[str, Dialect] = {
    "Azure OpenAI, classic": Dialect(
        path="/openai/deployments/DEPLOYMENT/chat/completions",
        model="DEPLOYMENT",
        query={"api-version": "2024-10-21"},
        no_model=(
            404,
            {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}},
        ),
        **_AZURE,
    ),
    "Azure OpenAI, v1": Dialect(
        path="/openai/v1/chat/completions", model="DEPLOYMENT", models=listed("gpt-5-mini"), **_AZURE
    ),
    "OpenRouter": Dialect(
        path="/api/v1/chat/completions",
        model="VENDOR/MODEL",
        fields=COMMON | PENALTIES | {OLDER, NEWER, "seed", "reasoning_effort", "verbosity", "provider"},
        headers={"HTTP-Referer": "https://lessons.example", "X-Title": "Lessons"},
        settings={"verbosity": "low", "extra_body": {"provider": {"order": ["a"]}}},
        models=listed("VENDOR/MODEL"),
        unauthorised=(401, {"error": {"message": "No auth credentials found", "code": 401}}),
        no_model=(400, {"error": {"message": "VENDOR/MODEL is not a valid model ID", "code": 400}}),
    ),
    "Amazon Bedrock": Dialect(
        path="/openai/v1/chat/completions",
        model="openai.gpt-oss-20b-1:0",
        fields=COMMON | PENALTIES | {NEWER, "seed", "reasoning_effort", "service_tier"},
        settings={"reasoning_effort": "medium", "service_tier": "flex"},
        unauthorised=(403, {"Message": "Authentication failed: Please make sure your API Key is valid."}),
        bad_field=(400, openai_error("extraneous key [{}] is not permitted", "validation_error")),
    ),
    "Google Vertex AI": Dialect(
        path="/v1/projects/PROJECT/locations/global/endpoints/openapi/chat/completions",
        model="google/gemini-2.5-flash",
        fields=COMMON | PENALTIES | {OLDER, NEWER, "seed", "reasoning_effort", "extra_body"},
        settings={"reasoning_effort": "low", "seed": "auto"},
        unauthorised=(
            401,
            [
                {
                    "error": {
                        "code": 401,
                        "message": "Request had invalid authentication credentials.",
                        "status": "UNAUTHENTICATED",
                    }
                }
            ],
        ),
        no_path=(404, [{"error": {"code": 404, "message": "Not found", "status": "NOT_FOUND"}}]),
    ),
    "Groq": Dialect(
        path="/openai/v1/chat/completions",
        model="openai/gpt-oss-20b",
        fields=COMMON | PENALTIES | {OLDER, NEWER, "seed", "reasoning_effort", "service_tier"},
        settings={"seed": "auto", "reasoning_effort": "low", "service_tier": "on_demand"},
        models=listed("openai/gpt-oss-20b"),
        bad_field=(400, openai_error("property '{}' is unsupported")),
    ),
    "Together": Dialect(
        path="/v1/chat/completions",
        model="openai/gpt-oss-20b",
        fields=COMMON | PENALTIES | {OLDER, "seed", "reasoning_effort", "top_k", "repetition_penalty"},
        settings={"seed": "auto", "extra_body": {"top_k": 40}},
        models=[{"id": "openai/gpt-oss-20b", "object": "model"}],  # a list without further fields
    ),
    "Fireworks": Dialect(
        path="/inference/v1/chat/completions",
        model="accounts/fireworks/models/gpt-oss-20b",
        fields=COMMON | PENALTIES | {OLDER, NEWER, "seed", "reasoning_effort", "service_tier", "top_k"},
        settings={"reasoning_effort": "low"},
        models=listed("accounts/fireworks/models/gpt-oss-20b"),
        bad_field=(400, openai_error("Extra inputs are not permitted, field: '{}'", "invalid_request_error")),
    ),
    "DeepSeek": Dialect(
        path="/v1/chat/completions",
        model="deepseek-chat",
        fields=COMMON | PENALTIES | {OLDER, "thinking", "reasoning_effort"},
        settings={"extra_body": {"thinking": {"type": "disabled"}}},
        models=listed("deepseek-chat", "deepseek-reasoner"),
        unauthorised=(
            401,
            openai_error("Authentication Fails", "authentication_error", "invalid_request_error"),
        ),
    ),
    "Mistral": Dialect(
        path="/v1/chat/completions",
        model="mistral-small-latest",
        fields=COMMON | PENALTIES | {OLDER, "random_seed", "safe_prompt", "reasoning_effort"},
        settings={"extra_body": {"random_seed": 7}},
        models=listed("mistral-small-latest"),
        unauthorised=(401, {"detail": "Unauthorized"}),
        bad_field=(
            422,
            {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "{}"],
                        "msg": "Extra inputs are not permitted",
                    }
                ]
            },
        ),
    ),
    "vLLM": Dialect(
        path="/v1/chat/completions",
        model="MODEL",
        fields=_LOCAL_FIELDS | {"chat_template_kwargs", "reasoning_effort", "top_k", "min_p"},
        key=None,
        settings={"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
        models=listed("MODEL"),
        no_model=(
            404,
            {"object": "error", "message": "The model does not exist.", "type": "NotFoundError", "code": 404},
        ),
    ),
    "SGLang": Dialect(
        path="/v1/chat/completions",
        model="MODEL",
        fields=_LOCAL_FIELDS | {"chat_template_kwargs", "reasoning_effort", "top_k", "min_p"},
        key=None,
        models=listed("MODEL"),
    ),
    "llama.cpp": Dialect(
        path="/v1/chat/completions",
        model="any",
        fields=_LOCAL_FIELDS | {"cache_prompt", "min_p", "top_k", "chat_template_kwargs"},
        key=None,
        settings={"extra_body": {"cache_prompt": True}},
        models={"models": [], **listed("model.gguf")},
        no_path=(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}),
    ),
    "Ollama": Dialect(
        path="/v1/chat/completions",
        model="MODEL",
        fields=_LOCAL_FIELDS | {"reasoning_effort"},
        key=None,
        models=listed("MODEL"),
        no_model=(404, openai_error("model 'MODEL' not found", "api_error")),
    ),
    "LM Studio": Dialect(
        path="/v1/chat/completions",
        model="MODEL",
        fields=_LOCAL_FIELDS | {"top_k", "repeat_penalty"},
        key=None,
        models=listed("MODEL"),
        no_path=(200, {"error": "Unexpected endpoint or method. (POST /v2/chat/completions)"}),
    ),
    "LiteLLM": Dialect(
        path="/v1/chat/completions",
        model="MODEL",
        fields=_LOCAL_FIELDS | {"drop_params", "reasoning_effort", "metadata"},
        settings={"extra_body": {"drop_params": True}},
        models=listed("MODEL"),
        unauthorised=(
            401,
            openai_error("Authentication Error, Invalid proxy server token passed.", "auth_error", "401"),
        ),
    ),
}


class Server:
    """A server of one dialect that accepts these keys. `said`: its answers, one line a request."""

    def __init__(self, dialect: Dialect, keys: set[str]) -> None:
        self.dialect = dialect
        self.keys = keys
        self.url = ""
        self.said: list[str] = []
        self.bodies: list[dict[str, Any]] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        status, body = self._answer(request, await request.read())
        self.said.append(f"{status} {request.method} {request.rel_url}")
        return web.json_response(body, status=status)

    def _answer(self, request: web.BaseRequest, raw: bytes) -> tuple[int, Any]:
        dialect = self.dialect
        if request.path != dialect.path or request.method != "POST":
            listing = (
                request.path == dialect.path.replace("chat/completions", "models") and request.method == "GET"
            )
            return (200, dialect.models) if listing and dialect.models is not None else dialect.no_path
        if dict(request.query) != dict(dialect.query):
            return dialect.no_path
        if not self._known(request):
            return dialect.unauthorised
        if any(request.headers.get(name) != value for name, value in dialect.headers.items()):
            return 400, openai_error("a header is missing")
        body = json.loads(raw)
        for name in body:
            if name not in dialect.fields:
                status, refusal = dialect.bad_field
                return status, json.loads(json.dumps(refusal).replace("{}", name))
        if body["model"] != dialect.model:
            return dialect.no_model
        self.bodies.append(body)
        return 200, self._completion(body)

    def _known(self, request: web.BaseRequest) -> bool:
        """Return whether the request has the key in the key's own header, and no other header of a key."""
        if self.dialect.key is None:
            return True
        name, form = self.dialect.key
        others = {"Authorization", "api-key"} - {name}
        sent = request.headers.get(name)
        return sent in {form.format(key) for key in self.keys} and not others & set(request.headers)

    def _completion(self, body: dict[str, Any]) -> Any:
        messages = [Message(m["role"], m["content"]) for m in body["messages"]]
        room = body.get(NEWER) or body.get(OLDER)
        reply = respond(messages, seed=body.get("seed", len(self.bodies)), max_tokens=room)
        message = {"role": "assistant", "content": reply.text}
        return {
            "id": "c",
            "object": "chat.completion",
            "model": self.dialect.model,
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
        }


@contextlib.contextmanager
def serving(dialect: Dialect, *keys: str, made: type[Server] = Server) -> Iterator[Server]:
    """Run a server in a thread of its own, so that commands run in this process; yield it."""
    server, ready, ended = made(dialect, set(keys)), threading.Event(), threading.Event()

    async def work() -> None:
        runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await asyncio.to_thread(ended.wait)
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    assert ready.wait(180)
    try:
        yield server
    finally:
        ended.set()
        thread.join()
