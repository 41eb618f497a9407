"""Flags of a command, made from the structs that declare its options: bounds, completion and help too."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from typer import Option

from edgen.cli import complete, readers
from edgen.core.errors import UsageError
from edgen.core.options import LISTED_LAST, DeclaredOption, find_option
from edgen.runtime.options import WorkOptions

_LISTS = (tuple, Sequence)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_declared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command's function with a parameter for each declared option that it takes: those of its own
    parameters, and those of the structs among them.

    The function itself gets tuples for repeated options, and the structs, made from the given values.
    """
    hints = get_type_hints(function, include_extras=True)
    structs = {name: kind for name, kind in hints.items() if _is_struct(kind)}
    declared: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in structs:
            declared |= {one.name: one for one in _list_parameters(structs[name])}
        else:
            declared[name] = parameter.replace(kind=_KEYWORD, annotation=hints[name])
    read = {name: _find_reader(one) for name, one in declared.items()}
    parameters = {name: _convert_parameter(one) for name, one in declared.items()}

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        try:
            values = {name: read[name](one) for name, one in given.items()}
        except UsageError:
            _hear_error(given)
            raise
        for name, kind in structs.items():
            values[name] = kind(**{one.name: values.pop(one.name) for one in _list_parameters(kind)})
        return function(**values)

    command.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    command.__annotations__ = {name: one.annotation for name, one in parameters.items()}
    return command


def _hear_error(given: Mapping[str, Any]) -> None:
    """Make a command's control, which logs how the command ends: its options cannot be read."""
    names = [name for name in WorkOptions.__struct_fields__ if name in given]
    if len(names) == len(WorkOptions.__struct_fields__):
        from edgen.cli.control import make_control

        make_control(WorkOptions(**{name: given[name] for name in names if given[name] is not None}))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@functools.cache
def _list_parameters(kind: type[msgspec.Struct]) -> tuple[inspect.Parameter, ...]:
    """Return a parameter for each field of a struct that is declared as an option: those that the struct
    declares, then those of its base."""
    hints = get_type_hints(kind, include_extras=True)
    fields = {one.name: one for one in msgspec.structs.fields(kind)}
    inherited = getattr(kind.__base__, "__struct_fields__", ())
    last = LISTED_LAST if any(name in inherited for name in LISTED_LAST) else ()
    own = [name for name in inspect.get_annotations(kind) if name in fields]
    names = dict.fromkeys((*own, *fields))
    ordered = sorted(names, key=lambda name: last.index(name) if name in last else -1)
    return tuple(
        inspect.Parameter(name, _KEYWORD, default=_find_default(fields[name]), annotation=hints[name])
        for name in ordered
        if find_option(hints[name]) is not None
    )


def _find_default(field: msgspec.structs.FieldInfo) -> Any:
    """Return a field's default; none for a required one."""
    return inspect.Parameter.empty if field.default is msgspec.NODEFAULT else field.default


def _find_reader(parameter: inspect.Parameter) -> Callable[[Any], Any]:
    """Return the function that makes the value of an option from the words that typer has read: the declared
    reader, a tuple of several words, or the same value."""
    option, default = find_option(parameter.annotation), parameter.default
    if option is not None and option.reads is not None:
        read = getattr(readers, option.reads)
        return lambda given: read(given) if given else default
    if default == () or (option is not None and _unwrap(parameter.annotation)[1]):
        return lambda given: tuple(given) if given else default
    return lambda given: given


def _convert_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter as typer takes it, with the option that its annotation declares."""
    default = None if parameter.default == () else parameter.default
    option = find_option(parameter.annotation)
    if option is None:
        return parameter.replace(default=default)
    kind, several = _unwrap(parameter.annotation)
    if option.reads is not None:
        kind = str
    taken = list[kind] if several else kind  # type: ignore[valid-type]
    if several or default is None:
        taken = taken | None
    made = _make_option(parameter.name, taken, option)
    return parameter.replace(default=default, annotation=Annotated[taken, made])


def _make_option(name: str, taken: Any, option: DeclaredOption) -> Any:
    """Return the option as typer takes it. It `completes` values by a function of `complete`, or by the names
    of files of a kind that a domain declares."""
    named = option.completes
    completes = None if named is None else vars(complete).get(named) or complete.offer_files(named)
    flags = option.flags or (f"--{name.replace('_', '-')}",)
    if taken == bool | None and len(flags) == 1:
        flags = (f"{flags[0]}/--no-{flags[0][2:]}",)
    return Option(
        *flags,
        help=option.help,
        metavar=option.metavar,
        min=option.low,
        max=option.high,
        hidden=option.hidden,
        autocompletion=completes,
    )


def _unwrap(hint: Any) -> tuple[Any, bool]:
    """Return a type without annotations and None, and whether an option of it may be repeated. A tuple of so
    many values, as tuple[str, str], is one value."""
    while hasattr(hint, "__metadata__"):
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        several = [_unwrap(one) for one in get_args(hint) if one is not type(None)]
        return next((one for one in several if one[1]), several[-1])
    if get_origin(hint) is tuple and get_args(hint)[-1] is not Ellipsis:
        return hint, False
    if get_origin(hint) in _LISTS:
        return _unwrap(get_args(hint)[0])[0], True
    return hint, get_origin(hint) is Mapping
