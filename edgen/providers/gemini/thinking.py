"""How the Gemini API is told how much to think: by a level, and models before Gemini 3 by tokens.

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
    """The `thinkingConfig` of a request, None where the job says nothing."""
    effort = config.reasoning_effort
    if effort is None:
        return None
    return {"thinkingBudget": _TOKENS[effort]} if _counts(config) else {"thinkingLevel": effort.upper()}


def effort_problem(config: GeminiSettings) -> str | None:
    """Why the model cannot be told this effort, None if it can."""
    known = tuple(_TOKENS) if _counts(config) else _LEVELS
    if config.reasoning_effort in (None, *known):
        return None
    return f"{config.model} has {', '.join(known)}"


def _counts(config: GeminiSettings) -> bool:
    """Whether the model knows no levels."""
    return _BY_TOKENS.search(config.model) is not None
