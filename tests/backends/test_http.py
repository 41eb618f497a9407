"""Texts, errors and waits are read right, whatever a server sends; one attempt is one request."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from edgen.backends.failures import (
    MAX_MESSAGE,
    MAX_WAIT,
    ErrorBody,
    clean,
    failure,
    kind_of_status,
    read_error,
    retry_after,
    scrub,
)
from edgen.backends.http import MAX_ANSWER, Http, base_address, below, explain, find_key, is_local, proxy_for
from edgen.errors import CallError, FailureKind, InputError, ProviderError
from tests.backends.fakes import Answer, FakeServer, answer, raw_serving
from tests.backends.gemini_grpc import Certificate

KEY = "sk-0123456789abcdef"
NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def by_status(status: int, error: ErrorBody) -> FailureKind:
    return kind_of_status(status)


def make(url: str, *, timeout: float = 5.0, environ: dict[str, str] | None = None) -> Http:
    return Http(
        URL(url),
        headers={"Authorization": f"Bearer {KEY}"},
        key=KEY,
        timeout=timeout,
        connections=4,
        environ=environ or {},
        classify=by_status,
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


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("plain", "plain"),
        ("naïve 😀", "naïve 😀"),
        ("half \ud83d", "half �"),
        ("\udc00 other half", "� other half"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_lone_surrogates_are_replaced(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=50))
def test_a_scrubbed_text_can_be_written_as_utf8(text: str) -> None:
    assert scrub(scrub(text).encode().decode()) == scrub(text)


@given(st.text(alphabet=st.characters(exclude_categories=())), st.integers(0, 2 * MAX_MESSAGE))
def test_a_cleaned_message_is_one_short_printable_line_without_the_key(text: str, place: int) -> None:
    line = clean(text + "x" * place + KEY + text, KEY)
    assert KEY not in line
    assert len(line) <= MAX_MESSAGE
    assert line.isprintable()


def test_a_key_at_the_cut_is_not_shown_by_half() -> None:
    assert KEY[:8] not in clean("x" * (MAX_MESSAGE - 10) + KEY, KEY)


def test_a_placeholder_is_no_key() -> None:
    assert clean("the maximum context", "x") == "the maximum context"


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {"error": {"message": "m", "type": "t", "param": None, "code": "c"}},
            ErrorBody("m", code="c", type="t"),
        ),
        ([{"error": {"message": "m", "code": 429, "status": "S"}}], ErrorBody("m", code="429", status="S")),
        ({"error": {"message": "m", "details": [{"a": 1}, 2]}}, ErrorBody("m", details=({"a": 1},))),
        ({"error": "model not found"}, ErrorBody("model not found")),
        (
            {"object": "error", "message": "m", "type": "BadRequestError", "code": 400},
            ErrorBody("m", code="400", type="BadRequestError"),
        ),
        ({"detail": "Not Found"}, ErrorBody("Not Found")),
        ({"detail": [{"loc": ["body"]}]}, ErrorBody('[{"loc": ["body"]}]')),
        ({"error": {"reason": "odd"}}, ErrorBody('{"reason": "odd"}')),
        ({"error": {"message": 5, "code": True, "details": {}}}, ErrorBody("5")),
        ({"error": None, "choices": []}, None),
        ({"message": {"role": "assistant"}}, None),
        ([], None),
        ("text", None),
        (None, None),
    ],
)
def test_errors_of_every_known_shape_are_read(body: object, error: ErrorBody | None) -> None:
    assert read_error(json.dumps(body).encode()) == error


@given(st.binary(max_size=200))
def test_no_body_makes_the_reader_of_errors_raise(body: bytes) -> None:
    for status in (200, 302, 400, 500):
        call_error = failure(status, {}, body, classify=by_status, now=NOW, key=KEY)
        assert call_error.message


def test_nesting_without_end_is_no_error_body() -> None:
    assert read_error(b'{"error":' + b"[" * 200_000) is None


def test_a_page_becomes_its_words() -> None:
    page = b"<html><head><style>p {}</style><script>let a</script></head><body><h1>502</h1>Bad&nbsp;Gateway"
    error = failure(502, {}, page, classify=by_status, now=NOW)
    assert error.message == "502 Bad&nbsp;Gateway"
    assert failure(502, {}, b"<" * 60_000, classify=by_status, now=NOW).status == 502


def test_the_status_that_an_error_with_200_names_counts() -> None:
    def with_code(code: object) -> CallError:
        body = json.dumps({"error": {"message": "m", "code": code}}).encode()
        return failure(200, {}, body, classify=by_status, now=NOW)

    assert (with_code(429).kind, with_code(429).status) == (FailureKind.RATE_LIMIT, 429)
    assert (with_code("401").kind, with_code("401").status) == (FailureKind.AUTHENTICATION, 401)
    assert with_code("odd").kind is FailureKind.SERVER_ERROR
    assert with_code(None).kind is FailureKind.SERVER_ERROR


STATUSES = {
    FailureKind.AUTHENTICATION: (401,),
    FailureKind.QUOTA: (402,),
    FailureKind.PERMISSION: (403,),
    FailureKind.NOT_FOUND: (301, 302, 307, 308, 404, 405, 410),
    FailureKind.CONNECTION: (407, 499),
    FailureKind.TIMEOUT: (408, 504, 522, 524),
    FailureKind.RATE_LIMIT: (429,),
    FailureKind.OVERLOADED: (503, 529),
    FailureKind.SERVER_ERROR: (409, 425, 500, 501, 502, 520, 599),
    FailureKind.BAD_REQUEST: (400, 411, 413, 415, 418, 422, 451),
    FailureKind.BAD_RESPONSE: (100, 204, 206, 600),
}


def test_every_status_has_a_kind_and_every_kind_that_a_status_can_have_is_had() -> None:
    assert {kind: {kind_of_status(s) for s in statuses} for kind, statuses in STATUSES.items()} == {
        kind: {kind} for kind in STATUSES
    }
    assert set(FailureKind) - set(STATUSES) == {FailureKind.CONTEXT_OVERFLOW}  # only wording tells that


# --- waits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "delay", "seconds"),
    [
        ({}, None, None),
        ({"Retry-After": "7"}, None, 7.0),
        ({"Retry-After": "1.5"}, None, 1.5),
        ({"Retry-After": " 2 "}, None, 2.0),
        ({"Retry-After": "0"}, None, 0.0),
        ({"Retry-After": "-1"}, None, None),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": ""}, None, None),
        ({"Retry-After": "nan"}, None, None),
        ({"Retry-After": "inf"}, None, None),
        ({"Retry-After": "86400"}, None, MAX_WAIT),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:50 GMT"}, None, 30.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:00 GMT"}, None, 0.0),
        ({"Retry-After": "Tue, 14 Nov 2033 22:13:00 GMT"}, None, MAX_WAIT),
        ({"Retry-After": "Tue, 99 Nov 2023 22:13:00 GMT"}, None, None),
        ({"retry-after-ms": "250"}, None, 0.25),
        ({"retry-after-ms": "250", "Retry-After": "1"}, None, 0.25),
        ({"retry-after-ms": "soon", "Retry-After": "1"}, None, 1.0),
        ({}, "3s", 3.0),
        ({}, "1.5s", 1.5),
        ({}, "0s", 0.0),
        ({}, "3.000000001s", 3.000000001),
        ({}, "3m", None),
        ({}, "-3s", None),
        ({}, 3, None),
        ({"Retry-After": "1"}, "3s", 1.0),
    ],
)
def test_retry_after(headers: dict[str, str], delay: object, seconds: float | None) -> None:
    details = ({"@type": "type.googleapis.com/google.rpc.Help"}, {"retryDelay": delay})
    assert retry_after(headers, details, NOW) == seconds


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


@pytest.mark.parametrize("url", ["http://h/v1?key=abc", "http://h/v1#part", "http://", "http://h:port/v1"])
def test_an_address_that_is_none_is_named_without_what_it_may_hide(url: str) -> None:
    with pytest.raises(InputError) as caught:
        base_address(url)
    assert "abc" not in str(caught.value)
    assert "base_url" in str(caught.value)


def test_a_slash_at_the_end_of_an_address_does_not_matter() -> None:
    for base in ("http://h/v1/", "http://h/v1"):
        assert below(base_address(base), "models") == URL("http://h/v1/models")
    for base in ("http://h/", "http://h"):
        assert below(base_address(base), "models") == URL("http://h/models")


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
    assert proxy_for(URL(url), environ) == ({} if proxy is None else {"proxy": URL(proxy)})


def test_a_proxy_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="HTTPS_PROXY names a socks5 proxy"):
        proxy_for(URL("https://a.example.com"), {"HTTPS_PROXY": "socks5://p:1080"})


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


@pytest.mark.parametrize("status", [s for statuses in STATUSES.values() for s in statuses if 204 <= s < 600])
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


async def test_nothing_listens() -> None:
    error = await refused(make("http://127.0.0.1:1"), "http://127.0.0.1:1/v1")
    assert error.kind is FailureKind.CONNECTION
    assert "127.0.0.1:1 (" in error.message


async def test_no_such_name() -> None:
    url = f"http://{'x' * 64}.example"  # too long to be looked up anywhere
    assert (await refused(make(url), url)).kind is FailureKind.CONNECTION


def test_a_name_that_is_not_known_is_worded() -> None:
    place = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, None, None)
    error = aiohttp.ClientConnectorDNSError(place, OSError(-2, "Name or service not known"))
    kind, message = explain(error, "h:80", 5)
    assert kind is FailureKind.CONNECTION
    assert "the name of h:80 is not known" in message


async def test_no_answer_in_time(fake: FakeServer) -> None:
    fake.says(Answer(act="hang"))
    error = await refused(make(fake.url, timeout=0.1), fake.url)
    assert error.kind is FailureKind.TIMEOUT
    assert "within 0.1 s" in error.message
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
