"""The vertex adapter with a server that accepts only Vertex AI's API, and a token service like Google's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edgen.core.errors import CallError, FailureKind, InputError
from edgen.core.values import Reply, Usage
from edgen.providers import make
from edgen.providers.vertex.config import VertexConfig
from tests.late import Late
from tests.providers.fakes import TRUSTING, request

serialization: Any = Late("cryptography.hazmat.primitives.serialization")
rsa: Any = Late("cryptography.hazmat.primitives.asymmetric.rsa")

PATH = "/v1/projects/my-project/locations/global/publishers/google/models/m:generateContent"


class Google:
    """Vertex AI with its token service. A token is valid for `uses` calls."""

    def __init__(self) -> None:
        self.url = ""
        self.uses = 1000
        self.tokens: list[str] = []
        self.left = 0
        self.paths: list[str] = []
        self.grants = True

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/token":
            asked = await request.post()
            assert asked["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            assert str(asked["assertion"]).count(".") == 2
            if not self.grants:
                return web.json_response(
                    {"error": "invalid_grant", "error_description": "Account deleted"}, status=400
                )
            self.tokens.append(f"ya29.the-token-number-{len(self.tokens)}")
            self.left = self.uses
            return web.json_response(
                {"access_token": self.tokens[-1], "expires_in": 3600, "token_type": "Bearer"}
            )
        sent = request.headers.get("Authorization")
        if not self.tokens or sent != f"Bearer {self.tokens[-1]}" or not self.left:
            error = {"code": 401, "status": "UNAUTHENTICATED", "message": f"invalid credentials {sent}"}
            return web.json_response({"error": error}, status=401)
        if request.method != "POST" or request.query_string or "x-goog-api-key" in request.headers:
            return web.json_response({"error": {"code": 400, "message": "not as Vertex has it"}}, status=400)
        self.left -= 1
        self.paths.append(request.path)
        body = await request.json()
        if any("role" not in content for content in body["contents"]):
            return web.json_response(
                {"error": {"code": 400, "message": "Please use a valid role"}}, status=400
            )
        candidate = {
            "content": {"role": "model", "parts": [{"text": json.dumps(body)}]},
            "finishReason": "STOP",
        }
        counts = {"promptTokenCount": 3, "candidatesTokenCount": 4, "trafficType": "ON_DEMAND"}
        return web.json_response(
            {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "m-001"}
        )


@pytest.fixture
async def google() -> AsyncIterator[Google]:
    service = Google()
    runner = web.ServerRunner(web.Server(service.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield service
    await runner.cleanup()


@pytest.fixture
def account(google: Google, tmp_path: Path) -> dict[str, str]:
    """Return an environment with a service account."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "account.json"
    facts = {
        "type": "service_account", "client_email": "job@my-project.iam.gserviceaccount.com",
        "private_key_id": "1", "private_key": key.decode(), "token_uri": f"{google.url}/token",
    }  # fmt: skip
    file.write_text(json.dumps(facts))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(file), **TRUSTING}


def backend(google: Google, environ: dict[str, str], **settings: Any) -> Any:
    config = VertexConfig(**{"model": "m", "project": "my-project", "base_url": google.url, **settings})
    return make(config, timeout=60, connections=4, environ=environ)


async def ask(it: Any, times: int = 1) -> Reply:
    try:
        for _ in range(times):
            reply: Reply = await it.complete(request("hello", system="be kind"))
    finally:
        await it.aclose()
    return reply


async def test_what_is_sent_and_read(google: Google, account: dict[str, str]) -> None:
    reply = await ask(backend(google, account, temperature=0.5, top_k=40), 3)
    assert json.loads(reply.text) == {
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "generationConfig": {"temperature": 0.5, "topK": 40},
    }
    assert (reply.usage, reply.model) == (Usage(3, 4), "m-001")
    assert google.paths == [PATH] * 3
    assert len(google.tokens) == 1, "one token serves all calls"


async def test_a_token_that_is_refused_is_got_anew(google: Google, account: dict[str, str]) -> None:
    google.uses = 2
    await ask(backend(google, account), 5)
    assert len(google.tokens) == 3


async def test_a_path_of_ones_own(google: Google, account: dict[str, str]) -> None:
    await ask(backend(google, account, model="endpoints/123", location="europe-west4"))
    assert google.paths == ["/v1/projects/my-project/locations/europe-west4/endpoints/123:generateContent"]


async def test_an_account_that_is_refused_is_a_sentence(google: Google, account: dict[str, str]) -> None:
    google.grants = False
    with pytest.raises(CallError, match=r"google-auth gets no access token .*Account deleted") as caught:
        await ask(backend(google, account))
    assert caught.value.kind is FailureKind.AUTHENTICATION


@pytest.mark.parametrize("text", [None, "", "no JSON", '{"type": "service_account"}'])
async def test_a_file_that_is_none_is_a_sentence(google: Google, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "account.json"
    if text is not None:
        file.write_text(text)
    it = backend(google, {"GOOGLE_APPLICATION_CREDENTIALS": str(file), **TRUSTING})
    with pytest.raises(CallError, match="google-auth gets no access token"):
        await ask(it)


async def test_a_token_goes_nowhere_without_consent(google: Google, account: dict[str, str]) -> None:
    alone = {name: value for name, value in account.items() if name not in TRUSTING}
    with pytest.raises(CallError, match="GOOGLE_AUTH") as caught:
        await ask(backend(google, alone))
    assert caught.value.kind is FailureKind.AUTHENTICATION
    assert not google.tokens
    with pytest.raises(InputError, match=r"--trust-host models\.example\.org=GOOGLE_AUTH"):
        backend(google, alone, base_url="https://models.example.org")


async def test_no_message_shows_the_token(google: Google, account: dict[str, str]) -> None:
    google.uses = 0  # the refusal repeats the sent token
    with pytest.raises(CallError) as caught:
        await ask(backend(google, account))
    assert caught.value.kind is FailureKind.AUTHENTICATION
    assert "ya29" not in f"{caught.value} {caught.value!r} {vars(caught.value)}"


@pytest.mark.parametrize(
    ("location", "host"),
    [("global", "aiplatform.googleapis.com"), ("europe-west4", "europe-west4-aiplatform.googleapis.com")],
)
def test_its_own_hosts(location: str, host: str) -> None:
    config = VertexConfig(model="m", project="my-project", location=location)
    it = make(config, timeout=1, connections=1, environ={})
    assert it.identity["base_url"] == f"https://{host}"


def test_a_name_that_would_change_the_address_is_refused(google: Google) -> None:
    with pytest.raises(InputError, match="not the name of a Gemini model"):
        backend(google, {}, model="../x")
