"""Settings of a model through litellm in a job."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from edgen.plugin.providers import EnvName, ServedConfig, Text, Url


class LitellmConfig(ServedConfig, frozen=True, kw_only=True, tag_field="type", tag="litellm"):
    """A model of a service that litellm supports."""

    KNOBS: ClassVar[frozenset[str]] = ServedConfig.KNOBS | {"api_key_env", "auth"}
    """Settings that shape no answer."""

    model: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]*/\S+\Z", max_length=300)]
    """litellm's name: `groq/openai/gpt-oss-20b`."""
    base_url: Url | None = None
    """litellm's `api_base`; null: the service's host, if edgen knows it."""
    api_key_env: EnvName | None = None
    """NAME of the key's variable; null: the usual one, if edgen knows it."""
    auth: Literal["key", "library"] = "key"
    """`library`: litellm finds credentials itself (AWS profiles, Google accounts)."""
    api_version: Text | None = None
    """API version (Azure)."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further arguments of `litellm.completion`. Put no key here."""
