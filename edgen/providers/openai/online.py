"""Chat Completions servers: OpenAI, vLLM, llama.cpp, Ollama and many compatible ones.

A request is built from constant bytes around its messages; only the needed fields of an answer are read.
`extra_body` is merged last and shallowly: its keys replace edgen's (a `max_tokens` there is not scaled, a
null is sent as null). Reasoning in a separate field (`reasoning_content`) is not part of the text. If a
service's moderation blocks a prompt, the Reply has no text and the service's message as refusal.

`edgen.providers.keys` selects the key, which is sent only if `edgen.providers.trust` allows it.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Awaitable
from typing import Any

import msgspec

from edgen.plugin import CallError, FailureKind, Key, Link, Reply, Request
from edgen.plugin.providers import (
    OPTIONAL,
    ErrorBody,
    FinishReason,
    PromptPicture,
    Usage,
    base_address,
    decode,
    encode,
    encode_prompt,
    keep_stated,
    kind_of_status,
    lower_pictures,
    read_error,
    read_member,
    read_usage,
    refuse_extra,
    scrub,
)
from edgen.providers.openai.answer_schema import make_schema_settings
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai.logprobs import read_tokens
from edgen.providers.openai.service import ServiceBackend

log = logging.getLogger("edgen")


class OpenAIBackend(ServiceBackend):
    """One model at one Chat Completions endpoint."""

    def __init__(self, config: OpenAIConfig, key: Key, link: Link) -> None:
        super().__init__(config, key, link, classify)
        self._config = config
        self._completions = self.make_address("chat/completions")
        self._head = b'{"model":' + encode(config.extra_body.get("model", config.model)) + b',"messages":'
        self._room = find_room_field(config)
        self._tail = functools.cache(functools.partial(_render_tail, config))
        self._tail(1, self._room, None, None)  # raise for settings that cannot be sent, before any call
        # llama.cpp's probabilities after a grammar. At temperature 0 they are all 0 or 1.
        self._post_sampling = config.temperature != 0 and "post_sampling_probs" not in config.extra_body
        self._is_llama_cpp = False
        self._auto_seed = config.seed == "auto" and "seed" not in config.extra_body
        self._seeds_several = config.seeds_several

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        for _ in range(_DIALECTS):
            used, seeded = self._room, request.one_of_several and self._seeds_several
            try:
                return await self._ask(request)
            except CallError as refusal:  # a refusal is free; further calls are sent as the service wants
                named = refusal.message if refusal.status in (400, 422) else ""
                auto = used == _OLDER and self._config.max_tokens_field == "auto"
                if auto and re.search(r"(?i)max_?completion_?tokens", named):
                    self._room = _NEWER
                elif seeded and re.search(r"(?i)\bseed\b", named):
                    self._leave_seed_out()
                else:
                    raise
        return await self._ask(request)

    def _leave_seed_out(self) -> None:
        """From now on send no seeds that the job does not state, and warn once."""
        if self._seeds_several:
            self._seeds_several = False
            log.warning(
                "%s takes no seed, so several answers to one prompt are asked for with identical requests.",
                self.model,
            )

    def find_unknown_reason(self, body: bytes) -> str | None:
        """Return the finish reason if it is unknown."""
        answer = decode(_COMPLETION, body)
        reason = answer.choices[0].finish_reason if answer is not None and answer.choices else None
        return None if reason in _FINISH or reason in _TOOLS else reason

    async def _ask(self, request: Request) -> Reply:
        wanted = self._post_sampling and request.logprobs is not None and request.schema is not None
        known = self._is_llama_cpp
        reply = await self._send(self.body(request, _POST_SAMPLING if wanted and known else b""))
        if wanted and not known and self._is_llama_cpp:  # known by its first answer, which is free
            reply = await self._send(self.body(request, _POST_SAMPLING))
        return reply

    def _send(self, body: bytes) -> Awaitable[Reply]:
        return self.ask(self._completions, body, self._read, is_answer)

    def _read(self, body: bytes) -> Reply | None:
        if not self._is_llama_cpp and b'"timings"' in body:
            self._is_llama_cpp = _TIMINGS.search(body) is not None
        return read_reply(body) or read_block(body)

    def body(self, request: Request, more: bytes = b"") -> bytes:
        """Return the JSON body of a call or of a batch line. Raises CallError for a lone surrogate."""
        tail = self._tail(request.max_tokens_scale, self._room, request.schema, request.logprobs)
        seeded = self._auto_seed or (request.one_of_several and self._seeds_several)
        end = b',"seed":%d}' % request.seed if seeded else b"}"
        if request.choices > 1:
            end = b',"n":%d%b' % (request.choices, end)
        said = lower_pictures(request.messages, _make_text_part, _make_picture_part)
        return self._head + encode_prompt(said) + tail + more + end


# --- requests --------------------------------------------------------------------------------

_TIMINGS = re.compile(rb'"timings"\s{0,9}:\s{0,9}\{')  # the mark of llama.cpp's answers
_POST_SAMPLING = b',"post_sampling_probs":true'
_OLDER, _NEWER = "max_tokens", "max_completion_tokens"
_DIALECTS = 2  # refusals that lead to another form of the request: the field of max_tokens, the seed


def _make_text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _make_picture_part(picture: PromptPicture) -> dict[str, Any]:
    """Return an image part, with the picture in a data URL."""
    url = f"data:{picture.media_type};base64,{picture.base64}"
    return {"type": "image_url", "image_url": {"url": url}}


def find_room_field(config: OpenAIConfig) -> str:
    """Return the service's name for max_tokens, as far as known before a call."""
    if config.max_tokens_field != "auto":
        return config.max_tokens_field
    # OpenAI's newer models refuse max_tokens; most other servers support only that.
    return _NEWER if is_hosted(config) else _OLDER


