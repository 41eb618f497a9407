"""The dimensions of a space file and their entries, with every problem and its path.

A text is one visible line without control characters. A name is an identifier that templates can use and that
has no meaning for edgen. Values end up in prompts, records and terminals. Joiners and direction marks are
allowed, since some scripts need them; control characters, line separators, lone surrogates and bidirectional
overrides are not.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from edgen.core.errors import Problem
from edgen.core.space_layouts import SpaceLayout
from edgen.core.text import compile_later, is_forbidden
from edgen.core.yaml_values import convert, shorten_word, suggest_name
from edgen.space.model import Combination, Dimension, Entry

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")  # fillers and the empty Braille cell
_LAYOUT = str.maketrans("\n\t", "  ")


def is_blank(text: str) -> bool:
    """Return whether the text is invisible: only spaces, controls and format characters."""
    return all(char in _INVISIBLE or unicodedata.category(char) in _INVISIBLE_CATEGORIES for char in text)


def normalize_likeness(text: str) -> str:
    """Return the common form of values that a reader cannot distinguish.

    The form has no format characters, such as a zero-width space. It is in Unicode's compatibility form
    (NFKC), which composes an e and an accent to an é.
    """
    if text.isascii():
        return text
    seen = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", seen).strip()


def find_text_problems(text: str, path: str) -> Iterator[Problem]:
    """Yield the problems of a text as a value or a field."""
    if is_blank(text):
        yield Problem(path, "this text is empty or blank")
        return
    if text != text.strip():
        yield Problem(path, f"{quote(text)} begins or ends with a blank; remove it")
    if text.isprintable():
        return
    bad = dict.fromkeys(char for char in text if is_forbidden(char))
    if bad:
        codes = ", ".join(f"U+{ord(char):04X}" for char in bad)
        yield Problem(path, f"{quote(text)} holds {codes}; remove it, a text is one line without controls")


def find_remark_problems(key: str, text: str) -> Iterator[Problem]:
    """Yield the problems of a name, description or source. A description or source may have several lines."""
    line = text if key == "name" else text.translate(_LAYOUT).strip()
    yield from find_text_problems(line, f"$.{key}")


def value_problem(text: str) -> str | None:
    """Return the problem of a text as a value of a space; None if it is valid."""
    problem = next(find_text_problems(text, "$"), None)
    return None if problem is None else problem.message


def quote(text: str) -> str:
    """Quote a text for messages."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


# ---- names

_NAME = compile_later(r"[A-Za-z][A-Za-z0-9_]{0,39}")
# Jinja's reserved words and names, and Python's, which Jinja reads as values.
_OF_JINJA = frozenset({
    "False", "None", "True", "and", "as", "autoescape", "block", "break", "call", "caller", "context",
    "continue", "do", "elif", "else", "endblock", "endcall", "endfilter", "endfor", "endif", "endmacro",
    "endset", "endtrans", "endwith", "extends", "false", "filter", "for", "from", "if", "ignore", "import",
    "in", "include", "is", "kwargs", "loop", "macro", "missing", "none", "not", "or", "pluralize", "range",
    "recursive", "required", "scoped", "self", "set", "super", "trans", "true", "varargs", "with", "without",
})  # fmt: skip
# Other variables of edgen's own templates, and columns of its tables.
OF_EDGEN = frozenset({
    "arm", "brief", "compare", "conversation", "conversation_1", "conversation_2", "count", "description",
    "dimension",
    "ended_by", "fence", "guarded", "guarded_1", "guarded_2", "history", "id", "index", "messages", "model",
    "name", "probability", "provenance", "replicate", "response_1", "response_2", "role", "roles", "scenario",
    "next_speaker", "others", "scenario_lines", "simulated", "space_goal", "space_roles", "split", "text",
    "turn", "turns",
    "values",
})  # fmt: skip
# Attributes of texts that templates read, so no field can have these names.
_OF_TEXTS = frozenset({
    "capitalize", "endswith", "lower", "split", "splitlines", "startswith", "title", "upper",
})  # fmt: skip
_OF_ROLES = frozenset({
    "assistant", "closing", "default", "human", "judge", "oracle", "simulator", "system", "tool", "user",
})  # fmt: skip


