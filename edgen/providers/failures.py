"""Classification of failed calls: pure functions shared by all adapters.

`read_error` parses an error body of any shape. A vendor's `classify` returns its kind (with `kind_of_status`
for the HTTP status alone), `retry_after` the wait, and `call_error` builds the CallError. Every message is
cleaned: one short line, no control characters, no key even if the server echoes it.
"""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Token

MAX_ERROR = 1024 * 1024  # bytes of an error that are parsed
MAX_PAGE = 64 * 1024  # bytes of a page or characters of a message that are examined
MAX_MESSAGE = 300  # maximum characters of a message
MAX_WAIT = 3600.0  # seconds: longer waits requested by a server are cut to this
SECRET = 4  # a key shorter than this many characters is a placeholder, not a secret
WORD = 12  # a key shorter than this many characters may be an ordinary word

# Texts removed from messages and replies: keys and other private parts of a call.
Secrets = tuple[str, ...]
T = TypeVar("T")


def scrub(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD, since no encoding supports them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_message(text: str, secrets: Secrets = ()) -> str:
    """Return a server's message as one printable line of at most MAX_MESSAGE characters, without
    `secrets`."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:MAX_PAGE]).split())
    for secret in secrets:
        if len(secret) >= SECRET:
            line = line.replace(secret, "[key]")  # before truncation, which could leave half of a secret
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"


def without_secrets(reply: Reply, secrets: Secrets) -> Reply:
    """Return `reply` with `secrets` replaced by "[key]", since some servers echo their input.

    Keys shorter than WORD characters ("ollama", "secret") stay, because the answer may mean the word. If
    tokens spell or offer a secret, all tokens are dropped.
    """
    if reply.others:
        others = tuple(without_secrets(one, secrets) for one in reply.others)
        reply = msgspec.structs.replace(reply, others=others)
    for secret in secrets:
        if len(secret) < WORD:
            continue
        texts = {"text": reply.text, "refusal": reply.refusal, "model": reply.model}
        echoes = {
            name: text.replace(secret, "[key]") for name, text in texts.items() if text and secret in text
        }
        if echoes:
            reply = msgspec.structs.replace(reply, **echoes)
        if reply.tokens is not None and _spells(reply.tokens, secret):
            reply = msgspec.structs.replace(reply, tokens=None)
    return reply


def _spells(tokens: Sequence[Token], secret: str) -> bool:
    """Return whether tokens spell a text, in sequence or as alternatives at one place."""
    said = "".join(token.text for token in tokens)
    return secret in said or any(secret in text for token in tokens for text, _ in token.top)


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T | None:
    """Decode `body` as the decoder's type; None if it does not match.

    Bodies that msgspec rejects for lone surrogates or raw control characters are read again leniently, since
    the answer is paid for. Apply `scrub` to their texts.
    """
    try:
        return decoder.decode(body)
    except (ValueError, RecursionError):
        pass
    try:
        return msgspec.convert(json.loads(body, strict=False), decoder.type, strict=False)
    except (ValueError, RecursionError):
        return None


class ErrorBody(msgspec.Struct, frozen=True):
    """An error as reported by a server. Every field may be empty."""

    message: str = ""  # explanation for people
    code: str = ""  # the vendor's code, such as "429"
    type: str = ""  # the vendor's type, such as "insufficient_quota"
    status: str = ""  # the vendor's status, such as "RESOURCE_EXHAUSTED"
    details: tuple[dict[str, Any], ...] = ()  # Google's typed details
    metadata: dict[str, Any] = {}  # metadata that OpenRouter adds


def read_error(body: bytes) -> ErrorBody | None:
    """Return the error in a JSON body of any known shape; None for other bodies.

    Known shapes: {"error": {...}} and the same in a list (OpenAI, Google, llama.cpp), {"error": "..."}
    (Ollama), {"message": ...} (older vLLM), {"detail": ...} (FastAPI).
    """
    try:
        value = json.loads(body[:MAX_ERROR], strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return None
    error = value.get("error") or (value if _read_word(value.get("message")) else value.get("detail"))
    if not error:
        return None
    if not isinstance(error, dict):
        return ErrorBody(error if isinstance(error, str) else json.dumps(error))
    details, metadata = error.get("details"), error.get("metadata")
    return ErrorBody(
        message=_read_word(error.get("message")) or json.dumps(error),
        code=_read_word(error.get("code")),
        type=_read_word(error.get("type")),
        status=_read_word(error.get("status")),
        details=tuple(d for d in details if isinstance(d, dict)) if isinstance(details, list) else (),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def _read_word(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _strip_html(body: bytes) -> str:
    """Return the text of a page without HTML tags, scripts and styles."""
    text = body[:MAX_PAGE].decode("utf-8", "replace")
    return re.sub(r"(?is)<(script|style)\b.*?(</\1>|\Z)|<[^<>]*>", " ", text).strip()


_KIND_OF_STATUS = {
    401: FailureKind.AUTHENTICATION,
    402: FailureKind.QUOTA,
    403: FailureKind.PERMISSION,
    404: FailureKind.NOT_FOUND,
    405: FailureKind.NOT_FOUND,  # the path exists, but is not a model endpoint
    407: FailureKind.CONNECTION,  # the proxy requires a password
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER_ERROR,  # a conflict within the service, which edgen's requests cannot cause
    410: FailureKind.NOT_FOUND,
    425: FailureKind.SERVER_ERROR,
    429: FailureKind.RATE_LIMIT,
    498: FailureKind.OVERLOADED,  # Groq's flex tier has no capacity
    499: FailureKind.CONNECTION,  # the connection was cut between client and service
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT,
    522: FailureKind.TIMEOUT,
    524: FailureKind.TIMEOUT,
    529: FailureKind.OVERLOADED,
}


def kind_of_status(status: int) -> FailureKind:
    """Return the failure kind of an HTTP status alone."""
    if status in _KIND_OF_STATUS:
        return _KIND_OF_STATUS[status]
    if 300 <= status < 400:
        return FailureKind.NOT_FOUND  # the service has moved: change base_url
    if 400 <= status < 500:
        return FailureKind.BAD_REQUEST
    return FailureKind.SERVER_ERROR if 500 <= status < 600 else FailureKind.BAD_RESPONSE


Classify = Callable[[int, ErrorBody], FailureKind]


def call_error(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    classify: Classify,
    now: float,
    secrets: Secrets = (),
) -> CallError:
    """Return the CallError for an unsuccessful answer.

    A 200 counts as BAD_RESPONSE unless its body is an error; a status in such a body then replaces the
    answer's own. `now` is the time in seconds since 1970.
    """
    error = read_error(body)
    if 200 <= status < 300:
        if error is None:
            words = clean_message(_strip_html(body), secrets) or "nothing at all"
            return CallError(
                FailureKind.BAD_RESPONSE,
                clean_message(f"the answer is not a valid reply: {words}"),
                status=status,
            )
        status = int(error.code) if re.fullmatch("[45][0-9][0-9]", error.code) else 500
    error = error or ErrorBody(_strip_html(body))
    message = error.message
    if 300 <= status < 400:
        message = f"moved to {headers.get('Location', 'another address')}; put that into base_url"
    return CallError(
        classify(status, error),
        clean_message(message, secrets) or "the service gave no reason",
        status=status,
        retry_after=retry_after(headers, error.details, now),
    )


def add_hint(failure: CallError, hint: str) -> CallError:
    """Return the failure with a hint why no key was sent, if the service requires one."""
    if hint and failure.kind in (FailureKind.AUTHENTICATION, FailureKind.PERMISSION):
        failure.message = f"{failure.message.rstrip(' .')}; {hint}"
    return failure


def retry_after(headers: Mapping[str, str], details: Sequence[dict[str, Any]], now: float) -> float | None:
    """Return the seconds that the server asks to wait, at most MAX_WAIT; None if it does not say.

    In this order: `retry-after-ms`, `Retry-After` as seconds or HTTP date (RFC 9110, 10.2.3), Google's
    RetryInfo. Negative and invalid values are ignored; a past date is 0.
    """
    seconds = _read_number(headers.get("retry-after-ms"))
    if seconds is not None:
        return min(seconds / 1000, MAX_WAIT)
    header = headers.get("Retry-After")
    seconds = _read_number(header)
    if seconds is None and header:
        with contextlib.suppress(ValueError, OverflowError):
            seconds = max(email.utils.parsedate_to_datetime(header).timestamp() - now, 0.0)
    if seconds is None:
        for detail in details:
            delay = detail.get("retryDelay")
            if isinstance(delay, str) and delay.endswith("s"):
                seconds = _read_number(delay[:-1])
    return None if seconds is None else min(seconds, MAX_WAIT)


def _read_number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value >= 0 and math.isfinite(value) else None
