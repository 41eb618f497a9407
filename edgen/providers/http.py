"""HTTP session and settings shared by the adapters that use HTTP.

`Http.post` returns the body of a 200 or raises CallError. It never retries, never follows a redirect (which
would carry the key) and never holds more than MAX_ANSWER bytes of an answer. Proxies come from the given
environment and are read once. A call over https tunnels through the proxy, which cannot read it. Calls to
this machine (the only ones that may carry a key over plain http) and to private networks use no proxy.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import ssl
import time
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import msgspec
from multidict import CIMultiDict
from yarl import URL

from edgen.config import BackendConfig
from edgen.config.backends import KeyRequest
from edgen.core.errors import CallError, FailureKind, InputError
from edgen.core.values import MAX_ANSWER, Reply
from edgen.providers.base import Link
from edgen.providers.credentials import Credentials
from edgen.providers.failures import Classify, Secrets, call_error, clean_message, without_secrets

send_until: ContextVar[float | None] = ContextVar("send_until", default=None)
"""The moment, by the loop's clock, after which no request is written: the end of a permit of a worker of a
cluster, which may have been frozen in between."""

if TYPE_CHECKING:  # saves 0.2 s of CPU in commands that read a run and need only its settings
    import aiohttp


def describe_config(config: BackendConfig) -> dict[str, Any]:
    """Return the settings of a backend that shape its answers, without price, key and unset values.

    Raises InputError for a value that JSON does not support.
    """
    try:
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"a backend's setting cannot be sent as JSON: {problem}. Change it in the job."
        ) from None
    said = {
        name: value
        for name, value in plain.items()
        # Only the keys of retries contain their limit: see ModelClient.key.
        if name not in config.KNOBS and name != "retry_max_tokens" and value not in (None, [], {}, "")
    }
    known = plain.get("known_as")
    return said if known is None else said | {"base_url": known}


encode = msgspec.json.Encoder().encode


def encode_prompt(body: Any) -> bytes:
    """Encode a prompt as JSON. Raises CallError for a lone surrogate."""
    try:
        return encode(body)
    except UnicodeEncodeError:
        raise CallError(FailureKind.BAD_REQUEST, "the prompt holds half of a character") from None


def refuse_extra(extra_body: Mapping[str, Any], reasons: Mapping[str, str]) -> None:
    """Raise InputError for an `extra_body` that changes fields owned by the adapter."""
    for key, reason in reasons.items():
        if extra_body.get(key):
            raise InputError(
                f"extra_body cannot set '{key}': {reason}. Remove it from the backend in the job."
            )


def keep_stated(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the job states."""
    return {name: value for name, value in settings.items() if value is not None}


def base_address(base_url: str) -> URL:
    """Parse `base_url` as the URL to which paths are appended. Raises InputError."""
    shown = repr(base_url.partition("?")[0])  # a query may hold a key
    try:
        url = URL(base_url)
        host = url.host
    except (ValueError, IndexError) as problem:  # yarl fails with an IndexError for an empty host
        raise InputError(f"base_url {shown} is not a valid address: {problem}.") from None
    if not host or url.query_string or url.fragment:
        raise InputError(
            f"base_url {shown} must be a host and a path, as in http://localhost:8000/v1, without '?' or '#'."
        )
    return url


def append_path(base: URL, path: str) -> URL:
    """Return the address of `path` under `base`, with or without a trailing slash."""
    return base.with_path(f"{base.path.rstrip('/')}/{path}")


