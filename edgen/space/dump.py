"""A space as YAML, and the digest of what its scenarios depend on.

`parse_space(dump_space(space), …) == space` for every valid space.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.space.education import LISTS, TOPIC_FIELDS, has_list_content, is_five_lists
from edgen.space.model import Dimension, Entry, Space

# What YAML 1.1 takes for a truth value or nothing, in any case.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def dump_space(space: Space) -> str:
    """The text of a space file. Every text is quoted and what is not printable is escaped, so it is safe to print."""
    lines = [f"name: {_quoted(space.name)}"]
    if space.description is not None:
        lines.append(f"description: {_quoted(space.description)}")
    if space.source is not None:
        lines.append(f"source: {_quoted(space.source)}")
    if space.duplicates != "refuse":
        lines.append(f"duplicates: {space.duplicates}")
    lists = is_five_lists(space)
    if not lists:
        lines += ["", "dimensions:"]
    for dimension in space.dimensions:
        weighted = any(entry.weight != 1 for entry in dimension.entries)
        lines += ["", f"{LISTS[dimension.name]}:"] if lists else _heading(dimension)
        indent = "  " if lists else "    " if dimension.label is None else "      "
        lines += [f"{indent}- {_dumped(entry, weighted)}" for entry in dimension.entries]
    if not lists:
        lines += ["", "roles:"]
        lines += [
            f"  {_key(role.name)}: {{sees: [{', '.join(map(_key, role.sees))}]}}" for role in space.roles
        ]
    if space.exclude:
        lines += ["", "exclude:", *(f"  - {_flow(combination)}" for combination in space.exclude)]
    if space.exercises is not None:
        lines += ["", "exercises:"]
        for key, value in msgspec.to_builtins(space.exercises).items():
            lines += (
                [f"  {key}:", *_block(value, "    ")]
                if isinstance(value, dict)
                else [f"  {key}: {_flow(value)}"]
            )
    return "\n".join(lines) + "\n"


def _block(named: dict[str, Any], indent: str) -> Iterator[str]:
    """A mapping of names, a line for each thing that stands under a name."""
    for name, one in named.items():
        yield f"{indent}{_key(name)}:"
        if isinstance(one, dict):
            yield from (f"{indent}  {_key(key)}: {_flow(value)}" for key, value in one.items())
        else:
            yield from (f"{indent}  - {_flow(value)}" for value in one)


def _heading(dimension: Dimension) -> list[str]:
    head = [f"  {_key(dimension.name)}:"]
    return (
        head if dimension.label is None else [*head, f"    label: {_quoted(dimension.label)}", "    values:"]
    )


def _dumped(entry: Entry, weighted: bool) -> str:
    value = _quoted(entry.value)
    extra = [f"weight: {_number(entry.weight)}"] if weighted else []
    extra += [f"when: {_flow(entry.when)}"] if entry.when else []
    names = sorted(entry.fields, key=lambda name: TOPIC_FIELDS.index(name) if name in TOPIC_FIELDS else -1)
    extra += [f"{name}: {_flow(entry.fields[name])}" for name in names]
    return f"{{value: {value}, {', '.join(extra)}}}" if extra else value


def _flow(value: Any) -> str:
    """A plain value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)}: {_flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    return _quoted(value) if isinstance(value, str) else str(value)


def _key(key: str) -> str:
    return key if key.isascii() and key.isidentifier() and key.lower() not in _WORDS else _quoted(key)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else _float(value)


def _float(value: float) -> str:
    text = repr(value)
    # YAML 1.1 takes 1e-07 for a text; it wants the point.
    return text if "." in text else text.replace("e", ".0e")


def _quoted(text: str) -> str:
    """A YAML double-quoted scalar on one line. JSON's escapes are YAML's but for those beyond 16 bits."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


def content_sha256(space: Space) -> str:
    """SHA-256, in hex, of the entries with all they hold, in order, of what is excluded, and of the exercises. Name, description, source,
    roles, labels and layout are no part of it."""
    if has_list_content(space):
        content: Any = [
            [
                LISTS[one.name],
                [[*_base(entry), *map(entry.fields.get, ("subject", "level"))] for entry in one.entries],
            ]
            for one in space.dimensions
        ]
    else:
        dimensions = [
            [one.name, [[*_base(entry), entry.when, entry.fields] for entry in one.entries]]
            for one in space.dimensions
        ]
        content = {"dimensions": dimensions, "exclude": space.exclude}
        if space.exercises is not None:
            content["exercises"] = msgspec.to_builtins(space.exercises)
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _base(entry: Entry) -> tuple[str, float]:
    # Adding 0.0 makes one number of 0.0 and -0.0.
    return entry.value, float(entry.weight) + 0.0
