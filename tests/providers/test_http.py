"""Keys, proxies and addresses are read correctly, and one attempt is one request, for any answer."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from edgen.core.errors import CallError, FailureKind, InputError, ProviderError
from edgen.providers.base import Key, Link
from edgen.providers.credentials import Credentials
from edgen.providers.failures import MAX_MESSAGE, ErrorBody, kind_of_status
from edgen.providers.http import (
    MAX_ANSWER,
    Http,
    append_path,
    base_address,
    explain_failure,
    find_proxy,
    is_local,
    send_until,
)
from edgen.providers.keys import find_key
from tests.providers.fakes import Answer, FakeServer, answer, raw_serving
from tests.providers.gemini_grpc import Certificate

KEY = "sk-0123456789abcdef"
NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def by_status(status: int, error: ErrorBody) -> FailureKind:
    return kind_of_status(status)


def make(url: str, *, timeout: float = 60.0, environ: dict[str, str] | None = None) -> Http:
    return Http(
        URL(url),
        Credentials(Key(KEY), lambda key: {"Authorization": f"Bearer {key}"}),
        Link(timeout, 4, environ or {}),
        by_status,
        now=lambda: NOW,
    )


async def refused(http: Http, url: str) -> CallError:
    try:
        with pytest.raises(CallError) as caught:
            await http.post(URL(url), b"{}")
    finally:
        await http.aclose()
    assert KEY not in str(caught.value)
    assert len(caught.value.message) <= MAX_MESSAGE
    return caught.value


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("vllm", True),
        ("box.local", True),
        ("host.docker.internal", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("10.1.2.3", True),
        ("192.168.0.9", True),
        ("169.254.1.1", True),
        ("api.openai.com", False),
        ("8.8.8.8", False),
        ("2606:4700::1111", False),
        ("localhost.example.com", False),
    ],
)
def test_what_counts_as_local(host: str, local: bool) -> None:
    assert is_local(host) is local


@pytest.mark.parametrize(
    "url", ["http://h/v1?key=abc", "http://h/v1#part", "http://", "http://h:port/v1?abc"]
)
def test_an_address_that_is_none_is_named_without_what_it_may_hide(url: str) -> None:
    with pytest.raises(InputError) as caught:
        base_address(url)
    assert "abc" not in str(caught.value)
    assert "base_url" in str(caught.value)


def test_a_slash_at_the_end_of_an_address_does_not_matter() -> None:
    for base in ("http://h/v1/", "http://h/v1"):
        assert append_path(base_address(base), "models") == URL("http://h/v1/models")
    for base in ("http://h/", "http://h"):
        assert append_path(base_address(base), "models") == URL("http://h/models")


def test_the_first_key_that_is_set_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    names = ("A_KEY", "B_KEY")

    def find(**environ: str) -> str | None:
        return find_key(names, environ, service="s", required=False)

    assert find() is None
    assert find(A_KEY="", B_KEY=" second\n") == "second"
    assert find(A_KEY="same", B_KEY="same") == "same"
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "edgen"):
        assert find(A_KEY="first-value", B_KEY="second-value") == "first-value"
    assert "A_KEY and B_KEY are both set; A_KEY is used" in caplog.text
    assert "value" not in caplog.text


def test_a_missing_key_is_asked_for_by_name() -> None:
    with pytest.raises(ProviderError, match="export A_KEY="):
        find_key(("A_KEY", "B_KEY"), {}, service="the service", required=True)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "“quoted”", "bell\a"])
def test_a_key_that_no_header_takes_is_refused_unsaid(key: str) -> None:
    with pytest.raises(ProviderError, match="A_KEY") as caught:
        find_key(("A_KEY",), {"A_KEY": key}, service="s", required=False)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://a.example.com", {}, None),
        ("https://a.example.com", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://a.example.com", {"https_proxy": "p:3128"}, "http://p:3128"),
        ("https://a.example.com", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://a.example.com", {"HTTP_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://a.example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b.org,example.com"}, None),
        ("https://a.example.com", {"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
        ("http://127.0.0.1:8000", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://vllm:8000", {"HTTP_PROXY": "http://p:3128"}, None),
    ],
)
def test_proxies(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert find_proxy(URL(url), environ) == ({} if proxy is None else {"proxy": URL(proxy)})


def test_a_proxy_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="HTTPS_PROXY names a socks5 proxy"):
        find_proxy(URL("https://a.example.com"), {"HTTPS_PROXY": "socks5://p:1080"})


@pytest.mark.parametrize(
    "value", ["http://me:secret@h:abc", "me:secret@h:99999", "http://[me", "http://[]@", "http://"]
)
def test_a_proxy_that_is_no_address_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(InputError, match="HTTPS_PROXY holds no address of a proxy") as caught:
        find_proxy(URL("https://a.example.com"), {"HTTPS_PROXY": value})
    assert "me" not in str(caught.value).replace("name", "")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["SK_PROJ_" + "A1" * 20, "AKIAIOSFODNN7EXAMPLE", "sk-proj-1", "A_B_" * 8])
def test_a_name_that_could_be_a_key_is_not_shown(name: str) -> None:
    with pytest.raises(ProviderError, match="Its name is not shown") as caught:
        find_key((name,), {}, service="s", required=True)
    assert name not in str(caught.value)


async def test_a_plain_call_through_a_proxy_brings_both_passwords(fake: FakeServer) -> None:
    fake.says(answer({"ok": True}))
    http = make(
        "http://model.example", environ={"http_proxy": fake.url.replace("http://", "http://me:secret@")}
    )
    for _ in range(2):
        assert await http.post(URL("http://model.example/v1"), b"{}") == b'{"ok": true}'
    await http.aclose()
    for seen in fake.seen:
        assert seen.headers["host"] == "model.example"
        assert seen.headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"
        assert seen.headers["authorization"] == f"Bearer {KEY}"


async def test_a_proxy_on_the_way_to_tls_gets_its_password_and_not_the_key() -> None:
    async with raw_serving(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as proxy:
        environ = {"HTTPS_PROXY": proxy.url.replace("http://", "http://me:secret@")}
        http = make("https://model.example", environ=environ)
        error = await refused(http, "https://model.example/v1")
    assert error.kind is FailureKind.CONNECTION
    assert "the proxy refused the way to model.example:443: 407" in error.message
    assert proxy.received.startswith(b"CONNECT model.example:443")
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0" in proxy.received
    assert KEY.encode() not in proxy.received


# --- one attempt ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status",
    [204, 206, 301, 308, 400, 401, 402, 403, 404, 405, 408, 409, 422, 425, 429, 500, 502, 503, 504, 529],
)
async def test_a_status_is_one_request_and_its_kind(fake: FakeServer, status: int) -> None:
    body = b"" if status == 204 else json.dumps({"error": {"message": f"no, {KEY}"}}).encode()
    fake.says(Answer(body, status))
    error = await refused(make(fake.url), fake.url)
    assert len(fake.seen) == 1
    if status >= 300:
        assert error.kind is kind_of_status(status)
    assert error.status == (500 if status == 206 else status)


async def test_a_wait_is_passed_on(fake: FakeServer) -> None:
    fake.says(answer({"error": {"message": "later"}}, 429, Retry_After="Tue, 14 Nov 2023 22:13:22 GMT"))
    assert (await refused(make(fake.url), fake.url)).retry_after == 2.0


async def test_a_redirect_is_not_followed(fake: FakeServer) -> None:
    fake.says(Answer(b"", 307, {"Location": f"http://127.0.0.1:1/?{KEY}"}))
    error = await refused(make(fake.url), fake.url)
    assert error.kind is FailureKind.NOT_FOUND
    assert "moved to http://127.0.0.1:1" in error.message
    assert len(fake.seen) == 1


@pytest.mark.parametrize("connected", [True, False])
async def test_a_request_is_not_written_after_its_permit(fake: FakeServer, connected: bool) -> None:
    """A cluster's worker that was suspended between its permit and the request sends nothing."""
    fake.says(Answer(b"{}"))
    http, now = make(fake.url), asyncio.get_running_loop().time()
    if connected:
        send_until.set(now + 60)
        assert await http.post(URL(fake.url), b"{}")
    send_until.set(now - 1)
    await refused(http, fake.url)
    assert len(fake.seen) == connected


