"""A job as a value of Python, and the forms in which callers may pass a job."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgen.config import load_job, parse_job
from edgen.core.errors import JobError, UsageError
from edgen.core.yaml_values import read_text, read_yaml
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import JobSource

Functions = dict[str, Callable[..., Any]]


class Job:
    """A job: the keys of a job file, as keyword arguments. It is checked at once, and never changes.

    >>> job = Job(
    ...     name="lessons",
    ...     conversations=4,
    ...     space="education_dialogue",
    ...     prompt="education_dialogue",
    ...     backends={"default": {"type": "simulator"}},
    ... )
    >>> job["conversations"], job.replace(conversations=8)["conversations"]
    (4, 8)

    Names of files start in the current folder. Raises JobError for keys and values that no job has.
    """

    def __init__(self, **keys: Any) -> None:
        self._keys, self._functions = copy_keys(keys)
        self._folder = Path.cwd()
        parse_job(self.as_dict(), "Job")

    @classmethod
    def load(cls, path: str | Path) -> Job:
        """Load the job of a file. Names of files in it start in its folder."""
        path = Path(path)
        load_job(path)
        job = cls.__new__(cls)
        job._keys, job._functions = copy_keys(read_yaml(read_text(path, JobError), str(path), JobError))
        job._folder = path.parent
        return job

    def replace(self, **keys: Any) -> Job:
        """Return a copy of the job with these keys replaced."""
        new, functions = copy_keys(keys)
        job = type(self).__new__(type(self))
        job._keys, job._functions, job._folder = self._keys | new, self._functions | functions, self._folder
        parse_job(job.as_dict(), "Job")
        return job

    def as_dict(self) -> dict[str, Any]:
        """Return the job's keys, as a copy."""
        return copy_keys(self._keys)[0]

    def source(self, overrides: tuple[str, ...]) -> JobSource:
        """Return the source of the job, with overrides in the form of `--set`."""
        return JobSource(parse_job(self.as_dict(), "Job", overrides), "Job", AllowedFiles(self._folder, None))

    @property
    def functions(self) -> Functions:
        """The job's backends that are functions, by their names."""
        return dict(self._functions)

    def __getitem__(self, key: str) -> Any:
        return self.as_dict()[key]

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Job) and self._keys == other._keys
        return same and self._folder == other._folder  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Job({', '.join(f'{key}={value!r}' for key, value in self._keys.items())})"


AnyJob = str | Path | Mapping[str, Any] | Job


def read_source(
    job: AnyJob, overrides: Mapping[str, Any], *, allow_outside: bool
) -> tuple[JobSource, Functions]:
    """Return the source of a job, with overrides by key, and its backends that are functions.

    Raises UsageError for an invalid job, and JobError.
    """
    assignments, functions = read_overrides(overrides)
    if isinstance(job, str | Path):
        return JobSource.of(Path(job), assignments, allow_outside=allow_outside), functions
    if isinstance(job, Mapping):
        job = Job(**job)
    if not isinstance(job, Job):
        raise UsageError(
            f"the job is {_name_type(job)}; it has to be the path of a job file, a dict of a job's keys, or "
            "an edgen.Job."
        )
    return job.source(assignments), job.functions | functions


def copy_keys(keys: Mapping[str, Any]) -> tuple[dict[str, Any], Functions]:
    """Return a copy of plain values with functions replaced by their names, and the functions by their names
    in `backends`. Raises UsageError for values that a job cannot hold."""
    functions: Functions = {}
    backends = keys.get("backends")
    if isinstance(backends, Mapping):
        functions = {name: value for name, value in backends.items() if callable(value)}
        named = {name: _describe_function(function) for name, function in functions.items()}
        keys = {**keys, "backends": {**backends, **named}}
    return {str(key): _copy(value, str(key)) for key, value in keys.items()}, functions


def _describe_function(function: Callable[..., Any]) -> dict[str, Any]:
    from edgen.providers.function import make_config

    config = make_config(function)
    version = {} if config.version is None else {"version": config.version}
    return {"type": "function", "model": config.model, **version}


def _copy(value: Any, key: str) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _copy(child, f"{key}.{name}") for name, child in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(child, f"{key}[{number}]") for number, child in enumerate(value)]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    what = "a function; only a backend can be one" if inspect.isroutine(value) else _name_type(value)
    raise UsageError(
        f"{key}: this is {what}. A job holds texts, numbers, booleans, lists and dicts of these."
    )


def _name_type(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if re.match('[aeiouAEIOU]', name) else 'a'} {name}"


def read_overrides(overrides: Mapping[str, Any]) -> tuple[tuple[str, ...], Functions]:
    """Return overrides by key, as `--set` takes them, and the functions among them. `backends` is replaced
    backend by backend, other keys as a whole. Raises UsageError for values that a job cannot hold."""
    plain, functions = copy_keys(overrides)
    backends = plain.pop("backends", None)
    if isinstance(backends, dict):
        plain |= {f"backends.{name}": value for name, value in backends.items()}
    elif backends is not None:
        raise UsageError(
            f"backends: this is {_name_type(backends)}; it has to be a dict, as in "
            "backends={'default': {'type': 'simulator'}}."
        )
    return tuple(f"{key}={json.dumps(value)}" for key, value in plain.items()), functions
