"""The backends of a job, and their batch services: opened for a command's work, and closed at its end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from edgen.config import BackendConfig, Job, Limits, check_budget, find_backend_name
from edgen.core.errors import UsageError
from edgen.core.options import CallMode
from edgen.core.plugins.faults import blame, find_running_fault, refuse_value, require_type
from edgen.core.plugins.unending_tasks import LateError, run_apart
from edgen.core.registry import find, find_plugin, part_of
from edgen.core.system import limit_open_files, set_alarm
from edgen.core.text import replace_surrogates, shorten
from edgen.execution.online_scheduler import make_online_scheduler
from edgen.execution.scheduler import SchedulerFactory
from edgen.planning.plan import Plan
from edgen.providers import PATIENCE, Backend, make, make_batch_service
from edgen.providers.base import LocalCalls
from edgen.providers.batches import BatchService
from edgen.providers.trust import Consents
from edgen.runtime.control import Trust
from edgen.runtime.processes import HERE, require_place

if TYPE_CHECKING:
    from edgen.runtime.people import PeopleRequests


T = TypeVar("T")


def list_configs(plan: Plan) -> dict[str, BackendConfig]:
    """Return the backends that a plan uses, by their names in the job."""
    job = plan.job
    names = {find_backend_name(job, role) for role in plan.roles}
    for name in [*names]:
        for other in job.backends[name].others:
            if other not in job.backends or job.backends[other].BY_PEOPLE:
                raise UsageError(
                    f"backends.{name}.stand_in: {other} has to be another backend of the job, and no person."
                )
            names.add(other)
    return {name: job.backends[name] for name in sorted(names)}


def count_arms_at_once(whole: Job, plans: Mapping[str, Plan]) -> int:
    """Return how many arms of a job run at once.

    The job's own number; without it, all arms if they use different services, so that none waits for another,
    else one.
    """
    if whole.limits.arms_at_once is not None:
        return whole.limits.arms_at_once
    return len(plans) if do_services_differ(plans.values()) else 1


def do_services_differ(plans: Iterable[Plan]) -> bool:
    """Return whether some plans use different services."""
    services = {
        frozenset(
            (config.provider, getattr(config, "base_url", None)) for config in list_configs(plan).values()
        )
        for plan in plans
    }
    return len(services) > 1


@contextlib.asynccontextmanager
async def open_backends(
    configs: Mapping[str, BackendConfig],
    limits: Limits,
    trust: Trust | None,
    *,
    arms: int = 1,
    at_once: int = 1,
    functions: Mapping[str, Callable[..., Any] | None] | None = None,
    run: Path | None = None,
    arm: str | None = "",
    together: Iterable[str] = (),
) -> AsyncIterator[dict[str, Backend]]:
    """Open a backend for each configuration; without `trust`, backends send nothing and have no keys.

    `arms`: how many arms' backends are open at once; `at_once` of them are active. `functions`: functions
    that are backends, by their names. `run`: the folder of the run that people answer for, in this `arm`;
    None: people answer each backend separately, as several annotators do. `together`: the roles that people
    play in one conversation. Raises ProviderError for a missing key, InputError for a key that may not be
    sent to the backend's server."""
    if trust is not None:
        check_budget(configs, limits)
    services = {(type(config), getattr(config, "base_url", None)) for config in configs.values()}
    _allow_connections(limits.in_flight, len(services) * at_once, arms)
    backends: dict[str, Backend] = {}
    consents = Consents() if trust is None else trust.settle(configs.values())
    async with contextlib.AsyncExitStack() as stack:
        desks: dict[str, PeopleRequests] = {}
        for name, config in configs.items():
            people = None
            if run is not None and config.BY_PEOPLE:
                place = name if arm is None else arm
                if (people := desks.get(place)) is None:
                    from edgen.runtime.people import PeopleRequests

                    people = desks[place] = PeopleRequests(run, place, tuple(together))
                    stack.push_async_callback(people.close)
            if (function := (functions or {}).get(name)) is not None:
                from edgen.providers.function import make_backend, make_config

                backends[name] = make_backend(function, make_config(function), limits.timeout)
            else:
                backends[name] = make(
                    config,
                    timeout=limits.timeout,
                    connections=limits.in_flight,
                    environ=os.environ if trust is None else trust.environ,
                    consents=consents,
                    silent=trust is None,
                    people=people,
                )
                if find_plugin("provider", config.provider) is not None:
                    require_backend(config.provider, backends[name])
            stack.push_async_callback(close_backend, config.provider, backends[name])
        yield backends


