"""Check that all servers of a fleet run the same model, by what they list and by what their answers say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from edgen.core.errors import CallError, ProviderError
from edgen.core.values import Reply
from edgen.providers import Backend
from edgen.providers.fleet import find_odd_model

_PATIENCE = 5.0  # seconds for the list of a server's models


class SameModel:
    """The models that servers name. A server that lists no models is judged by its first answer."""

    def __init__(self, servers: Mapping[str, Backend], model: str) -> None:
        self._servers = servers
        self._model = model
        self._listed: dict[str, list[str]] = {}
        self._answered: dict[str, list[str]] = {}

    async def look(self, address: str) -> None:
        """Compare the list of a server's models with the other servers'. Raises ProviderError, and CallError
        while the server cannot be reached."""
        try:
            async with asyncio.timeout(_PATIENCE):
                names = await self._servers[address].models()
        except TimeoutError:
            return
        except CallError as failure:
            if failure.status is None or failure.status >= 500:
                raise
            return  # a service that shows no list
        if names:
            self._listed[address] = names
            self._compare(self._listed)

    def hear(self, address: str, reply: Reply) -> None:
        """Compare the model of a server's first answer with the others'. Raises ProviderError."""
        if address not in self._answered:
            self._answered[address] = [reply.model] if reply.model else []
            self._compare({one: names for one, names in self._answered.items() if names})

    def _compare(self, names: Mapping[str, list[str]]) -> None:
        if (odd := find_odd_model(names, self._model)) is not None:
            address, has, other, runs = odd
            raise ProviderError(
                f"The servers of `base_url` run different models: {address} runs {has}, {other} runs {runs}. "
                "Remove one of them from the list, or start it with the other's model."
            )
