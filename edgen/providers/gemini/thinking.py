"""Thinking settings of the Gemini API: a level, or tokens for models before Gemini 3.

Tokens and levels are those of Google's own translation of OpenAI's `reasoning_effort`
(ai.google.dev/gemini-api/docs/openai, "Thinking").
"""

from __future__ import annotations

import re
from typing import Any

from edgen.providers.gemini.config import GeminiSettings

_LEVELS = ("minimal", "low", "medium", "high", "xhigh")
_TOKENS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_BY_TOKENS = re.compile(r"(^|/)gemini-2\.")


def thinking_config(config: GeminiSettings) -> dict[str, Any] | None:
    """Return the `thinkingConfig` of a request, None if the job sets nothing."""
    effort = config.reasoning_effort
    if effort is None:
        return None
    return {"thinkingBudget": _TOKENS[effort]} if _counts(config) else {"thinkingLevel": effort.upper()}


def effort_problem(config: GeminiSettings) -> str | None:
    """Explain why the model does not support this effort; None if it does."""
    known = tuple(_TOKENS) if _counts(config) else _LEVELS
    if config.reasoning_effort in (None, *known):
        return None
    return f"{config.model} has {', '.join(known)}"


def _counts(config: GeminiSettings) -> bool:
    """Return whether the model takes tokens instead of levels."""
    return _BY_TOKENS.search(config.model) is not None
