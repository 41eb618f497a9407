"""What a job says of the Gemini API."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from edgen.config.backends import BackendConfig, EnvName, Positive, Url


class GeminiSettings(BackendConfig, frozen=True, kw_only=True):
    """What a Gemini model can be told, whichever service it is at."""

    top_k: Positive | None = None
    """From how many of the likeliest tokens one is drawn; null: the service's own default."""
    safety_settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Thresholds by category, in Gemini's own names."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Other fields of the request, as they are; they are kept in the run, so no key belongs here."""


class GeminiConfig(GeminiSettings, frozen=True, kw_only=True, tag_field="type", tag="gemini"):
    """The Gemini API over HTTP. With no `api_key_env`: GOOGLE_API_KEY, then GEMINI_API_KEY."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"api_key_env"}

    base_url: Url = "https://generativelanguage.googleapis.com"
    """Where the service is."""
    api_key_env: EnvName | None = None
    """The NAME of the environment variable that holds the key; null: GOOGLE_API_KEY, else GEMINI_API_KEY."""
