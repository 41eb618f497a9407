"""Isolation of the vendors' SDKs, shared by the batch adapters.

The SDKs get an HTTP client made here. So keys, proxies and redirects follow the online adapters and not the
process's environment, and no SDK retries. Answers larger than announced, and compressed answers, which are
not requested, are not read. `explain_sdk_error` turns every exception of an SDK into a CallError. Extras are
imported when a function here is called, never with the module.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

from yarl import URL

from edgen.core.errors import CallError, FailureKind, InputError
from edgen.core.extras import use_extra
from edgen.core.values import MAX_ANSWER
from edgen.providers.batches import OversizedError, is_id
from edgen.providers.credentials import Credentials
from edgen.providers.failures import Classify, call_error, clean_message
from edgen.providers.http import find_proxy
from edgen.providers.trust import Destination, are_one_service, place_of

if TYPE_CHECKING:
    import httpx2

_MOST = ContextVar("bytes of an answer that are read", default=MAX_ANSWER)
_DOWNLOADS = ContextVar("whether a result file is downloaded", default=False)


def load_sdk(name: str, kind: str) -> ModuleType:
    """Import the SDK of that module name. Raises InputError if the extra is not installed or its version is
    unsupported."""
    rest = ". Without them, leave --via batch out and the same job is done call by call."
    with use_extra("batch", f"batch jobs of type {kind} need more packages:", rest, InputError):
        return importlib.import_module(name)


# --- calls ---------------------------------------------------------------------------------------


class SdkCalls:
    """Error translation for calls to one service: its address, keys and error wording."""

    def __init__(
        self, base: URL, credentials: Credentials, classify: Classify, errors: tuple[str, str]
    ) -> None:
        self.credentials = credentials
        self.name = f"{base.host}:{base.port}"
        self._classify = classify
        self._errors = errors  # module and name of the SDK's base exception

    @contextlib.contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn exceptions of the SDK call in the body into CallError, except OSError of the disk."""
        module, name = self._errors
        own: type[Exception] = getattr(importlib.import_module(module), name)
        # Both SDKs raise these for answers that they cannot parse.
        unread = (ValueError, KeyError, TypeError, AttributeError)
        all_of_it: tuple[type[Exception], ...] = (own, *_list_transport_errors(), *unread)
        try:
            yield
        except all_of_it as error:
            raise explain_sdk_error(error, self) from None

    def make_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> CallError:
        """Return the CallError for an unsuccessful answer, in HTTP or in a line."""
        secrets = self.credentials.secrets
        found = call_error(status, headers, body, classify=self._classify, now=time.time(), secrets=secrets)
        return self.credentials.explain(found)

    def read_id(self, name: object) -> str:
        """Return an id given by the service. Raises CallError if it is invalid."""
        if isinstance(name, str) and is_id(name):
            return name
        wrong = f"{name[:80]!r} is not a valid id" if isinstance(name, str) and name else "no id"
        raise CallError(
            FailureKind.BAD_RESPONSE, f"{self.name} does not answer like a batch service: {wrong}"
        )


def _list_transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions raised for broken connections."""
    import httpx2

    return httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, TimeoutError


def explain_sdk_error(error: Exception, place: SdkCalls) -> CallError:
    """Return the CallError that the online adapters would raise for an SDK's exception.

    An answer of the service is read as the adapters do. A broken connection is classified by its httpx2
    exception, which openai wraps. Any other exception means that the SDK could not parse the answer.
    """
    import httpx2

    answer = getattr(error, "response", None)  # of openai's APIStatusError and google-genai's APIError
    if isinstance(answer, httpx2.Response):
        try:
            body = answer.content
        except httpx2.ResponseNotRead:
            body = b""
        return place.make_failure(answer.status_code, answer.headers, body)
    status = getattr(error, "code", None)
    if isinstance(status, int):  # google-genai's APIError without its answer
        return place.make_failure(
            status, {}, json.dumps(getattr(error, "details", None), default=str).encode()
        )
    under = error.__cause__  # openai wraps exceptions of its HTTP client
    if isinstance(under, CallError):  # there is no key to send, or the answer is refused
        return under
    cause = under if isinstance(under, _list_transport_errors()) else error
    kind, message = _describe_failure(cause, place.name)
    unsent = isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError))
    return CallError(kind, clean_message(message, place.credentials.secrets), unsent=unsent)


def _describe_failure(error: Exception, place: str) -> tuple[FailureKind, str]:
    """Return the kind of a failure without HTTP answer, and a sentence that names the service."""
    import httpx2

    kind = FailureKind.CONNECTION
    match error:
        case httpx2.TooManyRedirects():
            kind = FailureKind.PERMISSION
            message = (
                f"{place} redirects a download again and again, and its file was not reached; check base_url"
            )
        case httpx2.TimeoutException() | TimeoutError():
            kind = FailureKind.TIMEOUT
            message = f"{place} gave no complete answer in time"
        case httpx2.ProxyError():
            message = f"the proxy refused the way to {place} ({error}); check HTTPS_PROXY"
        case httpx2.ConnectError():
            why = _find_reason(error)
            message = f"no connection to {place} ({why}); check base_url, and that the server is up"
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            message = f"{place} closed the connection in the middle ({error})"
        case httpx2.HTTPError() | httpx2.InvalidURL() | httpx2.StreamError():
            message = f"the call to {place} broke off ({type(error).__name__}: {error})"
        case _:
            what = f"{type(error).__name__}: {error}"
            kind = FailureKind.BAD_RESPONSE
            message = f"{place} does not answer like a batch service ({what})"
    return kind, message


def _find_reason(error: BaseException) -> str:
    """Return the system's reason for a failed connection, from the chain of exceptions."""
    below: BaseException | None = error
    while below is not None:
        match below:
            case ssl.SSLError():
                return str(below)
            case OSError(errno=int(number)) if number > 0:
                return os.strerror(number)
            case OSError(strerror=str(words)):  # an unknown host name
                return words
        below = below.__cause__ or below.__context__
    return str(error) or type(error).__name__


