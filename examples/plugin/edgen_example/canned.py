"""A provider: answers from a list in the job, chosen by the seed of the request."""

from __future__ import annotations

from edgen.plugin import Backend, BackendConfig, Key, Link, Provider, Reply, Request


class CannedConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="canned"):
    """Settings of the backend: a list of answers."""

    model: str = "canned"
    """Name of the model in records."""
    answers: tuple[str, ...]
    """The possible answers."""


class CannedBackend:
    """A backend that returns one of its answers."""

    def __init__(self, config: CannedConfig) -> None:
        self.model = config.model
        self.identity = {"type": "canned", "model": config.model, "answers": list(config.answers)}
        self._answers = config.answers

    async def complete(self, request: Request) -> Reply:
        return Reply(self._answers[request.seed % len(self._answers)])

    async def models(self) -> list[str] | None:
        return [self.model]

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""


class CannedProvider(Provider):
    name = "canned"
    Config = CannedConfig

    def create(self, config: CannedConfig, key: Key, link: Link) -> Backend:
        return CannedBackend(config)


PROVIDER = CannedProvider()
