"""Gemini: single calls, and batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgen.plugin import Backend, BatchAnswers, Key, Link, Provider, RequestFeatures
from edgen.plugin.errors import Problem
from edgen.plugin.providers import (
    LISTED_TIERS,
    BatchServices,
    KeyRequest,
    PictureTokens,
    Price,
    PriceList,
    PricesAndTokens,
    PromptPicture,
    ServiceKeys,
)
from edgen.providers.gemini.config import GeminiConfig

# In the order of Google's own client.
KEY_NAMES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
TIERS = ("standard", "flex", "priority")
HOST = "generativelanguage.googleapis.com"
PRICES = PriceList(Path(__file__).with_name("prices.yaml"), HOST)


class GeminiModels(RequestFeatures, ServiceKeys, PricesAndTokens, BatchAnswers, Provider):
    """Gemini's models at any service."""

    prices = PRICES
    schema_field = "generationConfig.responseJsonSchema"
    logprobs_fields = ("generationConfig.responseLogprobs", "generationConfig.logprobs")
    choices_field = "generationConfig.candidateCount"
    most_choices = 8
    sees_pictures = True

    def picture_tokens(self, model: str, picture: PromptPicture) -> PictureTokens:
        from edgen.providers.gemini.pictures import count

        return count(model, picture)

    def problems(self, config: Any) -> list[Problem]:
        from edgen.providers.gemini.config import explain_effort_problem

        wrong = explain_effort_problem(config)
        return [] if wrong is None else [Problem("reasoning_effort", wrong)]


class GeminiProvider(GeminiModels):
    name = "gemini"
    Config = GeminiConfig
    sends = frozenset({"reasoning_effort", "service_tier"})

    def create(self, config: GeminiConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.gemini.online import GeminiBackend

        return GeminiBackend(config, key, link)

    def problems(self, config: GeminiConfig) -> list[Problem]:
        found = super().problems(config)
        if config.service_tier not in (None, *TIERS):
            found.append(Problem("service_tier", f"the Gemini API has {', '.join(TIERS)}"))
        return found

    def key_request(self, config: GeminiConfig) -> KeyRequest:
        from edgen.plugin.providers import http_key_request

        names = (config.api_key_env,) if config.api_key_env else KEY_NAMES
        return http_key_request(names, config.base_url)

    @property
    def batches(self) -> BatchServices:
        from edgen.providers.gemini.batches import GeminiBatches, read_line

        return BatchServices(GeminiBatches, read_line)

    def list_price(self, config: GeminiConfig) -> Price | None:
        if config.service_tier not in LISTED_TIERS:
            return None
        return PRICES.price(config.model, config.base_url)


PROVIDER = GeminiProvider()
