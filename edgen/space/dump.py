"""A space as YAML, and the digest of what its scenarios depend on.

`parse_space(dump_space(space), …) == space` for every valid space.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.core.yaml_dump import as_key, as_number, as_text, flow
from edgen.space.education import LISTS, TOPIC_FIELDS, has_list_content, is_five_lists
from edgen.space.model import Dimension, Entry, Space


def dump_space(space: Space) -> str:
    """The text of a space file. Every text is quoted and what is not printable is escaped, so it is safe to print."""
    lines = [f"name: {as_text(space.name)}"]
    if space.description is not None:
        lines.append(f"description: {as_text(space.description)}")
    if space.source is not None:
        lines.append(f"source: {as_text(space.source)}")
    if space.knowledge is not None:
        lines.append(f"knowledge: {as_text(space.knowledge.file)}")
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
            f"  {as_key(role.name)}: {{sees: [{', '.join(map(as_key, role.sees))}]}}" for role in space.roles
        ]
    if space.exclude:
        lines += ["", "exclude:", *(f"  - {flow(combination)}" for combination in space.exclude)]
    if space.exercises is not None:
        lines += ["", "exercises:"]
        for key, value in msgspec.to_builtins(space.exercises).items():
            lines += (
                [f"  {key}:", *_block(value, "    ")]
                if isinstance(value, dict)
                else [f"  {key}: {flow(value)}"]
            )
    return "\n".join(lines) + "\n"


def space_files(space: Space, name: str = "space.yaml") -> dict[str, str]:
    """The texts of a space's files by their names: its own, and its knowledge file."""
    beside = {} if space.knowledge is None else {space.knowledge.file: space.knowledge.text}
    return {name: dump_space(space), **beside}


def _block(named: dict[str, Any], indent: str) -> Iterator[str]:
    """A mapping of names, a line for each thing that stands under a name."""
    for name, one in named.items():
        yield f"{indent}{as_key(name)}:"
        if isinstance(one, dict):
            yield from (f"{indent}  {as_key(key)}: {flow(value)}" for key, value in one.items())
        else:
            yield from (f"{indent}  - {flow(value)}" for value in one)


def _heading(dimension: Dimension) -> list[str]:
    head = [f"  {as_key(dimension.name)}:"]
    return (
        head if dimension.label is None else [*head, f"    label: {as_text(dimension.label)}", "    values:"]
    )


def _dumped(entry: Entry, weighted: bool) -> str:
    value = as_text(entry.value)
    extra = [f"weight: {as_number(entry.weight)}"] if weighted else []
    extra += [f"when: {flow(entry.when)}"] if entry.when else []
    names = sorted(entry.fields, key=lambda name: TOPIC_FIELDS.index(name) if name in TOPIC_FIELDS else -1)
    extra += [f"{name}: {flow(entry.fields[name])}" for name in names]
    return f"{{value: {value}, {', '.join(extra)}}}" if extra else value


def content_sha256(space: Space) -> str:
    """SHA-256, in hex, of the entries with all they hold, in order, of what is excluded, of the exercises but their drawings, and of
    the knowledge file.
    Name, description, source, roles, labels and layout are no part of it."""
    if has_list_content(space) and space.knowledge is None:
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
        if space.knowledge is not None:
            content["knowledge"] = space.knowledge.sha256
        if space.exercises is not None:
            content["exercises"] = _without_drawings(msgspec.to_builtins(space.exercises))
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _without_drawings(exercises: dict[str, Any]) -> dict[str, Any]:
    """Exercises without what is drawn: that shapes nothing that is asked or answered."""
    tiers = {
        name: {key: said for key, said in tier.items() if key != "draw"}
        for name, tier in exercises["tiers"].items()
    }
    return {**exercises, "tiers": tiers}


def _base(entry: Entry) -> tuple[str, float]:
    # Adding 0.0 makes one number of 0.0 and -0.0.
    return entry.value, float(entry.weight) + 0.0
