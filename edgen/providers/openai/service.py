"""Connection to a service with OpenAI's APIs: its addresses and headers.

This module contains no service's name; the job states all differences.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from yarl import URL

from edgen.plugin import CallError, FailureKind, Key, Link, Reply
from edgen.plugin.providers import (
    Classify,
    Credentials,
    HttpBackend,
    append_path,
    clean_message,
    decode,
    is_local,
    scrub,
)
from edgen.providers.openai.config import ServiceConfig
from edgen.providers.openai.headers import write_headers
from edgen.providers.openai.slots import find_load, find_slots

log = logging.getLogger("edgen")


class ServiceBackend(HttpBackend):
    """One model at one such service."""

    def __init__(self, config: ServiceConfig, key: Key, link: Link, classify: Classify) -> None:
        def write(value: str | None) -> Mapping[str, str]:
            return write_headers(config, value, key.variables)

        super().__init__(config, Credentials(key, write), link, classify)
        self.query = dict(config.query)
        self._is_open = key.value is None and key.command is None and not key.variables
        self._remarked: set[str] = set()

    def make_address(self, path: str) -> URL:
        """Return the address of a path of the service."""
        url = append_path(self.base, path)
        return url.with_query(self.query) if self.query else url

    async def models(self) -> list[str] | None:
        """Return the names that the service offers; None if it has no list. Raises CallError."""
        try:
            body = await self._http.get(self.make_address("models"))
        except CallError as error:
            if error.kind is FailureKind.NOT_FOUND:
                return None
            raise
        listing = decode(_LISTING, body)
        return None if listing is None else [scrub(model.id) for model in listing.data]

    async def slots(self) -> int | None:
        """Return how many calls a local server answers at once; see `edgen.providers.base.CountsSlots`."""
        if not (self._is_open and is_local(self.base.host or "")):
            return None
        return await find_slots(self.base, self._http.get)

    async def load(self) -> int | None:
        """Return how many calls a local server has; see `edgen.providers.base.CountsLoad`."""
        if not (self._is_open and is_local(self.base.host or "")):
            return None
        return await find_load(self.base, self._http.get)

    def find_unknown_reason(self, body: bytes) -> str | None:
        """Return the finish reason if it is unknown."""
        raise NotImplementedError

    def remark(self, reply: Reply, body: bytes) -> None:
        """Warn once of oddities in the service's answers, and explain how they are read."""
        if reply.finish_reason == "other" and "stop" not in self._remarked:
            self._remarked.add("stop")
            if (reason := self.find_unknown_reason(body)) is not None:
                shown = clean_message(reason, self._http.secrets)[:60]
                log.warning(
                    "%s ends answers for a reason that edgen does not know (%s); they are read as they are.",
                    self.model,
                    shown,
                )
        if reply.usage is None and "usage" not in self._remarked:
            self._remarked.add("usage")
            if (counted := decode(_COUNTED, body)) is not None and counted.usage is not None:
                log.warning(
                    "%s reports no token counts; under a budget, its answers are charged at their maximum.",
                    self.model,
                )


class _Model(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Model]


class _Counted(msgspec.Struct):
    usage: Any = None


_LISTING = msgspec.json.Decoder(_Listing)
_COUNTED = msgspec.json.Decoder(_Counted)
