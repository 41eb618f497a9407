"""Rules for all batch services: failures of every class, and keys that go to no other host."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from yarl import URL

from edgen.core.errors import CallError, FailureKind
from edgen.providers import make, make_batch_service, sdk
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.base import Key
from edgen.providers.batches import BatchService, Sending
from edgen.providers.credentials import Credentials
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.openai import online as online_openai
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.sdk import SdkCalls, system_certificates
from edgen.providers.sdk_batches import read_members, read_number_member, read_text_member
from edgen.providers.trust import place_of
from tests import ROOT
from tests.late import Late
from tests.providers.batches import test_anthropic, test_gemini, test_openai
from tests.providers.batches.service import Service
from tests.providers.batches.test_openai import failing
from tests.providers.fakes import Answer, answer, raw_serving
from tests.providers.gemini_grpc import Certificate

NOBODY = Credentials(Key(), lambda _: {})
anthropic, openai, httpx2 = Late("anthropic"), Late("openai"), Late("httpx2")
genai_errors = Late("google.genai.errors")

KINDS = {"openai": test_openai, "gemini": test_gemini, "anthropic": test_anthropic}
NAMES = {"openai": "batch_0", "gemini": "batches/0", "anthropic": "msgbatch_0"}
FILES = {"openai": "out", "gemini": "files/out", "anthropic": "msgbatch_0"}


@contextlib.asynccontextmanager
async def opened(kind: str, url: str, **settings: Any) -> AsyncIterator[BatchService]:
    module: Any = KINDS[kind]
    async with module.opened(url, **settings) as it:
        yield it


def sending(kind: str, folder: Path) -> Sending:
    """Write a batch of one line; return it, ready to be created."""
    (folder / "in").write_bytes(b"{}\n")
    return Sending(file=folder / "in", file_id=FILES[kind], token="t")


def steps(it: BatchService, kind: str, folder: Path) -> list[Any]:
    """Return one call of each method that uses the network; `state` and `cancel` come before
    `forget`, which Anthropic lacks."""
    own = sending(kind, folder)
    calls: list[Any] = [
        it.upload(own.file, "t"),
        it.create(own),
        it.find(own),
        it.download(FILES[kind], folder / "out"),
        it.state(NAMES[kind]),
        it.cancel(NAMES[kind]),
    ]
    return calls if kind == "anthropic" else [*calls, it.forget(FILES[kind])]  # Anthropic has no files


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "expected", "retry_after"),
    [
        (answer({"error": {"message": "slow"}}, 429, Retry_After="7"), FailureKind.RATE_LIMIT, 7.0),
        (answer({"error": {"message": "no"}}, 401), FailureKind.AUTHENTICATION, None),
        (answer({"error": {"message": "no"}}, 403), FailureKind.PERMISSION, None),
        (answer({"error": {"message": "no"}}, 400), FailureKind.BAD_REQUEST, None),
        (answer({"error": {"message": "oops"}}, 500), FailureKind.SERVER_ERROR, None),
        (answer(b"<html>full</html>", 503, Content_Type="text/html"), FailureKind.OVERLOADED, None),
        (answer(b"", 504), FailureKind.TIMEOUT, None),
        (answer([1], 502), FailureKind.SERVER_ERROR, None),
        (answer("text", 404, Content_Type="text/plain"), FailureKind.NOT_FOUND, None),
    ],
)
async def test_every_refusal_is_classified_as_online(
    service: Service,
    kind: str,
    step: Answer,
    expected: FailureKind,
    retry_after: float | None,
    tmp_path: Path,
) -> None:
    async with opened(kind, service.url) as it:
        for number_, call in enumerate(steps(it, kind, tmp_path)):
            service.seen.clear()
            service.next = [step]
            if number_ == 6 and expected is FailureKind.NOT_FOUND:
                await call  # the file is already deleted
                continue
            if number_ == 5 and expected is FailureKind.BAD_REQUEST:
                getattr(service, f"{kind}_batch")()  # a batch that still works
            failure = await failing(call)
            assert (failure.kind, failure.status, failure.retry_after) == (expected, step.status, retry_after)
            assert len(service.seen) == 1 + (
                number_ == 5 and expected is FailureKind.BAD_REQUEST
            )  # one attempt


async def test_no_message_holds_the_key(service: Service, kind: str) -> None:
    key = KINDS[kind].KEY
    async with opened(kind, service.url) as it:
        service.next = [answer({"error": {"message": f"Incorrect key {key}\x1b[2J"}}, 401)]
        assert (await failing(it.state(NAMES[kind]))).message == "Incorrect key [key] [2J"
        assert key not in repr(it)


async def test_nobody_listens(kind: str, tmp_path: Path) -> None:
    async with opened(kind, "http://127.0.0.1:9") as it:
        for call in steps(it, kind, tmp_path):
            failure = await failing(call)
            assert failure.kind is FailureKind.CONNECTION
            assert "no connection to 127.0.0.1:9 (Connection refused); check base_url" in failure.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("script", "expected"), [(b"SSH-2.0\r\n", FailureKind.CONNECTION), (b"", FailureKind.CONNECTION)]
)
async def test_no_http(kind: str, script: bytes, expected: FailureKind, tmp_path: Path) -> None:
    async with raw_serving(script) as raw, opened(kind, raw.url) as it:
        assert (await failing(it.state(NAMES[kind]))).kind is expected
        assert (await failing(it.create(sending(kind, tmp_path)))).kind is expected


async def test_a_service_that_moved(service: Service, kind: str, tmp_path: Path) -> None:
    async with opened(kind, service.url) as it:
        service.next = [answer(b"", 308, Location="https://example.org/v2")]
        failure = await failing(it.create(sending(kind, tmp_path)))
    assert failure.kind is FailureKind.NOT_FOUND
    assert "moved to https://example.org/v2; put that into base_url" in failure.message
    assert len(service.seen) == 1


async def test_a_download_elsewhere_goes_without_the_key(service: Service, kind: str, tmp_path: Path) -> None:
    elsewhere = service.url.replace("127.0.0.1", "localhost")
    async with opened(kind, service.url) as it:
        service.next = [answer(b"", 302, Location=f"{elsewhere}/store/1"), answer(b"{}\n")]
        await it.download(FILES[kind], tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"{}\n"
    carriers = ("authorization", "x-goog-api-key", "x-api-key")
    first, second = ([seen.headers.get(name) for name in carriers] for seen in service.seen)
    assert KINDS[kind].KEY in str(first)
    assert second == [None, None, None]


async def test_a_proxy_is_that_of_the_environment_handed_in(service: Service, kind: str) -> None:
    place = "http://batches.example"
    config: Any = {
        "openai": OpenAIConfig(model="m", base_url=f"{place}/v1"),
        "gemini": GeminiConfig(model="m", base_url=place),
        "anthropic": AnthropicConfig(model="m", base_url=place),
    }[kind]
    environ = {"HTTP_PROXY": service.url.replace("//", "//me:secret@")}
    backend = make(config, timeout=1, connections=1, environ=environ)
    getattr(service, f"{kind}_batch")()
    it = make_batch_service(config, backend, environ=environ)
    assert (await it.state(NAMES[kind])).id == NAMES[kind]
    assert await it.find(Sending(token="t", requests=9)) is None
    await it.aclose()
    await backend.aclose()
    for seen in service.seen:
        assert seen.headers["host"] == "batches.example"
        assert seen.headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"


def everything_below(root: type[BaseException]) -> Iterator[type[BaseException]]:
    yield root
    for below in root.__subclasses__():
        yield from everything_below(below)


def raised(kind: type[BaseException]) -> BaseException:
    """Return an exception of this class, with attributes as the SDK sets them."""
    request = httpx2.Request("GET", "http://127.0.0.1/")
    response = httpx2.Response(418, request=request, content=b'{"error":{"message":"short and stout"}}')
    given = {
        "message": "m", "request": request, "response": response, "body": None, "code": 418, "symbol": "s",
        "completion": SimpleNamespace(usage=None),
        "response_json": {"error": {"message": "m"}}, "unsent_messages": [], "encoding": "x",
        "action": "add", "toolset_name": "t", "library": "l", "extra": "e",
    }  # fmt: skip
    parameters = inspect.signature(kind.__init__).parameters
    arguments = {n: given[n] for n, p in parameters.items() if n in given and p.default is p.empty}
    positional = [given["message"]] if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()) else []
    error = kind.__new__(kind)
    kind.__init__(error, *positional, **arguments)
    return error


@pytest.mark.parametrize(
    ("module", "root"),
    [("openai", "OpenAIError"), ("google.genai.errors", "APIError"), ("anthropic", "AnthropicError")],
)
def test_the_map_is_complete(module: str, root: str) -> None:
    own = getattr(importlib.import_module(module), root)
    families = (own, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
    packages = {family.__module__.partition(".")[0] for family in families}
    errors = [
        error
        for family in families
        for error in dict.fromkeys(everything_below(family))
        if error.__module__.partition(".")[0] in packages  # other SDKs derive from these, once imported
    ]
    assert len(errors) > 30
    for error in errors:
        check_mapped(module, root, error)


def check_mapped(module: str, root: str, error: type[BaseException]) -> None:
    place = SdkCalls(URL("http://127.0.0.1:9/"), NOBODY, online_openai.classify, (module, root))
    first = raised(error)
    wrappers: dict[str, Any] = {
        "openai": openai.APIConnectionError,
        "anthropic": anthropic.APIConnectionError,
    }
    each = [first]
    if (wrapper := wrappers.get(module)) is not None:
        each.append(wrapper(request=httpx2.Request("GET", "http://127.0.0.1/")))
        each[1].__cause__ = first
    for one in each:
        with pytest.raises(CallError) as caught, place.translate_errors():
            raise one
        assert caught.value.message
        if isinstance(first, httpx2.TimeoutException):
            assert caught.value.kind is FailureKind.TIMEOUT
        elif isinstance(first, httpx2.TransportError):
            assert caught.value.kind is FailureKind.CONNECTION


def test_an_answer_that_was_never_read_is_known_by_its_status() -> None:
    place = SdkCalls(URL("http://127.0.0.1:9/"), NOBODY, online_openai.classify, ("openai", "OpenAIError"))
    asked = httpx2.Request("GET", "http://127.0.0.1/")
    unread = httpx2.Response(
        429, headers={"Retry-After": "3"}, request=asked, stream=httpx2.ByteStream(b"{}")
    )
    with pytest.raises(CallError) as caught, place.translate_errors():
        raise openai.RateLimitError("slow", response=unread, body=None)
    assert (caught.value.kind, caught.value.retry_after) == (FailureKind.RATE_LIMIT, 3.0)


def test_every_error_that_the_sdk_defines_is_below_a_root_or_a_value_error() -> None:
    """Other errors come from other parts of the SDKs: web hooks, sockets, resumed chats."""
    defined = {
        error
        for module in map(importlib.import_module, ("openai", "google.genai.errors", "anthropic"))
        for error in vars(module).values()
        # issubclass on a lazily loaded part would load it; its type does not.
        if issubclass(type(error), type)
        and issubclass(error, Exception)
        and not issubclass(error, Warning)
        and error.__module__.startswith(("openai", "google.genai", "anthropic"))
    }
    caught = (openai.OpenAIError, genai_errors.APIError, anthropic.AnthropicError, ValueError)
    assert {error.__name__ for error in defined if not issubclass(error, caught)} <= {
        "ContinuationInterruptedError",
        "WebSocketConnectionClosedError",
        "WebSocketQueueFullError",
    }


def test_cancellation_and_a_disk_s_errors_pass_through() -> None:
    place = SdkCalls(URL("http://127.0.0.1:9/"), NOBODY, online_openai.classify, ("openai", "OpenAIError"))
    for error in (asyncio.CancelledError(), OSError(28, "No space left on device"), KeyboardInterrupt()):
        with pytest.raises(type(error)), place.translate_errors():
            raise error


def test_without_the_extra() -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys(["openai", "google.genai", "anthropic", "httpx2"]))
from edgen.core.errors import InputError
from tests.providers.batches import service
from edgen.config import BackendConfig
from edgen.providers import make
from edgen.providers import make_batch_service
from tests.providers.fakes import request
for kind in {list(KINDS)!r}:
    config = BackendConfig.variant(kind)(model="m", base_url="http://127.0.0.1:9")
    backend = make(config, timeout=1, connections=1, environ={{}})
    it = make_batch_service(config, backend, environ={{}}, offline=True)
    assert it.line("c", request("x")) and it.read(b"{{}}") is None
    try:
        make_batch_service(config, backend, environ={{}})
    except InputError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT, env={**os.environ}
    )
    for kind, line in zip(KINDS, done.stdout.splitlines(), strict=True):
        assert line.startswith(f"batch jobs of type {kind} need more packages: `"), done
        assert "[batch]'" in line or "--extra batch" in line


# --- lines ---------------------------------------------------------------------------------------


def test_all_clients_trust_what_the_environment_says(
    certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = system_certificates()
    assert system_certificates() is shared
    pem = tmp_path / "one.pem"
    pem.write_bytes(certificate.public)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    assert system_certificates().cert_store_stats()["x509"] == 1


def test_members_are_read_as_they_stand_or_leniently() -> None:
    assert read_members(b'{"a": {"b":1} ,"c":"\xc3\xbc"}') == {"a": b'{"b":1}', "c": b'"\xc3\xbc"'}
    assert read_members(b'{"\\ud800": NaN, "a": "\\ud800"}') == {"\ud800": b"NaN", "a": b'"\\ud800"'}
    for nothing in (b"", b"1", b"[{}]", b'{"a":1', b"\xff", b'{"a":' * 50_000):
        assert read_members(nothing) == {}


def test_values() -> None:
    assert [read_text_member(x) for x in (b'"a"', b'"\\ud800"', b"1", b"null", b"", None)] == [
        "a",
        "\ufffd",
        None,
        None,
        None,
        None,
    ]
    assert [read_number_member(x) for x in (b"7", b'"7"', b"7.5", b"", b"9" * 6_000, None)] == [
        7,
        None,
        None,
        None,
        None,
        None,
    ]


ELSEWHERE = ["http://192.0.2.1/x", "https://files.example/x", "//files.example/x", "ftp://x/y"]


@pytest.mark.parametrize("location", ELSEWHERE)
async def test_no_redirect_leads_out_of_the_service(
    service: Service, kind: str, location: str, tmp_path: Path
) -> None:
    """The service is on this machine; a redirect to another host is refused before any request goes there."""
    async with opened(kind, service.url) as it:
        service.next = [answer(b"", 302, Location=location)]
        failure = await failing(it.download(FILES[kind], tmp_path / "out"))
    assert "put that into base_url" in failure.message
    assert len(service.seen) == 1
    assert not (tmp_path / "out").exists()


async def test_polling_follows_no_redirect(service: Service, kind: str) -> None:
    async with opened(kind, service.url) as it:
        service.next = [answer(b"", 302, Location=f"{service.url}/elsewhere")]
        failure = await failing(it.state(NAMES[kind]))
    assert f"moved to {service.url}/elsewhere; put that into base_url" in failure.message
    assert failure.kind is FailureKind.PERMISSION  # not NOT_FOUND: the batch is not lost
    assert len(service.seen) == 1


@pytest.mark.parametrize(
    ("base", "location", "goes"),
    [
        ("https://api.openai.com/v1", "/v1/files/1", True),
        ("https://api.openai.com/v1", "https://eu.api.openai.com/v1/files/1?sig=x", True),
        ("https://api.openai.com/v1", "http://api.openai.com/v1/files/1", False),
        ("https://api.openai.com/v1", "https://api.openai.com:8443/v1", False),
        ("https://api.openai.com/v1", "https://api.anthropic.com/", False),
        ("https://api.openai.com/v1", "http://127.0.0.1:8080/", False),
        ("https://api.openai.com/v1", "https://169.254.169.254/", False),
        ("https://api.openai.com/v1", "https://me@api.openai.com/", False),
        ("https://llm.example/v1", "https://files.llm.example/", False),
        ("https://llm.example/v1", "https://llm.example/else", True),
    ],
)
def test_where_a_download_may_be_redirected(base: str, location: str, goes: bool) -> None:
    request = httpx2.Request("GET", f"{base}/files/1/content")
    response = httpx2.Response(302, request=request, headers={"Location": location})
    assert sdk._leads_home(place_of(base), response) is goes
