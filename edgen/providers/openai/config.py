"""Settings of a service that speaks OpenAI's APIs in a job."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from edgen.plugin.providers import EnvName, ServedConfig, Text, Url

_Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]


class ServiceConfig(ServedConfig, frozen=True, kw_only=True):
    """The address and dialect of a service with OpenAI's APIs. Only these settings distinguish services."""

    # Settings that shape no answer.
    KNOBS: ClassVar[frozenset[str]] = ServedConfig.KNOBS | {
        "api_key_env", "auth", "headers", "key_command", "max_tokens_field", "tokenizer",
    }  # fmt: skip
    PATH: ClassVar[str] = "/v1"  # path of the API at a `node-local` server

    base_url: Url = "https://api.openai.com/v1"
    """Address of the service, without /chat/completions; a list: servers of the same model, which share the
    calls; `node-local`: the server of the node that makes the call, at port 8000."""
    api_key_env: EnvName = "OPENAI_API_KEY"
    """NAME of the environment variable with the key."""
    auth: Literal["bearer", "api-key", "none"] = "bearer"
    """The key's header: `Authorization: Bearer …`, `api-key: …` (Azure), or none."""
    key_command: tuple[Text, ...] = ()
    """Program and arguments that print the key; run again when it expires."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Further headers; `${NAME}` is an environment variable, kept secret."""
    query: dict[str, str] = msgspec.field(default_factory=dict)
    """Query parameters, as Azure's api-version."""
    tokenizer: Text | None = None
    """A tokenizer.json for `edgen estimate`."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further fields of requests, stored with the run: put no key here."""


class OpenAIConfig(ServiceConfig, frozen=True, kw_only=True, tag_field="type", tag="openai"):
    """Any Chat Completions server."""

    TAKES_SEED: ClassVar[bool] = True

    max_tokens_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    """The service's name for max_tokens; `auto` finds it."""
    frequency_penalty: _Penalty | None = None
    """Penalty per earlier occurrence of a token."""
    presence_penalty: _Penalty | None = None
    """Penalty of tokens that have occurred."""
