"""Settings of a model through litellm in a job."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from edgen.plugin import Text
from edgen.plugin.providers import EnvName, ServedConfig, Url


class LitellmConfig(ServedConfig, frozen=True, kw_only=True, tag_field="type", tag="litellm"):
    """A model of a service that litellm supports."""

    KNOBS: ClassVar[frozenset[str]] = ServedConfig.KNOBS | {"api_key_env", "auth"}
    """Settings that shape no answer."""

    model: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]*/\S+\Z", max_length=300)]
    """Service and model as litellm names them: `groq/openai/gpt-oss-20b`."""
    base_url: Url | None = None
    """Address of the service, litellm's `api_base`; null: the service's own host, if edgen knows it; a
    list, or `node-local`: as for `openai`."""
    api_key_env: EnvName | None = None
    """NAME of the environment variable that holds the key; null: the service's usual one, if edgen knows
    it."""
    auth: Literal["key", "library"] = "key"
    """`library`: litellm finds the credentials itself, such as AWS profiles and Google accounts."""
    api_version: Text | None = None
    """API version, for services that require it (Azure)."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further arguments of `litellm.completion`, such as `aws_region_name`. Put no key here."""
