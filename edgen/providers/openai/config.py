"""What a job says of a Chat Completions server."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from edgen.config.backends import BackendConfig, EnvName, Penalty, Text, Url


class OpenAIConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="openai"):
    """Any Chat Completions server."""

    KNOBS: ClassVar[frozenset[str]] = frozenset({"price", "api_key_env", "tokenizer"})

    base_url: Url = "https://api.openai.com/v1"
    """Where the service is, without /chat/completions."""
    api_key_env: EnvName = "OPENAI_API_KEY"
    """The NAME of the environment variable that holds the key, never the key."""
    tokenizer: Text | None = None
    """A tokenizer.json, for `edgen estimate` to count with."""
    frequency_penalty: Penalty | None = None
    """How much a token is held back for each time that it was said."""
    presence_penalty: Penalty | None = None
    """How much a token is held back once it was said."""
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    """Other fields of the request, as they are; they are kept in the run, so no key belongs here."""
