"""The Gemini API through Google's end-of-life `google-generativeai` SDK."""

from __future__ import annotations

from edgen.plugin import Backend, BatchAnswers, Key, Link, Provider, RequestFeatures
from edgen.plugin.errors import InputError
from edgen.plugin.files import use_extra
from edgen.plugin.providers import KeyRequest, Price, PricesAndTokens, ServiceKeys, place_of
from edgen.providers.gemini import HOST, KEY_NAMES, PRICES
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig


class GoogleGenerativeAIProvider(RequestFeatures, ServiceKeys, PricesAndTokens, BatchAnswers, Provider):
    name = "google-generativeai"
    Config = GoogleGenerativeAIConfig
    prices = PRICES
    instead_of_batches = "The gemini backend has one, for the same models: {type: gemini, model: …}."

    def schema_problem(self, config: GoogleGenerativeAIConfig, schema: bytes) -> str:  # noqa: ARG002
        """Return the problem: the SDK has no field for a JSON Schema."""
        return "the SDK takes none; `type: gemini` reaches the same models and does"

    def create(self, config: GoogleGenerativeAIConfig, key: Key, link: Link) -> Backend:
        """Build the backend, and warn that the SDK is at its end of life. Raises InputError if the SDK is not
        installed or does not know a setting.

        The number of connections has no effect, since gRPC uses one for all calls. Neither has the
        environment: gRPC finds a proxy on its own and tunnels through it.
        """
        from edgen.providers.google_generativeai.online import GoogleGenerativeAIBackend, warn_of_end

        if config.seed is not None:
            raise InputError("type: google-generativeai cannot send a seed; remove it, or use type: gemini.")
        needs = "type: google-generativeai needs the SDK of that name:"
        rest = ". It is past its end of life; type: gemini reaches the same models without it."
        with use_extra("google-generativeai", needs, rest, InputError):
            backend = GoogleGenerativeAIBackend(config, key, link.timeout)
        warn_of_end()
        return backend

    def key_request(self, config: GoogleGenerativeAIConfig) -> KeyRequest:
        """Return the key request. Raises InputError for an endpoint that gRPC, which connects by TLS, would
        read differently."""
        url = f"https://{HOST if config.endpoint is None else config.endpoint}"
        if "/" in (config.endpoint or "") or place_of(url) is None:
            raise InputError(f"endpoint {config.endpoint!r} must be a host, or a host and a port: HOST:443.")
        names = (config.api_key_env,) if config.api_key_env else KEY_NAMES
        return KeyRequest(names, url, self.name, required=True)

    def list_price(self, config: GoogleGenerativeAIConfig) -> Price | None:
        """Return the price of the Gemini API, which also bills this SDK's calls."""
        host = config.endpoint
        return PRICES.price(config.model, host if host is None or "//" in host else f"//{host}")


PROVIDER = GoogleGenerativeAIProvider()
