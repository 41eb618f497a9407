"""Untrusted files to typed values, with every problem and its path.

`read_text` takes bytes to text, `read_yaml` text to plain values, `build` plain values to a msgspec
Struct. Each raises the FileError class it is handed; none lets a parser's own exception through.
"""

from __future__ import annotations

import difflib
import math
import re
import types
import typing
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, Union

import msgspec
import yaml

from edgen.errors import FileError, Problem

MAX_BYTES = 8 * 1024 * 1024
MAX_NODES = 400_000
MAX_DEPTH = 40

T = TypeVar("T")


def read_text(path: Path, error: type[FileError], *, max_bytes: int = MAX_BYTES) -> str:
    """The file's text. Raises `error` if it is missing, no file, too large or not UTF-8."""
    source = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise error(source, "there is no such file.") from None
    except IsADirectoryError:
        raise error(source, "this is a folder, not a file.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise error(source, f"it cannot be read: {reason}.") from None
    if len(data) > max_bytes:
        raise error(source, f"it is larger than {max_bytes / 1024 / 1024:g} MiB, the most that is read.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(source, f"byte {problem.start} is not UTF-8; save the file as UTF-8.") from None


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, with a key given twice as an error.

    Not the C loader, though it is quicker: deep nesting overflows its stack, and that ends the
    process, where this one raises.
    """


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.value in seen if isinstance(key.value, str) else False:
            mark = key.start_mark
            raise yaml.constructor.ConstructorError(None, None, f"the key '{key.value}' is given twice", mark)
        if isinstance(key.value, str):
            seen.add(key.value)
    loader.flatten_mapping(node)
    return typing.cast("dict[Any, Any]", loader.construct_mapping(node, deep=True))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
# A date is a text here, as in JSON: nothing is lost, and a day that is none is for the reader to refuse.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def read_yaml(text: str, source: str, error: type[FileError], *, max_nodes: int = MAX_NODES) -> Any:
    """The plain values of a YAML text: dicts, lists, strings, numbers, booleans, None."""
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
        _bound(value, max_nodes)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        hint = _BRACES if (problem.context or "").startswith("while parsing a flow") else ""
        raise error(source, f"it is not valid YAML: {where}{problem.problem}{hint}.") from None
    except yaml.reader.ReaderError as problem:
        raise error(
            source, f"it holds a character that YAML forbids (at {problem.position}); write it as an escape."
        ) from None
    except (yaml.YAMLError, ValueError, TypeError) as problem:
        raise error(source, f"it is not valid YAML: {problem}.") from None
    except RecursionError:
        raise error(source, "it is nested too deeply.") from None
    return value


_BRACES = "; a text that begins with a brace or a bracket goes in quotes, as in '{date}'"


def _bound(value: Any, max_nodes: int) -> None:
    """Raise ValueError if the value, aliases expanded, is larger or deeper than a file needs to be,
    or holds half of a character."""
    count = 0
    stack = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        count += 1
        if count > max_nodes:
            raise ValueError(f"it holds more than {max_nodes:,} values, aliases expanded")
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(node, dict):
            stack += [(child, depth + 1) for item in node.items() for child in item]
        elif isinstance(node, list):
            stack += [(child, depth + 1) for child in node]
        elif isinstance(node, str) and not node.isascii():
            try:
                node.encode()
            except UnicodeEncodeError:
                raise ValueError(f"{node!r} holds half of a character (a lone surrogate)") from None


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` where a known name is close, else the list of known names."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else f" (known: {', '.join(known)})"


def build(value: Any, type_: type[T], source: str, error: type[FileError]) -> T:
    """`value` as the Struct `type_`. Raises `error` with every problem found, not just the first."""
    problems: list[Problem] = []
    result = convert(value, type_, "$", problems)
    if problems:
        count = len(problems)
        raise error(source, f"{count} problem{'s' if count > 1 else ''}:", problems)
    return typing.cast("T", result)


def convert(value: Any, type_: Any, path: str, problems: list[Problem]) -> Any:
    """`value` as `type_`, adding to `problems`; what is returned counts only if nothing was added.

    Structs, tagged unions of Structs, tuples and dicts of these are walked here, so that every
    problem is found; leaves go to msgspec, which knows the constraints of `Annotated` types.
    """
    origin = typing.get_origin(type_)
    arguments = typing.get_args(type_)
    if origin in (Union, types.UnionType):
        structs = [a for a in arguments if _is_struct(a)]
        if value is None and type(None) in arguments:
            return None
        if len(structs) == 1 and isinstance(value, dict):
            return _struct(value, structs[0], path, problems)
        if len(structs) > 1:
            return _tagged(value, structs, path, problems)
        if len(arguments) == 2 and type(None) in arguments:
            inner = arguments[0] if arguments[1] is type(None) else arguments[1]
            return convert(value, inner, path, problems)
    elif _is_struct(type_):
        return _struct(value, type_, path, problems)
    elif origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        if not isinstance(value, list):
            problems.append(Problem(path, f"expected a list, got {_name(value)}"))
            return ()
        return tuple(convert(v, arguments[0], f"{path}[{i}]", problems) for i, v in enumerate(value))
    elif origin is dict:
        if not isinstance(value, dict):
            problems.append(Problem(path, f"expected a mapping, got {_name(value)}"))
            return {}
        return {
            _key(key, path, problems): convert(child, arguments[1], f"{path}.{key}", problems)
            for key, child in value.items()
        }
    return _leaf(value, type_, path, problems)


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)


def _key(key: Any, path: str, problems: list[Problem]) -> str:
    if not isinstance(key, str):
        problems.append(Problem(path, f"the key {key!r} is {_name(key)}; put it in quotes"))
    return str(key)


def _struct(value: Any, type_: type[msgspec.Struct], path: str, problems: list[Problem]) -> Any:
    if not isinstance(value, dict):
        problems.append(Problem(path, f"expected a mapping, got {_name(value)}"))
        return None
    fields = {field.encode_name: field for field in msgspec.structs.fields(type_)}
    tag = type_.__struct_config__.tag_field
    built: dict[str, Any] = {}
    before = len(problems)
    for key, child in value.items():
        if key == tag:
            continue
        if key not in fields:
            problems.append(Problem(f"{path}.{key}", f"unknown key{nearest(str(key), fields)}"))
            continue
        built[fields[key].name] = convert(child, fields[key].type, f"{path}.{key}", problems)
    for key, field in fields.items():
        if field.required and key not in value:
            problems.append(Problem(f"{path}.{key}", "this key is missing"))
    return type_(**built) if len(problems) == before else None


def _tagged(value: Any, structs: list[type[msgspec.Struct]], path: str, problems: list[Problem]) -> Any:
    field = structs[0].__struct_config__.tag_field
    by_tag = {s.__struct_config__.tag: s for s in structs}
    if not isinstance(value, dict):
        problems.append(Problem(path, f"expected a mapping, got {_name(value)}"))
        return None
    if field not in value:
        problems.append(
            Problem(f"{path}.{field}", f"this key is missing (known: {', '.join(map(str, by_tag))})")
        )
        return None
    tag = value[field]
    if not isinstance(tag, str) or tag not in by_tag:
        problems.append(
            Problem(f"{path}.{field}", f"unknown {field} {tag!r}{nearest(str(tag), map(str, by_tag))}")
        )
        return None
    return _struct(value, by_tag[tag], path, problems)


def _leaf(value: Any, type_: Any, path: str, problems: list[Problem]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(Problem(path, "expected a finite number"))
        return None
    if typing.get_origin(type_) is typing.Literal and isinstance(value, str):
        choices = [str(choice) for choice in typing.get_args(type_)]
        if value not in choices:
            problems.append(Problem(path, f"unknown value {value!r}{nearest(value, choices)}"))
            return None
    try:
        return msgspec.convert(value, type_, strict=True)
    except msgspec.ValidationError as problem:
        problems.append(Problem(path, _worded(str(problem), value, path)))
        return None


_NAMES = {
    dict: "a mapping",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
}


def _name(value: Any) -> str:
    return _NAMES.get(type(value), f"a {type(value).__name__}")


# Here somebody may have put the key itself: what stands there is never repeated.
_PRIVATE = {
    "api_key_env": "expected the NAME of an environment variable that holds the key, in upper case, not the key",
    "base_url": "expected an address like http://127.0.0.1:8080/v1, without user or password",
}
# What a pattern of msgspec's asks for, by its key.
_SHAPES = {
    "name": "expected letters, digits, dots, _ and -, a letter or digit first, as in nightly-2027-01-31",
    "date": "expected a day, as in 2027-01-31",
    "poll": "expected a time span like 6h, 90m or 45s",
    "online_after": "expected a time span like 6h, 90m or 45s",
}


def _worded(message: str, value: Any, path: str) -> str:
    """msgspec's sentence in the words of somebody who writes YAML."""
    key = path.rsplit(".", 1)[-1]
    private = _PRIVATE.get(key)
    if private is not None and isinstance(value, str):
        return private
    message = message.split(" - at `")[0]
    for old, new in {
        "`str`": "a text",
        "`int`": "a whole number",
        "`float`": "a number",
        "`bool`": "true or false",
        "`array`": "a list",
        "`object`": "a mapping",
        "`null`": "nothing",
        " | ": " or ",
    }.items():
        message = message.replace(old, new)
    message = message[0].lower() + message[1:]
    if message == "expected a text, got a mapping":
        message += _BRACES
    if "matching regex" in message:
        message = _SHAPES.get(key, message)
    if "number, got a text" in message and (plain := _plain_number(value)):
        message += f"; write {plain}"
    if isinstance(value, bool) and "expected a text" in message:
        message += " (a text that YAML reads as a truth value goes in quotes)"
    shown = repr(value)
    return message if len(shown) > 60 or isinstance(value, dict | list) else f"{message} (it is {shown})"


def _plain_number(text: str) -> str | None:
    """A number that YAML 1.1 takes for a text (1e3, or one in quotes), as YAML reads it; None for any other text."""
    if not re.fullmatch(r"[+-]?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,2})?", text):
        return None
    plain = f"{Decimal(text):f}"
    return plain if len(plain) <= 20 else f"{float(text):.1e}"
