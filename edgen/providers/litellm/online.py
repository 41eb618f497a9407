"""Models of any service that litellm supports: single calls, through `litellm.acompletion`.

litellm writes the request and reads the answer; `client.PinnedTransport` sends it over edgen's own session.
litellm's retries, fallbacks, caches and callbacks are off. Requests and answers are those of litellm 1.109.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import re
import time
from importlib import metadata
from typing import Any

import msgspec

from edgen.plugin import CallError, FailureKind, Key, Link, Reply, Request
from edgen.plugin.errors import InputError
from edgen.plugin.providers import (
    OPTIONAL,
    Credentials,
    ErrorBody,
    FinishReason,
    Http,
    Secrets,
    Token,
    base_address,
    call_error,
    clean_message,
    decode,
    describe_config,
    encode_prompt,
    keep_stated,
    read_error,
    read_usage,
    scrub,
    without_secrets,
)
from edgen.providers.litellm.client import EXCHANGE, Exchange, PinnedTransport, build_client
from edgen.providers.litellm.config import LitellmConfig
from edgen.providers.litellm.library import load_litellm
from edgen.providers.litellm.services import find_address, find_service_name
from edgen.providers.openai import online as chat
from edgen.providers.openai.answer_schema import make_schema_settings
from edgen.providers.openai.logprobs import read_tokens

log = logging.getLogger("edgen")


class LitellmBackend:
    """One model. Raises InputError if litellm is not installed or does not know the service."""

    def __init__(self, config: LitellmConfig, key: Key, link: Link) -> None:
        self.model = config.model
        self.identity = describe_config(config)
        self._litellm = load_litellm()
        self._config = config
        self._timeout = link.timeout
        base = base_address(find_address(config))
        self._credentials = Credentials(key, lambda _: {})
        self._http = Http(base, self._credentials, link, chat.classify)
        transport = PinnedTransport(self._http, base, key)
        self._client = build_client(transport, config, self._find_sdk_address(transport), link.timeout)
        self._fixed = _make_arguments(config, None if key.library else transport.stand_in) | {
            "client": self._client,
            "timeout": link.timeout,
        }
        self._remarked = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r})"

    def _find_sdk_address(self, transport: PinnedTransport) -> str:
        """Return the address for OpenAI's SDK, if litellm uses it for the service."""
        config = self._config
        try:
            found = self._litellm.get_llm_provider(
                config.model, api_base=config.base_url, api_key=transport.stand_in
            )
        except self._litellm.exceptions.BadRequestError:
            raise InputError(
                f"litellm {metadata.version('litellm')} does not know the service "
                f"{find_service_name(config.model)!r}: "
                "https://docs.litellm.ai/docs/providers lists those that it has."
            ) from None
        return config.base_url or found[3] or f"{find_address(config)}/v1"

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError, and InputError for a setting that the service does not
        support."""
        exchange = Exchange()
        token = EXCHANGE.set(exchange)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._litellm.acompletion(**self._make_arguments(request))
            if not exchange.sent:
                raise InputError(_explain_past_edgen(self.model))
            reply = read_reply(answer, exchange.body)
            if reply is None:
                raise self._http.make_format_error(exchange.body)
            self._warn_of_finish(answer)
        except TimeoutError:
            raise CallError(FailureKind.TIMEOUT, f"no complete answer within {self._timeout:g} s") from None
        except (CallError, InputError):
            raise
        except Exception as error:  # noqa: BLE001 - the code for litellm's hundred services raises anything
            reply = _find_block(error, exchange, self._litellm)
            if reply is None:
                raise self._explain(error, exchange) from None
        finally:
            EXCHANGE.reset(token)
        return without_secrets(reply, (*self._http.secrets, *exchange.secrets))

    def _make_arguments(self, request: Request) -> dict[str, Any]:
        """Return the arguments of a call. Raises CallError for a lone surrogate."""
        asked = {**self._fixed, "messages": msgspec.json.decode(encode_prompt(request.messages))}
        if (room := self._config.room(request.max_tokens_scale)) is not None:
            asked["max_tokens"] = room
        if self._config.seed == "auto":
            asked["seed"] = request.seed
        if request.schema is not None:
            asked["response_format"] = _make_response_format(request.schema)
        if request.logprobs is not None:
            asked |= {"logprobs": True, "top_logprobs": request.logprobs}
        return asked

    def _explain(self, error: Exception, exchange: Exchange) -> CallError:
        secrets = (*self._http.secrets, *exchange.secrets)
        return self._credentials.explain(_make_failure(error, exchange, self._litellm, secrets))

    def _warn_of_finish(self, answer: Any) -> None:
        """Warn once of an unknown finish reason."""
        reason = _find_native_reason(answer.choices[0])
        if not self._remarked and _finish_reason(answer.choices[0]) == "other" and reason:
            self._remarked = True
            log.warning(
                "%s ends answers for a reason that edgen does not know (%s); they are read as they are.",
                self.model,
                clean_message(reason, self._http.secrets)[:60],
            )

    async def models(self) -> list[str] | None:
        """Return None: litellm lists no models."""
        return None

    async def aclose(self) -> None:
        """Close the connections. Never raises; may be called twice."""
        with contextlib.suppress(Exception):
            await self._client.close()
        await self._http.aclose()


def _explain_past_edgen(model: str) -> str:
    return (
        f"litellm makes the calls of {find_service_name(model)} over connections of its own, so that edgen can "
        "vouch for neither its keys nor its attempts. Use another type of backend for this service."
    )


# --- requests -------------------------------------------------------------------------------


def _make_arguments(config: LitellmConfig, stand_in: str | None) -> dict[str, Any]:
    """Return the arguments of `acompletion` that all calls share: no retries, and no silent dropping of
    unsupported settings."""
    sent = {
        "api_key": stand_in,
        "api_base": config.base_url,
        "api_version": config.api_version,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "stop": list(config.stop) or None,
        "seed": None if config.seed == "auto" else config.seed,
        **{name: getattr(config, name) for name in OPTIONAL},
    }
    once = {"num_retries": 0, "max_retries": 0, "drop_params": False, "no-log": True}
    return (
        {"model": config.model}
        | keep_stated(sent)
        | config.options
        | once
        | {"cache": {"no-cache": True, "no-store": True}}
    )


@functools.lru_cache(maxsize=64)
def _make_response_format(schema: bytes) -> dict[str, Any]:
    settings = msgspec.json.decode(msgspec.json.encode(make_schema_settings(schema)))
    return {"type": "json_schema", "json_schema": settings}


# --- replies -----------------------------------------------------------------------------

_FINISH: dict[str, FinishReason] = {"stop": "stop", "length": "length", "content_filter": "content_filter"}
# Services' words for "stop", in lower case. litellm maps every unknown word to "stop", but keeps the word.
_STOPS = frozenset(["stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"])


class _Marked(msgspec.Struct):
    simulated: Any = None  # set by `edgen simulator`


_MARKED = msgspec.json.Decoder(_Marked)


def read_reply(answer: Any, body: bytes) -> Reply | None:
    """Read the first choice of litellm's ModelResponse as a Reply; None without a choice. `body` is the
    service's answer."""
    if not answer.choices:
        return None
    choice = answer.choices[0]
    text, reason = scrub(choice.message.content or ""), _finish_reason(choice)
    refusal = getattr(choice.message, "refusal", None)
    if reason == "content_filter":
        refusal = refusal or _find_native_reason(choice) or "content_filter"
    usage, marked = getattr(answer, "usage", None), decode(_MARKED, body)
    return Reply(
        text=text,
        finish_reason=reason,
        refusal=scrub(refusal) if refusal else None,
        usage=None if usage is None else read_usage(usage.prompt_tokens, usage.completion_tokens, text),
        model=scrub(answer.model) if answer.model else None,
        simulated=marked is not None and marked.simulated is True,
        tokens=_read_tokens(choice),
    )


