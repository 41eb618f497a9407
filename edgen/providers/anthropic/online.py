"""Anthropic's Messages API over HTTP, version 2023-06-01.

System messages become the `system` field. `extra_body` is merged last and shallowly; the keys of its
`output_config` join edgen's. Thoughts are not part of the text. An answer with the stop reason `refusal`
becomes a Reply with the service's explanation as refusal. Fields, stop reasons and error types are those of
the API reference and of the SDK anthropic 2.12.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

from edgen.plugin import FailureKind, Key, Link, Message, Reply, Request
from edgen.plugin.errors import InputError
from edgen.plugin.providers import (
    MOST_PROMPT,
    Credentials,
    ErrorBody,
    FinishReason,
    HttpBackend,
    PromptPicture,
    Usage,
    add_counts,
    append_path,
    decode,
    encode,
    encode_prompt,
    keep_stated,
    kind_of_status,
    lower_pictures,
    read_member,
    read_usage,
    refuse_extra,
    scrub,
)
from edgen.providers.anthropic.config import AnthropicConfig


class AnthropicBackend(HttpBackend):
    """One model of the Messages API."""

    def __init__(self, config: AnthropicConfig, key: Key, link: Link) -> None:
        super().__init__(config, Credentials(key, _make_headers), link, classify)
        self._messages = append_path(self.base, "v1/messages")
        self._models = append_path(self.base, "v1/models")
        self._tail = functools.cache(functools.partial(_render_tail, config))
        self._tail(1, None)  # raise for settings that cannot be sent, before any call
        self._kept = None if config.prompt_cache is None else _make_cache_control(config.prompt_cache)

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        return await self.ask(self._messages, self.body(request), read_reply)

    def body(self, request: Request) -> bytes:
        """Return the JSON body of a call. Raises CallError for a lone surrogate."""
        tail = self._tail(request.max_tokens_scale, request.schema)
        messages = lower_pictures(request.messages, _make_text_block, _make_picture_block)
        system = "\n\n".join(
            one.content for one in messages if isinstance(one, Message) and one.role == "system"
        )
        said = [message for message in messages if not _is_system(message)]
        before = b'{"messages":' + encode_prompt(self._mark_last_message(said))
        return before + (b',"system":' + encode_prompt(self._mark_text(system)) if system else b"") + tail

    def _mark_last_message(self, said: list[Message | dict[str, Any]]) -> list[Any]:
        """Return the messages with the last one of a dialogue marked for caching, since the next prompt
        begins with all of them."""
        assistant = (isinstance(one, Message) and one.role == "assistant" for one in said)
        if self._kept is None or not any(assistant):
            return said
        last = said[-1]
        if isinstance(last, Message):
            return [*said[:-1], {"role": last.role, "content": self._mark_text(last.content)}]
        *before, end = last["content"]
        return [*said[:-1], {**last, "content": [*before, {**end, "cache_control": self._kept}]}]

    def _mark_text(self, text: str) -> Any:
        """Return a text block, marked for the prompt cache (with everything before it) if the job caches
        prompts."""
        return text if self._kept is None else [{**_make_text_block(text), "cache_control": self._kept}]

    async def models(self) -> list[str] | None:
        """Return the names that the service offers; None if it has no list. Raises CallError."""
        names: list[str] = []
        query = {"limit": "1000"}
        for _ in range(_MAX_PAGES):
            page = decode(_PAGE, await self._http.get(self._models.with_query(query)))
            if page is None:
                return None
            names += [scrub(model.id) for model in page.data]
            if not page.has_more or not page.last_id:
                break
            query["after_id"] = page.last_id
        return names


# --- requests --------------------------------------------------------------------------------

_MAX_PAGES = 20


def _is_system(message: Message | dict[str, Any]) -> bool:
    return isinstance(message, Message) and message.role == "system"


def _make_text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _make_picture_block(picture: PromptPicture) -> dict[str, Any]:
    source = {"type": "base64", "media_type": picture.media_type, "data": picture.base64}
    return {"type": "image", "source": source}


def _make_cache_control(ttl: str) -> dict[str, str]:
    """Return the cache marker of a block. Five minutes are the service's default."""
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def _make_headers(key: str | None) -> dict[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}


