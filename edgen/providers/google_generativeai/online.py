"""The Gemini API through Google's end-of-life `google-generativeai` SDK.

An opt-in extra for users who must stay with the SDK. `type: gemini` reaches the same service without it,
takes a seed and leaves thoughts out. The SDK's transport is gRPC on asyncio, opened in the loop of the first
call, without retries. The adapter makes its own client: `configure` is global to the process and would mix
the keys of two backends.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import time
import warnings
from collections.abc import Iterator
from typing import Any

from edgen.plugin import CallError, FailureKind, Key, Message, Reply, Request
from edgen.plugin.errors import InputError
from edgen.plugin.providers import (
    ErrorBody,
    Secrets,
    Usage,
    add_hint,
    clean_message,
    describe_config,
    keep_stated,
    read_usage,
    retry_after,
    scrub,
    without_secrets,
)
from edgen.providers.gemini.online import classify, finish, make_model_path
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig

log = logging.getLogger("edgen")


@functools.cache
def warn_of_end() -> None:
    """Warn once per process that the SDK is at its end of life."""
    log.warning(
        "google-generativeai is past its end of life (2025-11-30) and gets no fixes; "
        "its successor in a job is type: gemini."
    )


class GoogleGenerativeAIBackend:
    """One model, called through the SDK."""

    def __init__(self, config: GoogleGenerativeAIConfig, key: Key, timeout: float) -> None:
        self.model = config.model
        self.identity = describe_config(config)
        self._config = config
        self._key = key
        self._timeout = timeout
        self._path = make_model_path(config.model)
        self._client: Any = None
        self._models: Any = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hide its own notice; `warn_of_end` replaces it
            import google.generativeai as sdk
        self._sdk: Any = sdk  # partly typed
        try:
            self._make_sdk_model(())
        except (KeyError, ValueError, TypeError) as problem:
            raise InputError(
                f"google-generativeai does not know a value of safety_settings: {problem}."
            ) from None

    def __repr__(self) -> str:
        return f"GoogleGenerativeAIBackend(model={self.model!r}, endpoint={self._config.endpoint!r})"

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        model = self._make_sdk_model(request.messages)
        model._async_client = self._client or self._open()
        contents = [
            {"role": "model" if m.role == "assistant" else "user", "parts": [m.content]}
            for m in request.messages
            if m.role != "system"
        ]
        tokens = self._config.room(request.max_tokens_scale)
        with _translate_errors(self._key):
            answer = await model.generate_content_async(
                contents,
                generation_config={"max_output_tokens": tokens} if tokens else None,
                request_options={"timeout": self._timeout, "retry": None},
            )
        return without_secrets(read_reply(answer), _list_secrets(self._key))

    async def models(self) -> list[str] | None:
        """Return the models that can generate content, without the prefix "models/". Raises CallError."""
        if self._models is None:
            from google.ai import generativelanguage

            self._models = generativelanguage.ModelServiceAsyncClient(**self._make_channel())
        with _translate_errors(self._key):
            pages = await self._models.list_models(timeout=self._timeout, retry=None)
            return [
                scrub(model.name).removeprefix("models/")
                async for model in pages
                if "generateContent" in model.supported_generation_methods
            ]

    async def aclose(self) -> None:
        """Close the channels. Never raises; may be called twice."""
        for client in (self._client, self._models):
            if client is not None:
                with contextlib.suppress(Exception):
                    await client.transport.close()

    def _make_sdk_model(self, messages: tuple[Message, ...]) -> Any:
        """Return the SDK's model object, which is cheap and holds the system instruction of one request."""
        config = self._config
        system = [message.content for message in messages if message.role == "system"]
        settings = {
            "temperature": config.temperature,
            "top_p": config.top_p,
            "top_k": config.top_k,
            "stop_sequences": list(config.stop) or None,
        }
        return self._sdk.GenerativeModel(
            self._path,
            safety_settings=dict(config.safety_settings) or None,
            generation_config=keep_stated(settings),
            system_instruction=system or None,
        )

    def _open(self) -> Any:
        from google.ai import generativelanguage

        self._client = generativelanguage.GenerativeServiceAsyncClient(**self._make_channel())
        return self._client

    def _make_channel(self) -> dict[str, Any]:
        # Otherwise the SDK would send the machine's own Google credentials.
        options = {"api_key": self._key.value or "none"}
        if self._config.endpoint:
            options["api_endpoint"] = self._config.endpoint
        return {"transport": "grpc_asyncio", "client_options": options}