async def close_backends(plan: Plan, backends: Mapping[str, Backend]) -> None:
    """Close a plan's backends, by name."""
    configs = list_configs(plan)
    for name, backend in backends.items():
        await close_backend(configs[name].provider, backend)


CLOSING = 15.0  # seconds that a plugin's backend may take to close


_unclosed: list[Backend] = []
"""Backends that did not close in time. They are not closed again."""


async def close_backend(provider: str, backend: Backend) -> None:
    """Close a backend. Raises FaultyPluginError for an error of a plugin's backend, and if it takes more than
    CLOSING seconds."""
    said = f"did not return from `aclose` within {CLOSING:g} s"

    def refuse_blocking(frame: FrameType | None) -> None:
        if (fault := find_running_fault(frame, said)) is not None:
            raise fault

    if find_plugin("provider", provider) is None:
        await backend.aclose()
        return
    if any(one is backend for one in _unclosed):
        return
    try:
        with set_alarm(CLOSING + 1, refuse_blocking):  # a blocked loop has no time-outs
            await run_apart(backend.aclose(), CLOSING)
    except LateError:
        _unclosed.append(backend)
        refuse_value("provider", provider, said)
    except Exception as error:  # noqa: BLE001 - raised again
        blame("provider", provider, error, "in `aclose`")


