"""Conversion of untrusted files to typed values, with every problem and its path.

`read_text` reads bytes as text, `read_yaml` text as plain values, `build` plain values as a msgspec Struct.
Each raises the given FileError class; none lets a parser's own exception through.
"""

from __future__ import annotations

import difflib
import functools
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Union

import msgspec

from edgen.core.errors import FileError, InputError, Problem
from edgen.core.files import explain_read_errors
from edgen.core.text import describe_type, join_first, seconds
from edgen.core.yaml_text import BRACES, YamlError, read_values

MAX_BYTES = 8 * 1024 * 1024
_LONGEST_NAME = 100  # characters of a name for which a suggestion is searched
_MOST_KNOWN = 1_000  # candidates for a suggestion
_MOST_LISTED = 100
_MOST_SUGGESTIONS = 100  # per file: more problems than that are not typos

T = TypeVar("T")


class Variants(NamedTuple):
    """The Structs that the key `type` chooses from, each the `Config` of an object."""

    names: Callable[[], list[str]]  # the values of the key
    find: Callable[[str], Any]  # returns the object of a name; raises InputError


def read_text(path: Path, error: type[FileError], *, max_bytes: int = MAX_BYTES) -> str:
    """Return the file's text. Raises `error` if it is missing, not a file, too large or not UTF-8."""
    source = str(path)
    with explain_read_errors(source, error, partial(suggest_file, path)):
        if _is_named_pipe(path):
            raise error(source, "this is a pipe, and only files are read.")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise error(source, f"it is larger than {max_bytes / 1024 / 1024:g} MiB, the limit.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(source, f"byte {problem.start} is not UTF-8; save the file as UTF-8.") from None


def suggest_file(path: Path) -> str:
    """Return ` Did you mean x?` with the file next to `path` whose name is closest and has the same suffix,
    else nothing. Without a suffix, folders count, too."""
    try:
        there = path.parent.glob(f"*{path.suffix}")
        known = {
            one.stem if path.suffix else one.name: one
            for one in there
            if one.is_file() or (not path.suffix and one.is_dir())
        }
    except OSError:
        return ""
    name = path.stem if path.suffix else path.name
    near = difflib.get_close_matches(name, sorted(known)[:_MOST_KNOWN], n=1)
    return f" Did you mean {known[near[0]]}?" if near else ""


def _is_named_pipe(path: Path) -> bool:
    """Return whether it is a named pipe in a folder, whose reader could block forever; a shell's own pipe, as
    in <(…), is not."""
    real = Path(os.path.realpath(path))
    return path.is_fifo() and real.is_fifo() and not real.is_relative_to("/dev/fd")


def read_yaml(text: str, source: str, error: type[FileError]) -> Any:
    """Return the plain values of a YAML text: dicts, lists, strings, numbers, booleans, None."""
    try:
        return read_values(text)
    except YamlError as problem:
        raise error(source, f"it is not valid YAML: {problem}.") from None


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` if a known name is close, else the list of known names; nothing if there
    is none. Very long names and lists are not compared, since that takes long and they are not typos."""
    known = list(known)
    if not known:
        return ""
    if len(name) <= _LONGEST_NAME and len(known) <= _MOST_KNOWN:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        if close:
            return f" (did you mean '{close[0]}'?)"
    return f" (known: {join_first(known, _MOST_LISTED)})"


def shorten_word(text: str) -> str:
    """Return the beginning of a very long word from a file, for a message; a short one unchanged."""
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def build(value: Any, type_: type[T], source: str, error: type[FileError]) -> T:
    """Convert `value` to the Struct `type_`. Raises `error` with every problem found, not just the first."""
    problems: list[Problem] = []
    result = convert(value, type_, "$", problems)
    if problems:
        raise error.of(source, problems)
    return typing.cast("T", result)


def convert(value: Any, type_: Any, path: str, problems: list[Problem]) -> Any:
    """Convert `value` to `type_`, adding to `problems`; the result counts only if none was added.

    Structs, tagged Structs, tuples and dicts of these are walked here (a Struct with `VARIANTS` and without a
    tag stands for its variants), so that every problem is found; leaves go to msgspec, which checks the
    constraints of `Annotated` types.
    """
    origin = typing.get_origin(type_)
    arguments = typing.get_args(type_)
    if origin in (Union, types.UnionType):
        structs = [a for a in arguments if _is_struct(a)]
        if value is None and type(None) in arguments:
            return None
        if len(structs) == 1 and isinstance(value, dict):
            return _convert_struct(value, structs[0], path, problems)
        if len(arguments) == 2 and type(None) in arguments:
            inner = arguments[0] if arguments[1] is type(None) else arguments[1]
            return convert(value, inner, path, problems)
    elif _is_struct(type_):
        if hasattr(type_, "VARIANTS") and type_.__struct_config__.tag is None:
            return _convert_variant(value, type_, path, problems)
        return _convert_struct(value, type_, path, problems)
    elif origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        if not _is(list, value, path, problems):
            return ()
        return tuple(convert(v, arguments[0], f"{path}[{i}]", problems) for i, v in enumerate(value))
    elif origin is dict:
        if not _is(dict, value, path, problems):
            return {}
        return {
            _read_key(key, path, problems): convert(
                child, arguments[1], f"{path}.{shorten_word(str(key))}", problems
            )
            for key, child in value.items()
        }
    return _convert_leaf(value, type_, path, problems)


def _is(kind: type, value: Any, path: str, problems: list[Problem]) -> bool:
    """Return whether a value is of this kind; if not, add a problem."""
    if not isinstance(value, kind):
        problems.append(Problem(path, f"expected {_NAMES[kind]}, got {_name(value)}"))
    return isinstance(value, kind)


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)


def _read_key(key: Any, path: str, problems: list[Problem]) -> str:
    if not isinstance(key, str):
        problems.append(Problem(path, f"the key {key!r} is {_name(key)}; put it in quotes"))
    return str(key)


@functools.cache
def _list_fields(type_: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the fields of a struct by key. Cached, since msgspec resolves their types on each call."""
    return {field.encode_name: field for field in msgspec.structs.fields(type_)}


def _convert_struct(value: Any, type_: type[msgspec.Struct], path: str, problems: list[Problem]) -> Any:
    if not _is(dict, value, path, problems):
        return None
    written = value
    if (given := getattr(type_, "given", None)) is not None:
        value = given(written)
    fields = _list_fields(type_)
    tag = type_.__struct_config__.tag_field
    built: dict[str, Any] = {}
    before = len(problems)
    for key, child in value.items():
        if key == tag:
            continue
        if key not in fields:
            near = suggest_name(str(key), fields) if len(problems) < _MOST_SUGGESTIONS else ""
            problems.append(Problem(f"{path}.{shorten_word(str(key))}", f"unknown key{near}"))
            continue
        built[fields[key].name] = convert(child, fields[key].type, f"{path}.{key}", problems)
    for key, field in fields.items():
        if field.required and key not in value:
            problems.append(Problem(f"{path}.{key}", "this key is missing"))
    if len(problems) == before:
        return type_(**built)
    if given is not None:
        problems[before:] = [
            Problem(f"{path}.{type_.find_written(one.path[len(path) + 1 :], written)}", one.message)  # type: ignore[attr-defined]
            for one in problems[before:]
        ]
    return None


def _convert_variant(value: Any, type_: Any, path: str, problems: list[Problem]) -> Any:
    """Return the Struct named by the key `type`, one of `type_.VARIANTS`."""
    if not _is(dict, value, path, problems):
        return None
    known = type_.VARIANTS.names()
    if "type" not in value:
        problems.append(Problem(f"{path}.type", f"this key is missing (known: {', '.join(known)})"))
        return None
    tag = value["type"]
    if not isinstance(tag, str) or tag not in known:
        near = suggest_name(str(tag), known)
        problems.append(Problem(f"{path}.type", f"unknown type {shorten_word(repr(tag))}{near}"))
        return None
    try:
        struct = type_.VARIANTS.find(tag).Config
    except InputError as problem:
        problems.append(Problem(f"{path}.type", str(problem)))
        return None
    return _convert_struct(value, struct, path, problems)


def _check_anything(value: Any, path: str, problems: list[Problem]) -> Any:
    """Check a value that edgen passes on unchanged: anything that JSON can hold."""
    if isinstance(value, dict):
        for key, child in value.items():
            _read_key(key, path, problems)
            _check_anything(child, f"{path}.{shorten_word(str(key))}", problems)
    elif isinstance(value, list):
        for i, child in enumerate(value):
            _check_anything(child, f"{path}[{i}]", problems)
    elif isinstance(value, float) and not math.isfinite(value):
        problems.append(Problem(path, "expected a finite number"))
    elif type(value) is int and not -(2**63) <= value < 2**64:
        problems.append(Problem(path, "this whole number has more than 64 bits; put it in quotes"))
    return value


def _convert_leaf(value: Any, type_: Any, path: str, problems: list[Problem]) -> Any:
    if type_ is Any:
        return _check_anything(value, path, problems)
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(Problem(path, "expected a finite number"))
        return None
    if isinstance(value, str) and (choices := _list_choices(type_)) and value not in choices:
        problems.append(
            Problem(path, f"unknown value {shorten_word(repr(value))}{suggest_name(value, choices)}")
        )
        return None
    try:
        return msgspec.convert(value, type_, strict=True)
    except msgspec.ValidationError as problem:
        problems.append(Problem(path, _reword(str(problem), value, path)))
        return None


def _list_choices(type_: Any) -> list[str]:
    """Return the texts that a type allows; empty unless it is a choice of texts."""
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin is typing.Literal:
        return [str(choice) for choice in arguments]
    if origin is typing.Annotated:
        return _list_choices(arguments[0])
    if origin not in (Union, types.UnionType) or any(
        str in (one, *typing.get_args(one)) for one in arguments
    ):
        return []
    return [choice for one in arguments for choice in _list_choices(one)]


_NAMES = {
    dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "a whole number",
        float: "a number",
    type(None): "nothing",
}  # fmt: skip


def _name(value: Any) -> str:
    return _NAMES.get(type(value), describe_type(value))


_IN_SECONDS = ("give_up_after", "timeout")  # numbers of seconds; other keys take spans such as 10m

# Fields that may contain a key by mistake: their values are never repeated.
_PRIVATE = {
    "api_key_env": "expected the NAME of an environment variable that holds the key, in upper case, not the "
    "key",
    "base_url": "expected an address like http://127.0.0.1:8080/v1, without user or password, or node-local",
    "known_as": "expected an address like http://127.0.0.1:8080/v1, without user or password",
    "more_base_urls": "expected an address like http://127.0.0.1:8080/v1, without user or password",
}
# The meaning of msgspec's patterns, by key.
_SHAPES = {
    "name": "expected letters, digits, dots, _ and -, a letter or digit first, as in nightly-2027-01-31",
    "date": "expected a day, as in 2027-01-31",
    "poll": "expected a time span like 6h, 90m or 45s",
    "online_after": "expected a time span like 6h, 90m or 45s",
}


# msgspec's words, and edgen's for them.
_WORDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "a mapping", "null": "nothing",
}  # fmt: skip
_TYPES = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")


def _reword(message: str, value: Any, path: str) -> str:
    """Reword msgspec's message for authors of YAML."""
    key = path.rsplit(".", 1)[-1].partition("[")[0]
    private = _PRIVATE.get(key)
    if private is not None and isinstance(value, str):
        return private
    message = message.split(" - at `")[0]
    message = _TYPES.sub(
        lambda types: " or ".join(_WORDS.get(one, one) for one in types[1].split(" | ")), message
    )
    message = message.replace(" of length >= 1", " that is not empty")
    message = message[0].lower() + message[1:]
    if message == "expected a text, got a mapping":
        message += BRACES
    if "matching regex" in message:
        message = _SHAPES.get(key, message)
    if "number, got a text" in message and (plain := _parse_number(value) or _parse_span(key, value)):
        message += f"; write {plain}"
    if isinstance(value, bool) and "expected a text" in message:
        message += " (a text that YAML reads as a truth value goes in quotes)"
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    hidden = ".headers." in path or len(shown) > 60 or isinstance(value, dict | list | None)
    return message if hidden else f"{message} (it is {shown})"


def _parse_span(key: str, text: str) -> str | None:
    """Return a span such as 10m as the number of seconds that the key takes; None for other keys and
    texts."""
    if key not in _IN_SECONDS:
        return None
    try:
        return f"{seconds(text):g}, in seconds"
    except ValueError:
        return "seconds, as in 600"


def _parse_number(text: str) -> str | None:
    """Parse a number that YAML 1.1 reads as a text (1e3, or one in quotes); None for any other text."""
    if not re.fullmatch(r"[+-]?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,2})?", text):
        return None
    plain = f"{Decimal(text):f}"
    return plain if len(plain) <= 20 else f"{float(text):.1e}"
