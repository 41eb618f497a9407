"""Interfaces of providers and backends. A provider is one kind of backend. A backend makes one attempt at one
model call and classifies the result.

An adapter translates a Request to its service's wire format, and the answer to a Reply. Retries, rate limits,
storage and budgets are handled elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from edgen.config.backends import BackendConfig, PricesAndTokens, RequestFeatures, ServiceKeys
from edgen.core.errors import Problem
from edgen.core.people.requests import AskPeople
from edgen.core.plugin_checks import find_misplaced_names, find_unfit_fields
from edgen.core.values import Reply, Request, TaskId

if TYPE_CHECKING:
    from edgen.providers.batches import BatchServices


class Backend(Protocol):
    """A model reached through an adapter. Build one with `edgen.providers.make`, close it with `aclose`."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that shapes this backend's answers, JSON-able: type, base URL, model, parameters.

        It becomes part of every ledger key. It holds no API key and no setting that only changes speed.
        """

    @property
    def model(self) -> str:
        """The model's name as configured."""

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError for every failure; cancellation passes through."""

    async def models(self) -> list[str] | None:
        """Return the names that the service offers; None if it cannot list them. Raises CallError."""

    async def aclose(self) -> None:
        """Release connections. Never raises; may be called twice."""


@runtime_checkable
class CountsSlots(Protocol):
    """A backend that may know how many calls its server answers at once; optional."""

    async def slots(self) -> int | None:
        """Return how many calls the server answers at once; None if it does not say or must not be asked.
        Raises CallError while the server is not up and may say later."""


@runtime_checkable
class ShowsProgress(Protocol):
    """A backend that computes its answers itself and shows its progress; optional."""

    progress: int
    """A count that rises while answers are computed."""


@runtime_checkable
class CountsLoad(Protocol):
    """A backend whose server may report its calls from all clients; optional."""

    async def load(self) -> int | None:
        """Return the number of running and queued calls of the server; None if it does not say. Never
        raises."""


@runtime_checkable
class HearsEnds(Protocol):
    """A backend that is notified when a task, such as a conversation, has ended; optional."""

    async def end(self, scenario: int, task: TaskId) -> None:
        """Handle the end of a task. It may come again after a restart."""


class Key(NamedTuple):
    """The key that a backend may send: `value`, or None for no key.

    `hint` explains why an existing key is not sent. `variables` holds the values of variables named in
    headers, except values that may not be sent there. `command` prints the key in that environment; None
    without a command. `library`: a library may be asked for the key.
    """

    value: str | None = None
    hint: str = ""
    variables: Mapping[str, str] = {}
    command: tuple[tuple[str, ...], Mapping[str, str]] | None = None
    library: bool = False


class Link(NamedTuple):
    """Connection settings: seconds per attempt (0: no limit), maximum open connections, environment for
    proxies.

    `people`: the way to ask people; None if nobody can be asked.
    """

    timeout: float
    connections: int
    environ: Mapping[str, str]
    people: AskPeople | None = None


class Fleet:
    """A backend that is one model on several `servers`, by address. They share the fleet's identity, so
    servers may come and go, as with nodes of a cluster. The client chooses a server for each call; see
    `edgen.execution.client.admission`. `like`: a backend with their identity, if there are no servers yet."""

    def __init__(self, servers: Mapping[str, Backend], like: Backend | None = None) -> None:
        self.servers: dict[str, Backend] = dict(servers)
        self._first = like or next(iter(self.servers.values()))
        self.identity = self._first.identity
        self.model = self._first.model

    def __repr__(self) -> str:
        return f"Fleet({', '.join(map(repr, self.servers.values()))})"

    def find_nearest(self) -> str | None:
        """Return the address of the best server for the present task if all are equally loaded; None for no
        preference."""
        return None

    async def complete(self, request: Request) -> Reply:
        """Make one attempt at the first server. Raises CallError."""
        return await self._first.complete(request)

    async def models(self) -> list[str] | None:
        """Return the names that the first server offers. Raises CallError."""
        return await self._first.models()

    async def aclose(self) -> None:
        """Close all connections. Never raises; may be called twice."""
        for backend in self.servers.values():
            await backend.aclose()


class Provider(ABC):
    """One kind of backend, found by its `name`, which is the `type` of its backends in a job.

    Required are `name`, `Config` and `create`. PARTS has the optional abilities.
    """

    name: str
    Config: type[BackendConfig]
    """The keys of a backend in a job, as a typed struct whose tag is the name."""

    @abstractmethod
    def create(self, config: Any, key: Key, link: Link) -> Backend:
        """Build the backend for a Config, whose calls carry `key`. Raises InputError for values that do not
        fit."""

    def problems(self, config: Any) -> list[Problem]:  # noqa: ARG002
        """Return the problems of a Config beyond its types. Paths are the keys'."""
        return []


class BatchAnswers:
    """Answer in batches, or suggest an alternative."""

    instead_of_batches = ""
    """Advice for users who want batches, if there are none."""

    @property
    def batches(self) -> BatchServices | None:
        """The batch services; None without any."""
        return None


class LocalCalls:
    """Answer calls without a paid service: a simulator, a model or a function in the process, or people."""

    simulated = False
    """Whether answers are invented and free."""
    unpaid = False
    """Whether unfinished calls cost nothing. When a run stops, such calls have seconds to end, not half a
    minute."""
    stays_here = False
    """Whether only the command's own process can make the calls, not a worker of a cluster."""


PARTS = (RequestFeatures, PricesAndTokens, ServiceKeys, BatchAnswers, LocalCalls)
"""The optional parts of a provider."""


def list_flaws(provider: Provider) -> Iterator[str]:
    """Yield the reasons why an object cannot be used as a provider, as clauses."""
    config = getattr(provider, "Config", None)
    if not isinstance(config, type) or not issubclass(config, BackendConfig):
        yield "has no `Config`: give its class one, a struct derived from edgen.plugin.BackendConfig"
        return
    yield from find_misplaced_names(provider, PARTS)
    batches = provider.batches if isinstance(provider, BatchAnswers) else None
    if batches is not None and not callable(getattr(batches, "read_line", None)):
        yield f"has `batches` of the type {type(batches).__name__}; it is a BatchServices or None"
    given = config.__struct_config__
    if (given.tag_field, given.tag) != ("type", provider.name):
        yield (
            f"has a `Config` with tag_field={given.tag_field!r} and tag={given.tag!r}; write "
            f'tag_field="type" and tag="{provider.name}"'
        )
    yield from find_unfit_fields(config, BackendConfig)