def is_hosted(config: OpenAIConfig) -> bool:
    """Return whether OpenAI itself answers."""
    host = base_address(config.base_url).host or ""
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def _render_tail(config: OpenAIConfig, scale: int, room: str, schema: bytes | None, top: int | None) -> bytes:
    """Return the JSON after the messages, without automatic seed and closing brace.

    `room`: the name of `max_tokens`. `scale`: see `BackendConfig.room`. `schema`: the answer's. `top`: the
    number of likely tokens at each place. Raises InputError for an `extra_body` that changes fields owned by
    the adapter.
    """
    refuse_extra(
        config.extra_body, {"messages": "the prompt writes them", "stream": "answers are read whole"}
    )
    sent: dict[str, Any] = {
        "temperature": config.temperature,
        "top_p": config.top_p,
        room: config.room(scale),
        "stop": config.stop or None,
        "frequency_penalty": config.frequency_penalty,
        "presence_penalty": config.presence_penalty,
        "seed": None if config.seed == "auto" else config.seed,
        **{name: getattr(config, name) for name in OPTIONAL},
        "response_format": schema
        and {"type": "json_schema", "json_schema": make_schema_settings(schema, hosted=is_hosted(config))},
        "logprobs": top and True,
        "top_logprobs": top,
    }
    extra = {key: value for key, value in config.extra_body.items() if key not in ("model", "messages")}
    text = encode(keep_stated(sent) | extra)
    return b"" if text == b"{}" else b"," + text[1:-1]


# --- replies -----------------------------------------------------------------------------


class _Part(msgspec.Struct):
    type: str = "text"
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None  # the answer is paid for even if this is invalid
    model: str | None = None
    simulated: Any = None  # set by `edgen simulator`


_COMPLETION = msgspec.json.Decoder(_Completion)

_FINISH: dict[str | None, FinishReason] = {
    "stop": "stop",
    "eos_token": "stop",  # text-generation-inference, like the next
    "stop_sequence": "stop",
    None: "stop",
    "length": "length",
    **dict.fromkeys(("max_tokens", "MAX_TOKENS", "model_length"), "length"),  # some gateways
    "content_filter": "content_filter",
}
_TOOLS = ("tool_calls", "function_call")


def read_counts(usage: Any, names: tuple[str, str, str], text: str) -> Usage | None:
    """Return the usage. `names` are an API's names for prompt tokens, completion tokens and prompt
    details."""
    if not isinstance(usage, dict):
        return None
    prompt, completion, details = map(usage.get, names)
    cached = [read_member(details, name) for name in ("cached_tokens", "cache_write_tokens")]
    return read_usage(prompt, completion, text, *cached)