def _render_tail(config: AnthropicConfig, scale: int, schema: bytes | None) -> bytes:
    """Return the JSON after messages and system.

    `scale`: see `BackendConfig.room`. `schema`: the answer's. Raises InputError for an `extra_body` that
    changes fields owned by the adapter.
    """
    refuse_extra(config.extra_body, _NOT_EXTRA)
    output = config.extra_body.get("output_config") or {}
    if not isinstance(output, dict):
        raise InputError("extra_body.output_config must be a mapping, as in {effort: low}.")
    own: dict[str, Any] = {"effort": config.reasoning_effort} if config.reasoning_effort else {}
    if schema is not None:
        own["format"] = {"type": "json_schema", "schema": msgspec.Raw(schema)}
    sent: dict[str, Any] = {
        "model": config.model,
        "max_tokens": config.room(scale),
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k,
        "stop_sequences": config.stop or None,
        "service_tier": config.service_tier,
    }
    extra = {key: value for key, value in config.extra_body.items() if key not in _NOT_EXTRA}
    if own or output:
        extra["output_config"] = own | output
    return b"," + encode(keep_stated(sent) | extra)[1:]


_NOT_EXTRA = {
    "messages": "the prompt writes them",
    "system": "the prompt writes it",
    "stream": "answers are read whole",
    "cache_control": "`prompt_cache` of the backend sets it",
}


# --- replies -----------------------------------------------------------------------------


class _Block(msgspec.Struct):
    type: str
    text: str | None = None


class _StopDetails(msgspec.Struct):
    category: str | None = None
    explanation: str | None = None


class _Message(msgspec.Struct):
    """An answer; field names are the vendor's."""

    content: list[_Block]  # blocks of text and tool calls
    stop_reason: str | None = None  # reason for the end
    stop_details: _StopDetails | None = None  # details of a refusal
    usage: Any = None  # the answer is paid for even if this is invalid
    model: str | None = None  # the model that answered
    simulated: Any = None  # set by `edgen simulator`


class _Model(msgspec.Struct):
    id: str


class _Page(msgspec.Struct):
    data: list[_Model]
    has_more: bool = False
    last_id: str | None = None


_MESSAGE = msgspec.json.Decoder(_Message)
_PAGE = msgspec.json.Decoder(_Page)

_FINISH: dict[str | None, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    None: "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


def read_reply(body: bytes) -> Reply | None:
    """Read a message as a Reply; None if the body is invalid."""
    answer = decode(_MESSAGE, body)
    if answer is None:
        return None
    reason = _FINISH.get(answer.stop_reason, "other")
    text = scrub("".join(block.text or "" for block in answer.content if block.type == "text"))
    return Reply(
        text=text,
        finish_reason=reason,
        refusal=_describe_refusal(answer.stop_details) if reason == "content_filter" else None,
        usage=_read_counts(answer.usage, text),
        model=scrub(answer.model) if answer.model else None,
        simulated=answer.simulated is True,
    )


def _describe_refusal(details: _StopDetails | None) -> str:
    words = (details.category, details.explanation) if details is not None else ()
    return scrub(": ".join(word for word in words if word)) or "refusal"


def _read_counts(usage: Any, text: str) -> Usage | None:
    """Return the usage. Prompt tokens are the sum of uncached, cache-read and cache-written tokens. The
    service gives cache writes as a sum, or by lifetime."""
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    if written is None:
        apart = (
            read_member(usage.get("cache_creation"), f"ephemeral_{ttl}_input_tokens") for ttl in ("5m", "1h")
        )
        written = add_counts(*apart, most=MOST_PROMPT)
        if written is None:
            return None
    prompt = add_counts(usage.get("input_tokens"), read, written, most=MOST_PROMPT)
    return read_usage(prompt, usage.get("output_tokens"), text, read, written)


# --- errors -----------------------------------------------------------------------------

_KIND_OF_TYPE = {
    "authentication_error": FailureKind.AUTHENTICATION,
    "billing_error": FailureKind.QUOTA,
    "permission_error": FailureKind.PERMISSION,
    "not_found_error": FailureKind.NOT_FOUND,
    "request_too_large": FailureKind.BAD_REQUEST,
    "rate_limit_error": FailureKind.RATE_LIMIT,
    "api_error": FailureKind.SERVER_ERROR,
    "timeout_error": FailureKind.TIMEOUT,
    "overloaded_error": FailureKind.OVERLOADED,
}
# The service reports an empty account and a reached spending limit as invalid requests.
_NO_MONEY = re.compile(r"credit balance is too low|reached your specified .{0,40}usage limits", re.IGNORECASE)
_OVERFLOW = re.compile(r"prompt is too long|exceed(s)? (the )?context (limit|window)", re.IGNORECASE)


def classify(status: int, error: ErrorBody) -> FailureKind:
    """Return the kind of a failure, by its type (or by its wording if the type is ambiguous), or else by
    status."""
    if _NO_MONEY.search(error.message):
        return FailureKind.QUOTA
    if status in (400, 413) and _OVERFLOW.search(error.message):
        return FailureKind.CONTEXT_OVERFLOW
    return _KIND_OF_TYPE.get(error.type) or kind_of_status(status)
