"""Anthropic's Messages API: calls one by one, and batches by the vendor's SDK."""

from __future__ import annotations

from pathlib import Path

from edgen.config.backends import Price
from edgen.core.errors import Problem
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.base import Backend, Key, KeyRequest, Link, Provider
from edgen.providers.batches import BatchServices
from edgen.providers.prices import PriceList

PRICES = PriceList(Path(__file__).with_name("prices.yaml"), "api.anthropic.com")


class AnthropicProvider(Provider):
    name = "anthropic"
    Config = AnthropicConfig
    sends = frozenset({"reasoning_effort", "service_tier"})
    schema_field = "output_config.format"

    def create(self, config: AnthropicConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.anthropic.online import AnthropicBackend

        return AnthropicBackend(config, key, link)

    def problems(self, config: AnthropicConfig) -> list[Problem]:
        found = []
        if config.seed is not None:
            found.append(Problem("seed", "the Messages API takes no seed; remove it"))
        if config.temperature is not None and config.temperature > 1:
            found.append(Problem("temperature", "the Messages API takes 0 to 1"))
        return found

    def key_request(self, config: AnthropicConfig) -> KeyRequest:
        from edgen.providers.http import http_key_request

        return http_key_request((config.api_key_env,), config.base_url)

    @property
    def batches(self) -> BatchServices:
        from edgen.providers.anthropic.batches import AnthropicBatches, read_line

        return BatchServices(AnthropicBatches, read_line)

    def list_price(self, config: AnthropicConfig) -> Price | None:
        return PRICES.price(config.model, config.base_url)

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        return PRICES.nearest(model)


PROVIDER = AnthropicProvider()
