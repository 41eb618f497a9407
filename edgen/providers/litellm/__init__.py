"""The services that litellm supports, through the library (the extra `litellm`): single calls."""

from __future__ import annotations

from edgen.plugin import Backend, BatchAnswers, Key, Link, Provider, RequestFeatures
from edgen.plugin.errors import Problem
from edgen.plugin.providers import LISTED_TIERS, OPTIONAL, KeyRequest, Price, PricesAndTokens, ServiceKeys
from edgen.providers.litellm.config import LitellmConfig

# Name used in consents instead of a variable: litellm finds the credentials itself.
LIBRARY = "LITELLM_AUTH"


class LitellmProvider(RequestFeatures, ServiceKeys, PricesAndTokens, BatchAnswers, Provider):
    name = "litellm"
    Config = LitellmConfig
    sends = frozenset(OPTIONAL)
    schema_field = "response_format"
    logprobs_fields = ("logprobs", "top_logprobs")
    instead_of_batches = "Leave --via batch out, and the same job is done call by call."

    def create(self, config: LitellmConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.litellm.online import LitellmBackend

        return LitellmBackend(config, key, link)

    def problems(self, config: LitellmConfig) -> list[Problem]:
        from edgen.providers.litellm.services import find_config_problems

        return list(find_config_problems(config))

    def schema_problem(self, config: LitellmConfig, schema: bytes) -> str | None:
        return _find_option(config, self.schema_field) or super().schema_problem(config, schema)

    def logprobs_problem(self, config: LitellmConfig) -> str | None:
        from edgen.providers.litellm.library import load_litellm

        if (wrong := _find_option(config, *self.logprobs_fields)) is not None:
            return wrong
        known = load_litellm().get_supported_openai_params(model=config.model) or ()
        return None if "top_logprobs" in known else f"litellm asks no service for {config.model} for them"

    def key_request(self, config: LitellmConfig) -> KeyRequest:
        from edgen.plugin.providers import http_key_request
        from edgen.providers.litellm.services import find_address, list_variables

        if config.auth == "library":
            return http_key_request((LIBRARY,), find_address(config))._replace(library=True)
        return http_key_request(list_variables(config), find_address(config))

    def list_price(self, config: LitellmConfig) -> Price | None:
        if config.base_url is not None or config.service_tier not in LISTED_TIERS:
            return None
        from edgen.providers.litellm.prices import find_price

        return find_price(config.model)

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        from edgen.providers.litellm.prices import find_price

        price = find_price(model)
        return None if price is None else (model, price)


def _find_option(config: LitellmConfig, *fields: str) -> str | None:
    """Return the problem if `options` sets a request field that edgen sets."""
    found = next((field for field in fields if field in config.options), None)
    return None if found is None else f"its options set {found}, too; keep one of the two"


PROVIDER = LitellmProvider()
