"""Settings of the Gemini API in a job."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from edgen.plugin import BackendConfig
from edgen.plugin.providers import EnvName, Positive, Url


class GeminiSettings(BackendConfig, frozen=True, kw_only=True):
    """Settings of Gemini models at any service."""

    TAKES_SEED: ClassVar[bool] = True

    top_k: Positive | None = None
    """Number of likeliest tokens that one is drawn from; null: the service's default."""
    safety_settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Thresholds by category, in Gemini's own names."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further fields of the request, sent unchanged. They are stored with the run, so put no key here."""


class GeminiConfig(GeminiSettings, frozen=True, kw_only=True, tag_field="type", tag="gemini"):
    """The Gemini API over HTTP. Without `api_key_env`: GOOGLE_API_KEY, then GEMINI_API_KEY."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"api_key_env"}

    base_url: Url = "https://generativelanguage.googleapis.com"
    """Address of the service."""
    api_key_env: EnvName | None = None
    """The NAME of the environment variable that holds the key; null: GOOGLE_API_KEY, else GEMINI_API_KEY."""
