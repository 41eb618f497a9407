"""The Gemini API's generateContent over HTTP, in the wire format of Google's google-genai client.

System messages become the system instruction; the assistant's role is "model". `extra_body` is merged last
and shallowly; the keys of its generationConfig join edgen's. If the service blocks a prompt, the Reply has no
text and the block reason as refusal. Thoughts are not part of the text. The key is sent in a header, never in
the address.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

from edgen.plugin import FailureKind, Key, Link, Message, Reply, Request
from edgen.plugin.errors import InputError
from edgen.plugin.providers import (
    Credentials,
    ErrorBody,
    FinishReason,
    HttpBackend,
    PromptPicture,
    StatedToken,
    Token,
    Usage,
    add_counts,
    append_path,
    decode,
    encode,
    encode_prompt,
    join_tokens,
    keep_stated,
    kind_of_status,
    lower_pictures,
    read_token,
    read_usage,
    scrub,
)
from edgen.providers.gemini.config import GeminiConfig, GeminiSettings, make_thinking_config


class GeminiModel(HttpBackend):
    """A model that answers generateContent at `path` below its service's address."""

    def __init__(self, config: GeminiSettings, path: str, credentials: Credentials, link: Link) -> None:
        super().__init__(config, credentials, link, classify)
        self._generate = append_path(self.base, f"{path}:generateContent")
        self._tail = functools.cache(functools.partial(_render_tail, config))
        self._tail(1, None, None, 1, False)  # raise for settings that cannot be sent, before any call
        self._seeds_several = config.seeds_several

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError."""
        return await self.ask(self._generate, self.body(request), read_reply)

    def body(self, request: Request) -> bytes:
        """Return the JSON body of a call or of a batch line. Raises CallError for a lone surrogate."""
        before, after = self._tail(
            request.max_tokens_scale,
            request.schema,
            request.logprobs,
            request.choices,
            request.one_of_several and self._seeds_several,
        )
        seed = b"%d" % request.seed if after else b""
        return _render_contents(request) + before + seed + after + b"}"

    async def models(self) -> list[str] | None:
        """Return None: the service has no list."""
        return None


class GeminiBackend(GeminiModel):
    """One model of the Gemini API."""

    def __init__(self, config: GeminiConfig, key: Key, link: Link) -> None:
        path = f"v1beta/{make_model_path(config.model)}"
        super().__init__(config, path, Credentials(key, _make_key_header), link)
        self._models = append_path(self.base, "v1beta/models")

    async def models(self) -> list[str] | None:
        """Return the models that can generate content, without the prefix "models/". Raises CallError."""
        names: list[str] = []
        query = {"pageSize": "1000"}
        for _ in range(_MAX_PAGES):
            page = decode(_PAGE, await self._http.get(self._models.with_query(query)))
            if page is None:
                return None
            names += [scrub(m.name).removeprefix("models/") for m in page.models if m.generates]
            if not page.next_page_token:
                break
            query["pageToken"] = page.next_page_token
        return names


# --- requests --------------------------------------------------------------------------------

_MAX_PAGES = 20


def _make_key_header(key: str | None) -> dict[str, str]:
    return {"x-goog-api-key": key} if key else {}


_PARTS = b'{"role":"user","parts":'
_OPEN = {
    "user": b'{"role":"user","parts":[{"text":',
    "assistant": b'{"role":"model","parts":[{"text":',
}


def make_model_path(model: str) -> str:
    """Return `models/NAME`, or a full resource name unchanged. Raises InputError for anything else."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@-]*(/[A-Za-z0-9][A-Za-z0-9._@-]*)*", model):
        raise InputError(f"the model {model!r} is not the name of a Gemini model, such as gemini-2.5-flash.")
    return model if "/" in model else f"models/{model}"


def _make_text_part(text: str) -> dict[str, Any]:
    return {"text": text}


def _make_picture_part(picture: PromptPicture) -> dict[str, Any]:
    return {"inlineData": {"mimeType": picture.media_type, "data": picture.base64}}


