"""Optional parts of providers (see `edgen.core.registry`).

`RequestFeatures` and `PricesAndTokens`, which checking a job uses, are in `edgen.config.plugin_parts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from edgen.providers.batches import BatchServices


class KeyRequest(NamedTuple):
    """Request of a backend for a key."""

    variables: tuple[str, ...]  # environment variables that may hold it
    url: str  # address that the key is sent to
    service: str  # name for people
    required: bool  # calls fail without it
    header: str = ""  # that needs it; empty for the service's own key
    command: tuple[str, ...] = ()  # that prints it, instead of variables
    library: bool = False  # a library gets it, and the variable is only a name for consent


class ServiceKeys:
    """Ask for a key, or for other values that only the user has."""

    def key_request(self, config: Any) -> KeyRequest | None:  # noqa: ARG002
        """Return the key request of the backend, None if it needs no key. Raises InputError for an invalid
        address."""
        return None

    def header_requests(self, config: Any) -> tuple[KeyRequest, ...]:  # noqa: ARG002
        """Return the requests for values in headers, besides the key."""
        return ()


class BatchAnswers:
    """Answer in batches, or say what a user does instead."""

    instead_of_batches = ""
    """Advice for users who want batches, if it has none."""

    @property
    def batches(self) -> BatchServices | None:
        """Its batch services, None where it has none."""
        return None


class LocalCalls:
    """Answer calls without a paid service: by the simulator, by a model or a function of the process, or by
    people."""

    simulated = False
    """Whether its answers are made up, and free."""
    unpaid = False
    """Whether an unfinished call loses no money: when a run stops, such calls have seconds to end, not half a
    minute."""
    stays_here = False
    """Whether only the process of the command can make its calls, no worker of a cluster."""
