"""Settings of Anthropic's Messages API in a job."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from edgen.plugin.providers import EnvName, Positive, ServedConfig, Url


class AnthropicConfig(ServedConfig, frozen=True, kw_only=True, tag_field="type", tag="anthropic"):
    """Anthropic's Messages API over HTTP."""

    KNOBS: ClassVar[frozenset[str]] = ServedConfig.KNOBS | {"api_key_env", "prompt_cache"}
    """Settings that shape no answer."""

    base_url: Url = "https://api.anthropic.com"
    """Address of the service, without /v1/messages; a list, or `node-local`: as for `openai`."""
    api_key_env: EnvName = "ANTHROPIC_API_KEY"
    """NAME of the environment variable with the key."""
    max_tokens: Positive = 8192
    """Maximum tokens per answer, thoughts included."""
    top_k: Positive | None = None
    """Draw from the k likeliest tokens; null: the service's default."""
    reasoning_effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How much the model thinks (`output_config.effort`); null: the service's default."""
    service_tier: Literal["auto", "standard_only"] | None = None
    """Whether to use priority capacity; null: the service's default."""
    prompt_cache: Literal["5m", "1h"] | None = None
    """How long the service caches common prefixes; null: none."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further fields of requests, stored with the run: put no key here."""
