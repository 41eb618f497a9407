"""Flags of a command, made from the structs that declare its options: bounds, completion and help too."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from typer import Option

from edgen.cli import complete

_LISTS = (tuple, Sequence)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_declared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command's function with a parameter for each declared option that it takes: those of its own
    parameters, and those of the structs among them.

    The function itself gets tuples for repeated options, and the structs, made from the given values.
    """
    hints = get_type_hints(function, include_extras=True)
    structs = {name: kind for name, kind in hints.items() if _is_struct(kind)}
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in structs:
            parameters |= {one.name: one for one in _parameters(structs[name])}
        else:
            parameters[name] = _convert_parameter(parameter.replace(kind=_KEYWORD, annotation=hints[name]))
    repeated = {name for name, one in parameters.items() if one.default == ()}
    parameters |= {name: parameters[name].replace(default=None) for name in repeated}

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        values = {name: tuple(one or ()) if name in repeated else one for name, one in given.items()}
        for name, kind in structs.items():
            values[name] = kind(**{one.name: values.pop(one.name) for one in _parameters(kind)})
        return function(**values)

    command.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    command.__annotations__ = {name: one.annotation for name, one in parameters.items()}
    return command


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@functools.cache
def _parameters(kind: type[msgspec.Struct]) -> tuple[inspect.Parameter, ...]:
    """Return a parameter for each field of a struct that is declared as an option, its own before those of
    its base."""
    inherited = getattr(kind.__base__, "__struct_fields__", ())
    hints = get_type_hints(kind, include_extras=True)
    fields = sorted(msgspec.structs.fields(kind), key=lambda one: one.name in inherited)
    every = (
        inspect.Parameter(one.name, _KEYWORD, default=one.default, annotation=hints[one.name])
        for one in fields
    )
    return tuple(made for one in every if (made := _convert_parameter(one)) is not one)


def _convert_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter of an option that its annotation declares; itself if it declares none."""
    for meta in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.extra is not None:
            taken = _convert_type(get_args(parameter.annotation)[0])
            made = _as_option(parameter.name, taken, meta.description, meta.extra)
            return parameter.replace(annotation=Annotated[taken, made])
    return parameter


def _as_option(name: str, taken: Any, help_: str | None, extra: dict[str, Any]) -> Any:
    flags = extra["flags"] or (f"--{name.replace('_', '-')}",)
    if taken == bool | None and len(flags) == 1:
        flags = (f"{flags[0]}/--no-{flags[0][2:]}",)
    completes = extra["completes"]
    return Option(
        *flags,
        help=help_,
        metavar=extra["metavar"],
        min=extra["ge"],
        max=extra["le"],
        autocompletion=completes and getattr(complete, completes),
    )


def _convert_type(kind: Any) -> Any:
    """Return a field's type in the form that typer takes: lists for tuples, one type of several."""
    if get_origin(kind) in (Union, types.UnionType):
        several = [one for one in get_args(kind) if one is not type(None)]
        lists = [one for one in several if get_origin(one) in _LISTS]
        return _convert_type((lists or several)[-1]) | None
    return list[get_args(kind)[0]] | None if get_origin(kind) in _LISTS else kind  # type: ignore[misc]
