"""Interfaces of providers and backends. A provider is one kind of backend; a backend makes one attempt at one
model call and classifies the result.

An adapter translates a Request to its service's wire format and the answer to a Reply. Retries, rate limits,
storage and budgets are handled elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from edgen.config.backends import BackendConfig, Price
from edgen.core.errors import Problem
from edgen.core.person_requests import AskPeople
from edgen.core.pictures import PictureTokens, PromptPicture
from edgen.core.values import Reply, Request, TaskId

if TYPE_CHECKING:
    from edgen.providers.batches import BatchServices
    from edgen.providers.prices import PriceList


class Backend(Protocol):
    """A model reached through an adapter. Build one with `edgen.providers.make`, close it with `aclose`."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that shapes this backend's answers, JSON-able: type, base URL, model, parameters.

        It becomes part of every ledger key. It holds no API key and nothing that only changes speed.
        """

    @property
    def model(self) -> str:
        """The model's name as configured."""

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError for every failure; cancellation passes through."""

    async def models(self) -> list[str] | None:
        """Return the names that the service offers, None if it cannot list them. Raises CallError."""

    async def aclose(self) -> None:
        """Release connections. Never raises; may be called twice."""


@runtime_checkable
class CountsSlots(Protocol):
    """A backend that may know how many calls its server answers at once; optional."""

    async def slots(self) -> int | None:
        """Return that number; None if the server does not say, or must not be asked. Raises CallError while
        the server is not up, and may say later."""


@runtime_checkable
class ShowsProgress(Protocol):
    """A backend that computes its answers itself, and shows that it does; optional."""

    progress: int
    """A count that rises while answers are computed."""


@runtime_checkable
class CountsLoad(Protocol):
    """A backend whose server may report the calls that it has from anybody; optional."""

    async def load(self) -> int | None:
        """Return the calls that the server works on or has in its queue; None if it does not say. Never
        raises."""


@runtime_checkable
class HearsEnds(Protocol):
    """A backend that hears when nothing more is asked about a task, such as a conversation; optional."""

    async def end(self, scenario: int, task: TaskId) -> None:
        """Note the end of a task. It may come again after a restart."""


class Key(NamedTuple):
    """Key that a backend may send: `value`, None for no key.

    `hint` explains why an existing key is not sent. `variables` holds the values of variables named in
    headers, without those that may not go there. `command` prints the key in that environment; None if there
    is none. `library`: a library may be asked for the key.
    """

    value: str | None = None
    hint: str = ""
    variables: Mapping[str, str] = {}
    command: tuple[tuple[str, ...], Mapping[str, str]] | None = None
    library: bool = False


class KeyRequest(NamedTuple):
    """Request of a backend for a key."""

    variables: tuple[str, ...]  # environment variables that may hold it
    url: str  # address that the key is sent to
    service: str  # name for people
    required: bool  # calls fail without it
    header: str = ""  # that needs it; empty for the service's own key
    command: tuple[str, ...] = ()  # that prints it, instead of variables
    library: bool = False  # a library gets it, and the variable is only a name for consent


class Link(NamedTuple):
    """Connection settings: seconds per attempt (0: no limit), maximum open connections, environment for
    proxies.

    `people`: how people are asked; None where nobody can be.
    """

    timeout: float
    connections: int
    environ: Mapping[str, str]
    people: AskPeople | None = None


class ProviderFeatures:
    """Optional parts of a request that the service supports."""

    name: str
    sends: frozenset[str] = frozenset()
    """Supported optional settings, see config.backends."""
    schema_field = ""
    """Dotted path in a request for a template's JSON Schema; empty if unsupported."""
    forms_by_default = True
    """Whether `forms: auto` requests answers by a schema, if the service takes one."""
    logprobs_fields: tuple[str, ...] = ()
    """Dotted paths in a request that ask for log probabilities; empty if unsupported."""
    choices_field = ""
    """Dotted path in a request for the number of answers; empty if unsupported."""
    most_choices = 1
    """How many answers a request can ask for."""
    sees_pictures = False
    """Whether a request can have pictures."""
    stays_here = False
    """Whether only the process of the command can make its calls, no worker of a cluster."""

    def schema_problem(self, config: Any, schema: bytes) -> str | None:  # noqa: ARG002
        """Explain why the backend cannot be sent a template's JSON Schema; None if it can."""
        if not self.schema_field:
            return f"a backend of type {self.name} takes none"
        return _find_double(config, self.schema_field)

    def logprobs_problem(self, config: Any) -> str | None:
        """Explain why the backend cannot be asked for log probabilities; None if it can."""
        if not self.logprobs_fields:
            return f"a backend of type {self.name} returns none"
        return next(filter(None, (_find_double(config, field) for field in self.logprobs_fields)), None)

    def picture_problem(self, config: Any) -> str | None:  # noqa: ARG002
        """Explain why the backend cannot be sent pictures; None if it can."""
        return None if self.sees_pictures else f"a backend of type {self.name} takes no pictures"

    def choices_problem(self, config: Any) -> str | None:
        """Explain why calls of the backend cannot be joined to one request for several answers; None if they
        can."""
        if not self.choices_field:
            return f"a backend of type {self.name} gives one answer to a request; remove it"
        if config.seed is not None:
            return (
                "identical calls differ only by their seeds, and one request has one seed: "
                "remove `seed`, or this"
            )
        return _find_double(config, self.choices_field)


