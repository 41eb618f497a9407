"""The Gemini API through Google's `google-generativeai` SDK, which is past its end of life."""

from __future__ import annotations

from edgen.config.backends import Price
from edgen.core.errors import InputError
from edgen.core.extras import install_command
from edgen.providers.base import Backend, Key, KeyRequest, Link, Provider
from edgen.providers.gemini import HOST, KEY_NAMES, PRICES
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.trust import place_of


class GoogleGenerativeAIProvider(Provider):
    name = "google-generativeai"
    Config = GoogleGenerativeAIConfig
    prices = PRICES
    instead_of_batches = "The gemini backend has one, for the same models: {type: gemini, model: …}."

    def schema_problem(self, config: GoogleGenerativeAIConfig, schema: bytes) -> str:  # noqa: ARG002
        """The SDK has no field for a JSON Schema."""
        return "the SDK takes none; `type: gemini` reaches the same models and does"

    def create(self, config: GoogleGenerativeAIConfig, key: Key, link: Link) -> Backend:
        """Raises InputError if the SDK is not installed or a setting is unknown to it; warns that it is at its end.

        How many connections there may be does not matter: gRPC puts all calls on one. Nor does the environment: gRPC
        finds a proxy by itself, and goes through it in a tunnel.
        """
        from edgen.providers.google_generativeai.online import GoogleGenerativeAIBackend, warn_of_end

        if config.seed is not None:
            raise InputError("type: google-generativeai cannot send a seed; remove it, or use type: gemini.")
        try:
            backend = GoogleGenerativeAIBackend(config, key, link.timeout)
        except ImportError:
            raise InputError(
                "type: google-generativeai needs the SDK of that name: "
                f"`{install_command('google-generativeai')}`. It is past its end of life; type: gemini reaches the "
                "same models without it."
            ) from None
        warn_of_end()
        return backend

    def key_request(self, config: GoogleGenerativeAIConfig) -> KeyRequest:
        """Raises InputError for an endpoint that gRPC, which connects to it by TLS, would read as something else."""
        url = f"https://{HOST if config.endpoint is None else config.endpoint}"
        if "/" in (config.endpoint or "") or place_of(url) is None:
            raise InputError(f"endpoint {config.endpoint!r} must be a host, or a host and a port: HOST:443.")
        names = (config.api_key_env,) if config.api_key_env else KEY_NAMES
        return KeyRequest(names, url, self.name, required=True)

    def list_price(self, config: GoogleGenerativeAIConfig) -> Price | None:
        """The older way to the same service is billed alike."""
        host = config.endpoint
        return PRICES.price(config.model, host if host is None or "//" in host else f"//{host}")


PROVIDER = GoogleGenerativeAIProvider()
