"""Settings of a service that speaks OpenAI's APIs in a job."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from edgen.plugin import Text
from edgen.plugin.providers import EnvName, ServedConfig, Url

_Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]


class ServiceConfig(ServedConfig, frozen=True, kw_only=True):
    """Address and dialect of such a service. These settings are all that distinguishes services."""

    # Settings that shape no answer.
    KNOBS: ClassVar[frozenset[str]] = ServedConfig.KNOBS | {
        "api_key_env", "auth", "headers", "key_command", "max_tokens_field", "tokenizer",
    }  # fmt: skip
    PATH: ClassVar[str] = "/v1"  # of the API at a server that `node-local` means

    base_url: Url = "https://api.openai.com/v1"
    """Address of the service, without /chat/completions; a list: servers of the same model, which share the
    calls; `node-local`: the server of the node that makes the call, at port 8000."""
    api_key_env: EnvName = "OPENAI_API_KEY"
    """NAME of the environment variable that holds the key, never the key."""
    auth: Literal["bearer", "api-key", "none"] = "bearer"
    """How the key is sent: `Authorization: Bearer …`, `api-key: …` (Azure), or not at all."""
    key_command: tuple[Text, ...] = ()
    """Program and arguments that print the key; run again when the key has expired."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Further headers; `${NAME}` in a value is that environment variable, kept secret like a key."""
    query: dict[str, str] = msgspec.field(default_factory=dict)
    """Query parameters, such as Azure's api-version."""
    tokenizer: Text | None = None
    """A tokenizer.json with which `edgen estimate` counts."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further fields of requests, sent unchanged and stored with the run: put no key here."""


class OpenAIConfig(ServiceConfig, frozen=True, kw_only=True, tag_field="type", tag="openai"):
    """Any Chat Completions server."""

    TAKES_SEED: ClassVar[bool] = True

    max_tokens_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    """The service's name for max_tokens; `auto`: max_completion_tokens at OpenAI and where max_tokens is
    refused."""
    frequency_penalty: _Penalty | None = None
    """Penalty of a token for each earlier occurrence."""
    presence_penalty: _Penalty | None = None
    """Penalty of a token that has occurred."""
