"""How a service that speaks OpenAI's APIs is reached: its addresses, and the keys that it is sent.

Nothing here knows a service by its name: what sets one apart stands in the job.
"""

from __future__ import annotations

from collections.abc import Mapping

from yarl import URL

from edgen.providers.base import Key, KeyRequest, Link
from edgen.providers.credentials import Credentials
from edgen.providers.failures import Classify
from edgen.providers.http import HttpBackend, append_path, http_key_request
from edgen.providers.openai.config import ServiceConfig
from edgen.providers.openai.headers import named_variables, write_headers


class ServiceBackend(HttpBackend):
    """One model behind one such service."""

    def __init__(self, config: ServiceConfig, key: Key, link: Link, classify: Classify) -> None:
        def write(value: str | None) -> Mapping[str, str]:
            return write_headers(config, value, key.variables)

        super().__init__(config, Credentials(key, write), link, classify)
        self.query = dict(config.query)

    def address(self, path: str) -> URL:
        """The address of a path of the service."""
        url = append_path(self.base, path)
        return url.with_query(self.query) if self.query else url


# --- what is asked for ---------------------------------------------------------------------------


def service_key_request(config: ServiceConfig) -> KeyRequest | None:
    """The key of the service, None where it is sent none. Raises InputError for an address that is none."""
    if config.auth == "none":
        return None
    asked = http_key_request((config.api_key_env,), config.base_url)
    return asked._replace(variables=(), command=config.key_command) if config.key_command else asked


def service_header_requests(config: ServiceConfig) -> tuple[KeyRequest, ...]:
    """Every variable that a header names. Raises InputError for an address that is none."""
    return tuple(
        http_key_request((variable,), config.base_url)._replace(header=name)
        for name, variable in named_variables(config)
    )