def _render_contents(request: Request) -> bytes:
    """Return `{"contents":[…]` and the system instruction, if any, without the closing brace."""
    system = []
    contents = []
    for message in lower_pictures(request.messages, _make_text_part, _make_picture_part):
        if not isinstance(message, Message):
            contents.append(_PARTS + encode_prompt(message["content"]) + b"}")
        elif message.role == "system":
            system.append(b'{"text":' + encode_prompt(message.content) + b"}")
        else:
            contents.append(_OPEN[message.role] + encode_prompt(message.content) + b"}]}")
    body = b'{"contents":[' + b",".join(contents) + b"]"
    return body + b',"systemInstruction":{"parts":[' + b",".join(system) + b"]}" if system else body


def _make_parameters(
    config: GeminiSettings, scale: int, schema: bytes | None, top: int | None, choices: int
) -> dict[str, Any]:
    """Return the body without contents, system instruction and automatic seed.

    `scale`: see `BackendConfig.room`. `schema`: the answer's. `top`: the number of likely tokens at each
    place. `choices`: the number of answers. Raises InputError for an `extra_body` that changes fields owned
    by the adapter.
    """
    if config.extra_body.get("contents"):
        raise InputError("extra_body cannot set 'contents': the prompt writes them. Remove it from the job.")
    generation: dict[str, Any] = {
        "temperature": config.temperature,
        "topP": config.top_p,
        "topK": config.top_k,
        "maxOutputTokens": config.room(scale),
        "stopSequences": config.stop or None,
        "seed": None if config.seed == "auto" else config.seed,
        "thinkingConfig": make_thinking_config(config),
        "responseMimeType": schema and "application/json",
        "responseJsonSchema": schema and msgspec.Raw(schema),
        "responseLogprobs": top and True,
        "logprobs": top,
        "candidateCount": choices if choices > 1 else None,
    }
    extra = {key: value for key, value in config.extra_body.items() if key != "contents"}
    override = extra.pop("generationConfig", None) or {}
    if not isinstance(override, dict):
        raise InputError("extra_body.generationConfig must be a mapping, as in {thinkingConfig: {…}}.")
    settings = [{"category": name, "threshold": value} for name, value in config.safety_settings.items()]
    sent = {
        "generationConfig": keep_stated(generation) | override,
        "safetySettings": settings,
        "serviceTier": config.service_tier,
    }
    return {key: value for key, value in sent.items() if value} | extra


def _render_tail(
    config: GeminiSettings, scale: int, schema: bytes | None, top: int | None, choices: int, seeded: bool
) -> tuple[bytes, bytes]:
    """Return the JSON before and after the automatic seed; without a seed, the whole JSON and nothing.
    `seeded`: send a seed although the job states none. For the other arguments see `_make_parameters`."""
    sent = _make_parameters(config, scale, schema, top, choices)
    generation = sent.get("generationConfig", {})
    if not (config.seed == "auto" or seeded) or "seed" in generation:
        text = encode(sent)
        return (b"" if text == b"{}" else b"," + text[1:-1]), b""
    sent.pop("generationConfig", None)
    rest, text = encode(sent), encode(generation)
    before = (b"," if rest != b"{}" else b"") + rest[1:-1] + b',"generationConfig":' + text[:-1]
    return before + (b"," if generation else b"") + b'"seed":', b"}"


# --- replies -----------------------------------------------------------------------------


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None


class _Content(msgspec.Struct, rename="camel"):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    logprobs_result: Any = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Answer(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: Any = None  # the answer is paid for even if this is invalid
    model_version: str | None = None
    simulated: Any = None  # set by `edgen simulator`


class _Model(msgspec.Struct, rename="camel"):
    name: str
    supported_generation_methods: list[str] | None = None

    @property
    def generates(self) -> bool:
        methods = self.supported_generation_methods
        return methods is None or "generateContent" in methods


class _Page(msgspec.Struct, rename="camel"):
    models: list[_Model] = []
    next_page_token: str | None = None


_ANSWER = msgspec.json.Decoder(_Answer)
_PAGE = msgspec.json.Decoder(_Page)

_FINISH: dict[str | None, FinishReason] = {
    "STOP": "stop",
    None: "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"), "content_filter"
    ),
}


def finish(reason: str | None) -> FinishReason:
    """Translate Google's finish reason."""
    return _FINISH.get(reason, "other")