def _read_tokens(choice: Any) -> tuple[Token, ...] | None:
    """Return the tokens of a choice, which litellm always gives in OpenAI's format; None without tokens."""
    told = getattr(choice, "logprobs", None)
    return None if told is None else read_tokens(told.model_dump().get("content"))


def _finish_reason(choice: Any) -> FinishReason:
    reason, native = _FINISH.get(choice.finish_reason, "other"), _find_native_reason(choice)
    return "other" if reason == "stop" and native and native.lower() not in _STOPS else reason


def _find_native_reason(choice: Any) -> str | None:
    """Return the service's own finish reason, if it differs from litellm's."""
    reason = (getattr(choice, "provider_specific_fields", None) or {}).get("native_finish_reason")
    return None if reason is None else str(reason)


# --- failures: by the service's answer first, then by litellm's message ----------------------

# litellm's exceptions that are more specific than a status of 400.
_KINDS = (
    ("ContextWindowExceededError", FailureKind.CONTEXT_OVERFLOW),
    ("AuthenticationError", FailureKind.AUTHENTICATION),
    ("PermissionDeniedError", FailureKind.PERMISSION),
    ("NotFoundError", FailureKind.NOT_FOUND),
    ("RateLimitError", FailureKind.RATE_LIMIT),
)
# Some services report an empty account as an invalid request, or as too many requests.
_NO_MONEY = re.compile(
    r"credit balance is too low|insufficient[_ ](quota|balance|credits?|funds)", re.IGNORECASE
)
_PREFIX = "litellm.UnsupportedParamsError: "


def _make_failure(error: Exception, exchange: Exchange, litellm: Any, secrets: Secrets) -> CallError:
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


def _find_kind_by_name(error: Exception, exceptions: Any) -> FailureKind:
    found = (kind for name, kind in _KINDS if isinstance(error, getattr(exceptions, name)))
    return next(found, FailureKind.BAD_REQUEST)


def _find_block(error: Exception, exchange: Exchange, litellm: Any) -> Reply | None:
    """Return the Reply for a prompt that a service's moderation blocked; None for any other failure."""
    if exchange.failure is not None or exchange.status not in (400, 403):
        return None
    if isinstance(error, litellm.exceptions.ContentPolicyViolationError):
        return Reply(text="", finish_reason="content_filter", refusal=scrub(clean_message(str(error))))
    return chat.read_block(exchange.body)