def read_reply(body: bytes) -> Reply | None:
    """Read the choices of a completion as a Reply; None if the body is not a completion."""
    answer = decode(_COMPLETION, body)
    if answer is None:
        return None
    # Such a choice is a failure: a router's provider stopped in the middle.
    choices = [_read_choice(one, answer) for one in answer.choices if one.finish_reason != "error"]
    if not choices:
        return None
    first, *others = choices
    counted = read_counts(
        answer.usage, ("prompt_tokens", "completion_tokens", "prompt_tokens_details"), first.text
    )
    if counted is not None:
        first = msgspec.structs.replace(first, usage=counted)
    return msgspec.structs.replace(first, others=tuple(others)) if others else first


def _read_choice(choice: _Choice, answer: _Completion) -> Reply:
    content = choice.message.content
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content if part.type in ("text", "output_text"))
    refusal = choice.message.refusal
    return Reply(
        text=scrub(content or ""),
        finish_reason=_FINISH.get(choice.finish_reason, "other"),
        refusal=scrub(refusal) if refusal else None,
        model=scrub(answer.model) if answer.model else None,
        simulated=answer.simulated is True,
        tokens=read_tokens(choice.logprobs.get("content")) if isinstance(choice.logprobs, dict) else None,
    )


# Codes and wordings of Azure, OpenAI and OpenRouter. "Your account was flagged" is excluded: it concerns
# every prompt.
_MODERATED = re.compile(
    r"moderation|content[_ ]?(filter|management policy|policy)|flagged_input"
    r"|\b(input|prompt|content|text|message|request|response|output)s? (was|were|is|are|(has|have) been) "
    r"flagged",
    re.IGNORECASE,
)


def read_block(body: bytes) -> Reply | None:
    """Read a moderation error about one prompt as a Reply; None for other errors."""
    error = read_error(body)
    if error is None or (error.code.isdecimal() and error.code not in ("400", "403")):
        return None
    words = " ".join((error.code, error.type, error.message, *error.metadata, str(error.metadata.get("raw"))))
    if classify(400, error) is not FailureKind.BAD_REQUEST or not _MODERATED.search(words):
        return None
    return Reply(text="", finish_reason="content_filter", refusal=scrub(error.message))


def is_answer(status: int, body: bytes) -> bool:
    """Return whether there is a reply to read: a 200, or a moderation error about one prompt."""
    return status == 200 or (status in (400, 403) and read_block(body) is not None)


# --- errors -----------------------------------------------------------------------------

_KIND_OF_WORD = {
    "invalid_api_key": FailureKind.AUTHENTICATION,
    "insufficient_quota": FailureKind.QUOTA,
    "billing_hard_limit_reached": FailureKind.QUOTA,
    "billing_not_active": FailureKind.QUOTA,
    "model_not_found": FailureKind.NOT_FOUND,
    "context_length_exceeded": FailureKind.CONTEXT_OVERFLOW,
    "exceed_context_size_error": FailureKind.CONTEXT_OVERFLOW,  # llama.cpp
}
# OpenAI and vLLM; vLLM without chat; older vLLM, if the prompt leaves no room; llama.cpp; SGLang.
_OVERFLOW = re.compile(
    r"maximum context length|maximum model length|too long to fit into the model"
    r"|max_tokens must be at least 1, got -|exceeds? the available context|model's context length",
    re.IGNORECASE,
)

# llama.cpp, whose parser reads the model's answer; Ollama.
_UNREADABLE = re.compile(
    r"Failed to parse input at pos|produced output that does not match the expected|error parsing tool call",
    re.IGNORECASE,
)


def classify(status: int, error: ErrorBody) -> FailureKind:
    """Return the kind of a failure: by the error's type, then by its wording, then by the status."""
    kind = _KIND_OF_WORD.get(error.code) or _KIND_OF_WORD.get(error.type)
    if kind is not None:
        return kind
    if status >= 400 and _OVERFLOW.search(error.message):
        return FailureKind.CONTEXT_OVERFLOW
    if status == 500 and _UNREADABLE.search(error.message):
        return FailureKind.BAD_OUTPUT
    if status == 429 and error.message.startswith("Request too large for"):
        return FailureKind.BAD_REQUEST  # more tokens than a minute allows, so waiting does not help
    return kind_of_status(status)