async def test_nothing_listens() -> None:
    error = await refused(make("http://127.0.0.1:1"), "http://127.0.0.1:1/v1")
    assert error.kind is FailureKind.CONNECTION
    assert "127.0.0.1:1 (" in error.message


async def test_no_such_name() -> None:
    url = f"http://{'x' * 64}.example"  # too long for any lookup
    assert (await refused(make(url), url)).kind is FailureKind.CONNECTION


def test_a_name_that_is_not_known_is_worded() -> None:
    place = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, None, None)
    error = aiohttp.ClientConnectorDNSError(place, OSError(-2, "Name or service not known"))
    kind, message = explain_failure(error, "h:80", 5)
    assert kind is FailureKind.CONNECTION
    assert "the name of h:80 is not known" in message


async def test_no_answer_in_time(fake: FakeServer) -> None:
    fake.says(Answer(act="hang"))
    error = await refused(make(fake.url, timeout=1.0), fake.url)
    assert error.kind is FailureKind.TIMEOUT
    assert "within 1 s" in error.message
    assert len(fake.seen) == 1


async def test_a_body_that_breaks_off(fake: FakeServer) -> None:
    fake.says(Answer(b'{"choi', act="cut"))
    error = await refused(make(fake.url), fake.url)
    assert error.kind is FailureKind.CONNECTION
    assert len(fake.seen) == 1


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (b"", FailureKind.CONNECTION),
        (b"SSH-2.0-OpenSSH_9.6\r\n", FailureKind.BAD_RESPONSE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", FailureKind.BAD_RESPONSE),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
            FailureKind.CONNECTION,
        ),
    ],
    ids=["nothing", "ssh", "two lengths", "no gzip"],
)
async def test_what_is_no_http(script: bytes, kind: FailureKind) -> None:
    async with raw_serving(script) as server:
        assert (await refused(make(server.url), server.url)).kind is kind


