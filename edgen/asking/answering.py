"""The parties that answer an asker: the job, the backends, and the scheduler of the calls to them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.config import BackendConfig, Job, check, load_job, parse_job
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import UsageError
from edgen.core.options import CallMode
from edgen.execution.online_scheduler import make_online_scheduler
from edgen.execution.scheduler import SchedulerFactory
from edgen.planning.load import check_schema, with_forms
from edgen.prompting import Prompt
from edgen.providers import Backend, find_calls
from edgen.runtime.backends import open_backends, open_scheduler
from edgen.runtime.control import Control
from edgen.store.run_folder import RunFolder

Function = Callable[..., Any]


class Answerer(msgspec.Struct, frozen=True, kw_only=True):
    """A backend with a template: a judge, an annotator, a writer.

    id: a digest of everything that shapes an answer except the data (16 hex digits), or a name that its asker
    sets.
    facts: the content of the JSON file next to its ledger.
    """

    id: str
    model: str
    prompt: Prompt
    facts: dict[str, Any]

    @classmethod
    def of(cls, backend: Backend, prompt: Prompt, **settings: str) -> Answerer:
        """Return the answerer that consists of a backend and a template. `settings`: other settings that
        shape its answers, by name."""
        identity = dict(backend.identity)
        if prompt.forms != "prose":
            settings = {**settings, "forms": prompt.forms}
        name = compute_fingerprint((identity, prompt.sha256, *settings.values()))
        template = {"name": prompt.name, "sha256": prompt.sha256, "text": prompt.text}
        if prompt.schema is not None:
            template["schema"] = prompt.schema.decode()
        facts = {"judge": name, "backend": identity, **settings, "template": template}
        return cls(id=name, model=backend.model, prompt=prompt, facts=facts)


class ChosenBackend(NamedTuple):
    """The backend that answers, and the caller's function if it is one."""

    config: BackendConfig
    function: Function | None = None


class AskerBackends(NamedTuple):
    """Open backends that answer an asker."""

    job: Job  # the asker's
    backends: Mapping[str, Backend]  # by their names in the job
    scheduler: SchedulerFactory = make_online_scheduler  # makes the scheduler of calls to them
    prompt: Prompt | None = None  # their template; None if the asker has its own


@contextlib.asynccontextmanager
async def open_answering(
    job: Job,
    configs: Mapping[str, BackendConfig],
    control: Control,
    mode: CallMode,
    *,
    send: bool,
    functions: Mapping[str, Function | None] | None = None,
    run: Path | None = None,
    arm: str = "",
    together: Iterable[str] = (),
) -> AsyncIterator[AskerBackends]:
    """Open backends of a job. Without `send` they have no keys and send nothing; they only give their
    identities.

    `functions`: the caller's functions that serve as backends, by name. `run`, `arm` and `together` concern
    people, as in `open_backends`. Raises what `open_backends` raises.
    """
    trust = control.trust if send else None
    async with open_backends(
        configs,
        job.limits,
        trust,
        functions=functions,
        run=run if send else None,
        arm=arm,
        together=together,
    ) as backends:
        if not send:
            yield AskerBackends(job, backends)
            return
        async with open_scheduler(job, backends, mode, trust) as opened:
            yield AskerBackends(job, *opened)


@contextlib.asynccontextmanager
async def open_answerers(
    run: RunFolder,
    job: Job,
    role: str,
    chosen: Mapping[str, ChosenBackend],
    prompt: Prompt,
    control: Control,
    mode: CallMode,
    *,
    send: bool,
) -> AsyncIterator[dict[str, AskerBackends]]:
    """Open backends that all answer under `role` with one template, each with the run's job. Equal backends
    share connections, except people, who answer for each one separately.

    Returns them by the names of `chosen`. Without `send` they send nothing. Raises what `make_job`,
    `open_backends` and `open_scheduler` raise.
    """
    jobs = {name: make_job(job, role, one.config, prompt, run.job) for name, one in chosen.items()}
    first: dict[str, str] = {}  # the first name of each equal backend
    for name, one in chosen.items():
        alike = (other for other in first if chosen[other] == one and not one.config.BY_PEOPLE)
        first[name] = next(alike, name)
    configs = {name: chosen[name].config for name in first.values()}
    functions = {name: chosen[name].function for name in configs}
    trust = control.trust if send else None
    async with contextlib.AsyncExitStack() as stack:
        opened = await stack.enter_async_context(
            open_backends(
                configs,
                job.limits,
                trust,
                arms=len(chosen),
                functions=functions,
                run=run.path if send else None,
                arm=None,
            )
        )
        found: dict[str, AskerBackends] = {}
        for name, own in jobs.items():
            asked = with_forms(prompt, own, chosen[name].config, f"$.backends.{role}")
            found[name] = AskerBackends(own, {role: opened[first[name]]}, prompt=asked)
            if send:
                pair = await stack.enter_async_context(open_scheduler(own, found[name].backends, mode, trust))
                found[name] = AskerBackends(own, *pair, prompt=asked)
        yield found


