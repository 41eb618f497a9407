"""The backends that a job can name, one type a kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Temperature = Annotated[float, Meta(ge=0, le=5)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# Upper case, so that a key written here by mistake is refused, not looked up and printed.
EnvName = Annotated[str, Meta(pattern=r"^[A-Z_][A-Z0-9_]*\Z", max_length=64)]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/@]+(/\S*)?\Z")]
Text = Annotated[str, Meta(min_length=1)]


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens, online; `batch` is what a batch job costs of that. `date` and `source` say
    from when and where the figures are."""

    prompt: Annotated[float, Meta(ge=0, le=100_000)]
    """US dollars for a million tokens of prompts."""
    completion: Annotated[float, Meta(ge=0, le=100_000)]
    """US dollars for a million tokens of answers."""
    batch: Share = 1.0
    """The share of these that a batch job costs."""
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}\Z")] | None = None
    """The day on which the figures held."""
    source: Annotated[str, Meta(max_length=300)] | None = None
    """Where the figures are from."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """What every backend can be told about how to answer. None: the service's own default."""

    temperature: Temperature | None = None
    """How much answers vary; null: the service's own default."""
    top_p: Share | None = None
    """The share of probability that tokens are drawn from; null: the service's own default."""
    max_tokens: Positive | None = None
    """Tokens of one answer, at most; null: the service's own default."""
    stop: tuple[Text, ...] = ()
    """Texts at which an answer ends."""
    seed: Literal["auto"] | Seed | None = None
    """`auto` sends a seed made from the job's and the call's place; a number is sent as it is."""
    price: Price | None = None
    """What this model costs, where the shipped list does not know it or this host takes another price."""


class OpenAIConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="openai"):
    """Any Chat Completions server."""

    model: Text
    """The model's name at the service."""
    base_url: Url = "https://api.openai.com/v1"
    """Where the service is, without /chat/completions."""
    api_key_env: EnvName = "OPENAI_API_KEY"
    """The NAME of the environment variable that holds the key, never the key."""
    tokenizer: Text | None = None
    """A tokenizer.json, for `edgen estimate` to count with."""
    frequency_penalty: Penalty | None = None
    """How much a token is held back for each time that it was said."""
    presence_penalty: Penalty | None = None
    """How much a token is held back once it was said."""
    extra_body: dict[str, Any] = {}
    """Other fields of the request, as they are; they are kept in the run, so no key belongs here."""


class GeminiConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="gemini"):
    """The Gemini API over HTTP. With no `api_key_env`: GOOGLE_API_KEY, then GEMINI_API_KEY."""

    model: Text
    """The model's name at the service."""
    base_url: Url = "https://generativelanguage.googleapis.com"
    """Where the service is."""
    api_key_env: EnvName | None = None
    """The NAME of the environment variable that holds the key; null: GOOGLE_API_KEY, else GEMINI_API_KEY."""
    top_k: Positive | None = None
    """From how many of the likeliest tokens one is drawn; null: the service's own default."""
    safety_settings: dict[str, str] = {}
    """Thresholds by category, in Gemini's own names."""
    extra_body: dict[str, Any] = {}
    """Other fields of the request, as they are; they are kept in the run, so no key belongs here."""


class GoogleGenerativeAIConfig(
    Sampling, frozen=True, kw_only=True, tag_field="type", tag="google-generativeai"
):
    """The Gemini API through the google-generativeai SDK, which is past its end of life."""

    model: Text
    """The model's name at the service."""
    endpoint: str | None = None
    """Another host of the service."""
    api_key_env: EnvName | None = None
    """The NAME of the environment variable that holds the key; null: GOOGLE_API_KEY, else GEMINI_API_KEY."""
    top_k: Positive | None = None
    """From how many of the likeliest tokens one is drawn; null: the service's own default."""
    safety_settings: dict[str, str] = {}
    """Thresholds by category, in Gemini's own names."""


class SimulatorConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="simulator"):
    """The embedded simulator. `faults` like "refusal=0.02,429=0.1"; see `edgen simulator --help`."""

    model: Text = "edgen-simulator"
    """What records call it."""
    faults: str = ""
    """Troubles and their shares, as in "refusal=0.02,429=0.1"; `edgen simulator --list-faults` lists them."""
    latency_ms: Annotated[float, Meta(ge=0, le=600_000)] = 0.0
    """Milliseconds before each answer."""


BackendConfig = OpenAIConfig | GeminiConfig | GoogleGenerativeAIConfig | SimulatorConfig
