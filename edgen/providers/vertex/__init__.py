"""Gemini on Google Cloud's Vertex AI: single calls, with tokens from google-auth."""

from __future__ import annotations

import msgspec

from edgen.plugin import Backend, BatchAnswers, Key, Link, Provider, RequestFeatures
from edgen.plugin.errors import Problem
from edgen.plugin.providers import KeyRequest, PictureTokens, PricesAndTokens, PromptPicture, ServiceKeys
from edgen.providers.gemini import PRICES
from edgen.providers.vertex.config import VertexConfig

# Name used in consents in place of a variable: google-auth finds the credentials itself.
LIBRARY = "GOOGLE_AUTH"


class VertexProvider(RequestFeatures, ServiceKeys, PricesAndTokens, BatchAnswers, Provider):
    name = "vertex"
    Config = VertexConfig
    prices = PRICES
    sends = frozenset({"reasoning_effort"})
    schema_field = "generationConfig.responseJsonSchema"
    logprobs_fields = ("generationConfig.responseLogprobs", "generationConfig.logprobs")
    choices_field = "generationConfig.candidateCount"
    most_choices = 8
    sees_pictures = True
    instead_of_batches = "The gemini backend has one, for the same models: {type: gemini, model: …}."

    def picture_tokens(self, model: str, picture: PromptPicture) -> PictureTokens:
        from edgen.providers.gemini.pictures import count

        return count(model, picture)

    def create(self, config: VertexConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.vertex.online import VertexBackend

        return VertexBackend(msgspec.structs.replace(config, base_url=_make_address(config)), key, link)

    def problems(self, config: VertexConfig) -> list[Problem]:
        from edgen.providers.gemini.config import explain_effort_problem

        wrong = explain_effort_problem(config)
        return [] if wrong is None else [Problem("reasoning_effort", wrong)]

    def key_request(self, config: VertexConfig) -> KeyRequest:
        from edgen.plugin.providers import http_key_request

        return http_key_request((LIBRARY,), _make_address(config))._replace(library=True)


def _make_address(config: VertexConfig) -> str:
    region = "" if config.location == "global" else f"{config.location}-"
    return config.base_url or f"https://{region}aiplatform.googleapis.com"


PROVIDER = VertexProvider()
