"""OpenAI and services that speak its API: single calls, and batches."""

from __future__ import annotations

import re
from pathlib import Path

from edgen.plugin import Backend, BatchAnswers, Key, Link, Provider, RequestFeatures
from edgen.plugin.errors import Problem
from edgen.plugin.providers import (
    LISTED_TIERS,
    OPTIONAL,
    BatchServices,
    KeyRequest,
    PictureTokens,
    Price,
    PriceList,
    PricesAndTokens,
    PromptPicture,
    ServiceKeys,
)
from edgen.providers.openai.config import OpenAIConfig, ServiceConfig

PRICES = PriceList(Path(__file__).with_name("prices.yaml"), "api.openai.com")
# Vocabularies by prefix of the model name: `model.py` of OpenAI's tiktoken.
_VOCABULARIES = (
    (re.compile(r"(chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4)(?![a-z0-9])"), "o200k_base"),
    (re.compile(r"(gpt-4|gpt-3\.5)(?![a-z0-9])"), "cl100k_base"),
)


class ServiceProvider(RequestFeatures, ServiceKeys, PricesAndTokens, BatchAnswers, Provider):
    """The base of providers whose services use OpenAI's APIs."""

    sends = frozenset(OPTIONAL)
    prices = PRICES

    def problems(self, config: ServiceConfig) -> list[Problem]:
        from edgen.providers.openai.headers import find_service_problems

        return find_service_problems(config)

    def key_request(self, config: ServiceConfig) -> KeyRequest | None:
        from edgen.plugin.providers import http_key_request

        if config.auth == "none":
            return None
        asked = http_key_request((config.api_key_env,), config.base_url)
        return asked._replace(variables=(), command=config.key_command) if config.key_command else asked

    def header_requests(self, config: ServiceConfig) -> tuple[KeyRequest, ...]:
        from edgen.plugin.providers import http_key_request
        from edgen.providers.openai.headers import list_header_variables

        return tuple(
            http_key_request((variable,), config.base_url)._replace(header=name)
            for name, variable in list_header_variables(config)
        )

    def list_price(self, config: ServiceConfig) -> Price | None:
        if config.service_tier not in LISTED_TIERS:
            return None
        return PRICES.price(config.model, config.base_url)

    def vocabulary(self, model: str) -> str | None:
        return next((name for pattern, name in _VOCABULARIES if pattern.match(model)), None)


class OpenAIProvider(ServiceProvider):
    name = "openai"
    Config = OpenAIConfig
    schema_field = "response_format"
    logprobs_fields = ("logprobs", "top_logprobs")
    choices_field = "n"
    most_choices = 128
    sees_pictures = True

    def picture_tokens(self, model: str, picture: PromptPicture) -> PictureTokens:
        from edgen.providers.openai.pictures import count

        return count(model, picture) or super().picture_tokens(model, picture)

    def create(self, config: OpenAIConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.openai.online import OpenAIBackend

        return OpenAIBackend(config, key, link)

    @property
    def batches(self) -> BatchServices:
        from edgen.providers.openai.batches import make_services

        return make_services()


PROVIDER = OpenAIProvider()