def read_reply(answer: Any) -> Reply:
    """Read the SDK's answer as a Reply. Raises CallError if it has neither candidate nor block."""
    text, refusal = "", None
    if answer.candidates:
        candidate = answer.candidates[0]
        text = "".join(part.text for part in candidate.content.parts)
        word = _name(candidate.finish_reason)
        reason = finish(None if word == "FINISH_REASON_UNSPECIFIED" else word)
        refusal = word if reason == "content_filter" else None
    elif answer.prompt_feedback.block_reason:
        reason, refusal = "content_filter", _name(answer.prompt_feedback.block_reason)
    else:
        raise CallError(FailureKind.BAD_RESPONSE, "the answer holds neither a candidate nor a block reason")
    usage, text = answer.usage_metadata, scrub(text)
    return Reply(
        text=text,
        finish_reason=reason,
        refusal=refusal,
        usage=_read_counts(usage, text),
        model=scrub(answer._result.model_version) or None,
    )


def _read_counts(usage: Any, text: str) -> Usage | None:
    if not usage:
        return None
    return read_usage(
        usage.prompt_token_count, _count_completion_tokens(usage), text, usage.cached_content_token_count
    )


def _count_completion_tokens(usage: Any) -> int:
    """Return the completion tokens. Thoughts are billed, but this SDK counts them only in the total."""
    return max(int(usage.candidates_token_count), int(usage.total_token_count - usage.prompt_token_count))


def _name(value: Any) -> str:
    """Return the name of an enum's value; its number if the SDK does not know the value."""
    return getattr(value, "name", None) or str(value)


@contextlib.contextmanager
def _translate_errors(key: Key) -> Iterator[None]:
    """Translate the SDK's exceptions to CallError within the body; cancellation passes through."""
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from grpc import RpcError

    try:
        yield
    except (GoogleAPIError, GoogleAuthError, RpcError, ValueError) as error:
        raise add_hint(translate(error, _list_secrets(key), time.time()), key.hint) from None


# gRPC reports UNAVAILABLE both for an overloaded service and for an unreachable one.
_UNREACHABLE = re.compile(
    r"(?i)failed to connect|dns resolution|name resolution|socket closed|backends failing"
)


def _list_secrets(key: Key) -> Secrets:
    return () if key.value is None else (key.value,)


def translate(error: Exception, secrets: Secrets, now: float) -> CallError:
    """Return the CallError for an exception of the SDK, its transport or its credentials."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError

    words = clean_message(str(error), secrets)
    if isinstance(error, GoogleAuthError):
        return CallError(FailureKind.AUTHENTICATION, words)
    if isinstance(error, ValueError):  # a value that does not fit a protocol message
        return CallError(FailureKind.BAD_REQUEST, words)
    if not isinstance(error, GoogleAPICallError):
        return CallError(FailureKind.CONNECTION, words)
    status = int(error.code) if error.code else 500
    body = ErrorBody(
        message=error.message or "",
        status=getattr(error.grpc_status_code, "name", ""),
        details=_read_details(error.details),
    )
    unreachable = status == 503 and _UNREACHABLE.search(body.message)
    return CallError(
        FailureKind.CONNECTION if unreachable else classify(status, body),
        clean_message(body.message or body.status, secrets),
        status=None if unreachable else status,
        retry_after=retry_after({}, body.details, now),
    )


def _read_details(messages: Any) -> tuple[dict[str, Any], ...]:
    """Return Google's typed error details as the dictionaries of the HTTP API."""
    from google.protobuf.json_format import MessageToDict

    plain = []
    for message in messages or ():
        with contextlib.suppress(TypeError, AttributeError):
            plain.append(MessageToDict(message))
    return tuple(plain)
