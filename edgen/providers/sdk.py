"""What the adapters to batch services share: the vendors' SDKs at arm's length.

Both SDKs are given one kind of HTTP client, made here, so that keys, proxies and redirects are the online
adapters' and not whatever a process's environment says, and nothing is tried twice behind edgen's back. No answer is
read that is larger than was said beforehand, or compressed, which is not asked for. What an SDK raises becomes a CallError in one place, `explained`.
The extra is imported when a function here is called, never with the module.
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
from edgen.core.extras import install_command
from edgen.providers.base import MAX_ANSWER
from edgen.providers.batches import OversizedError, is_id
from edgen.providers.credentials import Credentials
from edgen.providers.failures import Classify, call_error, clean_message
from edgen.providers.http import proxy_for

if TYPE_CHECKING:
    import httpx2

_MOST = ContextVar("bytes of an answer that are read", default=MAX_ANSWER)


def load_sdk(name: str, kind: str) -> ModuleType:
    """The SDK of that module name. Raises InputError where the extra is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"batch jobs of type {kind} need more packages: `{install_command('batch')}`. Without them, leave --via batch "
            "out and the same job is done call by call."
        ) from None


# --- calls ---------------------------------------------------------------------------------------


class SdkCalls:
    """A service as the calls to it are explained: where it is, its keys, how it words its errors."""

    def __init__(
        self, base: URL, credentials: Credentials, classify: Classify, errors: tuple[str, str]
    ) -> None:
        self.credentials = credentials
        self.name = f"{base.host}:{base.port}"
        self._classify = classify
        self._errors = errors  # the module and the name of the SDK's own, the root of its tree

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """The body calls the SDK and nothing else: what it raises comes out as a CallError, but for a disk's OSError."""
        module, name = self._errors
        own: type[Exception] = getattr(importlib.import_module(module), name)
        # What both SDKs raise for answers that they cannot take apart.
        unread = (ValueError, KeyError, TypeError, AttributeError)
        all_of_it: tuple[type[Exception], ...] = (own, *_transport(), *unread)
        try:
            yield
        except all_of_it as error:
            raise explain_sdk_error(error, self) from None

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> CallError:
        """The CallError that an answer stands for which is no success, in HTTP or in a line."""
        secrets = self.credentials.secrets
        found = call_error(status, headers, body, classify=self._classify, now=time.time(), secrets=secrets)
        return self.credentials.explain(found)

    def read_id(self, name: object) -> str:
        """The id that the service gave something. Raises CallError if it is none."""
        if isinstance(name, str) and is_id(name):
            return name
        wrong = f"{name[:80]!r} is no id" if isinstance(name, str) and name else "no id"
        raise CallError(
            FailureKind.BAD_RESPONSE, f"what {self.name} answers is none of a batch service: {wrong}"
        )


def _transport() -> tuple[type[Exception], ...]:
    """What a call that breaks on the way raises."""
    import httpx2

    return (
        httpx2.HTTPError,
        httpx2.InvalidURL,
        httpx2.StreamError,
        MovedError,
        PackedError,
        TooLargeError,
        TimeoutError,
    )


def explain_sdk_error(error: Exception, place: SdkCalls) -> CallError:
    """What an SDK raised, as the CallError that the online adapters would raise for the same.

    An answer of the service is read as theirs is; a broken call goes by the httpx2 exception, which openai wraps;
    anything else is an answer that the SDK could not take apart.
    """
    import httpx2

    answer = getattr(error, "response", None)  # of openai's APIStatusError and google-genai's APIError
    if isinstance(answer, httpx2.Response):
        try:
            body = answer.content
        except httpx2.ResponseNotRead:
            body = b""
        return place.failure(answer.status_code, answer.headers, body)
    status = getattr(error, "code", None)
    if isinstance(status, int):  # google-genai's APIError without its answer
        return place.failure(status, {}, json.dumps(getattr(error, "details", None), default=str).encode())
    under = error.__cause__  # openai wraps what its HTTP client raises
    if isinstance(under, CallError):  # there is no key to send
        return under
    cause = under if isinstance(under, _transport()) else error
    kind, message = _broken(cause, place.name)
    told = OversizedError if isinstance(cause, TooLargeError) else CallError
    unsent = isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError))
    return told(kind, clean_message(message, place.credentials.secrets), unsent=unsent)


