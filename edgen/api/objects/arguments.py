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
        overrides = inspect.Parameter("overrides", inspect.Parameter.VAR_KEYWORD, annotation=Any)
        *own, _ = signature.parameters.values()
        function.__signature__ = signature.replace(parameters=[*own, *named, overrides])  # type: ignore[attr-defined]
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
    struct. Paths become what its fields hold, and a single value the only one of several."""
    hints = get_type_hints(kind)
    own = {name: _fit(value, hints[name]) for name, value in given.items() if name in hints}
    listening: dict[str, Any] = {name: given.get(name, default) for name, default in _LISTENING.items()}
    overrides = {name: value for name, value in given.items() if name not in hints and name not in _LISTENING}
    asked = QuestionOptions(**listening, overrides=overrides)
    return asked, own | {"overrides": asked.changes}


def _fit(value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        several = (value,) if isinstance(value, str | Path) else value
        return tuple(_fit(one, get_args(hint)[0]) for one in several)
    if hint is Path:
        return Path(value)
    return str(value) if isinstance(value, Path) else value
