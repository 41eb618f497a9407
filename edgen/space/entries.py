"""The entries of a dimension in a file, with every problem and its path."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from edgen.core.errors import Problem
from edgen.core.yaml_values import convert, nearest, shortened
from edgen.space.model import Combination, Entry
from edgen.space.text_rules import field_problem, likeness, quoted, remark_problems, text_problems

# This many are read in seconds, and fit within the size limit of files.
MAX_ENTRIES = 20_000  # per dimension
MAX_DEPTH = 8  # of lists and mappings in a field
_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


def read_entries(
    values: Any, path: str, problems: list[Problem], *, keep: bool, fields: Collection[str] | None = None
) -> tuple[Entry, ...]:
    """Read the entries of a list. `keep`: allow repeated values. `fields`: the only allowed fields, all
    texts, without conditions; None for any."""
    if not isinstance(values, list):
        problems.append(Problem(path, "expected a list, each entry on a line of its own after '- '"))
        return ()
    if not values:
        problems.append(Problem(path, "this list is empty; give it at least one entry"))
    if len(values) > MAX_ENTRIES:
        message = f"{len(values):,} entries are too many; a list holds at most {MAX_ENTRIES:,}"
        problems.append(Problem(path, message))
        return ()
    entries = [_read_entry(value, f"{path}[{i}]", problems, fields) for i, value in enumerate(values)]
    problems += _list_problems(path, entries, keep=keep)
    problems += _field_kinds(path, entries)
    return tuple(entry for entry in entries if entry is not None)


def read_combination(value: Any, path: str, problems: list[Problem]) -> Combination:
    """Read a mapping of dimensions, each to a value or to a list of values."""
    if not isinstance(value, dict) or not value:
        problems.append(Problem(path, "expected a mapping of dimensions to values, as in {topic: Tides}"))
        return {}
    found: Combination = {}
    for name, values in value.items():
        listed = values if isinstance(values, list) else [values]
        if not listed or not all(isinstance(one, str) for one in listed):
            where = f"{path}.{shortened(str(name))}"
            problems.append(
                Problem(where, "expected a value of that dimension, or a list of them, all texts")
            )
        else:
            found[str(name)] = tuple(dict.fromkeys(listed))
    return found


def _read_entry(
    value: Any, path: str, problems: list[Problem], fields: Collection[str] | None
) -> Entry | None:
    """Read an element of a list as an Entry, None if it has no value."""
    if isinstance(value, str):
        return Entry(value)
    if isinstance(value, dict):
        return _read_mapping(value, path, problems, fields)
    if value is None:
        problems.append(Problem(path, "expected a text, got nothing"))
    elif isinstance(value, list):
        problems.append(Problem(path, "expected a text or a mapping, got a list"))
    else:
        kind = _KINDS.get(type(value), "something else")
        problems.append(Problem(path, f"expected a text, and YAML reads this as {kind}; put it in quotes"))
    return None


def _read_mapping(
    value: dict[Any, Any], path: str, problems: list[Problem], allowed: Collection[str] | None
) -> Entry | None:
    weight = convert(value["weight"], float, f"{path}.weight", problems) if "weight" in value else 1.0
    when: Combination = {}
    fields: dict[str, Any] = {}
    for key, said in value.items():
        where = f"{path}.{shortened(str(key))}"
        if key in ("value", "weight"):
            continue
        if key == "when" and allowed is None:
            when = read_combination(said, where, problems)
        elif allowed is None:
            fields[str(key)] = _read_field(key, said, where, problems)
        elif key in allowed:
            if said is not None:
                fields[key] = convert(said, str, where, problems)
        elif key in ("subject", "level"):
            problems.append(Problem(where, f"only topics have a {key}; remove it"))
        else:
            problems.append(Problem(where, f"unknown key{nearest(str(key), ('value', 'weight', *allowed))}"))
    if "value" not in value:
        problems.append(Problem(f"{path}.value", "this key is missing"))
        return None
    text = convert(value["value"], str, f"{path}.value", problems)
    return None if text is None else Entry(text, 1.0 if weight is None else weight, fields, when)


def _read_field(key: Any, value: Any, path: str, problems: list[Problem]) -> Any:
    wrong = field_problem(key) if isinstance(key, str) else "a name is a text; put it in quotes"
    if wrong is not None:
        problems.append(Problem(path, wrong))
    elif value is None:
        problems.append(Problem(path, "this key has no value; give it a value or remove it"))
    elif _too_deep(value):
        problems.append(Problem(path, f"lists and mappings are nested more than {MAX_DEPTH} deep here"))
    else:
        problems += [Problem(path, problem.message) for problem in _field_texts(value)][:1]
        return convert(value, Any, path, problems)
    return None


def _too_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Return whether lists and mappings are nested deeper than this."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (most == 0 or any(_too_deep(one, most - 1) for one in inner))


def _field_texts(value: Any) -> Iterator[Problem]:
    """Yield problems of a field's texts, which may have several lines."""
    if isinstance(value, str):
        yield from remark_problems("field", value)
    elif isinstance(value, list):
        for one in value:
            yield from _field_texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _field_texts(key)
            yield from _field_texts(one)


def _list_problems(path: str, entries: Sequence[Entry | None], *, keep: bool) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if entry is None:
            continue
        yield from _entry_problems(entry, f"{path}[{i}]")
        earlier = first.setdefault(likeness(entry.value), i)
        if not keep and earlier != i:
            yield _duplicate(entry.value, entries[earlier], f"{path}[{i}]", f"{path}[{earlier}]")
    if entries and all(entry is not None and entry.weight == 0 for entry in entries):
        yield Problem(path, "every weight is 0; give at least one entry a positive weight")


def _entry_problems(entry: Entry, path: str) -> Iterator[Problem]:
    yield from text_problems(entry.value, path)
    if not (math.isfinite(entry.weight) and entry.weight >= 0):
        yield Problem(f"{path}.weight", f"a weight is a finite number from 0 upwards, not {entry.weight!r}")
    if path.startswith("$.topics["):
        for key, text in entry.fields.items():
            yield from text_problems(text, f"{path}.{key}") if isinstance(text, str) else ()


def _field_kinds(path: str, entries: Sequence[Entry | None]) -> Iterator[Problem]:
    """Yield fields whose kind differs from an earlier entry's."""
    kinds: dict[str, tuple[str, int]] = {}
    for i, entry in enumerate(entries):
        for name, value in entry.fields.items() if entry is not None else ():
            kind = _KINDS.get(type(value))
            if kind is None:  # reported as its own problem
                continue
            known, place = kinds.setdefault(name, (kind, i))
            if kind != known:
                message = f"this is {kind}, and {name} is {known} in {path}[{place}]; write the same kind everywhere"
                yield Problem(f"{path}[{i}].{name}", message)


def _duplicate(value: str, earlier: Entry | None, path: str, first: str) -> Problem:
    if earlier is not None and earlier.value == value:
        said = f"is listed already, at {first}"
    else:
        said = f"differs from {first} only in invisible characters or in the Unicode form of its letters"
    return Problem(path, f"{quoted(value)} {said}; remove one (or give one a higher weight)")
