"""The HTTP client given to litellm: one request per call, to one address, with a key that litellm never sees.

litellm gets a placeholder. `PinnedTransport` replaces it with the key when a request leaves, so litellm
cannot log, cache or raise the key. Requests to another address or with another key are not sent. A second
request of the same call is not sent either, so litellm cannot retry.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import httpx
from multidict import CIMultiDict
from openai import AsyncAzureOpenAI, AsyncOpenAI
from yarl import URL

from edgen.plugin import CallError, FailureKind, Key
from edgen.plugin.providers import OWN_HEADERS, WORD, Http, Secrets, names_a_key, place_of
from edgen.providers.litellm.config import LitellmConfig
from edgen.providers.litellm.library import load_litellm
from edgen.providers.litellm.services import find_service_name

_ANOTHERS = frozenset(["content-encoding", "content-length", "transfer-encoding"])


class Exchange:
    """The HTTP exchange of one call: an answer of any status, or the reason why there is none.

    `secrets` are keys that litellm found on its own.
    """

    def __init__(self) -> None:
        self.sent = False
        self.failure: CallError | None = None
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.body = b""
        self.secrets: Secrets = ()


EXCHANGE: ContextVar[Exchange] = ContextVar("what goes over the wire for a call")


class PinnedTransport(httpx.AsyncBaseTransport):  # type: ignore[misc]
    """A transport that sends requests only to `address`. `key` None: without a key. `library`: litellm brings
    its own."""

    def __init__(self, http: Http, address: URL, key: Key) -> None:
        self.stand_in = f"edgen-{secrets.token_hex(16)}"
        self._http = http
        self._where = place_of(str(address))
        self._key = key

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and keep the response. Failures are kept, too, and raised to litellm as connection
        errors."""
        exchange = EXCHANGE.get()
        try:
            await self._send(request, exchange)
        except CallError as failure:
            exchange.failure = exchange.failure or failure
            raise httpx.ReadError(failure.message) from None
        kept = [(name, value) for name, value in exchange.headers.items() if name.lower() not in _ANOTHERS]
        return httpx.Response(exchange.status, headers=kept, content=exchange.body, request=request)

    async def _send(self, request: httpx.Request, exchange: Exchange) -> None:
        if exchange.sent:
            raise CallError(
                FailureKind.BAD_REQUEST, "litellm asks this service more than once for one answer"
            )
        headers = self._make_headers(request, exchange)
        body = await request.aread()
        url = str(request.url)
        if (key := self._key.value) is not None:
            url, body = url.replace(self.stand_in, key), body.replace(self.stand_in.encode(), key.encode())
        exchange.sent = True
        exchange.status, said, answer = await self._http.send(
            request.method, URL(url, encoded=True), body, headers
        )
        exchange.headers, exchange.body = said, answer
        if key is not None and len(key) >= WORD:  # litellm may log what a server echoes
            cleaned = ((name, value.replace(key, "[key]")) for name, value in said.items())
            exchange.headers, exchange.body = CIMultiDict(cleaned), answer.replace(key.encode(), b"[key]")

    def _make_headers(self, request: httpx.Request, exchange: Exchange) -> dict[str, str]:
        """Return the headers of a request, with the key in place of the placeholder. Raises CallError if the
        request would go to another address or has another key."""
        if self._where is None or place_of(str(request.url).partition("?")[0]) != self._where:
            raise _make_astray_error(
                f"litellm calls {request.url.host}, and not {self._where.name if self._where else ''}"
            )
        headers = {name: value for name, value in request.headers.items() if name not in OWN_HEADERS}
        for name, value in list(headers.items()):
            if not names_a_key(name):
                continue
            if self._key.library:
                exchange.secrets = (*exchange.secrets, value.rpartition(" ")[2])
            elif self.stand_in not in value:
                raise _make_astray_error(f"litellm brings a key of its own in the header {name}")
            elif self._key.value is None:
                del headers[name]
            else:
                headers[name] = value.replace(self.stand_in, self._key.value)
        return headers


def _make_astray_error(what: str) -> CallError:
    return CallError(
        FailureKind.PERMISSION,
        f"{what}: a key goes only where base_url and api_key_env say, and nothing was sent",
        unsent=True,
    )


def build_client(transport: PinnedTransport, config: LitellmConfig, address: str, timeout: float) -> Any:
    """Build a client for litellm that its own handlers and OpenAI's SDK both accept."""
    options: Any = {
        "api_key": transport.stand_in,
        "http_client": httpx.AsyncClient(transport=transport, follow_redirects=False, trust_env=False),
        "max_retries": 0,
        "timeout": timeout,
    }
    if find_service_name(config.model) == "azure":
        version = config.api_version or load_litellm().AZURE_DEFAULT_API_VERSION
        return AsyncAzureOpenAI(azure_endpoint=address, api_version=version, **options)
    return _combine_clients(AsyncOpenAI(base_url=address, **options), transport, timeout)


def _combine_clients(sdk: AsyncOpenAI, transport: PinnedTransport, timeout: float) -> Any:
    """Combine both clients, since litellm has one argument `client` and its services require different
    kinds."""
    handlers = load_litellm().llms.custom_httpx.http_handler

    class Client(handlers.AsyncHTTPHandler):  # type: ignore[misc,name-defined]
        api_key = sdk.api_key
        _base_url = sdk._base_url
        chat = sdk.chat  # releases before 1.107 call the SDK's own method

        async def post(self, url: str, *args: Any, **options: Any) -> Any:
            if "cast_to" in options:
                return await sdk.post(url, **options)
            return await super().post(url, *args, **options)

        async def close(self) -> None:
            await sdk.close()
            await super().close()

    return Client(timeout=timeout, transport=transport, follow_redirects=False)
