"""`edgen.generate`, `edgen.agenerate` and `edgen.open`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

from edgen.api.generation import generate as make_run
from edgen.api.objects.job import AnyJob, read_source
from edgen.api.objects.progress import find_progress
from edgen.api.objects.run import Run
from edgen.api.objects.runner import run_in_loop, run_in_thread
from edgen.core.errors import ShortError, UsageError
from edgen.core.events import Listener
from edgen.generation.arms import Generated
from edgen.generation.options import GenerateOptions
from edgen.planning.load import JobSource
from edgen.runtime.control import Control
from edgen.runtime.key_consent import Trust

P = ParamSpec("P")
T = TypeVar("T")


class _Call(NamedTuple):
    """A call of `generate`: the source of the job, the options, and the listeners."""

    source: JobSource
    options: GenerateOptions
    control: Control
    listeners: list[Listener]


def _read_call(
    job: AnyJob,
    *,
    conversations: int | None = None,
    output: str | Path | None = None,
    backends: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    on_event: Listener | None = None,
    resume: Literal["auto", "never"] = "auto",
    scenarios: range | None = None,
    via: Literal["online", "batch"] = "online",
    on: str | None = None,
    workers: int | None = None,
    partitions: int | None = None,
    yes: bool = False,
    allow_outside: bool = False,
    trust_hosts: Iterable[str] = (),
    trust_code: Iterable[str | Path] = (),
    **overrides: Any,
) -> _Call:
    """Read the arguments of `generate`. Raises UsageError for those of another type, and JobError."""
    if isinstance(job, Mapping) and "backends" not in job and backends is not None:
        job, backends = {**job, "backends": backends}, None
    named = {"conversations": conversations, "backends": backends}
    given = {**overrides, **{key: value for key, value in named.items() if value is not None}}
    source, functions = read_source(job, given, allow_outside=allow_outside)
    agree = (lambda _question: True) if yes else None
    own = [source.reach.base / name.rpartition(":")[0] for name in source.job.measure_references]
    # A job that was written here is nobody else's.
    trusted = [*trust_code, *(own if not isinstance(job, str | Path) else ())]
    trust = Trust(trust_hosts, code=trusted)
    control = Control(trusting=lambda: trust, agree=agree, functions=functions)
    _require("output", output, (str, Path, type(None)), "the path of a run's folder")
    _require("on", on, (str, type(None)), "'ray' or 'ray://ADDRESS'")
    _require("workers", workers, (int, type(None)), "a number of processes")
    _require("partitions", partitions, (int, type(None)), "a number of processes")
    _require("scenarios", scenarios, (range, type(None)), "a range, as in range(0, 1000)")
    if resume not in ("auto", "never"):
        raise UsageError(f"resume: {resume!r} is neither 'auto' nor 'never'.")
    if via not in ("online", "batch"):
        raise UsageError(f"via: {via!r} is neither 'online' nor 'batch'.")
    if scenarios is not None and (scenarios.step != 1 or scenarios.start < 0 or not scenarios):
        raise UsageError(f"scenarios: {scenarios} has to go up by 1 from 0 or more, as range(0, 1000) does.")
    folder = None if output is None else Path(output)
    options = GenerateOptions(
        output=folder,
        via=via,
        part=scenarios,
        fresh=resume == "never",
        on=on,
        workers=workers,
        partitions=partitions,
    )
    _require("progress", progress, (bool, type(None)), "True, False or None")
    if on_event is not None and not callable(on_event):
        raise UsageError("on_event: it has to be a function that takes an event.")
    return _Call(source, options, control, find_progress(progress) + ([on_event] if on_event else []))


def _require(name: str, value: object, types: tuple[type, ...], what: str) -> None:
    if not isinstance(value, types):
        raise UsageError(f"{name}: this is of type {type(value).__name__}; it has to be {what}.")


def _takes(read: Callable[P, _Call]) -> Callable[[Callable[[_Call], T]], Callable[P, T]]:
    """Have a function that makes a call take the arguments that the call is read from."""

    def decorate(make: Callable[[_Call], T]) -> Callable[P, T]:
        @functools.wraps(make)
        def make_from_arguments(*arguments: P.args, **named: P.kwargs) -> T:
            return make(read(*arguments, **named))

        returns = inspect.signature(make).return_annotation
        make_from_arguments.__signature__ = inspect.signature(read).replace(return_annotation=returns)  # type: ignore[attr-defined]
        return make_from_arguments

    return decorate


@_takes(_read_call)
def generate(call: _Call) -> Run:
    """Make the conversations that a job asks for, and write them as train and test files; returns the run.

    `job` is the path of a job file, a dict of its keys, or an `edgen.Job`; `overrides` are keys in the place
    of its own. `backends` may hold functions, asynchronous or not, which take a request and return the
    answer as a text. Started again, it resumes and makes no call twice; `resume="never"` refuses a folder
    with a run. `scenarios` makes only those of a range; `yes` agrees to everything that is undone or paid
    for again; `trust_hosts` are in the form of `--trust-host`, `trust_code` in that of `--trust-code`.

    >>> job = {
    ...     "name": "few",
    ...     "conversations": 2,
    ...     "space": "education_dialogue",
    ...     "prompt": "education_dialogue",
    ...     "backends": {"default": {"type": "simulator"}},
    ... }
    >>> generate(job, output="few")
    <Run few: complete, 2 of 2 accepted>
    >>> generate(job, conversations=3, output="few").status.calls.made  # resumes
    3

    `on_event` is called with every event, in the caller's thread. After an interrupt, or an error in
    `on_event`, it stops cleanly, and the same call resumes. It works inside a running event loop, too.

    Raises the errors of `edgen generate`: ShortError if fewer were accepted than requested (`edgen.open`
    has the run), UselessError if hardly any answer is usable, StoppedError, ProviderError, LockedError;
    and UsageError, JobError, SpaceError or TemplateError for bad input.
    """
    made = run_in_thread(
        lambda control: asyncio.run(make_run(call.source, call.options, control)),
        call.control,
        call.listeners,
    )
    return _finish(made)


@_takes(_read_call)
async def agenerate(call: _Call) -> Run:
    """Do the same as `generate`, in the caller's event loop. Cancelled, it stops cleanly, and the same call
    continues."""
    made = await run_in_loop(
        lambda control: make_run(call.source, call.options, control), call.control, call.listeners
    )
    return _finish(made)


def open(folder: str | Path) -> Run:  # noqa: A001 - as edgen.open
    """Open the run in a folder. Raises RunError if there is none."""
    return Run(folder)


def _finish(made: Generated) -> Run:
    if isinstance(made.ended, ShortError) and (failure := _find_failure(made)) is not None:
        raise ShortError(f"{made.ended} The first that failed: {failure}.")
    if made.ended is not None:
        raise made.ended
    return Run(made.folder)


def _find_failure(made: Generated) -> str | None:
    """Return the note on the first conversation without an answer."""
    for arm in made.files:
        with (arm.folder.parent / "rejected.jsonl").open("rb") as lines:
            for line in map(json.loads, lines):
                if line["status"] == "failed":
                    return str(line["detail"]).rstrip(".")
    return None