def find_dimension_problem(name: str) -> str | None:
    """Return the problem of a dimension's name; None if it is valid."""
    return (
        _find_shape_problem(name)
        or _explain_taken(name, _OF_JINJA, "Jinja")
        or _explain_taken(name, OF_EDGEN, "edgen")
    )


def find_field_problem(name: str) -> str | None:
    """Return the problem of an entry field's name; None if it is valid."""
    return _find_shape_problem(name) or _explain_taken(name, _OF_TEXTS, "texts in templates")


def find_role_problem(name: str) -> str | None:
    """Return the problem of a role's name; None if it is valid."""
    return _find_shape_problem(name) or _explain_taken(name.lower(), _OF_ROLES, "jobs and providers")


def _find_shape_problem(name: str) -> str | None:
    if _NAME.fullmatch(name):
        return None
    shape = "a name is up to 40 letters from a to z, digits and _, a letter first, as in teacher_move"
    return f"{shape}; values may be in any script"


def _explain_taken(name: str, taken: frozenset[str], whose: str) -> str | None:
    return f"the name {name} means something else to {whose}; choose another" if name in taken else None


# Limits that keep reading within seconds, and files within their size limit.
MAX_DIMENSIONS = 64
MAX_ENTRIES = 20_000  # entries per dimension
MAX_TOTAL = 40_000  # entries of a space
MAX_DEPTH = 8  # levels of lists and mappings in a field
_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


def read_entries(
    values: Any,
    path: str,
    problems: list[Problem],
    *,
    keep: bool,
    fields: Collection[str] | None = None,
    elsewhere: Mapping[str, str] | None = None,
) -> tuple[Entry, ...]:
    """Read the entries of a list.

    `keep` allows repeated values. `fields` are the only allowed fields, all texts, and then conditions are
    not allowed; None allows any. `elsewhere` maps the layout's fields of other lists to these lists.
    """
    if not isinstance(values, list):
        problems.append(Problem(path, "expected a list, each entry on a line of its own after '- '"))
        return ()
    if not values:
        problems.append(Problem(path, "this list is empty; give it at least one entry"))
    if len(values) > MAX_ENTRIES:
        message = f"{len(values):,} entries are too many; a list holds at most {MAX_ENTRIES:,}"
        problems.append(Problem(path, message))
        return ()
    entries = [
        _read_entry(value, f"{path}[{i}]", problems, fields, elsewhere or {})
        for i, value in enumerate(values)
    ]
    problems += _list_problems(path, entries, keep=keep, check_fields=fields is not None)
    problems += _check_field_kinds(path, entries)
    return tuple(entry for entry in entries if entry is not None)


def read_combination(value: Any, path: str, problems: list[Problem]) -> Combination:
    """Read a mapping of each dimension to a value or a list of values."""
    if not isinstance(value, dict) or not value:
        problems.append(Problem(path, "expected a mapping of dimensions to values, as in {topic: Tides}"))
        return {}
    found: Combination = {}
    for name, values in value.items():
        listed = values if isinstance(values, list) else [values]
        if not listed or not all(isinstance(one, str) for one in listed):
            where = f"{path}.{shorten_word(str(name))}"
            problems.append(
                Problem(where, "expected a value of that dimension, or a list of them, all texts")
            )
        else:
            found[str(name)] = tuple(dict.fromkeys(listed))
    return found


