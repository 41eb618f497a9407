"""Identity of a fleet: answers stay valid while its servers come and go."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.config import BackendConfig, Job, load_kept_job
from edgen.core.errors import EdgenError
from edgen.store.run_folder import RunFolder


def keep_identities(job: Job, run: RunFolder) -> Job:
    """Return the job with the identities of the run's backends for those that share a server with them.

    So a run that began with one server can continue with several, in any order, without paying again, and a
    server can be removed. A backend that names its identity (`known_as`), or has no server in common, keeps
    its own. Arms inherit the job's backends; those of their own are left as they are.
    """
    try:
        before = load_kept_job(run.job).backends
    except EdgenError:  # the reader of the run reports the error
        return job
    kept = {
        name: _keep(config, before[name]) if name in before else config
        for name, config in job.backends.items()
    }
    return job if kept == job.backends else msgspec.structs.replace(job, backends=kept)


def _keep(config: BackendConfig, before: BackendConfig) -> BackendConfig:
    """Return the settings of a backend with the identity that it had before, if it is still the same
    fleet."""
    ours, theirs = _servers(config), _servers(before)
    if config.provider != before.provider or not {*ours} & {*theirs}:
        return config
    new: Any = config
    old: Any = before
    known: str = old.known_as or old.base_url
    return config if new.known_as is not None or known == new.base_url else _set_known_as(new, known)


def _set_known_as(config: Any, address: str) -> BackendConfig:
    changed: BackendConfig = msgspec.structs.replace(config, known_as=address)
    return changed


def _servers(config: BackendConfig) -> tuple[str, ...]:
    """Return the addresses of a backend's servers; empty if it has one address at most."""
    return tuple(url.rstrip("/") for url in getattr(config, "urls", ()))
