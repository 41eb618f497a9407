"""Settings of Gemini on Vertex AI in a job."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgen.plugin.providers import Url
from edgen.providers.gemini.config import GeminiSettings


class VertexConfig(GeminiSettings, frozen=True, kw_only=True, tag_field="type", tag="vertex"):
    """Gemini on Vertex AI over HTTP. google-auth finds the credentials as for Google's own tools."""

    project: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9.:-]{3,80}\Z")]
    """The Google Cloud project to bill."""
    location: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{1,40}\Z")] = "global"
    """The region that answers."""
    base_url: Url | None = None
    """Address; null: the location's own host."""