_OF_EXISTING = ("GET", "DELETE")  # methods of calls about an existing object


@contextlib.contextmanager
def limit_download(size: int) -> Iterator[None]:
    """Within the body, read at most `size` bytes of an answer, and follow redirects that stay within the
    service."""
    most, downloads = _MOST.set(size), _DOWNLOADS.set(True)
    try:
        yield
    finally:
        _MOST.reset(most)
        _DOWNLOADS.reset(downloads)


async def _guard_answer(place: SdkCalls, home: Destination | None, response: httpx2.Response) -> None:
    """Raise CallError for a compressed answer or a forbidden redirect. Limit the size of other answers."""
    packed = response.headers.get("Content-Encoding", "identity").strip().lower()
    if response.has_redirect_location and not (_DOWNLOADS.get() and _leads_home(home, response)):
        # A redirected batch or file still exists. With NOT_FOUND edgen would create it, and pay for it,
        # again.
        exists = response.request.method in _OF_EXISTING
        kind = FailureKind.PERMISSION if exists else FailureKind.NOT_FOUND
        message = f"moved to {response.headers['Location']}; put that into base_url"
    elif packed != "identity":  # its unpacked size is unknown
        kind = FailureKind.BAD_RESPONSE
        message = (
            f"{place.name} sent a compressed answer ({packed[:40]}), which was not requested and is not read"
        )
    else:
        response.stream = _make_bounded_stream()(response.stream, place.name)
        return
    raise CallError(kind, clean_message(message, place.credentials.secrets))


def _leads_home(home: Destination | None, response: httpx2.Response) -> bool:
    """Return whether a download is redirected within its service: to the same place, to another https host
    that `hosts.yaml` lists with it, or on this machine. No redirect from elsewhere may lead to this machine
    or its network."""
    try:
        target = URL(str(response.request.url)).join(URL(response.headers["Location"]))
    except ValueError:
        return False
    place = place_of(str(target.with_query(None).with_fragment(None)))  # a query may be a signature
    if home is None or place is None or response.request.method != "GET":
        return False
    if place == home or (place.loopback and home.loopback):
        return True
    secure = place.secure and home.secure and place.port == home.port == 443
    return secure and are_one_service(home.host, place.host)


@functools.cache
def _make_bounded_stream() -> Any:
    """Return a byte stream class that stops at the limit."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, place: str) -> None:
            self._stream, self._place = stream, place
            self._most = _MOST.get()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > self._most:
                    raise OversizedError(
                        FailureKind.BAD_REQUEST,
                        f"the answer of {self._place} is larger than {self._most:,} bytes, the limit",
                    )
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded


def system_certificates() -> ssl.SSLContext:
    """Return the system's trusted certificates: one context per process, since it takes 15 ms to make."""
    return _load_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.lru_cache(maxsize=4)
def _load_certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    return ssl.create_default_context()  # which reads both variables


def build_http_client(
    base: URL, calls: SdkCalls, environ: Mapping[str, str], patience: float
) -> httpx2.AsyncClient:
    """Build an SDK's HTTP client for `base`, with proxies from `environ`. `patience`: seconds without a byte;
    the caller limits the whole request.

    Only downloads follow redirects, and only within their service (`_leads_home`). No key goes to another
    address, and polling follows no redirect. Raises InputError for an unsupported proxy.
    """
    import httpx2

    credentials, home = calls.credentials, (base.scheme, base.raw_host, base.port)
    guard = functools.partial(_guard_answer, calls, place_of(str(base)))

    async def sign(request: httpx2.Request) -> None:
        headers = await credentials.current()
        for name in ("Authorization", "x-goog-api-key", *headers):
            request.headers.pop(name, None)
        url = URL(str(request.url))
        if (url.scheme, url.raw_host, url.port) == home:
            request.headers.update(headers)

    class Renewing(httpx2.Auth):
        """An auth flow that renews a refused key if possible and repeats the call."""

        async def async_auth_flow(
            self, request: httpx2.Request
        ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            used = await credentials.current()
            answer = yield request
            if answer.status_code == 401 and await credentials.renew_headers(used):
                yield request

    options = find_proxy(base, environ)
    proxy = options.get("proxy")
    return httpx2.AsyncClient(
        proxy=None if proxy is None else httpx2.Proxy(str(proxy), headers=options.get("proxy_headers")),
        headers={"Accept-Encoding": "identity"},
        trust_env=False,
        verify=system_certificates(),
        follow_redirects=True,
        timeout=httpx2.Timeout(patience, connect=min(patience, 60.0)),
        auth=Renewing(),
        event_hooks={"request": [sign], "response": [guard]},
    )
