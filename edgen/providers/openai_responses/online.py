"""The Responses API over HTTP.

Messages are the request's `input`; effort goes into `reasoning`, verbosity into `text`. `extra_body` is
merged last and shallowly; the keys of these two join edgen's. The text of an answer is that of its messages,
without reasoning items. `incomplete_details` explains incomplete answers. Fields are those of the SDK openai
3.52.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import msgspec

from edgen.plugin import FailureKind, Key, Link, Reply, Request
from edgen.plugin.errors import InputError
from edgen.plugin.providers import (
    ErrorBody,
    FinishReason,
    Token,
    decode,
    encode,
    encode_prompt,
    keep_stated,
    refuse_extra,
    scrub,
)
from edgen.providers.openai import online as chat
from edgen.providers.openai.answer_schema import make_schema_settings
from edgen.providers.openai.logprobs import read_tokens
from edgen.providers.openai.service import ServiceBackend
from edgen.providers.openai_responses.config import OpenAIResponsesConfig


class ResponsesBackend(ServiceBackend):
    """One model at one Responses endpoint."""

    def __init__(self, config: OpenAIResponsesConfig, key: Key, link: Link) -> None:
        super().__init__(config, key, link, classify)
        self._responses = self.make_address("responses")
        self._tail = functools.cache(functools.partial(_render_tail, config))
        self._tail(1, None, None)  # raise for settings that cannot be sent, before any call

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        return await self.ask(self._responses, self.body(request), _read_reply_or_block, chat.is_answer)

    def find_unknown_reason(self, body: bytes) -> str | None:
        """Return why a response is incomplete, if edgen does not know the reason."""
        answer = decode(_RESPONSE, body)
        details = None if answer is None else answer.incomplete_details
        return None if details is None or details.reason in _INCOMPLETE else details.reason

    def body(self, request: Request) -> bytes:
        """Return the JSON body of a call. Raises CallError for a lone surrogate."""
        tail = self._tail(request.max_tokens_scale, request.schema, request.logprobs)
        return b'{"input":' + encode_prompt(request.messages) + tail


# --- requests --------------------------------------------------------------------------------

_NOT_EXTRA = {
    "input": "the prompt writes it",
    "instructions": "the prompt writes them",
    "stream": "answers are read whole",
    "background": "answers are waited for",
}


def _render_tail(config: OpenAIResponsesConfig, scale: int, schema: bytes | None, top: int | None) -> bytes:
    """Return the JSON after the input.

    `scale`: see `BackendConfig.room`. `schema`: the answer's. `top`: the number of likely tokens at each
    place. Raises InputError for an `extra_body` that changes fields owned by the adapter.
    """
    refuse_extra(config.extra_body, _NOT_EXTRA)
    sent: dict[str, Any] = {
        "model": config.model,
        "store": config.store,
        "max_output_tokens": config.room(scale),
        "temperature": config.temperature,
        "top_p": config.top_p,
        "service_tier": config.service_tier,
        "include": top and ["message.output_text.logprobs"],
        "top_logprobs": top,
    }
    extra = {key: value for key, value in config.extra_body.items() if key not in _NOT_EXTRA}
    for name, own in (
        ("reasoning", {"effort": config.reasoning_effort}),
        ("text", {"verbosity": config.verbosity, "format": schema and _format(schema)}),
    ):
        given = extra.get(name) or {}
        if not isinstance(given, dict):
            raise InputError(f"extra_body.{name} must be a mapping.")
        if joined := keep_stated(own) | given:
            extra[name] = joined
    return b"," + encode(keep_stated(sent) | extra)[1:]


def _format(schema: bytes) -> dict[str, Any]:
    return {"type": "json_schema", **make_schema_settings(schema)}


# --- replies -----------------------------------------------------------------------------


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None
    logprobs: Any = None


class _Item(msgspec.Struct):
    type: str
    content: list[_Part] | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    """An answer; field names are the vendor's."""

    output: list[_Item]  # messages, thoughts and tool calls
    status: str | None = None  # completed, incomplete or failed
    incomplete_details: _Incomplete | None = None  # reason for being incomplete
    usage: Any = None  # the answer is paid for even if this is invalid
    model: str | None = None  # the model that answered
    simulated: Any = None  # set by `edgen simulator`


_RESPONSE = msgspec.json.Decoder(_Response)
_INCOMPLETE: dict[str | None, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


def read_reply(body: bytes) -> Reply | None:
    """Read a response as a Reply; None if the body is invalid, failed or unfinished."""
    answer = decode(_RESPONSE, body)
    if answer is None or answer.status not in ("completed", "incomplete", None):
        return None
    parts = [part for item in answer.output if item.type == "message" for part in item.content or ()]
    text = scrub("".join(part.text or "" for part in parts if part.type == "output_text"))
    refusal = scrub(" ".join(part.refusal or "" for part in parts if part.type == "refusal")).strip()
    reason: FinishReason = "stop"
    if answer.status == "incomplete":
        reason = _INCOMPLETE.get(
            answer.incomplete_details.reason if answer.incomplete_details else None, "other"
        )
    return Reply(
        text=text,
        finish_reason=reason,
        refusal=refusal or None,
        usage=chat.read_counts(answer.usage, ("input_tokens", "output_tokens", "input_tokens_details"), text),
        model=scrub(answer.model) if answer.model else None,
        simulated=answer.simulated is True,
        tokens=_read_tokens(parts),
    )


def _read_reply_or_block(body: bytes) -> Reply | None:
    return read_reply(body) or chat.read_block(body)


def _read_tokens(parts: list[_Part]) -> tuple[Token, ...] | None:
    """Return the tokens of all texts in sequence; None if a text has none."""
    told = [read_tokens(part.logprobs) for part in parts if part.type == "output_text"]
    found = [tokens for tokens in told if tokens is not None]
    return tuple(itertools.chain.from_iterable(found)) if found and len(found) == len(told) else None


# --- errors -----------------------------------------------------------------------------

# Codes of failed responses, which have the status 200.
_KIND_OF_CODE = {
    "rate_limit_exceeded": FailureKind.RATE_LIMIT,
    "server_error": FailureKind.SERVER_ERROR,
    "invalid_prompt": FailureKind.BAD_REQUEST,
}


def classify(status: int, error: ErrorBody) -> FailureKind:
    """Return the kind of a failure: by the code of a failed response, or else as for a completion."""
    if status == 500 and error.code in _KIND_OF_CODE:
        return _KIND_OF_CODE[error.code]
    return chat.classify(status, error)
