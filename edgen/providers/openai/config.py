"""What a job says of a service that speaks OpenAI's APIs."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from edgen.config.backends import BackendConfig, EnvName, Penalty, Text, Url


class ServiceConfig(BackendConfig, frozen=True, kw_only=True):
    """Where such a service is, and how it wants to be spoken to. Services differ by what stands here alone."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {
        "api_key_env", "auth", "headers", "key_command", "max_tokens_field", "more_base_urls", "tokenizer",
    }  # fmt: skip

    base_url: Url = "https://api.openai.com/v1"
    """Where the service is, without /chat/completions."""
    more_base_urls: tuple[Url, ...] = ()
    """Further servers of the same model: the calls go to all of them, and what answers is known by `base_url`."""
    api_key_env: EnvName = "OPENAI_API_KEY"
    """The NAME of the environment variable that holds the key, never the key."""
    auth: Literal["bearer", "api-key", "none"] = "bearer"
    """How the key is sent: `Authorization: Bearer …`, `api-key: …` (Azure), or not at all."""
    key_command: tuple[Text, ...] = ()
    """A program and its arguments that print the key, in its variable's place; run again when the key has expired."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Further headers of each call; `${NAME}` in a value is that environment variable's, which is kept as a key is."""
    query: dict[str, str] = msgspec.field(default_factory=dict)
    """What stands behind the "?" of each address, such as Azure's api-version."""
    tokenizer: Text | None = None
    """A tokenizer.json, for `edgen estimate` to count with."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Other fields of the request, as they are; they are kept in the run, so no key belongs here."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Where all its servers are."""
        return (self.base_url, *self.more_base_urls)


class OpenAIConfig(ServiceConfig, frozen=True, kw_only=True, tag_field="type", tag="openai"):
    """Any Chat Completions server."""

    max_tokens_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    """What the service calls max_tokens; `auto`: max_completion_tokens at OpenAI and where max_tokens is refused."""
    frequency_penalty: Penalty | None = None
    """How much a token is held back for each time that it was said."""
    presence_penalty: Penalty | None = None
    """How much a token is held back once it was said."""
