"""What the adapters to batch services share: the vendors' SDKs at arm's length.

Both SDKs are given one kind of HTTP client, made here, so that keys, proxies and redirects are the online
adapters' and not whatever a process's environment says, and nothing is tried twice behind edgen's back. No answer is
read that is larger than was said beforehand, or compressed, which is not asked for. What an SDK raises becomes a CallError in one place, `explained`. A file is written beside its place until it is whole.
The extra is imported when a function here is called, never with the module.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import importlib
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
from yarl import URL

from edgen.backends.base import MAX_ANSWER
from edgen.backends.batches.base import OversizedError, is_id
from edgen.backends.failures import Classify, clean, decode, failure, hinted, scrub
from edgen.backends.http import proxy_for
from edgen.errors import CallError, FailureKind, InputError
from edgen.extras import install_command
from edgen.files import Part

if TYPE_CHECKING:
    import httpx2

CHUNK = 1 << 20  # bytes of a result file that are held at a time
_MOST = ContextVar("bytes of an answer that are read", default=MAX_ANSWER)


def sdk(name: str, kind: str) -> ModuleType:
    """The SDK of that module name. Raises InputError where the extra is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"batch jobs of type {kind} need more packages: `{install_command('batch')}`. Without them, leave --via batch "
            "out and the same job is done call by call."
        ) from None


# --- calls ---------------------------------------------------------------------------------------


class Place:
    """A service as the calls to it are explained: where it is, its key, how it words its errors."""

    def __init__(
        self, base: URL, key: str | None, classify: Classify, errors: tuple[str, str], hint: str = ""
    ) -> None:
        self.key = key
        self._hint = hint
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
            raise explained(error, self) from None

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> CallError:
        """The CallError that an answer stands for which is no success, in HTTP or in a line."""
        found = failure(status, headers, body, classify=self._classify, now=time.time(), key=self.key)
        return hinted(found, self._hint)

    def named(self, name: object) -> str:
        """The id that the service gave something. Raises CallError if it is none."""
        if not isinstance(name, str) or not name:
            raise CallError(
                FailureKind.BAD_RESPONSE, f"what {self.name} answers is none of a batch service: no id"
            )
        if not is_id(name):
            raise CallError(
                FailureKind.BAD_RESPONSE,
                f"what {self.name} answers is none of a batch service: {name[:80]!r} is no id",
            )
        return name


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


def explained(error: Exception, place: Place) -> CallError:
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
    cause = under if isinstance(under, _transport()) else error
    kind, message = _broken(cause, place.name)
    told = OversizedError if isinstance(cause, TooLargeError) else CallError
    return told(kind, clean(message, place.key))


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
def at_most(size: int) -> Iterator[None]:
    """No answer in the body is read beyond so many bytes."""
    token = _MOST.set(size)
    try:
        yield
    finally:
        _MOST.reset(token)


def client(base: URL, key: str | None, environ: Mapping[str, str], patience: float) -> httpx2.AsyncClient:
    """The HTTP client that an SDK is given for `base`; `environ` is where proxies are looked up. `patience`: seconds
    without a byte; how long a whole request may take is the caller's to say.

    Only a GET follows a redirect, as Google's downloads need, and the key does not go along to another address.
    Raises InputError for a proxy that cannot be used.
    """
    import httpx2

    home = (base.scheme, base.host, base.port)

    async def leave_the_key(request: httpx2.Request) -> None:
        url = URL(str(request.url))
        if key is None or (url.scheme, url.host, url.port) != home:
            for name in ("Authorization", "x-goog-api-key"):
                request.headers.pop(name, None)

    class Bounded(httpx2.AsyncByteStream):
        """The bytes of an answer as they come, no more than may be read."""

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

    async def stay(response: httpx2.Response) -> None:
        if response.has_redirect_location and response.request.method != "GET":
            raise MovedError(response.headers["Location"])
        if (packed := response.headers.get("Content-Encoding", "identity").strip().lower()) != "identity":
            raise PackedError(packed[:40])
        response.stream = Bounded(response.stream)

    options = proxy_for(base, environ)
    proxy = options.get("proxy")
    return httpx2.AsyncClient(
        proxy=None if proxy is None else httpx2.Proxy(str(proxy), headers=options.get("proxy_headers")),
        headers={"Accept-Encoding": "identity"},
        trust_env=False,
        verify=ssl.create_default_context() if base.scheme == "https" else True,  # the system's, as online
        follow_redirects=True,
        timeout=httpx2.Timeout(patience, connect=min(patience, 60.0)),
        event_hooks={"request": [leave_the_key], "response": [stay]},
    )


# --- files ---------------------------------------------------------------------------------------


class Sink:
    """A file that is being written, in threads. Raises OSError as the disk does."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._first = self._last = b""  # of its bytes that are no white space

    async def write(self, chunk: bytes) -> None:
        await asyncio.to_thread(self._file.write, chunk)
        if said := chunk.strip():
            self._first, self._last = self._first or said[:4], said[-1:]

    def wrong(self, *, filled: bool) -> str | None:
        """Why what was written is no result file, if it cannot be one. `filled`: it must have lines. Each of its
        lines is an object; nothing is asked of those between the first and the last."""
        if not self._first:
            return "empty, though its batch has answers" if filled else None
        if not self._first.removeprefix(codecs.BOM_UTF8).startswith(b"{"):
            return f"no JSON lines; it begins with {self._first!r}"
        return None if self._last == b"}" else "cut off in the middle of a line"


@contextlib.asynccontextmanager
async def whole(to: Path, place: Place, *, filled: bool = False) -> AsyncIterator[Sink]:
    """What the body writes, a result file from `place`, is at `to` when it ends, on the disk; if it does not end
    well, nothing is. `filled`: it cannot be empty. Raises CallError for what is no such file."""
    part = Part(to)  # not in a thread, which would still make it after a cancellation
    try:
        sink = Sink(part.file)
        yield sink
        if (wrong := sink.wrong(filled=filled)) is not None:
            raise CallError(FailureKind.BAD_RESPONSE, f"the result file that {place.name} gave is {wrong}")
        await asyncio.to_thread(_settle, part)
    finally:
        part.discard()


def _settle(part: Part) -> None:
    part.close()
    part.publish()


# --- lines ---------------------------------------------------------------------------------------

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_NUMBER = msgspec.json.Decoder(int)


def members(value: bytes) -> dict[str, bytes]:
    """The members of a JSON object, each as its JSON; none where `value` is no object. Never raises.

    A value that msgspec refuses (models write lone surrogates and raw control characters, which some servers pass
    on) is read leniently, its members written anew.
    """
    try:
        return {name: bytes(member) for name, member in _MEMBERS.decode(value).items()}
    except (ValueError, RecursionError):
        pass
    try:
        read: Any = json.loads(value, strict=False)
        return (
            {name: json.dumps(member).encode() for name, member in read.items()}
            if isinstance(read, dict)
            else {}
        )
    except (ValueError, RecursionError):
        return {}


def text(value: bytes | None) -> str | None:
    """A JSON string, without lone surrogates; None for anything else."""
    found = None if value is None else decode(_TEXT, value)
    return None if found is None else scrub(found)


def number(value: bytes | None) -> int | None:
    """A JSON integer, None for anything else."""
    try:
        return None if value is None else _NUMBER.decode(value)
    except ValueError:
        return None
