"""Gemini on Google Cloud's Vertex AI: single calls, with tokens from google-auth."""

from __future__ import annotations

import msgspec

from edgen.plugin import Backend, Key, Link
from edgen.plugin.providers import KeyRequest
from edgen.providers.gemini import GeminiModels
from edgen.providers.vertex.config import VertexConfig

# Name used in consents instead of a variable: google-auth finds the credentials itself.
LIBRARY = "GOOGLE_AUTH"


class VertexProvider(GeminiModels):
    name = "vertex"
    Config = VertexConfig
    sends = frozenset({"reasoning_effort"})
    instead_of_batches = "The gemini backend has one, for the same models: {type: gemini, model: …}."

    def create(self, config: VertexConfig, key: Key, link: Link) -> Backend:
        from edgen.providers.vertex.online import VertexBackend

        return VertexBackend(msgspec.structs.replace(config, base_url=_make_address(config)), key, link)

    def key_request(self, config: VertexConfig) -> KeyRequest:
        from edgen.plugin.providers import http_key_request

        return http_key_request((LIBRARY,), _make_address(config))._replace(library=True)


def _make_address(config: VertexConfig) -> str:
    region = "" if config.location == "global" else f"{config.location}-"
    return config.base_url or f"https://{region}aiplatform.googleapis.com"


PROVIDER = VertexProvider()