def _read_entry(
    value: Any,
    path: str,
    problems: list[Problem],
    fields: Collection[str] | None,
    elsewhere: Mapping[str, str],
) -> Entry | None:
    """Read an element of a list as an Entry; return None if it has no value."""
    if isinstance(value, str):
        return Entry(value)
    if isinstance(value, dict):
        return _read_mapping(value, path, problems, fields, elsewhere)
    if value is None:
        problems.append(Problem(path, "expected a text, got nothing"))
    elif isinstance(value, list):
        problems.append(Problem(path, "expected a text or a mapping, got a list"))
    else:
        kind = _KINDS.get(type(value), "something else")
        problems.append(Problem(path, f"expected a text, and YAML reads this as {kind}; put it in quotes"))
    return None


def _read_mapping(
    value: dict[Any, Any],
    path: str,
    problems: list[Problem],
    allowed: Collection[str] | None,
    elsewhere: Mapping[str, str],
) -> Entry | None:
    weight = convert(value["weight"], float, f"{path}.weight", problems) if "weight" in value else 1.0
    when: Combination = {}
    fields: dict[str, Any] = {}
    for key, said in value.items():
        where = f"{path}.{shorten_word(str(key))}"
        if key in ("value", "weight"):
            continue
        if key == "when" and allowed is None:
            when = read_combination(said, where, problems)
        elif allowed is None:
            fields[str(key)] = _read_field(key, said, where, problems)
        elif key in allowed:
            if said is not None:
                fields[key] = convert(said, str, where, problems)
        elif key in elsewhere:
            problems.append(Problem(where, f"only {elsewhere[key]} have a {key}; remove it"))
        else:
            problems.append(
                Problem(where, f"unknown key{suggest_name(str(key), ('value', 'weight', *allowed))}")
            )
    if "value" not in value:
        problems.append(Problem(f"{path}.value", "this key is missing"))
        return None
    text = convert(value["value"], str, f"{path}.value", problems)
    return None if text is None else Entry(text, 1.0 if weight is None else weight, fields, when)


def _read_field(key: Any, value: Any, path: str, problems: list[Problem]) -> Any:
    wrong = find_field_problem(key) if isinstance(key, str) else "a name is a text; put it in quotes"
    if wrong is not None:
        problems.append(Problem(path, wrong))
    elif value is None:
        problems.append(Problem(path, "this key has no value; give it a value or remove it"))
    elif _is_too_deep(value):
        problems.append(Problem(path, f"lists and mappings are nested more than {MAX_DEPTH} deep here"))
    else:
        problems += [Problem(path, problem.message) for problem in _check_field_texts(value)][:1]
        return convert(value, Any, path, problems)
    return None


def _is_too_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """Return whether lists and mappings are nested more than `most` levels deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (most == 0 or any(_is_too_deep(one, most - 1) for one in inner))


def _check_field_texts(value: Any) -> Iterator[Problem]:
    """Yield problems of a field's texts, which may have several lines."""
    if isinstance(value, str):
        yield from find_remark_problems("field", value)
    elif isinstance(value, list):
        for one in value:
            yield from _check_field_texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _check_field_texts(key)
            yield from _check_field_texts(one)


def _list_problems(
    path: str, entries: Sequence[Entry | None], *, keep: bool, check_fields: bool
) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if entry is None:
            continue
        yield from _find_entry_problems(entry, f"{path}[{i}]", check_fields=check_fields)
        earlier = first.setdefault(normalize_likeness(entry.value), i)
        if not keep and earlier != i:
            yield _describe_duplicate(entry.value, entries[earlier], f"{path}[{i}]", f"{path}[{earlier}]")
    if entries and all(entry is not None and entry.weight == 0 for entry in entries):
        yield Problem(path, "every weight is 0; give at least one entry a positive weight")


def _find_entry_problems(entry: Entry, path: str, *, check_fields: bool) -> Iterator[Problem]:
    yield from find_text_problems(entry.value, path)
    if not (math.isfinite(entry.weight) and entry.weight >= 0):
        yield Problem(f"{path}.weight", f"a weight is a finite number from 0 upwards, not {entry.weight!r}")
    if check_fields:
        for key, text in entry.fields.items():
            yield from find_text_problems(text, f"{path}.{key}") if isinstance(text, str) else ()


