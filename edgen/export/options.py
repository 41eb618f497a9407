"""Options of an export: structs whose fields are flags of `edgen export` and arguments in Python.

Every format takes `ExportOptions`. A format of messages also takes `ChatOptions`, a format of pairs
`PairSetOptions`, a format of labelled turns `LayerOptions`. A format's own options are in its
`Format.Options`, which may extend a struct that several formats share.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec import inspect

from edgen.core.errors import UsageError
from edgen.core.options import DeclaredOption, find_option

_Kind = TypeVar("_Kind", bound="FormatOptions")


class FormatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The base of a format's own options. Every field needs a default."""

    def check(self, given: Collection[str]) -> None:
        """Raise UsageError for options that do not fit together. `given` are the fields set by the user."""

    def left_out(self) -> tuple[str, ...]:
        """Return the names of the format's tables that these options exclude."""
        return ()


class OptionValues(msgspec.Struct, frozen=True):
    """The options of one export, read: `structs` has the values of each struct that the format takes."""

    structs: tuple[FormatOptions, ...] = ()
    own: FormatOptions | None = None
    """The values of `Format.Options`; None if the format has none."""
    given: Mapping[str, Any] = {}
    """The options that the user set, by the names of their fields."""

    def of(self, kind: type[_Kind]) -> _Kind:
        """Return the values of a struct, its defaults if the format does not take it."""
        found = next((one for one in self.structs if isinstance(one, kind)), None)
        return kind() if found is None else found


class Flag(NamedTuple):
    """One option of a format, as on a command line."""

    field: str  # its name in the struct
    flags: tuple[str, ...]  # as typed; a switch has both forms in one text, with a slash
    help: str  # with default and limits
    metavar: str | None  # placeholder of the value in help; None for a switch
    values: tuple[str, ...]  # choices of the value, in order
    several: bool  # the option may be repeated
    switch: bool  # the option takes no value
    completes: str | None  # as in `core.options.option`


@cache
def list_flags(options: type[FormatOptions]) -> tuple[Flag, ...]:
    """Return the options that a struct declares, in order."""
    return tuple(_make_flag(field) for field in _list_fields(options))


def _make_flag(field: _Declared) -> Flag:
    if not isinstance(field.kind, _KINDS):
        raise TypeError(f"`{field.name}` has an unsupported type; use {_TAKES}")
    flag = flag_of(field.name)
    switch = isinstance(field.kind, inspect.BoolType)
    notes = [] if field.default in (None, ()) else [f"default: {_format_default(field)}"]
    notes += [limits] if (limits := field.format_limits()) else []
    option = field.option
    metavar = (option and option.metavar) or "|".join(field.values) or _METAVARS.get(type(field.kind), "TEXT")
    return Flag(
        field=field.name,
        flags=(option and option.flags) or ((f"{flag}/--no-{flag[2:]}",) if switch else (flag,)),
        help=(option.help if option else "") + (f"  [{'; '.join(notes)}]" if notes else ""),
        metavar=None if switch else metavar,
        values=field.values,
        several=field.several,
        switch=switch,
        completes=option and option.completes,
    )


def read_options(
    name: str, structs: Sequence[type[FormatOptions]], values: Mapping[str, Any]
) -> tuple[FormatOptions, ...]:
    """Read the given values as the structs that the format `name` takes. Raises UsageError for an option that
    the format does not take, and for an invalid value."""
    known = {field: None for kind in structs for field in kind.__struct_fields__}
    for field, value in values.items():
        if field not in known:
            raise UsageError(_refuse(name, field, value, known))
    return tuple(_read(kind, values) for kind in structs)


def _read(kind: type[_Kind], given: Mapping[str, Any]) -> _Kind:
    values = {
        one.name: _convert_value(one, given[one.name]) for one in _list_fields(kind) if one.name in given
    }
    options = kind(**values)
    options.check(values.keys())
    return options


def _refuse(name: str, field: str, value: Any, known: Mapping[str, None]) -> str:
    """Return the error that the format `name` does not take an option, with the formats that do."""
    from edgen.core.registry import find_all
    from edgen.core.yaml_values import suggest_name

    flag = next(list_given_flags({field: value})).split(" ")[0]
    takers = [
        one.name for one in find_all("format") if any(field in kind.__struct_fields__ for kind in one.structs)
    ]
    if not takers:
        return f"{name} has no option {flag_of(field)}{suggest_name(field, known)}; leave it out."
    others = len(takers) - _SHOWN
    shown = ", ".join(takers if others <= 1 else takers[:_SHOWN]) + (
        f" and {others} others" if others > 1 else ""
    )
    return f"{name} does not take {flag}; {shown} {'does' if len(takers) == 1 else 'do'}. Leave {flag} out."


