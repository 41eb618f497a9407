"""Settings of a service that speaks OpenAI's Responses API in a job."""

from __future__ import annotations

from typing import ClassVar

from edgen.providers.openai.config import ServiceConfig


class OpenAIResponsesConfig(
    ServiceConfig, frozen=True, kw_only=True, tag_field="type", tag="openai-responses"
):
    """OpenAI's Responses API, and compatible services."""

    KNOBS: ClassVar[frozenset[str]] = ServiceConfig.KNOBS | {"store"}

    store: bool = False
    """Whether the service stores answers."""
