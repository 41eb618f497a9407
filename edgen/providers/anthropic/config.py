"""What a job says of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from edgen.config.backends import BackendConfig, EnvName, Positive, Url


class AnthropicConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="anthropic"):
    """Anthropic's Messages API over HTTP."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"api_key_env", "prompt_cache"}

    base_url: Url = "https://api.anthropic.com"
    """Where the service is, without /v1/messages."""
    api_key_env: EnvName = "ANTHROPIC_API_KEY"
    """The NAME of the environment variable that holds the key, never the key."""
    max_tokens: Positive = 8192
    """Tokens of one answer, at most; the service demands a number. Thoughts count."""
    top_k: Positive | None = None
    """From how many of the likeliest tokens one is drawn; null: the service's own default."""
    reasoning_effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How much the model does for an answer (`output_config.effort`); null: the model's own default."""
    service_tier: Literal["auto", "standard_only"] | None = None
    """Whether priority capacity may be used; null: the service's own default."""
    prompt_cache: Literal["5m", "1h"] | None = None
    """How long the service keeps what prompts have in common: the system message and, in self-play, what was said so far;
    null: it keeps nothing."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Other fields of the request, as they are; they are kept in the run, so no key belongs here."""
