"""A model in edgen's own process, by llama.cpp (the extra `local`): single calls, without a key."""

from __future__ import annotations

import os

from edgen.plugin import Backend, BatchAnswers, Key, Link, LocalCalls, Provider, RequestFeatures
from edgen.plugin.errors import Problem
from edgen.plugin.providers import Price, PricesAndTokens
from edgen.providers.llamacpp.config import LlamaCppConfig

_MOST_THREADS = 8  # further threads only wait for memory


class LlamaCppProvider(RequestFeatures, PricesAndTokens, BatchAnswers, LocalCalls, Provider):
    name = "llamacpp"
    Config = LlamaCppConfig
    schema_field = "grammar"
    logprobs_fields = ("logprobs", "top_logprobs")
    unpaid = True
    instead_of_batches = "It answers call by call, and nothing is paid."

    def problems(self, config: LlamaCppConfig) -> list[Problem]:
        if not config.model and config.path is None:
            return [
                Problem(
                    "model", "name an installed model (`edgen local` lists them), or a GGUF file as `path`"
                )
            ]
        return []

    def list_price(self, config: LlamaCppConfig) -> Price:  # noqa: ARG002 - every model is free
        return Price(prompt=0, completion=0)

    def create(self, config: LlamaCppConfig, key: Key, link: Link) -> Backend:  # noqa: ARG002 - it has no key
        """Build the backend. Raises InputError for a model that cannot be used."""
        from edgen.providers.llamacpp.online import LlamaCppBackend

        return LlamaCppBackend(config, link, config.threads or choose_threads(os.cpu_count() or 1))


def choose_threads(cores: int) -> int:
    """Return the number of computing threads for a number of cores: half of them. llama.cpp's threads wait
    for each other at every layer, so one that shares its core with another program slows all of them."""
    return min(max(cores // 2, 1), _MOST_THREADS)


PROVIDER = LlamaCppProvider()