def _check_field_kinds(path: str, entries: Sequence[Entry | None]) -> Iterator[Problem]:
    """Yield a problem for each field whose kind differs from an earlier entry's."""
    kinds: dict[str, tuple[str, int]] = {}
    for i, entry in enumerate(entries):
        for name, value in entry.fields.items() if entry is not None else ():
            kind = _KINDS.get(type(value))
            if kind is None:  # reported as its own problem
                continue
            known, place = kinds.setdefault(name, (kind, i))
            if kind != known:
                message = (
                    f"this is {kind}, and {name} is {known} in {path}[{place}]; write the same kind "
                    "everywhere"
                )
                yield Problem(f"{path}[{i}].{name}", message)


def _describe_duplicate(value: str, earlier: Entry | None, path: str, first: str) -> Problem:
    if earlier is not None and earlier.value == value:
        said = f"is listed already, at {first}"
    else:
        said = f"differs from {first} only in invisible characters or in the Unicode form of its letters"
    return Problem(path, f"{quote(value)} {said}; remove one (or give one a higher weight)")


def read_lists(
    value: dict[str, Any], layout: SpaceLayout, problems: list[Problem], *, keep: bool
) -> tuple[Dimension, ...]:
    """Read the lists of a layout as dimensions."""
    listed = [one for one in layout.dimensions if one.list in value]
    _check_total([value[one.list] for one in listed], problems)
    elsewhere = {field: layout.lists[name] for field, name in layout.fields.items()}
    return tuple(
        Dimension(
            one.name,
            read_entries(
                value[one.list], f"$.{one.list}", problems, keep=keep, fields=one.fields, elsewhere=elsewhere
            ),
        )
        for one in listed
    )


def read_dimensions(value: dict[str, Any], problems: list[Problem], *, keep: bool) -> tuple[Dimension, ...]:
    listed = value.get("dimensions")
    if not isinstance(listed, dict) or not listed:
        if "dimensions" in value:
            message = "expected a mapping of names to lists, as in {topic: [Tides, Waves]}"
            problems.append(Problem("$.dimensions", message))
        return ()
    if len(listed) > MAX_DIMENSIONS:
        message = f"{len(listed):,} dimensions are too many; a space has at most {MAX_DIMENSIONS}"
        problems.append(Problem("$.dimensions", message))
        return ()
    _check_total([one.get("values") if isinstance(one, dict) else one for one in listed.values()], problems)
    return tuple(_read_dimension(name, one, problems, keep) for name, one in listed.items())


def _read_dimension(name: Any, value: Any, problems: list[Problem], keep: bool) -> Dimension:
    path = f"$.dimensions.{shorten_word(str(name))}"
    wrong = find_dimension_problem(name) if isinstance(name, str) else "a name is a text; put it in quotes"
    if wrong is not None:
        problems.append(Problem(path, wrong))
    if not isinstance(value, dict):
        return Dimension(str(name), read_entries(value, path, problems, keep=keep))
    known = ("values", "label")
    unknown = [str(key) for key in value if key not in known]
    problems += [
        Problem(f"{path}.{shorten_word(key)}", f"unknown key{suggest_name(key, known)}") for key in unknown
    ]
    label = value.get("label")
    if label is not None and (label := convert(label, str, f"{path}.label", problems)) is not None:
        problems += [Problem(f"{path}.label", one.message) for one in find_remark_problems("name", label)]
    if "values" not in value:
        problems.append(Problem(f"{path}.values", "this key is missing"))
        return Dimension(str(name), ())
    return Dimension(str(name), read_entries(value["values"], f"{path}.values", problems, keep=keep), label)


def _check_total(lists: list[Any], problems: list[Problem]) -> None:
    total = sum(len(entries) for entries in lists if isinstance(entries, list))
    if total > MAX_TOTAL:
        message = f"{total:,} entries in all lists are too many; a space holds at most {MAX_TOTAL:,}"
        problems.append(Problem("$", message))
