"""The simulator as a Backend: no network, no key, the same answer for the same request.

`text.respond` makes the text. Latency and transport faults only decide when, and at which attempt, the text
arrives.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from edgen.core.errors import CallError, FailureKind
from edgen.core.values import Reply, Request
from edgen.simulator import faults as fault
from edgen.simulator.config import SimulatorConfig
from edgen.simulator.text import VERSION, make_request_key, respond

_REMEMBERED = 100_000  # requests whose attempts are counted; only failed ones are kept


class Simulator:
    """A simulated Backend (see edgen.providers.base). Do not share it between event loops."""

    def __init__(self, config: SimulatorConfig, *, timeout: float) -> None:
        self._config = config
        self._timeout = timeout
        self._faults = fault.parse(config.faults)
        # A fixed seed selects other answers; replicates and attempts still differ.
        self._salt = config.seed if isinstance(config.seed, int) else 0
        self._tries: OrderedDict[bytes, int] = OrderedDict()

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that shapes the answers; see Backend."""
        identity: dict[str, Any] = {
            "type": "simulator",
            "model": self.model,
            "version": VERSION,
            "seed": self._salt,
            "max_tokens": self._config.max_tokens,
            "stop": list(self._config.stop),
            "faults": fault.render_canonical(self._faults.content),
        }
        planted = self._config.planted
        if planted is not None:
            identity["planted"] = planted
        if self._config.confusion:
            identity["confusion"] = self._config.confusion
        return identity

    @property
    def model(self) -> str:
        """The model's name in the job."""
        return self._config.model

    async def complete(self, request: Request) -> Reply:
        """Answer, or raise the CallError of a transport fault; see Backend."""
        delay = self._config.latency_ms / 1000
        if self._faults.transport:
            chosen = self._choose_fault(request)
            if chosen is not None:
                delay += await self._fail(chosen)
        if delay:
            await self._wait(delay)
        config = self._config
        schema = None if request.schema is None else _parse_schema(request.schema)
        return respond(
            request.messages,
            seed=request.seed,
            max_tokens=config.room(request.max_tokens_scale),
            faults=self._faults,
            salt=self._salt,
            stop=config.stop,
            json_mode=schema is not None,
            schema=schema,
            model=config.model,
            protocol=request.protocol,
            speakers=request.speakers,
            scene=request.scene,
            planted=config.planted,
            confusion=config.confusion,
            top=request.logprobs,
        )

    async def models(self) -> list[str] | None:
        """Return the only model."""
        return [self.model]

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    def _choose_fault(self, request: Request) -> fault.Fault | None:
        """Count the attempt and return its fault."""
        key = make_request_key(request.messages, request.seed, self._salt)
        tries = self._tries.pop(key, 0)
        chosen = fault.choose_transport_fault(self._faults, key, tries)
        if chosen is not None:
            self._tries[key] = tries + 1
            if len(self._tries) > _REMEMBERED:
                self._tries.popitem(last=False)
        return chosen

    async def _fail(self, chosen: fault.Fault) -> float:
        """Raise the fault's error, or return the seconds by which it delays the answer."""
        if chosen.name == "slow":
            return chosen.seconds or 0.0
        if chosen.name == "hang":
            await self._wait(float("inf"))
        if self._config.latency_ms:
            await self._wait(self._config.latency_ms / 1000)
        kind, status, message = _FAILURES[chosen.name]
        raise CallError(kind, message, status=status, retry_after=chosen.seconds)

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, self._timeout))
        if seconds > self._timeout:
            raise CallError(FailureKind.TIMEOUT, f"no answer within {self._timeout:g} s (simulated)")


def _parse_schema(schema: bytes) -> bytes:
    """Return the schema for `respond`. Raises CallError for an unsupported one."""
    from edgen.simulator.schemas.schema_patterns import UnfitSchema
    from edgen.simulator.schemas.structured import read_schema_text

    try:
        return read_schema_text(schema)
    except UnfitSchema as problem:
        raise CallError(
            FailureKind.BAD_REQUEST, f"The schema cannot be obeyed: {problem}.", status=400
        ) from None


_FAILURES: dict[str, tuple[FailureKind, int | None, str]] = {
    "429": (FailureKind.RATE_LIMIT, 429, "too many requests (simulated)"),
    "500": (FailureKind.SERVER_ERROR, 500, "internal error (simulated)"),
    "503": (FailureKind.OVERLOADED, 503, "overloaded (simulated)"),
    "reset": (FailureKind.CONNECTION, None, "the connection was dropped (simulated)"),
    "401": (FailureKind.AUTHENTICATION, 401, "the key was refused (simulated)"),
    "404": (FailureKind.NOT_FOUND, 404, "there is no such model (simulated)"),
    "quota": (FailureKind.QUOTA, 429, "the quota is used up (simulated)"),
}