def list_given_flags(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the given options in the form of a command line: each flag with its value, quoted if needed, with
    paths reduced to their last names."""
    for name, value in values.items():
        if isinstance(value, bool):
            yield flag_of(name) if value else f"--no-{flag_of(name)[2:]}"
            continue
        for one in value if isinstance(value, list | tuple) else (value,):
            shown = PurePath(str(one)).name if os.sep in str(one) else str(one)
            yield f"{flag_of(name)} {shlex.quote(' '.join(shown.split()))}".replace("`", "'")


def flag_of(field: str) -> str:
    """Return `--pool-from` for `pool_from`."""
    return f"--{field.replace('_', '-')}"


def _convert_value(field: _Declared, given: Any) -> Any:
    values = _convert_paths([given] if field.several and isinstance(given, str | os.PathLike) else given)
    try:
        value = msgspec.convert(values, field.hint, strict=False)
    except msgspec.ValidationError:
        pass
    else:
        low, high = (None, None) if field.option is None else (field.option.low, field.option.high)
        if value is None or ((low is None or low <= value) and (high is None or value <= high)):
            return value
    raise UsageError(f"{flag_of(field.name)} {given}: expected {field.describe_expected()}.")


def _convert_paths(given: Any) -> Any:
    """Return the given values with paths as texts."""
    if isinstance(given, list | tuple):
        return [_convert_paths(one) for one in given]
    return os.fspath(given) if isinstance(given, os.PathLike) else given


class _Declared(NamedTuple):
    """A field of a struct."""

    name: str  # name in Python
    default: Any  # default; None: no value
    hint: Any  # type as declared
    kind: Any  # type without annotations and None
    option: DeclaredOption | None  # declaration of `core.options.option`
    values: tuple[str, ...]  # choices of the value, in order

    @property
    def several(self) -> bool:
        return isinstance(self.kind, inspect.VarTupleType)

    def describe_expected(self) -> str:
        """Return the values that the option takes, in words."""
        if self.values:
            return f"one of {', '.join(self.values)}"
        if isinstance(self.kind, inspect.IntType | inspect.FloatType):
            least, above, most, below = self._find_limits()
            return "".join(
                (
                    "a whole number" if isinstance(self.kind, inspect.IntType) else "a number",
                    f", {least} or more" if least is not None else "",
                    f" above {above}" if above is not None else "",
                    f", {most} at most" if most is not None else "",
                    f", below {below}" if below is not None else "",
                )
            )
        if isinstance(self.kind, inspect.BoolType):
            return "true or false"
        return "a text" if isinstance(self.kind, inspect.StrType) else "one or several texts"

    def format_limits(self) -> str:
        """Return a number's limits as help shows them, such as 0<=x<1; empty without limits."""
        if not isinstance(self.kind, inspect.IntType | inspect.FloatType):
            return ""
        least, above, most, below = self._find_limits()
        low = f"{least}<=x" if least is not None else f"{above}<x" if above is not None else "x"
        high = f"<={most}" if most is not None else f"<{below}" if below is not None else ""
        if not high and low != "x":
            return f"x>={least}" if least is not None else f"x>{above}"
        return low + high if high else ""

    def _find_limits(self) -> tuple[float | None, float | None, float | None, float | None]:
        """Return the bounds of a number: the lowest value or the one that it must exceed, and the highest
        value or the one that it must stay below."""
        kind, option = self.kind, self.option
        low, high = (None, None) if option is None else (option.low, option.high)
        least, most = kind.ge if low is None else low, kind.le if high is None else high
        return least, kind.gt, most, kind.lt


@cache
def _list_fields(options: type[FormatOptions]) -> tuple[_Declared, ...]:
    """Return the fields of a struct."""
    hints = {field.name: field.type for field in msgspec.structs.fields(options)}
    return tuple(
        _Declared(
            field.name,
            field.default,
            hints[field.name],
            _unwrap_type(field.type),
            find_option(hints[field.name]),
            _list_choices(hints[field.name]),
        )
        for field in inspect.type_info(options).fields  # type: ignore[attr-defined]
    )


def _unwrap_type(kind: inspect.Type) -> Any:
    """Return a field's type without annotations and None."""
    if isinstance(kind, inspect.Metadata):
        return _unwrap_type(kind.type)
    if isinstance(kind, inspect.UnionType):
        (kind,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
        return _unwrap_type(kind)
    return kind


def _list_choices(hint: Any) -> tuple[str, ...]:
    """Return the values of a Literal in a type, in their order."""
    if get_origin(hint) is Literal:
        return tuple(map(str, get_args(hint)))
    return next((found for part in get_args(hint) if (found := _list_choices(part))), ())


def _format_default(field: _Declared) -> str:
    value = field.default
    if isinstance(value, bool):
        return next(list_given_flags({field.name: value}))[2:]
    return f"{value:,}" if isinstance(value, int) else str(value)


_METAVARS: Mapping[type, str] = {inspect.IntType: "N", inspect.FloatType: "X"}
_KINDS = (
    inspect.BoolType, inspect.IntType, inspect.FloatType, inspect.StrType, inspect.LiteralType, inspect.VarTupleType,
)  # fmt: skip
_TAKES = "bool, int, float, str, a Literal of texts or tuple[str, ...]"
_SHOWN = 5  # most formats that an error names
