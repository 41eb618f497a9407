"""A space as the text of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from edgen.core.space_layouts import find_layout
from edgen.core.yaml_text import as_key, as_number, as_text, flow
from edgen.space.model import Dimension, Entry, Space
from edgen.space.parse import fits_lists
from edgen.space.pictures import format_kept_text, name_kept_file, with_names


def dump_space(space: Space, *, lists: bool = True) -> str:
    """Return the text of a space file, as the lists of its layout if these suffice and `lists` is true. Every
    text is quoted and unprintable characters are escaped, so it is safe to print."""
    lines = [f"name: {as_text(space.name)}"]
    if space.description is not None:
        lines.append(f"description: {as_text(space.description)}")
    if space.source is not None:
        lines.append(f"source: {as_text(space.source)}")
    if space.knowledge is not None:
        lines.append(f"knowledge: {as_text(space.knowledge.file)}")
    if space.duplicates != "refuse":
        lines.append(f"duplicates: {space.duplicates}")
    layout = find_layout(space.names)
    keys = layout.lists if lists and layout is not None and fits_lists(space, layout) else {}
    fields = () if layout is None else tuple(layout.fields)
    if not keys:
        lines += ["", "dimensions:"]
    for dimension in with_names(space) if space.pictures else space.dimensions:
        weighted = any(entry.weight != 1 for entry in dimension.entries)
        lines += ["", f"{keys[dimension.name]}:"] if keys else _render_heading(dimension)
        indent = "  " if keys else "    " if dimension.label is None else "      "
        lines += [f"{indent}- {_dump_entry(entry, weighted, fields)}" for entry in dimension.entries]
    if not keys:
        lines += ["", "roles:"]
        lines += [
            f"  {as_key(role.name)}: {{sees: [{', '.join(map(as_key, role.sees))}]}}" for role in space.roles
        ]
    if space.exclude:
        lines += ["", "exclude:", *(f"  - {flow(combination)}" for combination in space.exclude)]
    for name, said in space.sections.items():
        lines += ["", f"{name}:"]
        for key, value in msgspec.to_builtins(said).items():
            lines += (
                [f"  {key}:", *_render_block(value, "    ")]
                if isinstance(value, dict)
                else [f"  {key}: {flow(value)}"]
            )
    return "\n".join(lines) + "\n"


def render_space_files(space: Space, name: str = "space.yaml") -> dict[str, str]:
    """Return the texts of a space's files by name: its own, its knowledge file, and its pictures."""
    beside = {} if space.knowledge is None else {space.knowledge.file: space.knowledge.text}
    if space.pictures:
        beside[name_kept_file(name)] = format_kept_text(space.pictures)
    return {name: dump_space(space), **beside}


def _render_block(named: dict[str, Any], indent: str) -> Iterator[str]:
    """Yield a mapping of names, with a line per value of a name."""
    for name, one in named.items():
        yield f"{indent}{as_key(name)}:"
        if isinstance(one, dict):
            yield from (f"{indent}  {as_key(key)}: {flow(value)}" for key, value in one.items())
        else:
            yield from (f"{indent}  - {flow(value)}" for value in one)


def _render_heading(dimension: Dimension) -> list[str]:
    head = [f"  {as_key(dimension.name)}:"]
    return (
        head if dimension.label is None else [*head, f"    label: {as_text(dimension.label)}", "    values:"]
    )


def _dump_entry(entry: Entry, weighted: bool, last: Sequence[str]) -> str:
    """Return an entry, with the fields named `last` after all others."""
    value = as_text(entry.value)
    extra = [f"weight: {as_number(entry.weight)}"] if weighted else []
    extra += [f"when: {flow(entry.when)}"] if entry.when else []
    names = sorted(entry.fields, key=lambda name: last.index(name) if name in last else -1)
    extra += [f"{name}: {flow(entry.fields[name])}" for name in names]
    return f"{{value: {value}, {', '.join(extra)}}}" if extra else value