def _broken(error: Exception, place: str) -> tuple[FailureKind, str]:
    """The kind of a failure that left no HTTP answer, and a sentence that names the place."""
    import httpx2

    match error:
        case MovedError():
            return FailureKind.NOT_FOUND, f"moved to {error}; put that into base_url"
        case TooLargeError():
            return (
                FailureKind.BAD_REQUEST,
                f"what {place} answers is larger than {error} bytes, the most that is read",
            )
        case PackedError():
            return (
                FailureKind.BAD_RESPONSE,
                f"{place} answers in a compressed form ({error}), which was not asked for and is not unpacked",
            )
        case httpx2.TimeoutException() | TimeoutError():
            return FailureKind.TIMEOUT, f"{place} gave no complete answer in time"
        case httpx2.ProxyError():
            return (
                FailureKind.CONNECTION,
                f"the proxy refused the way to {place} ({error}); check HTTPS_PROXY",
            )
        case httpx2.ConnectError():
            why = _reason(error)
            return (
                FailureKind.CONNECTION,
                f"no connection to {place} ({why}); check base_url, and that the server is up",
            )
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            return FailureKind.CONNECTION, f"{place} closed the connection in the middle ({error})"
        case httpx2.HTTPError() | httpx2.InvalidURL() | httpx2.StreamError():
            return FailureKind.CONNECTION, f"the call to {place} broke off ({type(error).__name__}: {error})"
        case _:
            what = f"{type(error).__name__}: {error}"
            return FailureKind.BAD_RESPONSE, f"what {place} answers is none of a batch service ({what})"


def _reason(error: BaseException) -> str:
    """Why there is no connection, as the system says it, which stands somewhere below."""
    below: BaseException | None = error
    while below is not None:
        match below:
            case ssl.SSLError():
                return str(below)
            case OSError(errno=int(number)) if number > 0:
                return os.strerror(number)
            case OSError(strerror=str(words)):  # the name of a host that nobody knows
                return words
        below = below.__cause__ or below.__context__
    return str(error) or type(error).__name__


class MovedError(Exception):
    """The service answered something that is no question with another address, which is the message."""


class PackedError(Exception):
    """The answer is compressed, and could be of any size when it is unpacked. The message names the way."""


class TooLargeError(Exception):
    """The answer has more bytes than were asked for, which is the message."""


@contextlib.contextmanager
def limit_answer(size: int) -> Iterator[None]:
    """No answer in the body is read beyond so many bytes."""
    token = _MOST.set(size)
    try:
        yield
    finally:
        _MOST.reset(token)


async def _stay(response: httpx2.Response) -> None:
    """Raise for an answer that leads elsewhere or is packed; bound what is read of the others."""
    if response.has_redirect_location and response.request.method != "GET":
        raise MovedError(response.headers["Location"])
    if (packed := response.headers.get("Content-Encoding", "identity").strip().lower()) != "identity":
        raise PackedError(packed[:40])
    response.stream = _bounded()(response.stream)


@functools.cache
def _bounded() -> Any:
    """A stream of the bytes of an answer as they come, no more than may be read."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream
            self._most = _MOST.get()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > self._most:
                    raise TooLargeError(f"{self._most:,}")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded


def system_certificates() -> ssl.SSLContext:
    """What the system trusts, as online: one context for all clients of a process, since each takes 15 ms to make."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.lru_cache(maxsize=4)
def _certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    return ssl.create_default_context()  # which reads both variables


def http_client(
    base: URL, credentials: Credentials, environ: Mapping[str, str], patience: float
) -> httpx2.AsyncClient:
    """The HTTP client that an SDK is given for `base`; `environ` is where proxies are looked up. `patience`: seconds
    without a byte; how long a whole request may take is the caller's to say.

    Only a GET follows a redirect, as Google's downloads need, and no key goes along to another address.
    Raises InputError for a proxy that cannot be used.
    """
    import httpx2

    home = (base.scheme, base.host, base.port)

    async def sign(request: httpx2.Request) -> None:
        headers = await credentials.current()
        for name in ("Authorization", "x-goog-api-key", *headers):
            request.headers.pop(name, None)
        url = URL(str(request.url))
        if (url.scheme, url.host, url.port) == home:
            request.headers.update(headers)

    class Renewing(httpx2.Auth):
        """A refused key is renewed where it can be, and the call made again."""

        async def async_auth_flow(
            self, request: httpx2.Request
        ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            used = await credentials.current()
            answer = yield request
            if answer.status_code == 401 and await credentials.renewed(used):
                yield request

    options = proxy_for(base, environ)
    proxy = options.get("proxy")
    return httpx2.AsyncClient(
        proxy=None if proxy is None else httpx2.Proxy(str(proxy), headers=options.get("proxy_headers")),
        headers={"Accept-Encoding": "identity"},
        trust_env=False,
        verify=system_certificates(),
        follow_redirects=True,
        timeout=httpx2.Timeout(patience, connect=min(patience, 60.0)),
        auth=Renewing(),
        event_hooks={"request": [sign], "response": [_stay]},
    )
