"""`edgen.generate`, `edgen.agenerate` and `edgen.open`."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from edgen.api.objects import signatures
from edgen.api.objects.arguments import JobBackends, Listening, split, takes
from edgen.api.objects.job import AnyJob, read_source
from edgen.api.objects.run import Run
from edgen.api.objects.runner import run_in_loop, run_in_thread
from edgen.core.errors import ShortError, UsageError
from edgen.execution.progress import Listener
from edgen.generation.arms import Generated
from edgen.generation.arms import generate as make_run
from edgen.generation.options import GenerateOptions
from edgen.runtime.control import Control, Trust, run_in_own_loop


def _read_call(
    job: AnyJob, given: Mapping[str, Any]
) -> tuple[Callable[[Control], Coroutine[Any, Any, Generated]], Control, list[Listener]]:
    """Return the work of a call of `generate`, its control and its listeners. Raises UsageError for an
    argument of a wrong type, and JobError."""
    _require_types(given)
    own, heard, keys = split(signatures.generate, GenerateOptions, given)
    options = GenerateOptions(**own)
    _require_values(options)
    if isinstance(job, Mapping) and "backends" not in job and keys.get("backends") is not None:
        job = {**job, "backends": keys.pop("backends")}
    keyed = {"conversations": options.conversations, "backends": keys.pop("backends", None)}
    changes = {**keys, **{key: value for key, value in keyed.items() if value is not None}}
    source, functions = read_source(job, changes, allow_outside=options.allow_outside)
    agree = (lambda _question: True) if options.yes else None
    files = [source.allowed.base / name.rpartition(":")[0] for name in source.job.measure_references]
    # The caller wrote this job, so it needs no consent.
    trusted = [*options.trust_code, *(files if not isinstance(job, str | Path) else ())]
    trust = Trust(heard.trust_hosts, code=trusted)
    control = Control(trusting=lambda: trust, agree=agree, functions=functions)
    return partial(make_run, source, options), control, heard.list_listeners()


_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "output": ((str, Path), "the path of a run's folder"),
    "on": ((str,), "'ray' or 'ray://ADDRESS'"),
    "workers": ((int,), "a number of processes"),
    "partitions": ((int,), "a number of processes"),
    "scenarios": ((range,), "a range, as in range(0, 1000)"),
    "progress": ((bool,), "True, False or None"),
}


def _require_types(given: Mapping[str, object]) -> None:
    """Raise UsageError for a value of a wrong type."""
    for name, (types, what) in _TYPES.items():
        value = given.get(name)
        if value is not None and not isinstance(value, types):
            raise UsageError(f"{name}: this is of type {type(value).__name__}; it has to be {what}.")
    on_event = given.get("on_event")
    if on_event is not None and not callable(on_event):
        raise UsageError("on_event: it has to be a function that takes an event.")


def _require_values(options: GenerateOptions) -> None:
    """Raise UsageError for an invalid value of an option."""
    scenarios = options.scenarios
    if options.resume not in ("auto", "never"):
        raise UsageError(f"resume: {options.resume!r} is neither 'auto' nor 'never'.")
    if options.via not in ("online", "batch"):
        raise UsageError(f"via: {options.via!r} is neither 'online' nor 'batch'.")
    if scenarios is not None and (scenarios.step != 1 or scenarios.start < 0 or not scenarios):
        raise UsageError(f"scenarios: {scenarios} has to go up by 1 from 0 or more, as range(0, 1000) does.")


@takes(signatures.generate, GenerateOptions, Listening, JobBackends)
def generate(job: AnyJob, **given: Any) -> Run:
    """Generate the conversations of a job, write them as train and test files, and return the run.

    `job` is the path of a job file, a dict of its keys, or an `edgen.Job`; `overrides` replace keys of the
    job. `backends` may hold functions, asynchronous or not, which take a request and return the answer as a
    text. The same call resumes and repeats no model call. `scenarios` is a range, as in `range(0, 1000)`.

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
    work, control, listeners = _read_call(job, given)
    return _finish(run_in_thread(lambda heard: run_in_own_loop(work(heard)), control, listeners))


@takes(signatures.generate, GenerateOptions, Listening, JobBackends)
async def agenerate(job: AnyJob, **given: Any) -> Run:
    """Do the same as `generate`, in the caller's event loop. Cancelled, it stops cleanly, and the same call
    continues."""
    return _finish(await run_in_loop(*_read_call(job, given)))


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
