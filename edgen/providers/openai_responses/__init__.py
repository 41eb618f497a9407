"""OpenAI's Responses API: single calls and batches, with the models and prices of the Chat Completions
API."""

from __future__ import annotations

from edgen.plugin import Backend, Key, Link
from edgen.plugin.errors import Problem
from edgen.plugin.providers import BatchServices
from edgen.providers.openai import ServiceProvider
from edgen.providers.openai.config import ServiceConfig
from edgen.providers.openai_responses.config import OpenAIResponsesConfig


class OpenAIResponsesProvider(ServiceProvider):
    name = "openai-responses"
    Config = OpenAIResponsesConfig
    schema_field = "text.format"
    logprobs_fields = ("include", "top_logprobs")

    def create(self, config: OpenAIResponsesConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.openai_responses.online import ResponsesBackend

        return ResponsesBackend(config, key, link)

    @property
    def batches(self) -> BatchServices:
        from edgen.providers.openai.batches import Endpoint, make_services
        from edgen.providers.openai_responses.online import classify, read_reply

        return make_services(Endpoint("/v1/responses", read_reply, classify))

    def problems(self, config: ServiceConfig) -> list[Problem]:
        unknown = [
            name for name, value in (("seed", config.seed), ("stop", config.stop)) if value not in (None, ())
        ]
        return [
            *super().problems(config),
            *(
                Problem(name, "the Responses API has no such setting; remove it, or take `type: openai`")
                for name in unknown
            ),
        ]


PROVIDER = OpenAIResponsesProvider()
