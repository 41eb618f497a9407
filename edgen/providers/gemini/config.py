"""Settings of the Gemini API in a job."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from edgen.plugin.providers import EnvName, Positive, ServedConfig, Url


class GeminiSettings(ServedConfig, frozen=True, kw_only=True):
    """Settings of Gemini models at any service."""

    TAKES_SEED: ClassVar[bool] = True

    top_k: Positive | None = None
    """Draw from the k likeliest tokens; null: the service's default."""
    safety_settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Thresholds by category, in Gemini's names."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further fields of requests, stored with the run: put no key here."""


class GeminiConfig(GeminiSettings, frozen=True, kw_only=True, tag_field="type", tag="gemini"):
    """The Gemini API over HTTP. Without `api_key_env`: GOOGLE_API_KEY, then GEMINI_API_KEY."""

    KNOBS: ClassVar[frozenset[str]] = ServedConfig.KNOBS | {"api_key_env"}

    base_url: Url = "https://generativelanguage.googleapis.com"
    """Address of the service; a list, or `node-local`: as for `openai`."""
    api_key_env: EnvName | None = None
    """NAME of the key's variable; null: GOOGLE_API_KEY, else GEMINI_API_KEY."""


_LEVELS = ("minimal", "low", "medium", "high", "xhigh")
_TOKENS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


def make_thinking_config(config: GeminiSettings) -> dict[str, Any] | None:
    """Return the `thinkingConfig` of a request; None if the job does not set it."""
    effort = config.reasoning_effort
    if effort is None:
        return None
    return (
        {"thinkingBudget": _TOKENS[effort]} if _counts_tokens(config) else {"thinkingLevel": effort.upper()}
    )


def explain_effort_problem(config: GeminiSettings) -> str | None:
    """Explain why the model does not support this effort; None if it does."""
    known = tuple(_TOKENS) if _counts_tokens(config) else _LEVELS
    if config.reasoning_effort in (None, *known):
        return None
    return f"{config.model} has {', '.join(known)}"


def _counts_tokens(config: GeminiSettings) -> bool:
    """Return whether the model takes a number of tokens instead of levels."""
    return any(part.startswith("gemini-2.") for part in config.model.split("/"))
