"""What a provider is, one kind of backend, and what a backend is: one attempt at one model call, classified.

Retries, rate limits, storage and budgets are other people's business; an adapter translates a
Request to its service's wire format and the answer back to a Reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from edgen.config.backends import BackendConfig, Price
from edgen.core.errors import Problem
from edgen.core.values import Reply, Request

if TYPE_CHECKING:
    from edgen.providers.batches import BatchServices
    from edgen.providers.prices import PriceList

MAX_ANSWER = 32 * 1024 * 1024  # bytes of one answer, the most that is read


class Backend(Protocol):
    """A model behind an adapter. Built by `edgen.providers.make`, closed with `aclose`."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that shapes this backend's answers, JSON-able: type, base URL, model, parameters.

        It becomes part of every ledger key. It holds no API key and nothing that only changes
        speed.
        """

    @property
    def model(self) -> str:
        """The model's name as asked for."""

    async def complete(self, request: Request) -> Reply:
        """Make one attempt. Raises CallError, whatever went wrong; cancellation passes through."""

    async def models(self) -> list[str] | None:
        """The names that the service offers, None if it cannot say. Raises CallError."""

    async def aclose(self) -> None:
        """Release connections. Never raises; calling it twice is allowed."""


class Key(NamedTuple):
    """What a backend may send: `value`, None for nothing. `hint` says why a key that is there is not sent.

    `variables` are the values that its headers name, by their variables; what may not go there is not among them.
    `command` prints the key, in that environment; None where none does. `library`: a library may be asked for it.
    """

    value: str | None = None
    hint: str = ""
    variables: Mapping[str, str] = {}
    command: tuple[tuple[str, ...], Mapping[str, str]] | None = None
    library: bool = False


class KeyRequest(NamedTuple):
    """What a backend asks for: the variables that may hold its key, where it would go, whether it has to be there.

    `header`: the header that wants it; empty for the service's own key. `command`: what prints it, in place of
    variables. `library`: one gets it by itself, and the variable is but its name for consent.
    """

    variables: tuple[str, ...]
    url: str
    service: str
    required: bool
    header: str = ""
    command: tuple[str, ...] = ()
    library: bool = False


class Link(NamedTuple):
    """How calls go: seconds for an attempt, the most connections at once, where proxies are looked up."""

    timeout: float
    connections: int
    environ: Mapping[str, str]


class Provider:
    """One kind of backend, found by its `name`, which is the `type` of its backends in a job.

    A provider is a subclass with `name`, `Config` and `create`; what else it overrides is what sets it apart.
    """

    name: str
    Config: type[BackendConfig]
    sends: frozenset[str] = frozenset()  # those of the optional settings that it has, see config.backends
    prices: PriceList | None = None  # what its models cost at its own host
    simulated = False  # whether its answers are made up, and free
    schema_field = (
        ""  # where in a request a template's JSON Schema goes, with dots; empty where it takes none
    )
    # where in a request log probabilities are asked for, with dots; empty where it tells none
    logprobs_fields: tuple[str, ...] = ()
    # where in a request several answers are asked for, with dots, and how many there can be; empty where it gives one
    choices_field = ""
    most_choices = 1
    instead_of_batches = ""  # what somebody can do who wants batches, where it has none

    def create(self, config: Any, key: Key, link: Link) -> Backend:
        """The backend for a Config, whose calls carry `key`. Raises InputError for what does not fit."""
        raise NotImplementedError

    def problems(self, config: Any) -> list[Problem]:  # noqa: ARG002
        """What is wrong with a Config beyond its types. Paths are the keys'."""
        return []

    def schema_problem(self, config: Any, schema: bytes) -> str | None:  # noqa: ARG002
        """Why the backend cannot be sent a template's JSON Schema; None if it can."""
        if not self.schema_field:
            return f"a backend of type {self.name} takes none"
        return _find_double(config, self.schema_field)

    def logprobs_problem(self, config: Any) -> str | None:
        """Why the backend cannot be asked for log probabilities; None if it can."""
        if not self.logprobs_fields:
            return f"a backend of type {self.name} tells none"
        return next(filter(None, (_find_double(config, field) for field in self.logprobs_fields)), None)

    def choices_problem(self, config: Any) -> str | None:
        """Why calls of the backend cannot be joined to one request for several answers; None if they can."""
        if not self.choices_field:
            return f"a backend of type {self.name} gives one answer to a request; remove it"
        if config.seed is not None:
            return "calls that ask the very same differ by their seeds, and one request has one seed: remove `seed`, or this"
        return _find_double(config, self.choices_field)

    def key_request(self, config: Any) -> KeyRequest | None:  # noqa: ARG002
        """The key that the backend asks for, None for none. Raises InputError for an address that is none."""
        return None

    def header_requests(self, config: Any) -> tuple[KeyRequest, ...]:  # noqa: ARG002
        """The values that its headers ask for, besides the key."""
        return ()

    @property
    def batches(self) -> BatchServices | None:
        """Its batch services, None where it has none."""
        return None

    def list_price(self, config: Any) -> Price | None:  # noqa: ARG002
        """What the provider's list says of the backend's model, at the provider's own host; None elsewhere."""
        return None

    def nearest_price(self, model: str) -> tuple[str, Price] | None:
        """The listed model whose name is most like this one, and its price; None if none is."""
        return None if self.prices is None else self.prices.nearest(model)

    def vocabulary(self, model: str) -> str | None:  # noqa: ARG002
        """The name of the vocabulary that the model reads with, as bpe-openai has it; None where it is not known."""
        return None


def _find_double(config: Any, field: str) -> str | None:
    """What is wrong where `extra_body` sets a field of the request that edgen would set."""
    found = getattr(config, "extra_body", {})
    for key in field.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return None if found is None else f"its extra_body sets {field}, too; keep one of the two"
