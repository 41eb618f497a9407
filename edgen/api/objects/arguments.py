"""Arguments of functions that ask about a run: the options of a struct, listeners, and keys of the job.

A function declares them as `**given: Unpack[PairArguments]`, for type checkers and editors; `make docs` makes
these types from the structs. `takes` gives the function the signature and the docstring that people see.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from edgen.api.objects.runner import QuestionOptions
from edgen.core.errors import UsageError
from edgen.core.yaml_values import suggest_name

_F = TypeVar("_F", bound=Callable[..., Any])
_LISTENING: dict[str, Any] = {"progress": None, "on_event": None, "trust_hosts": ()}


def takes(kind: type[msgspec.Struct], arguments: type) -> Callable[[_F], _F]:
    """Give a function the signature and docstring of the options that it takes. `kind`: their struct, which
    has their defaults and help texts; `arguments`: the TypedDict of the function's last parameter."""

    def decorate(function: _F) -> _F:
        signature, hints = inspect.signature(function), get_type_hints(arguments)
        defaults = {field.name: field.default for field in msgspec.structs.fields(kind)} | _LISTENING
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hint)
            for name, hint in hints.items()
            if name in defaults
        ]
        if "overrides" in defaults:
            named.append(inspect.Parameter("overrides", inspect.Parameter.VAR_KEYWORD, annotation=Any))
        *own, _ = signature.parameters.values()
        function.__signature__ = signature.replace(parameters=[*own, *named])  # type: ignore[attr-defined]
        helps = "\n".join(f"    {name}: {text}" for name, text in _helps(kind) if name in hints)
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions::\n\n{helps}\n"
        return function

    return decorate


def _helps(kind: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """Return the help text of each field that is declared as an option."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        (name, meta.description)
        for name, hint in hints.items()
        for meta in getattr(hint, "__metadata__", ())
        if isinstance(meta, msgspec.Meta) and meta.description
    ]


def split(kind: type[msgspec.Struct], given: Mapping[str, object]) -> tuple[QuestionOptions, dict[str, Any]]:
    """Split the arguments of a call into the changes to the job with the listeners, and the values of a
    struct."""
    hints = get_type_hints(kind)
    own = fit(kind, {name: value for name, value in given.items() if name in hints})
    listening: dict[str, Any] = {name: given.get(name, default) for name, default in _LISTENING.items()}
    overrides = {name: value for name, value in given.items() if name not in hints and name not in _LISTENING}
    asked = QuestionOptions(**listening, overrides=overrides)
    return asked, own | {"overrides": asked.changes}


def fit(kind: type[msgspec.Struct], given: Mapping[str, object]) -> dict[str, Any]:
    """Return values as a struct's fields hold them: paths, and a single value as the only one of several.
    Raises UsageError for a name that is no field."""
    hints = get_type_hints(kind)
    if unknown := next((name for name in given if name not in hints), None):
        raise UsageError(f"{unknown}: there is no such argument{suggest_name(unknown, hints)}.")
    return {name: _fit(value, hints[name]) for name, value in given.items()}


def _fit(value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        several = (value,) if isinstance(value, str | Path) else value
        return tuple(_fit(one, get_args(hint)[0]) for one in several)
    if hint is Path:
        return Path(value)
    return str(value) if isinstance(value, Path) else value
