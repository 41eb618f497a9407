"""Options of an export: structs whose fields are flags of `edgen export` and arguments in Python.

Every format takes `ExportOptions`. One of messages takes `ChatOptions`, one of pairs `PairSetOptions`, one of
labelled turns `LayerOptions`. Those of its own are in its `Format.Options`, which may extend a struct that
several formats share.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from edgen.core.errors import UsageError

_Kind = TypeVar("_Kind", bound="FormatOptions")


class FormatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a format's own options. Every field needs a default."""

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
    """One option of a format. `values`: those of a choice. `completes`: as in `core.options.option`."""

    field: str
    flags: tuple[str, ...]
    help: str
    metavar: str | None
    values: tuple[str, ...]
    several: bool
    switch: bool
    completes: str | None


@cache
def flags_of(options: type[FormatOptions]) -> tuple[Flag, ...]:
    """Return the options that a struct declares, in order."""
    return tuple(_flag(field) for field in inspect.type_info(options).fields)  # type: ignore[attr-defined]


def _flag(field: inspect.Field) -> Flag:
    declared = _unwrap_type(field.type)
    kind, extra, flag = declared.kind, declared.extra, flag_of(field.name)
    switch = isinstance(kind, inspect.BoolType)
    values = tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()
    default = "" if field.default in (None, ()) else f"  [default: {_format_default(field)}]"
    return Flag(
        field=field.name,
        flags=extra.get("flags") or ((f"{flag}/--no-{flag[2:]}",) if switch else (flag,)),
        help=declared.help + default,
        metavar=None if switch else extra.get("metavar") or "|".join(values) or _METAVARS.get(type(kind), "TEXT"),
        values=values,
        several=isinstance(kind, inspect.VarTupleType),
        switch=switch,
        completes=extra.get("completes"),
    )  # fmt: skip


def read_options(
    name: str, structs: Sequence[type[FormatOptions]], given: Mapping[str, Any]
) -> tuple[FormatOptions, ...]:
    """Read the given values as the structs that the format `name` takes. Raises UsageError for an option that
    the format does not take, and for an invalid value."""
    known = {field: None for kind in structs for field in kind.__struct_fields__}
    for field, value in given.items():
        if field not in known:
            raise UsageError(_refuse(name, field, value, known))
    return tuple(_read(kind, given) for kind in structs)


def _read(kind: type[_Kind], given: Mapping[str, Any]) -> _Kind:
    types = {field.name: field.type for field in inspect.type_info(kind).fields}  # type: ignore[attr-defined]
    values = {
        field.name: _value(field.name, given[field.name], field.type, types[field.name])
        for field in msgspec.structs.fields(kind)
        if field.name in given
    }
    options = kind(**values)
    options.check(values.keys())
    return options


def _refuse(name: str, field: str, value: Any, known: Mapping[str, None]) -> str:
    """Explain that the format `name` does not take an option, and which formats do."""
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


def list_given_flags(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the given options in the form of a command line: each flag with its value, quoted if needed, with
    paths reduced to their last names."""
    for name, value in given.items():
        if isinstance(value, bool):
            yield flag_of(name) if value else f"--no-{flag_of(name)[2:]}"
            continue
        for one in value if isinstance(value, list | tuple) else (value,):
            shown = PurePath(str(one)).name if os.sep in str(one) else str(one)
            yield f"{flag_of(name)} {shlex.quote(' '.join(shown.split()))}".replace("`", "'")


def flag_of(field: str) -> str:
    """Return `--pool-from` for `pool_from`."""
    return f"--{field.replace('_', '-')}"


def _value(name: str, given: Any, kind: Any, described: inspect.Type) -> Any:
    declared = _unwrap_type(described)
    several = isinstance(declared.kind, inspect.VarTupleType)
    values = _texts([given] if several and isinstance(given, str | os.PathLike) else given)
    try:
        value = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError:
        pass
    else:
        low, high = declared.extra.get("ge"), declared.extra.get("le")
        if value is None or ((low is None or low <= value) and (high is None or value <= high)):
            return value
    raise UsageError(f"{flag_of(name)} {given}: expected {_describe_expected(declared)}.")


def _texts(given: Any) -> Any:
    """Return the given values with paths as texts."""
    if isinstance(given, list | tuple):
        return [_texts(one) for one in given]
    return os.fspath(given) if isinstance(given, os.PathLike) else given


class _Declared(NamedTuple):
    """A field's type without annotations and None, its help, and what `core.options.option` adds."""

    kind: Any
    help: str
    extra: Mapping[str, Any]


def _unwrap_type(kind: inspect.Type) -> _Declared:
    described, extra = "", {}
    if isinstance(kind, inspect.Metadata):
        described = (kind.extra_json_schema or {}).get("description", "")
        extra = {key: value for key, value in (kind.extra or {}).items() if value is not None}
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        (kind,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
        kind = kind.type if isinstance(kind, inspect.Metadata) else kind
    return _Declared(kind, described, extra)


def _describe_expected(declared: _Declared) -> str:
    kind = declared.kind
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        what = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        least, most = (declared.extra.get(key, getattr(kind, key)) for key in ("ge", "le"))
        low = least if least is not None else kind.gt
        above = f", {low} or more" if least is not None else f" above {low}" if low is not None else ""
        high = most if most is not None else kind.lt
        below = f", {high} at most" if most is not None else f", below {high}" if high is not None else ""
        return what + above + below
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    return "a text" if isinstance(kind, inspect.StrType) else "one or several texts"


def _format_default(field: inspect.Field) -> str:
    value = field.default
    if isinstance(value, bool):
        return next(list_given_flags({field.name: value}))[2:]
    return f"{value:,}" if isinstance(value, int) else str(value)


_METAVARS: Mapping[type, str] = {inspect.IntType: "N", inspect.FloatType: "X"}
_SHOWN = 5  # formats named in an error
