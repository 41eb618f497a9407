"""Settings of the Gemini API through the google-generativeai SDK in a job."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from edgen.plugin import BackendConfig
from edgen.plugin.providers import EnvName, Positive


class GoogleGenerativeAIConfig(
    BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="google-generativeai"
):
    """The Gemini API through the end-of-life google-generativeai SDK."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"api_key_env"}

    endpoint: str | None = None
    """Another host of the service."""
    api_key_env: EnvName | None = None
    """NAME of the key's variable; null: GOOGLE_API_KEY, else GEMINI_API_KEY."""
    top_k: Positive | None = None
    """Draw from the k likeliest tokens; null: the service's default."""
    safety_settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Thresholds by category, in Gemini's names."""