def load_run_job(run: RunFolder, overrides: Iterable[str], settable: Sequence[str], of_what: str) -> Job:
    """Load a run's own job with these settings on top. Raises UsageError for a setting that does not apply to
    `of_what`."""
    overrides = list(overrides)
    for override in overrides:
        if override.partition("=")[0].strip().split(".")[0] not in settable:
            raise UsageError(
                f"--set {override}: this key does not apply to {of_what}; these do: {', '.join(settable)}."
            )
    return load_job(run.job, overrides)


def find_backend(job: Job, named: str, role: str) -> BackendConfig:
    """Return the backend that answers under `role` ("judge", "annotator"). `named`: `ROLE`, or `JOB:ROLE`, or
    empty for the job's backend of that name, else its `default`. Raises UsageError."""
    path, _, name = named.rpartition(":")
    if not path and name.endswith((".yaml", ".yml")):
        path, name = name, ""
    if path:
        job = load_job(Path(path))
    if not name:
        name = role if role in job.backends else "default"
    if name not in job.backends:
        raise UsageError(
            f"no backend '{name}' is in {path or 'the job of this run'} (known: {', '.join(job.backends)}). "
            "Name one with --backend ROLE, or one of another job with --backend JOB.yaml:ROLE, or give one "
            f"here: --set 'backends.{role}={{type: openai, model: …}}'."
        )
    return job.backends[name]


def choose_backend(job: Job, named: str, role: str, control: Control) -> ChosenBackend:
    """Return the backend that `find_backend` finds, and the caller's function if it is one."""
    config = find_backend(job, named, role)
    functions = control.functions.items()
    return ChosenBackend(
        config, next((one for name, one in functions if job.backends.get(name) == config), None)
    )


def make_job(job: Job, role: str, config: BackendConfig, prompt: Prompt, source: Path) -> Job:
    """Return the run's job, read from `source`, with a backend that answers as `role` with this template.
    Raises JobError."""
    check_schema(prompt, config, f"$.backends.{role}")
    held: Job = msgspec.structs.replace(job, backends={**job.backends, role: config})
    check(held, str(source))
    return held


def load_asked_job(
    named: str | None, overrides: Iterable[str], control: Control, *, work: str, made_up: str
) -> Job:
    """Load the job of an asker about a file. Its only backend, `default`, is the one that `JOB[:ROLE]` names.

    `named`: the value of --backend; None for ./job.yaml if it exists, else the embedded simulator. `work`:
    the name of a job without a file. `made_up`: a note about the simulator's answers. Raises UsageError.
    """
    path, role = _read_job_name(named)
    if path is not None:
        job = load_job(path, list(overrides))
    else:
        plain = {"name": work, "conversations": 1, "space": "-", "prompt": "-"}
        job = parse_job(
            {**plain, "backends": {"default": {"type": "simulator"}}}, "(no job)", list(overrides)
        )
    if role not in job.backends:
        raise UsageError(
            f"{path}: this job has no backend '{role}' (known: {', '.join(job.backends)}). Name one of "
            f"them, as in --backend {path}:{next(iter(job.backends))}."
        )
    config = job.backends[role]
    if find_calls(config).simulated:
        why = (
            f"the backend '{role}' of {path} is"
            if path is not None
            else "no --backend is given, so the backend is"
        )
        control.note(f"{why} the simulator: {made_up}, and no model is called.")
    return msgspec.structs.replace(job, backends={"default": config})


def _read_job_name(named: str | None) -> tuple[Path | None, str]:
    """Split `JOB[:ROLE]` into the job file and the role."""
    if named is None:
        return (Path("job.yaml") if Path("job.yaml").is_file() else None), "default"
    path, colon, role = named.rpartition(":")
    if not colon or Path(named).is_file():
        return Path(named), "default"
    return Path(path), role
