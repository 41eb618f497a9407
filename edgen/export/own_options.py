"""A format's own options, declared as a typed struct.

A field is an option: its name with hyphens is the flag, its type the allowed values, `Meta(description=…)`
its help. Values are texts from a command line, and typed values from Python.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from edgen.core.errors import UsageError
from edgen.core.yaml_values import nearest


class FormatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a format's own options. Every field needs a default."""

    def check(self, given: Collection[str]) -> None:
        """Raise UsageError for options that do not fit together. `given` are the fields set by the user."""

    def left_out(self) -> tuple[str, ...]:
        """Return the names of the format's tables that these options exclude."""
        return ()


class Flag(NamedTuple):
    """One option of a format: its field, flag, help, and whether it may be repeated."""

    field: str
    flag: str
    help: str
    metavar: str
    several: bool


def flags_of(options: type[FormatOptions]) -> Iterator[Flag]:
    """Yield the options that a struct declares, in order."""
    for field in inspect.type_info(options).fields:  # type: ignore[attr-defined]
        kind, described = _plain(field.type)
        default = "" if field.default in (None, ()) else f"  [default: {_shown(field.default)}]"
        several = isinstance(kind, inspect.VarTupleType)
        metavar = (
            "|".join(map(str, kind.values))
            if isinstance(kind, inspect.LiteralType)
            else _METAVARS.get(type(kind), "TEXT")
        )
        yield Flag(field.name, flag_of(field.name), f"{described}{default}", metavar, several)


def read_options(
    name: str, kind: type[FormatOptions] | None, given: Mapping[str, Any]
) -> FormatOptions | None:
    """Read the given values as a format's options; None if it has none of its own. Raises UsageError for an
    unknown option and for an invalid value."""
    types = {} if kind is None else {field.name: field.type for field in inspect.type_info(kind).fields}  # type: ignore[attr-defined]
    for option in given:
        if option not in types:
            close = nearest(option, types) if types else ""
            raise UsageError(f"{name} has no option {flag_of(option)}{close}; leave it out.")
    if kind is None:
        return None
    hints = msgspec.structs.fields(kind)
    values = {
        field.name: _value(field.name, given[field.name], field.type, types[field.name])
        for field in hints
        if field.name in given
    }
    options = kind(**values)
    options.check(given.keys())
    return options


def given_flags(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the given options in the form of a command line: flag and value, quoted if needed, with paths
    reduced to their last names."""
    for name, value in given.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            shown = PurePath(str(one)).name if os.sep in str(one) else str(one)
            yield flag_of(name), shlex.quote(" ".join(shown.split())).replace("`", "'")


def flag_of(field: str) -> str:
    """Return `--pool-from` for `pool_from`."""
    return f"--{field.replace('_', '-')}"


def _value(name: str, given: Any, kind: Any, described: inspect.Type) -> Any:
    several = isinstance(_plain(described)[0], inspect.VarTupleType)
    values = _texts([given] if several and isinstance(given, str | os.PathLike) else given)
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError:
        pass
    raise UsageError(f"{flag_of(name)} {given}: expected {_expected(_plain(described)[0])}.")


def _texts(given: Any) -> Any:
    """Return the given values with paths as texts."""
    if isinstance(given, list | tuple):
        return [_texts(one) for one in given]
    return os.fspath(given) if isinstance(given, os.PathLike) else given


def _plain(kind: inspect.Type) -> tuple[Any, str]:
    """Return a field's type without annotations and None, and its description."""
    described = ""
    if isinstance(kind, inspect.Metadata):
        described = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        (kind,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
        kind = kind.type if isinstance(kind, inspect.Metadata) else kind
    return kind, described


def _expected(kind: Any) -> str:
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        what = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        low = kind.ge if kind.ge is not None else kind.gt
        above = f", {low} or more" if kind.ge is not None else f" above {low}" if low is not None else ""
        high = kind.le if kind.le is not None else kind.lt
        below = f", {high} at most" if kind.le is not None else f", below {high}" if high is not None else ""
        return what + above + below
    return "a text" if isinstance(kind, inspect.StrType) else "one or several texts"


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


_METAVARS: Mapping[type, str] = {inspect.IntType: "N", inspect.FloatType: "X"}
