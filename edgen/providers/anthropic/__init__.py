"""Anthropic's Messages API: single calls, and batches through the vendor's SDK."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from edgen.plugin import Backend, BatchAnswers, Key, Link, Provider, RequestFeatures
from edgen.plugin.errors import Problem
from edgen.plugin.providers import (
    BatchServices,
    KeyRequest,
    PictureTokens,
    Price,
    PriceList,
    PricesAndTokens,
    PromptPicture,
    ServiceKeys,
)
from edgen.providers.anthropic.config import AnthropicConfig

PRICES = PriceList(Path(__file__).with_name("prices.yaml"), "api.anthropic.com")


class AnthropicProvider(RequestFeatures, ServiceKeys, PricesAndTokens, BatchAnswers, Provider):
    name = "anthropic"
    Config = AnthropicConfig
    prices = PRICES
    sends = frozenset({"reasoning_effort", "service_tier"})
    schema_field = "output_config.format"
    sees_pictures = True

    def picture_tokens(self, model: str, picture: PromptPicture) -> PictureTokens:  # noqa: ARG002
        """Return the tokens of a picture, one per 750 pixels, as older models scale it and as newer ones do.

        https://platform.claude.com/docs/en/build-with-claude/vision#evaluate-image-size
        """
        pixels = picture.width * picture.height
        longest = max(picture.width, picture.height)
        expected, most = (pixels * min(1.0, side / longest) ** 2 for side in (1_568, 2_576))
        return PictureTokens(min(math.ceil(expected / 750), 1_600), min(math.ceil(most / 750), 4_784))

    def create(self, config: AnthropicConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.anthropic.online import AnthropicBackend

        return AnthropicBackend(config, key, link)

    def problems(self, config: AnthropicConfig) -> list[Problem]:
        found = []
        if config.seed is not None:
            found.append(Problem("seed", "the Messages API takes no seed; remove it"))
        if config.temperature is not None and config.temperature > 1:
            found.append(Problem("temperature", "the Messages API takes 0 to 1"))
        if config.prompt_cache and config.price is not None and config.price.cache_write is None:
            write = (
                "what is written to the prompt cache costs more than the prompt; say how much, in US dollars"
            )
            found.append(Problem("price.cache_write", write))
        return found

    def key_request(self, config: AnthropicConfig) -> KeyRequest:
        from edgen.plugin.providers import http_key_request

        return http_key_request((config.api_key_env,), config.base_url)

    @property
    def batches(self) -> BatchServices:
        from edgen.providers.anthropic.batches import AnthropicBatches, read_line

        return BatchServices(AnthropicBatches, read_line)

    def list_price(self, config: AnthropicConfig) -> Price | None:
        price = PRICES.price(config.model, config.base_url)
        if price is None or config.prompt_cache == "5m":
            return price
        if config.prompt_cache is None:  # no cache is written unless the job asks for it
            return msgspec.structs.replace(price, cache_read=None, cache_write=None)
        return PRICES.apply_long_cache_write(price)


PROVIDER = AnthropicProvider()
