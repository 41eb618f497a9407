"""Gemini on Vertex AI over HTTP: the Gemini API's requests and answers at another address, with an access
token.

google-auth gets the token as Google's own tools do: from the file that GOOGLE_APPLICATION_CREDENTIALS names,
from `gcloud auth application-default login`, or from the machine that it runs on. It is fetched in a thread,
once for all waiting calls, and again after a 401.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from edgen.plugin import CallError, FailureKind, Key, Link
from edgen.plugin.errors import InputError
from edgen.plugin.files import use_extra
from edgen.plugin.providers import Credentials, KeySource, clean_message
from edgen.providers.gemini.online import GeminiModel, make_model_path
from edgen.providers.vertex.config import VertexConfig

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class VertexBackend(GeminiModel):
    """A model of a project. A `model` with a slash is a path below the location: `endpoints/123`."""

    def __init__(self, config: VertexConfig, key: Key, link: Link) -> None:
        model = make_model_path(config.model)
        place = "" if "/" in config.model else "publishers/google/"
        path = f"v1/projects/{config.project}/locations/{config.location}/{place}{model}"
        source = AccessTokens(link.environ) if key.library else None
        super().__init__(config, path, Credentials(key, _make_header, source), link)


def _make_header(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


class AccessTokens(KeySource):
    """Access tokens of the caller. Raises InputError if google-auth is not installed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        with use_extra("vertex", "a backend of type vertex needs more packages:", error=InputError):
            import google.auth
            import google.auth.exceptions
            import google.auth.transport.requests
        super().__init__()
        self._auth: Any = google.auth
        self._file = environ.get("GOOGLE_APPLICATION_CREDENTIALS")
        self._caller: Any = None

    async def _fetch_key(self) -> str:
        """Get a new token. Raises CallError if google-auth returns none."""
        return await asyncio.to_thread(self._fetch_token)

    def _fetch_token(self) -> str:
        try:
            if self._caller is None:
                self._caller = self._find_caller()
            self._caller.refresh(self._auth.transport.requests.Request())
        except (self._auth.exceptions.GoogleAuthError, OSError, ValueError) as problem:
            raise CallError(
                FailureKind.AUTHENTICATION,
                clean_message(
                    f"google-auth gets no access token ({problem}); run `gcloud auth application-default "
                    "login`, or set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account"
                ),
                unsent=True,
            ) from None
        return str(self._caller.token)

    def _find_caller(self) -> Any:
        if self._file:
            return self._auth.load_credentials_from_file(self._file, scopes=[_SCOPE])[0]
        return self._auth.default(scopes=[_SCOPE])[0]
