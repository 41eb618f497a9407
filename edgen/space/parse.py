"""Space files: parsing, with every problem and its path, and writing.

A file has `dimensions:`, each a list of entries, or the lists of a layout. An entry is a plain text, or a
mapping with a weight, conditions, and fields. Values are kept exactly: Jinja code in one is plain text. Two
values that a reader cannot distinguish count as one value listed twice.

`render_space_files` writes a run's copy. `digest_content` covers everything that shapes conversations.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.core.digest import compute_sha256
from edgen.core.errors import Problem, SpaceError
from edgen.core.space_layouts import SpaceLayout, find_layout, list_layouts
from edgen.core.values import ROLES
from edgen.core.yaml_text import as_key, as_number, as_text, flow
from edgen.core.yaml_values import convert, read_text, read_yaml, shorten_word, suggest_name
from edgen.space.entries import (
    find_remark_problems,
    find_role_problem,
    find_text_problems,
    read_combination,
    read_dimensions,
    read_lists,
)
from edgen.space.knowledge import find_knowledge
from edgen.space.model import (
    PICTURE,
    Combination,
    Dimension,
    Entry,
    Space,
    SpaceRole,
    find_section,
    iterate_sections,
    list_layout_roles,
    list_section_names,
)
from edgen.space.pictures import format_kept_text, name_kept_file, with_names, with_pictures

MAX_EXCLUDED = 1_000  # excluded combinations
MAX_ROLES = 20


class Head(msgspec.Struct, kw_only=True):
    """The head of a space file."""

    name: str
    """The space's name."""
    description: str | None = None
    """The contents, in a few words."""
    source: str | None = None
    """The origin of the vocabulary."""
    duplicates: Literal["refuse", "keep"] = "refuse"
    """Whether a value may be listed more than once, each copy being a separate entry."""


class OpenSpace(Head, kw_only=True):
    """A space file with its own dimensions."""

    dimensions: Any
    """The dimensions of scenarios: each by name, with the list of its entries."""
    roles: Any = None
    """The speakers, and the dimensions that each may know."""
    exclude: Any = None
    """Combinations of values that do not occur."""
    knowledge: str | None = None
    """The name of a JSON file next to this one, with facts on its values, such as a catalogue of courses."""


def load_space(path: Path) -> Space:
    """Return the space in the file at `path`. Raises SpaceError with every problem."""
    return parse_space(read_text(path, SpaceError), str(path), path)


