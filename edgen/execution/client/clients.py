"""The clients of a job's roles, which share what their services share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgen.config import CallSettings, backend_name
from edgen.execution.client.admission import Admission
from edgen.execution.client.budget import Budget
from edgen.execution.client.model_client import ModelClient
from edgen.providers import Backend
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
    if admissions is None:
        admissions = {}
    admissions |= {_service(client.backend): client.admission for client in made.values()}

    def make(name: str) -> ModelClient:
        if name not in made:
            admission = admissions.setdefault(_service(backends[name]), Admission(limits))
            config = settings.backends[name]
            made[name] = ModelClient(name, config, backends[name], admission, limits, budget, out)
            made[name].stand_ins = tuple(make(other) for other in config.others if other in backends)
        return made[name]

    return {role: make(backend_name(settings, role)) for role in roles}


def _service(backend: Backend) -> Service:
    """Return the identity of the service that a backend calls."""
    return backend.identity["type"], backend.identity.get("base_url")
