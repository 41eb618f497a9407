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
    completion: Annotated[float, Meta(ge=0, le=100_000)]
    batch: Share = 1.0
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}\Z")] | None = None
    source: Annotated[str, Meta(max_length=300)] | None = None


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """What every backend can be told about how to answer. None: the service's own default."""

    temperature: Temperature | None = None
    top_p: Share | None = None
    max_tokens: Positive | None = None
    stop: tuple[Text, ...] = ()
    # "auto" sends a seed made from the job's seed and the call's address; a number is sent as it is.
    seed: Literal["auto"] | Seed | None = None
    price: Price | None = None


class OpenAIConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="openai"):
    """Any Chat Completions server."""

    model: Text
    base_url: Url = "https://api.openai.com/v1"
    api_key_env: EnvName = "OPENAI_API_KEY"
    tokenizer: Text | None = None  # a tokenizer.json, for `edgen estimate` to count with
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    extra_body: dict[str, Any] = {}


class GeminiConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="gemini"):
    """The Gemini API over HTTP. With no `api_key_env`: GOOGLE_API_KEY, then GEMINI_API_KEY."""

    model: Text
    base_url: Url = "https://generativelanguage.googleapis.com"
    api_key_env: EnvName | None = None
    top_k: Positive | None = None
    safety_settings: dict[str, str] = {}
    extra_body: dict[str, Any] = {}


class GoogleGenerativeAIConfig(
    Sampling, frozen=True, kw_only=True, tag_field="type", tag="google-generativeai"
):
    """The Gemini API through the google-generativeai SDK, which is past its end of life."""

    model: Text
    endpoint: str | None = None
    api_key_env: EnvName | None = None
    top_k: Positive | None = None
    safety_settings: dict[str, str] = {}


class SimulatorConfig(Sampling, frozen=True, kw_only=True, tag_field="type", tag="simulator"):
    """The embedded simulator. `faults` like "refusal=0.02,429=0.1"; see `edgen simulator --help`."""

    model: Text = "edgen-simulator"
    faults: str = ""
    latency_ms: Annotated[float, Meta(ge=0, le=600_000)] = 0.0


BackendConfig = OpenAIConfig | GeminiConfig | GoogleGenerativeAIConfig | SimulatorConfig
