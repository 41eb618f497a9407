"""Arguments of Python functions: the options of structs, listeners, and keys of the job.

A function takes declared options as `**given: Any`. `make docs` writes its whole signature to
`edgen.api.objects.signatures`, for type checkers and editors; `takes` gives it that signature, and the help
texts of the options in its docstring.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from edgen.api.objects.job import read_overrides
from edgen.api.objects.progress import find_progress
from edgen.api.objects.runner import RunQuestion
from edgen.config.backends import Forms
from edgen.core.errors import UsageError
from edgen.core.options import TrustHosts, find_option, option
from edgen.core.yaml_values import suggest_name
from edgen.execution.progress import Listener
from edgen.runtime.control import Control, Trust


class RunLike(Protocol):
    """A run as a value: `edgen.Run`."""

    @property
    def folder(self) -> Path:
        """The run's folder."""


AnyRun = str | Path | RunLike
P = ParamSpec("P")
T = TypeVar("T")


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Listeners of a Python caller, and the consent for keys."""

    progress: Annotated[bool | None, option("Show progress; None: on a terminal and in a notebook.")] = None
    on_event: Annotated[
        Listener | None, option("A function that is called with every event, in the caller's thread.")
    ] = None
    trust_hosts: TrustHosts = ()

    def list_listeners(self) -> list[Listener]:
        """Return the functions that hear every event."""
        return find_progress(self.progress) + ([self.on_event] if self.on_event else [])


class JobBackends(msgspec.Struct, frozen=True, kw_only=True):
    """The job's key for backends, whose values may be functions."""

    backends: Annotated[
        Mapping[str, Any] | None,
        option("Backends by role, in place of the job's: settings, or functions that answer a request."),
    ] = None


class QuestionKeys(JobBackends, frozen=True, kw_only=True):
    """The keys of the job that apply to questions about a run."""

    limits: Annotated[Mapping[str, Any] | None, option("Limits, in place of the job's.")] = None
    batch: Annotated[Mapping[str, Any] | None, option("Settings of batches, in place of the job's.")] = None
    asks: Annotated[int | None, option("Maximum requests for one answer, in place of the job's.")] = None
    forms: Annotated[Forms | None, option("Whether a schema is sent, in place of the job's key.")] = None


def takes(
    signature: Callable[P, object], *kinds: type[msgspec.Struct]
) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Give a function a signature, and the help texts of the options among its arguments. `kinds`: the
    structs that declare the options."""

    def decorate(function: Callable[..., T]) -> Callable[P, T]:
        own, made = inspect.signature(function), inspect.signature(signature)
        function.__signature__ = made.replace(return_annotation=own.return_annotation)  # type: ignore[attr-defined]
        helps = {name: text for kind in kinds for name, text in _list_helps(kind) if name in made.parameters}
        texts = "\n".join(f"    {name}: {text}" for name, text in helps.items())
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions::\n\n{texts}\n"
        return function

    return decorate


def _list_helps(kind: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """Return the help text of each field that is declared as an option."""
    hints = get_type_hints(kind, include_extras=True)
    found = ((name, find_option(hints[name])) for name in kind.__struct_fields__)
    return [(name, one.help) for name, one in found if one is not None]


def split(
    signature: Callable[..., object], kind: type[msgspec.Struct], values: Mapping[str, object]
) -> tuple[dict[str, Any], Listening, dict[str, Any]]:
    """Split the arguments of a call into values of the struct for names in the signature, listeners, and keys
    of the job."""
    named = list_fields(signature, kind)
    own = fit(signature, kind, {name: value for name, value in values.items() if name in named})
    listening = {name: value for name, value in values.items() if name in Listening.__struct_fields__}
    keys = {name: value for name, value in values.items() if name not in own and name not in listening}
    return own, Listening(**fit(signature, Listening, listening)), keys


def read_question(
    signature: Callable[..., object], kind: type[msgspec.Struct], values: Mapping[str, object]
) -> tuple[RunQuestion, dict[str, Any]]:
    """Return the question of a call about a run, and the values of the struct, with the changes to the job as
    `overrides`."""
    own, heard, keys = split(signature, kind, values)
    changes, functions = read_overrides(keys)
    trust = Trust(heard.trust_hosts)
    control = Control(trusting=lambda: trust, functions=functions)
    return RunQuestion(control, heard.list_listeners()), own | {"overrides": changes}


@functools.cache
def list_fields(signature: Callable[..., object], kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the types of a struct's fields that a signature names."""
    named = inspect.signature(signature).parameters
    return {
        name: hint for name, hint in get_type_hints(kind).items() if name in named and name != "overrides"
    }


def fit(
    signature: Callable[..., object], kind: type[msgspec.Struct], values: Mapping[str, object]
) -> dict[str, Any]:
    """Return values converted for a struct's fields: texts to paths, a single value to a tuple. Raises
    UsageError for a name that is not in the signature."""
    hints = list_fields(signature, kind)
    if unknown := next((name for name in values if name not in hints), None):
        raise UsageError(f"{unknown}: there is no such argument{suggest_name(unknown, hints)}.")
    return {name: _fit(value, hints[name]) for name, value in values.items()}


def _fit(value: Any, hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        several = [one for one in get_args(hint) if one is not type(None)]
        return None if value is None else _fit(value, several[-1])
    if get_origin(hint) is tuple:
        each: Iterable[Any] = (value,) if isinstance(value, str | Path) else value
        return tuple(_fit(one, get_args(hint)[0]) for one in each)
    if hint is Path:
        return Path(value)
    return str(value) if isinstance(value, Path) else value