async def test_tls_asked_of_a_server_without() -> None:
    async with raw_serving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        secure = server.url.replace("http:", "https:")
        error = await refused(make(secure), secure)
    assert error.kind is FailureKind.CONNECTION
    assert "check https in base_url" in error.message


async def test_a_certificate_that_nobody_vouches_for(certificate: Certificate, tmp_path: Path) -> None:
    pem = tmp_path / "server.pem"
    pem.write_bytes(certificate.private + certificate.public)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    async with raw_serving(b"", context) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")
        error = await refused(make(url), url)
    assert error.kind is FailureKind.CONNECTION
    assert "certificate verify failed" in error.message
    assert not server.received


async def test_an_answer_without_end_is_cut_off(fake: FakeServer) -> None:
    fake.says(Answer(b" " * (MAX_ANSWER + 1)))
    error = await refused(make(fake.url), fake.url)
    assert error.kind is FailureKind.BAD_RESPONSE
    assert "larger than 32 MiB" in error.message


async def test_cancellation_passes_through(fake: FakeServer) -> None:
    fake.says(Answer(act="hang"))
    http = make(fake.url)
    call = asyncio.ensure_future(http.post(URL(fake.url), b"{}"))
    await fake.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await http.aclose()


async def test_closing_twice_and_without_a_call() -> None:
    http = make("http://127.0.0.1:1")
    await http.aclose()
    await http.aclose()


async def test_connections_are_kept_and_calls_run_at_once(fake: FakeServer) -> None:
    fake.says(answer({"ok": True}))
    http = make(fake.url)
    bodies = await asyncio.gather(*(http.post(URL(fake.url), b"%d" % i) for i in range(20)))
    await http.aclose()
    assert bodies == [b'{"ok": true}'] * 20
    assert sorted(int(seen.body) for seen in fake.seen) == list(range(20))