def is_local(host: str) -> bool:
    """Return whether `host` is this machine or a private network, where servers commonly want no key."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # A name without a dot is never public: a container or a machine in the local network.
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
    return address.is_private or address.is_loopback or address.is_link_local


def http_key_request(variables: tuple[str, ...], base_url: str) -> KeyRequest:
    """Return the key request of a backend at `base_url`. Raises InputError for an invalid address."""
    base = base_address(base_url)
    host = base.host or ""
    # Keys are never sent over plain http, so such a server cannot require one.
    return KeyRequest(variables, str(base), host, required=base.scheme == "https" and not is_local(host))


def find_proxy(url: URL, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return aiohttp's settings for the proxy that `environ` names for `url`; empty if none.

    HTTPS_PROXY or HTTP_PROXY by the URL's scheme, in upper or lower case, unless NO_PROXY names the host or
    the host is local. Read once, because aiohttp's own `trust_env` costs time in every call and reads
    ~/.netrc. Raises InputError for an invalid address and for proxies that aiohttp does not support. The
    message never shows the value, which may hold a password.
    """
    names = (f"{url.scheme}_proxy", f"{url.scheme}_proxy".upper())
    name = next((name for name in names if environ.get(name)), None)
    without = {"no": environ.get("no_proxy") or environ.get("NO_PROXY") or ""}
    host = url.host or ""
    if name is None or is_local(host) or proxy_bypass_environment(host, without):
        return {}
    value = environ[name]
    try:
        proxy = URL(value if "://" in value else f"http://{value}")
    except (ValueError, IndexError):
        proxy = URL()
    if not proxy.host:
        raise InputError(
            f"{name} holds no address of a proxy: it takes one like http://host:3128, the port a number. "
            f"Set it again, or put {host} into NO_PROXY."
        )
    if proxy.scheme not in ("http", "https"):
        raise InputError(
            f"{name} names a {proxy.scheme} proxy; only http and https proxies can be used. Unset it, or put "
            f"{host} into NO_PROXY."
        )
    if proxy.user is None:
        return {"proxy": proxy}
    login = base64.b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
    return {"proxy": proxy.with_user(None), "proxy_headers": {"Proxy-Authorization": f"Basic {login}"}}


# Decides by status and body whether a response is an answer and not a failure.
Answers = Callable[[int, bytes], bool]


def _is_200(status: int, _body: bytes) -> bool:
    return status == 200