def parse_space(text: str, source: str, path: Path | None = None) -> Space:
    """Parse a space in YAML; error messages call it `source`. `path` is the file's present or future
    location. Without it, the knowledge file is not read.

    Raises SpaceError with every problem.
    """
    value = read_yaml(text, source, SpaceError)
    if not isinstance(value, dict):
        raise SpaceError(
            source,
            f"a space is a mapping with a name and dimensions{_describe_layouts()}, and this file holds none.",
        )
    if {"space", "backends"} <= value.keys():
        raise SpaceError(source, f"this file is a job, and its space is {value['space']}; name that instead.")
    problems: list[Problem] = []
    of_domains = {name: value.pop(name) for name in list_section_names() if name in value}
    layout = _guess_layout(value)
    in_lists = layout is not None and {*layout.lists.values()} <= value.keys()
    is_open = bool(
        {"dimensions", "roles", "exclude", "knowledge"} & value.keys() or (of_domains and not in_lists)
    )
    lists = None if is_open else layout
    form = OpenSpace if lists is None else _make_form(tuple(lists.lists.values()))
    head = _read_head(value, form, problems)
    keep = value["duplicates"] == "keep"
    dimensions = (
        read_dimensions(value, problems, keep=keep)
        if lists is None
        else read_lists(value, lists, problems, keep=keep)
    )
    names = [dimension.name for dimension in dimensions]
    sections, seen = {}, names
    for name, given in of_domains.items():
        if given is not None and (read := find_section(name).read(given, names, problems)) is not None:
            sections[name] = read
            seen = [*seen, *find_section(name).shown]
    speak = value.get("roles")
    roles = make_default_roles(names) if speak is None else _read_roles(speak, seen, problems)
    exclude = _read_exclude(value["exclude"], problems) if value.get("exclude") is not None else ()
    named = value.get("knowledge")
    knowledge = None if named is None else find_knowledge(named, path, problems)
    if not problems:
        own = msgspec.structs.asdict(head)
        space = Space(
            **own,
            dimensions=dimensions,
            roles=roles,
            exclude=exclude,
            sections=sections,
            knowledge=knowledge,
        )
        if space.conditional:
            from edgen.space.conditions import find_condition_problems

            problems += find_condition_problems(space, _list_paths(value, lists))
    if not problems and path is not None and _may_have_pictures(space):
        space = with_pictures(space, path, problems)
    if problems:
        raise SpaceError(source, f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:", problems)
    return space


def _may_have_pictures(space: Space) -> bool:
    if any(PICTURE in one.fields for one in space.dimensions):
        return True
    sections = [section for section, _ in iterate_sections(space)]
    return any(True for one in sections for _ in chain(one.pictures(space), one.drawings(space)))


def _describe_layouts() -> str:
    """Describe each layout and its lists in a clause."""
    return "".join(f", or with {one.title} ({', '.join(one.lists.values())})" for one in list_layouts())


def _guess_layout(value: dict[str, Any]) -> SpaceLayout | None:
    """Return the layout that has the most lists in a file, the first one of several; None for a file without
    any: its dimensions are missing or misspelt."""
    counts = [(len(value.keys() & {*one.lists.values()}), one) for one in list_layouts()]
    most, layout = max(counts, key=lambda counted: counted[0], default=(0, None))
    return layout if most else None


@functools.cache
def _make_form(keys: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return a struct of a file with these lists."""
    return msgspec.defstruct("ListedSpace", [(key, Any) for key in keys], bases=(Head,), kw_only=True)


def _list_paths(value: dict[str, Any], layout: SpaceLayout | None) -> dict[str, str]:
    """Return the path of each dimension's entries in the file."""
    listed = value.get("dimensions", {})
    paths = {name: f"$.dimensions.{name}" for name in listed}
    inner = {name: f"{paths[name]}.values" for name, one in listed.items() if isinstance(one, dict)}
    lists = {} if layout is None else layout.lists
    return {**{name: f"$.{key}" for name, key in lists.items()}, **paths, **inner}


def make_default_roles(names: list[str]) -> tuple[SpaceRole, ...]:
    """Return the roles of a space that names none: those of its layout, else the usual ones. Each role sees
    all dimensions except those that the layout hides from it or that are named after another role."""
    layout = find_layout(names)
    sees = dict.fromkeys(ROLES, frozenset(names)) if layout is None else layout.roles
    hidden = {role: set[str]() if layout is None else layout.names - {*own} for role, own in sees.items()}
    others = {role: tuple(f"{one.lower()}_" for one in sees if one != role) for role in sees}
    return tuple(
        SpaceRole(role, tuple(one for one in names if one not in hidden[role] and not one.startswith(prefix)))
        for role, prefix in others.items()
    )


def _read_head(value: dict[str, Any], form: type[msgspec.Struct], problems: list[Problem]) -> Head:
    """Read everything but the entries: name, description, source and duplicates. Report missing and unknown
    keys."""
    if value.setdefault("duplicates", "refuse") not in ("refuse", "keep"):
        problems.append(Problem("$.duplicates", "expected refuse (the default) or keep"))
        value["duplicates"] = "refuse"
    own = {key: None for key in form.__struct_fields__ if key not in Head.__struct_fields__ and key in value}
    convert({**value, **own}, form, "$", problems)
    for key in ("name", "description", "source"):
        if isinstance(value.get(key), str):
            problems += find_remark_problems(key, value[key])
    said = {key: value.get(key) for key in Head.__struct_fields__}
    return Head(**said)  # type: ignore[arg-type]


def _read_roles(value: Any, names: list[str], problems: list[Problem]) -> tuple[SpaceRole, ...]:
    if not isinstance(value, dict) or not 2 <= len(value) <= MAX_ROLES:
        message = (
            f"expected 2 to {MAX_ROLES} roles by their names, as in {{Tutor: {{sees: [topic]}}, Learner: "
            "{sees: []}}"
        )
        problems.append(Problem("$.roles", message))
        return ()
    first: dict[str, str] = {}
    for name in map(str, value):
        if first.setdefault(name.lower(), name) != name:
            message = f"this role is spelled like {first[name.lower()]}; give it a name of its own"
            problems.append(Problem(f"$.roles.{shorten_word(name)}", message))
    return tuple(_read_role(name, one, names, problems) for name, one in value.items())


def _read_role(name: Any, value: Any, names: list[str], problems: list[Problem]) -> SpaceRole:
    path = f"$.roles.{shorten_word(str(name))}"
    wrong = find_role_problem(name) if isinstance(name, str) else "a name is a text; put it in quotes"
    if wrong is not None:
        problems.append(Problem(path, wrong))
    sees = value.get("sees") if isinstance(value, dict) and value.keys() == {"sees"} else None
    if not isinstance(sees, list):
        problems.append(Problem(path, "expected what the role may know, as in {sees: [topic, learner]}"))
        return SpaceRole(str(name), ())
    for i, seen in enumerate(sees):
        if seen not in names:
            message = f"there is no dimension {shorten_word(str(seen))}{suggest_name(str(seen), names)}"
            problems.append(Problem(f"{path}.sees[{i}]", message))
    return SpaceRole(str(name), tuple(dict.fromkeys(map(str, sees))))


def _read_exclude(value: Any, problems: list[Problem]) -> tuple[Combination, ...]:
    if not isinstance(value, list):
        message = "expected a list of combinations, as in [{topic: Tides, learner: shy}]"
        problems.append(Problem("$.exclude", message))
        return ()
    if len(value) > MAX_EXCLUDED:
        message = f"{len(value):,} combinations are too many; at most {MAX_EXCLUDED:,} are excluded"
        problems.append(Problem("$.exclude", message))
        return ()
    return tuple(read_combination(one, f"$.exclude[{i}]", problems) for i, one in enumerate(value))


def digest_content(space: Space) -> str:
    """Return the SHA-256, in hex, of everything that shapes conversations: the entries with all their
    contents in order, the exclusions, the sections of domains, and the knowledge file. Name, description,
    source, roles, labels and layout are not included."""
    layout = find_layout(space.names)
    if layout is not None and has_list_content(space, layout) and not (space.knowledge or space.pictures):
        fields = tuple(layout.fields)
        content: Any = [
            [
                layout.lists[one.name],
                [[*_read_base(entry), *map(entry.fields.get, fields)] for entry in one.entries],
            ]
            for one in space.dimensions
        ]
    else:
        dimensions = [
            [one.name, [[*_read_base(entry), entry.when, entry.fields] for entry in one.entries]]
            for one in space.dimensions
        ]
        content = {"dimensions": dimensions, "exclude": space.exclude}
        if space.knowledge is not None:
            content["knowledge"] = space.knowledge.sha256
        if space.pictures:
            content["pictures"] = {name: one.digest for name, one in space.pictures.items()}
        parts = {section.name: section.content(said) for section, said in iterate_sections(space)}
        content |= {name: part for name, part in parts.items() if part is not None}
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return compute_sha256(text)


def _read_base(entry: Entry) -> tuple[str, float]:
    # Adding 0.0 turns -0.0 into 0.0.
    return entry.value, float(entry.weight) + 0.0


def has_list_content(space: Space, layout: SpaceLayout) -> bool:
    """Return whether a layout's lists can express everything that determines the space's scenarios."""
    return [*space.names] == [*layout.lists] and not space.conditional and _are_lists(space, layout)


def fits_lists(space: Space, layout: SpaceLayout) -> bool:
    """Return whether a layout's lists can express the whole space."""
    labelled = any(dimension.label is not None for dimension in space.dimensions)
    return (
        has_list_content(space, layout)
        and space.roles == list_layout_roles(space.names)
        and not labelled
        and space.knowledge is None
    )


def _are_lists(space: Space, layout: SpaceLayout) -> bool:
    return all(
        layout.fields.get(name) == dimension.name
        and isinstance(said, str)
        and not [*find_text_problems(said, "$")]
        for dimension in space.dimensions
        for entry in dimension.entries
        for name, said in entry.fields.items()
    )


def dump_space(space: Space, *, lists: bool = True) -> str:
    """Return the text of a space file. With `lists`, it has the lists of the space's layout if these can
    express the space. Every text is quoted and unprintable characters are escaped, so it is safe to print."""
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
    """Return the texts of a space's files, by name: the space, its knowledge file, and its pictures."""
    texts = {} if space.knowledge is None else {space.knowledge.file: space.knowledge.text}
    if space.pictures:
        texts[name_kept_file(name)] = format_kept_text(space.pictures)
    return {name: dump_space(space), **texts}


def _render_block(named: dict[str, Any], indent: str) -> Iterator[str]:
    """Yield the lines of a mapping by names, one for each value of a name."""
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
    """Return an entry as a mapping, with the fields in `last` after all others."""
    value = as_text(entry.value)
    extra = [f"weight: {as_number(entry.weight)}"] if weighted else []
    extra += [f"when: {flow(entry.when)}"] if entry.when else []
    names = sorted(entry.fields, key=lambda name: last.index(name) if name in last else -1)
    extra += [f"{name}: {flow(entry.fields[name])}" for name in names]
    return f"{{value: {value}, {', '.join(extra)}}}" if extra else value
