"""The clients of a job's roles, which share what their services share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgen.config import CallSettings, find_backend_name
from edgen.execution.client.admission import Admission
from edgen.execution.client.budget import Budget
from edgen.execution.client.model_client import ModelClient
from edgen.execution.client.person_client import PersonClient
from edgen.providers import Backend, list_servers
from edgen.store.ledger import OutstandingCalls

Service = tuple[Any, Any]  # type and address of a service


def make_clients(
    settings: CallSettings,
    backends: Mapping[str, Backend],
    roles: Iterable[str],
    budget: Budget | None = None,
    out: OutstandingCalls | None = None,
    beside: Iterable[ModelClient] = (),
    admissions: dict[Service, Admission] | None = None,
) -> dict[str, ModelClient]:
    """Return the client of each role. `backends` are by their names in the job; roles of one backend share
    its client, and clients of one service share its admission. `out`: notes of outstanding calls under a
    budget; None: no notes. `beside`: existing clients to share. `admissions`: existing ones by service; new
    ones are added."""
    limits = settings.limits
    made = {client.name: client for client in beside}
    known = {} if admissions is None else admissions
    for client in made.values():
        known |= dict.fromkeys(_list_services(client.backend), client.admission)

    def make(name: str) -> ModelClient:
        if name not in made:
            services = _list_services(backends[name])
            admission = next((known[one] for one in services if one in known), None) or Admission(limits)
            known.update(dict.fromkeys(services, admission))
            config = settings.backends[name]
            kind = PersonClient if config.BY_PEOPLE else ModelClient
            made[name] = client = kind(name, config, backends[name], admission, limits, budget, out)
            if isinstance(client, PersonClient):
                client.stand_ins = tuple(make(other) for other in config.others if other in backends)
        return made[name]

    return {role: make(find_backend_name(settings, role)) for role in roles}


def _list_services(backend: Backend) -> list[Service]:
    """Return the identities of the service that a backend calls: one for each server."""
    kind = backend.identity["type"]
    return [(kind, address) for address in list_servers(backend) or (backend.identity["base_url"],)]