async def await_in_time(provider: str, method: str, work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return what a coroutine of a backend returns. Raises FaultyPluginError if that of a plugin's backend
    takes more than `seconds`."""
    if find_plugin("provider", provider) is None:
        return await work
    try:
        return await run_apart(work, seconds)
    except LateError:
        refuse_value("provider", provider, f"did not return from `{method}` within {seconds:g} s")


def require_backend(provider: str, backend: Any) -> None:
    """Raise FaultyPluginError unless an object is a backend. Its identity, a part of its answers' addresses,
    must be a mapping of JSON values with the provider's name as `type`."""
    if missing := [one for one in _PARTS if not hasattr(backend, one)]:
        said = f"returned {shorten(repr(backend), 80)} from `create`, which has no `{missing[0]}`"
        refuse_value("provider", provider, f"{said}; a backend has {', '.join(_PARTS)}")
    identity = require_type("provider", provider, backend.identity, Mapping, "a mapping as `identity`")
    try:
        msgspec.json.encode(dict(identity))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        refuse_value("provider", provider, f"has an `identity` that is not JSON: {error}")
    if dict(identity) != dict(backend.identity):
        refuse_value("provider", provider, "has another `identity` each time; stored answers would be lost")
    if identity.get("type") != provider:
        said = f"has an `identity` whose `type` is {identity.get('type')!r}; it has to be {provider!r}"
        refuse_value("provider", provider, said)
    model = require_type("provider", provider, backend.model, str, "text as `model`")
    if not model or replace_surrogates(model) != model:
        refuse_value("provider", provider, f"has the `model` {model!r}, which no record can name")


_PARTS = ("identity", "model", "complete", "models", "aclose")


@contextlib.asynccontextmanager
async def open_batches(
    job: Job, backends: Mapping[str, Backend], *, offline: bool = False
) -> AsyncIterator[dict[str, BatchService]]:
    """Open the batch services of the backends. `offline`: they send nothing."""
    services: dict[str, BatchService] = {}
    patience = min(job.limits.give_up_after, PATIENCE)
    async with contextlib.AsyncExitStack() as stack:
        for name, backend in backends.items():
            config = job.backends[name]
            services[name] = make_batch_service(
                config, backend, environ=os.environ, offline=offline, patience=patience
            )
            stack.push_async_callback(services[name].aclose)
        yield services


@contextlib.asynccontextmanager
async def open_scheduler(
    job: Job,
    backends: Mapping[str, Backend],
    mode: CallMode,
    trust: Trust | None,
    write_only: Path | None = None,
) -> AsyncIterator[tuple[Mapping[str, Backend], SchedulerFactory]]:
    """Open the backends as a scheduler uses them, and the scheduler's factory, with the necessary batch
    services or cluster. Raises UsageError for an unsupported way."""
    if on := find_address(job, mode):
        if mode.via != "online":
            raise UsageError("--on goes with single calls; leave it or --via batch out.")
        async with _open_cluster(job, backends, on, mode.workers or job.workers, trust) as opened:
            yield opened
    elif mode.via == "online":
        yield backends, make_online_scheduler
    else:
        from edgen.execution.batch.scheduler import BatchScheduler

        async with open_batches(job, backends, offline=write_only is not None) as services:
            yield backends, partial(BatchScheduler, services=services, write_only=write_only)


def find_address(job: Job, mode: CallMode) -> str:
    """Return the cluster, `ray` or `ray://ADDRESS`, that a command uses: from the option, else from the job
    for single calls; empty without a cluster. Raises UsageError for anything else."""
    on = mode.on or (job.on if mode.via == "online" else None) or HERE
    if on == HERE and mode.workers is None:
        return ""
    require_place(on)
    if mode.workers is not None and (mode.workers < 1 or on == HERE):
        raise UsageError(
            f"--workers {mode.workers}: give a number, 1 or more, and the cluster, as in --on ray."
        )
    return "" if on == HERE else on


@contextlib.asynccontextmanager
async def _open_cluster(
    job: Job, backends: Mapping[str, Backend], on: str, workers: int | None, trust: Trust | None
) -> AsyncIterator[tuple[Mapping[str, Backend], SchedulerFactory]]:
    """Open the workers of a cluster, which start with the first task."""
    from edgen.execution.cluster.scheduler import Cluster, ClusterScheduler

    kinds = {name: find("provider", one.identity["type"]) for name, one in backends.items()}
    kept = {name: backends[name] for name, kind in kinds.items() if part_of(kind, LocalCalls).stays_here}
    consents = Consents() if trust is None else trust.settle(job.backends[name] for name in backends)
    held = () if trust is None else [name for name in trust.variables if trust.environ.get(name)]
    cluster = Cluster(on.removeprefix("ray").removeprefix("://"), workers, consents, kept, held)
    called = cluster.calls.wrap(
        {name: one for name, one in backends.items() if name not in kept},
        [name for name in backends if getattr(job.backends.get(name), "node_local", False)],
    )
    try:
        yield {**kept, **called}, partial(ClusterScheduler, cluster=cluster)
    finally:
        await cluster.aclose()


_ROOM = 64  # files besides connections, with room to spare
_LEAST = 32  # files besides connections, at least: ledger, lock, finished files, host names
_RUN = 8  # files of each further run that is open at once


def _allow_connections(in_flight: int, services: int, runs: int) -> None:
    """Raise UsageError unless the system allows a connection to each service for every call in flight."""
    needed = in_flight * services + _RUN * (runs - 1)
    if (most := limit_open_files(needed + _ROOM, needed + _LEAST)) is not None:
        raise UsageError(_explain_too_few(most, in_flight, services, runs))


def _explain_too_few(files: int, in_flight: int, services: int, runs: int) -> str:
    """Return the advice for a process that may open too few files."""
    raise_it = "have the limit raised (`ulimit -Hn` shows it; LimitNOFILE= in a systemd unit)"
    least = _LEAST + _RUN * (runs - 1)
    fitting = (files - least) // services
    if fitting < 1:
        return (
            f"this system lets a process open {files} files, and this job needs {least + services} at least: "
            f"{raise_it}."
        )
    each = f" for each of {services} services" if services > 1 else ""
    return (
        f"limits.in_flight is {in_flight}{each}, but this system lets a process open {files} files. "
        f"Lower it (--set limits.in_flight={fitting}), or {raise_it}."
    )