class ProviderKeys:
    """Ask for a key, or for other values that only the user has."""

    def key_request(self, config: Any) -> KeyRequest | None:  # noqa: ARG002
        """Return the key request of the backend, None if it needs no key. Raises InputError for an invalid
        address."""
        return None

    def header_requests(self, config: Any) -> tuple[KeyRequest, ...]:  # noqa: ARG002
        """Return the requests for values in headers, besides the key."""
        return ()


class ProviderPrices:
    """Know what calls cost, and how the models count."""

    simulated = False
    """Whether its answers are made up, and free."""
    unpaid = False
    """Whether an unfinished call loses no money: when a run stops, such calls have seconds to end, not half a
    minute."""
    prices: PriceList | None = None
    """Prices of its models at its own host."""

    def list_price(self, config: Any) -> Price | None:  # noqa: ARG002
        """Return the list price of the backend's model at the provider's own host; None elsewhere."""
        return None

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        """Return the listed model with the most similar name, and its price; None if none is similar."""
        return None if self.prices is None else self.prices.nearest_price(model)

    def picture_tokens(self, model: str, picture: PromptPicture) -> PictureTokens:  # noqa: ARG002
        """Return the tokens that the model counts for a picture. Without more knowledge, as open models do:
        a token for 28 × 28 pixels is expected, and one for 14 × 14 at most, or LLaVA's 2,880."""
        expected, most = (-(-picture.width // side) * -(-picture.height // side) for side in (28, 14))
        return PictureTokens(expected, max(most, 2_880))

    def vocabulary(self, model: str) -> str | None:  # noqa: ARG002
        """Return the model's vocabulary by its bpe-openai name; None if unknown."""
        return None


class SeveralServers:
    """A backend that is one model on several `servers`, by address (`edgen.providers.fleet`)."""

    servers: Mapping[str, Backend]
    """They may become more, as nodes of a cluster do."""

    def find_nearest(self) -> str | None:
        """Return the address of the server that is best for the present task, all else being equal; None for
        no preference."""
        return None


def servers_of(backend: Backend) -> Mapping[str, Backend]:
    """Return the servers of a backend by address: those of a fleet, else the backend itself."""
    if isinstance(backend, SeveralServers):
        return backend.servers
    return {str(backend.identity.get("base_url") or ""): backend}


class ProviderBatches:
    """Answer in batches."""

    instead_of_batches = ""
    """Advice for users who want batches, if it has none."""

    @property
    def batches(self) -> BatchServices | None:
        """Its batch services, None where it has none."""
        return None


class Provider(ProviderFeatures, ProviderKeys, ProviderPrices, ProviderBatches, ABC):
    """One kind of backend, found by its `name`, which is the `type` of its backends in a job.

    Required are `name`, `Config` and `create`. All else has a default in the classes above, one per purpose.
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


def list_flaws(provider: Provider) -> Iterator[str]:
    """Yield what keeps an object from being used as a provider, as clauses."""
    config = getattr(provider, "Config", None)
    if not isinstance(config, type) or not issubclass(config, BackendConfig):
        yield "has no `Config`: give its class one, a struct derived from edgen.plugin.BackendConfig"
        return
    given = config.__struct_config__
    if (given.tag_field, given.tag) != ("type", provider.name):
        yield (
            f"has a `Config` with tag_field={given.tag_field!r} and tag={given.tag!r}; write "
            f'tag_field="type" and tag="{provider.name}"'
        )


def _find_double(config: Any, field: str) -> str | None:
    """Return the problem if `extra_body` sets a request field that edgen sets."""
    found = getattr(config, "extra_body", {})
    for key in field.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else f"its extra_body sets {field}, too; keep one of the two"
