"""Classification of failed calls through litellm: by the service's answer first, then by litellm's
message."""

from __future__ import annotations

import re
import time
from typing import Any

from edgen.plugin import CallError, FailureKind, Reply
from edgen.plugin.errors import InputError
from edgen.plugin.providers import ErrorBody, Secrets, call_error, clean_message, read_error, scrub
from edgen.providers.litellm.client import Exchange
from edgen.providers.openai import online as chat

# litellm's exceptions that are more specific than a status of 400.
_KINDS = (
    ("ContextWindowExceededError", FailureKind.CONTEXT_OVERFLOW),
    ("AuthenticationError", FailureKind.AUTHENTICATION),
    ("PermissionDeniedError", FailureKind.PERMISSION),
    ("NotFoundError", FailureKind.NOT_FOUND),
    ("RateLimitError", FailureKind.RATE_LIMIT),
)
# Services that report an empty account as an invalid request, or as too many of them.
_NO_MONEY = re.compile(
    r"credit balance is too low|insufficient[_ ](quota|balance|credits?|funds)", re.IGNORECASE
)


def make_failure(error: Exception, exchange: Exchange, litellm: Any, secrets: Secrets) -> CallError:
    """Return the CallError for litellm's exception. Raises InputError for a setting that the service does not
    support."""
    if exchange.failure is not None:
        return exchange.failure
    exceptions = litellm.exceptions
    if isinstance(error, exceptions.UnsupportedParamsError):
        words = clean_message(str(error).partition(". To drop")[0].removeprefix(_PREFIX), secrets)
        raise InputError(f"litellm does not send what the job asks for: {words}. Remove it from the backend.")
    words = str(error).partition(" Traceback (most")[0].partition("\nTraceback")[0]
    if not exchange.sent:
        said = f"litellm made no call that edgen could carry ({words})"
        return CallError(_find_kind_by_name(error, exceptions), clean_message(said, secrets))

    def classify(status: int, said: ErrorBody) -> FailureKind:
        if _NO_MONEY.search(said.message):
            return FailureKind.QUOTA
        kind = chat.classify(status, said)
        return kind if kind is not FailureKind.BAD_REQUEST else _find_kind_by_name(error, exceptions)

    if 200 <= exchange.status < 300 and read_error(exchange.body) is None:
        return CallError(
            FailureKind.BAD_RESPONSE,
            clean_message(f"litellm cannot read the answer ({words})", secrets),
            status=exchange.status,
        )
    return call_error(
        exchange.status, exchange.headers, exchange.body, classify=classify, now=time.time(), secrets=secrets
    )


_PREFIX = "litellm.UnsupportedParamsError: "


def _find_kind_by_name(error: Exception, exceptions: Any) -> FailureKind:
    found = (kind for name, kind in _KINDS if isinstance(error, getattr(exceptions, name)))
    return next(found, FailureKind.BAD_REQUEST)


def find_block(error: Exception, exchange: Exchange, litellm: Any) -> Reply | None:
    """Return the Reply for a prompt that a service's moderation blocked; None for any other failure."""
    if exchange.failure is not None or exchange.status not in (400, 403):
        return None
    if isinstance(error, litellm.exceptions.ContentPolicyViolationError):
        return Reply(text="", finish_reason="content_filter", refusal=scrub(clean_message(str(error))))
    return chat.read_block(exchange.body)