def read_reply(body: bytes) -> Reply | None:
    """Read the candidates, or the block, as a Reply; None if the body has neither."""
    answer = decode(_ANSWER, body)
    if answer is None:
        return None
    if answer.candidates:
        first, *others = [_read_candidate(one, answer) for one in answer.candidates]
    elif answer.prompt_feedback is not None and answer.prompt_feedback.block_reason:
        blocked, others = answer.prompt_feedback, []
        words = _describe_block(blocked.block_reason, blocked.block_reason_message)
        first = Reply(text="", finish_reason="content_filter", refusal=words, **_name_author(answer))
    else:
        return None
    usage = _read_counts(answer.usage_metadata, first.text)
    return msgspec.structs.replace(first, usage=usage, others=tuple(others))


def _read_candidate(candidate: _Candidate, answer: _Answer) -> Reply:
    reason = finish(candidate.finish_reason)
    parts = candidate.content and candidate.content.parts
    blocked = reason == "content_filter"
    return Reply(
        text=scrub("".join(part.text or "" for part in parts or () if not part.thought)),
        finish_reason=reason,
        refusal=_describe_block(candidate.finish_reason, candidate.finish_message) if blocked else None,
        tokens=read_tokens(candidate.logprobs_result),
        **_name_author(answer),
    )


def _name_author(answer: _Answer) -> dict[str, Any]:
    """Return the Reply fields that name the author."""
    model = scrub(answer.model_version) if answer.model_version else None
    return {"model": model, "simulated": answer.simulated is True}


def _read_counts(usage: Any, text: str) -> Usage | None:
    """Return the usage. Thoughts are billed as completion. The service omits zeros."""
    if not isinstance(usage, dict):
        return None
    completion = add_counts(usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount"))
    prompt, cached = usage.get("promptTokenCount"), usage.get("cachedContentTokenCount")
    return read_usage(prompt, completion, text, cached)


def _describe_block(reason: str | None, message: str | None) -> str:
    return scrub(f"{reason}: {message}" if message else reason or "")


# --- errors -----------------------------------------------------------------------------


def classify(status: int, error: ErrorBody) -> FailureKind:
    """Return the kind of a failure: Google's typed details and wording first, then the status."""
    reasons = {str(detail.get("reason")) for detail in error.details}
    if "API_KEY_INVALID" in reasons or (status == 400 and re.search(r"(?i)\bAPI key\b", error.message)):
        return FailureKind.AUTHENTICATION
    if status == 400:
        if re.search(r"(?i)token count .*exceeds the maximum", error.message):
            return FailureKind.CONTEXT_OVERFLOW
        # No free tier for the caller's location, or no billing: every request fails in the same way.
        return FailureKind.PERMISSION if error.status == "FAILED_PRECONDITION" else FailureKind.BAD_REQUEST
    if status == 429:
        if "MODEL_CAPACITY_EXHAUSTED" in reasons:
            return FailureKind.OVERLOADED
        # Waiting for minutes does not restore a daily quota, although RetryInfo suggests it.
        return FailureKind.QUOTA if "PerDay" in _join_quota_ids(error) else FailureKind.RATE_LIMIT
    return kind_of_status(status)


def _join_quota_ids(error: ErrorBody) -> str:
    """Return the ids of all quotas that a 429 names, as one text."""
    violations = [v for detail in error.details for v in _list_mappings(detail.get("violations"))]
    return " ".join(str(v.get("quotaId")) for v in violations)


def _list_mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def read_tokens(result: object) -> tuple[Token, ...] | None:
    """Return the tokens of an answer; None if they are missing or invalid."""
    chosen, top = _list(result, "chosenCandidates"), _list(result, "topCandidates")
    return join_tokens(
        [_read(one) for one in chosen], [[_read(it) for it in _list(one, "candidates")] for one in top]
    )


def _list(value: object, name: str) -> list[object]:
    listed = value.get(name) if isinstance(value, dict) else None
    return listed if isinstance(listed, list) else []


def _read(value: object) -> StatedToken | None:
    return (
        read_token(value.get("token"), None, value.get("logProbability", 0.0))
        if isinstance(value, dict)
        else None
    )