class Http:
    """A client for single attempts over one session, opened in the loop of the first call.

    `credentials` are sent with every call. If they can be renewed, a 401 renews them and the attempt is
    repeated. No message contains their secrets. HTTP dates are compared with the clock `now`.
    """

    def __init__(
        self,
        base: URL,
        credentials: Credentials,
        link: Link,
        classify: Classify,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        import aiohttp  # imported here, so that the first call does not take the time

        self._failures = (aiohttp.ClientError, OSError, ValueError, _TooLargeError)
        # No byte was sent.
        self._not_connected = (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError)
        self._place = f"{base.host}:{base.port}"
        self._options = find_proxy(base, link.environ)
        password = self._options.pop("proxy_headers", {}) if base.scheme == "http" else {}
        # Request no compression, since aiohttp would decompress in a thread.
        self._common = {"Accept-Encoding": "identity", "Content-Type": "application/json", **password}
        self._headers: tuple[Mapping[str, str], CIMultiDict[str]] | None = None
        self._credentials = credentials
        self._link = link
        self._classify = classify
        self._now = now
        self._session: aiohttp.ClientSession | None = None

    @property
    def secrets(self) -> Secrets:
        """The texts to remove from messages."""
        return self._credentials.secrets

    def post(self, url: URL, body: bytes, *, answers: Answers = _is_200) -> Awaitable[bytes]:
        """POST once and return the body that `answers` accepts, by default of a 200.

        Raises CallError for anything else; cancellation passes through.
        """
        return self._exchange_once("POST", url, body, answers)

    def get(self, url: URL) -> Awaitable[bytes]:
        """GET once and return the body of a 200. Raises CallError; cancellation passes through."""
        return self._exchange_once("GET", url, None, _is_200)

    def make_format_error(self, body: bytes) -> CallError:
        """Return the CallError for the body of a 200 that does not match the format."""
        return self._make_error(200, {}, body)

    def _make_error(self, status: int, headers: Mapping[str, str], body: bytes) -> CallError:
        return call_error(
            status, headers, body, classify=self._classify, now=self._now(), secrets=self.secrets
        )

    def without_secrets(self, reply: Reply) -> Reply:
        """Return `reply` without the secrets that the server may have echoed."""
        return without_secrets(reply, self.secrets)

    async def _exchange_once(self, method: str, url: URL, body: bytes | None, answers: Answers) -> bytes:
        used = await self._credentials.current()
        status, headers, answer = await self.send(method, url, body, used)
        if status == 401 and await self._credentials.renew_headers(used):
            used = await self._credentials.current()
            status, headers, answer = await self.send(method, url, body, used)
        if answers(status, answer):
            return answer
        raise self._credentials.explain(self._make_error(status, headers, answer))

    async def send(
        self, method: str, url: URL, body: bytes | None, credentials: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of any response. Raises CallError if there is none."""
        session = self._session or self._open()
        try:
            response = await session.request(
                method,
                url,
                data=body,
                headers=self._make_headers(credentials),
                allow_redirects=False,
                **self._options,
            )
            try:
                answer = await _read(response)
            finally:
                response.release()  # closes the connection if the answer was not read to its end
        except self._failures as error:
            kind, message = explain_failure(error, self._place, self._link.timeout)
            raise CallError(
                kind, clean_message(message, self.secrets), unsent=isinstance(error, self._not_connected)
            ) from None
        return response.status, response.headers, answer

    def _make_headers(self, credentials: Mapping[str, str]) -> CIMultiDict[str]:
        """Return the headers of a call. They are not set on the session, since aiohttp would send those, with
        the key, to a proxy."""
        if self._headers is None or self._headers[0] is not credentials:
            self._headers = (credentials, CIMultiDict({**self._common, **credentials}))
        return self._headers[1]

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._link.connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._link.timeout or None),
            trace_configs=None if send_until.get() is None else [_trace_late_requests()],
        )
        return self._session

    async def aclose(self) -> None:
        """Close the connections. Never raises; may be called twice."""
        if self._session is not None:
            with contextlib.suppress(Exception):
                await self._session.close()


def _trace_late_requests() -> aiohttp.TraceConfig:
    """Return a trace that refuses to write a request after `send_until`."""
    import aiohttp

    async def refuse(*_: Any) -> None:
        until = send_until.get()
        if until is not None and get_running_loop().time() > until:
            raise aiohttp.ClientConnectionError("the permit for this request has expired")

    trace = aiohttp.TraceConfig()
    trace.on_request_chunk_sent.append(refuse)  # called before the chunk is written
    return trace


class HttpBackend:
    """Base of backends over HTTP."""

    def __init__(self, config: Any, credentials: Credentials, link: Link, classify: Classify) -> None:
        self.base = base_address(config.base_url)
        self.credentials = credentials
        self.model: str = config.model
        said = describe_config(config)
        self.identity = {**said, "base_url": str(base_address(said["base_url"])).rstrip("/")}
        self._http = Http(self.base, credentials, link, classify)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, base_url={str(self.base)!r})"

    async def ask(
        self,
        url: URL,
        body: bytes,
        read: Callable[[bytes], Reply | None],
        answers: Answers = _is_200,
    ) -> Reply:
        """Return the reply that `read` finds in the answer to one POST. Raises CallError, also if there is
        none."""
        answer = await self._http.post(url, body, answers=answers)
        reply = read(answer)
        if reply is None:
            raise self._http.make_format_error(answer)
        self.remark(reply, answer)
        return self._http.without_secrets(reply)

    def remark(self, reply: Reply, body: bytes) -> None:
        """Warn of oddities in a received answer."""

    async def aclose(self) -> None:
        """Close the connections. Never raises; may be called twice."""
        await self._http.aclose()


class _TooLargeError(Exception):
    """The answer has more than MAX_ANSWER bytes."""


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return the body, of at most MAX_ANSWER bytes. Raises _TooLargeError before holding more."""
    chunks = []
    size = 0
    while chunk := await response.content.readany():
        size += len(chunk)
        if size > MAX_ANSWER:
            raise _TooLargeError
        chunks.append(chunk)
    return b"".join(chunks)


def explain_failure(error: Exception, place: str, timeout: float) -> tuple[FailureKind, str]:
    """Return the kind of a failure without HTTP answer, and a sentence that names the place."""
    import aiohttp

    kind = FailureKind.CONNECTION
    match error:
        case _TooLargeError():
            kind = FailureKind.BAD_RESPONSE
            message = f"the answer is larger than {MAX_ANSWER >> 20} MiB, the most that is read"
        case TimeoutError():
            kind = FailureKind.TIMEOUT
            message = f"{place} gave no complete answer within {timeout:g} s"
        case aiohttp.ClientHttpProxyError():
            message = f"the proxy refused the way to {place}: {error.status} {error.message}"
        case aiohttp.ClientResponseError():
            kind = FailureKind.BAD_RESPONSE
            message = f"{place} does not answer in HTTP; check the port in base_url"
        case aiohttp.ClientProxyConnectionError():
            message = f"no connection to the proxy on the way to {place}; check HTTPS_PROXY"
        case aiohttp.ClientConnectorDNSError():
            message = f"the name of {place} is not known; check base_url and the network"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            message = (
                f"no secure connection to {place} ({error}); check https in base_url and the certificate"
            )
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or error.os_error
            message = f"no connection to {place} ({reason}); check base_url, and that the server is up"
        case aiohttp.ClientPayloadError() | aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError():
            message = f"{place} closed the connection in the middle of its answer"
        case _:
            message = f"the call to {place} broke off ({type(error).__name__}: {error})"
    return kind, message
