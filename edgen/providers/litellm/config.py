"""What a job says of a model that litellm speaks to."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import BackendConfig, EnvName, Text, Url


class LitellmConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="litellm"):
    """A model of one of the services that litellm speaks to."""

    KNOBS: ClassVar[frozenset[str]] = BackendConfig.KNOBS | {"api_key_env", "auth"}

    model: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]*/\S+\Z", max_length=300)]
    """Service and model as litellm names them: `groq/openai/gpt-oss-20b`."""
    base_url: Url | None = None
    """Where the service is, as litellm's `api_base` has it; null: the service's own host, where edgen knows it."""
    api_key_env: EnvName | None = None
    """The NAME of the environment variable that holds the key; null: the service's usual one, where edgen knows it."""
    auth: Literal["key", "library"] = "key"
    """`library`: litellm finds out by itself who calls, by profiles of AWS, accounts of Google and the like."""
    api_version: Text | None = None
    """Which version of an API is spoken, where a service wants to be told (Azure)."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Other arguments of `litellm.completion`, as it names them (`top_k`, `aws_region_name`); no key belongs here."""
