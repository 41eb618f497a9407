"""A preference space: the vocabularies that scenarios are drawn from, one YAML file.

Five dimensions, each a non-empty list of entries: a plain text, or a mapping with a weight and, for
topics, a subject and a level. A file is read whole or refused with every problem and its path.
Values are kept to the letter: what looks like Jinja in one is text like any other. A value is one
line without control characters or bidirectional overrides, because it ends up in prompts, records
and terminals. Two values that only a machine can tell apart count as one value listed twice.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.errors import Problem, SpaceError
from edgen.loading import convert, read_text, read_yaml

DIMENSIONS = (
    "topics",
    "student_preferences",
    "student_reactions",
    "teacher_preferences",
    "teacher_reactions",
)
# So many are read in seconds, and are within what `loading` reads of any file.
MAX_ENTRIES = 20_000  # a dimension
MAX_TOTAL = 40_000  # a space

_BIDI_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")  # fillers and the empty Braille cell
_LAYOUT = str.maketrans("\n\t", "  ")


class Entry(msgspec.Struct, frozen=True):
    """One value of a dimension. Weights are relative to the others of the same dimension.

    `subject` and `level` are for topics only.
    """

    value: str
    """The text that stands in a scenario, to the letter."""
    weight: float = 1.0
    """How often it is drawn, relative to the others of its list, where the design is random."""
    subject: str | None = None
    """The school subject of a topic."""
    level: str | None = None
    """The level of a topic."""


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """The vocabularies of a scenario, in the order that the file lists them.

    `source` says where the vocabulary comes from. With `duplicates: keep` a value may be listed
    more than once, and each copy is an entry of its own.
    """

    name: str
    """What the space is called."""
    description: str | None = None
    """What it holds, in a few words."""
    source: str | None = None
    """Where the vocabulary comes from."""
    duplicates: Literal["refuse", "keep"] = "refuse"
    """Whether a value may be listed more than once, each copy an entry of its own."""
    topics: tuple[Entry, ...]
    """What is taught."""
    student_preferences: tuple[Entry, ...]
    """How the student likes to learn."""
    student_reactions: tuple[Entry, ...]
    """What the student does when it is otherwise."""
    teacher_preferences: tuple[Entry, ...]
    """How the teacher likes to teach."""
    teacher_reactions: tuple[Entry, ...]
    """What the teacher does when it is otherwise."""

    @property
    def dimensions(self) -> tuple[tuple[Entry, ...], ...]:
        """The five lists in the order of `DIMENSIONS`."""
        return (
            self.topics,
            self.student_preferences,
            self.student_reactions,
            self.teacher_preferences,
            self.teacher_reactions,
        )

    @property
    def cells(self) -> int:
        """How many different scenarios there are: the product of the five sizes."""
        return math.prod(map(len, self.dimensions))


def load_space(path: Path) -> Space:
    """The space in the file at `path`. Raises SpaceError with every problem found."""
    return parse_space(read_text(path, SpaceError), str(path))


def parse_space(text: str, source: str) -> Space:
    """The space that a YAML text describes; `source` is what error messages call it.

    Raises SpaceError with every problem found.
    """
    value = read_yaml(text, source, SpaceError)
    if not isinstance(value, dict):
        raise SpaceError(
            source,
            "a space is a mapping with a name and five lists "
            f"({', '.join(DIMENSIONS)}), and this file holds none.",
        )
    problems: list[Problem] = []
    # All but the lists first: missing and unknown keys, name, description, source, duplicates.
    if value.setdefault("duplicates", "refuse") not in ("refuse", "keep"):
        problems.append(Problem("$.duplicates", "expected refuse (the default) or keep"))
        value["duplicates"] = "refuse"
    head = convert({**value, **{key: [] for key in DIMENSIONS if key in value}}, Space, "$", problems)
    for key in ("name", "description", "source"):
        if isinstance(value.get(key), str):
            problems += _remark_problems(key, value[key])
    problems += _total_problems(map(value.get, DIMENSIONS))
    lists = {}
    for dimension in DIMENSIONS:
        if dimension in value:
            entries = _entries(value[dimension], f"$.{dimension}", problems)
            problems += _list_problems(dimension, entries, keep=value["duplicates"] == "keep")
            lists[dimension] = tuple(entries)
    if problems:
        raise SpaceError(source, f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:", problems)
    return msgspec.structs.replace(head, **lists)  # type: ignore[no-any-return]


def check(space: Space) -> list[Problem]:
    """What `parse_space` would refuse about a space that was built in code."""
    problems: list[Problem] = []
    for key in ("name", "description", "source"):
        if (remark := getattr(space, key)) is not None:
            problems += _remark_problems(key, remark)
    problems += _total_problems(space.dimensions)
    for dimension, entries in zip(DIMENSIONS, space.dimensions, strict=True):
        if not entries:
            problems.append(_empty(f"$.{dimension}"))
        elif len(entries) > MAX_ENTRIES:
            problems.append(_too_many(f"$.{dimension}", len(entries)))
        else:
            problems += _list_problems(dimension, entries, keep=space.duplicates == "keep")
    return problems


def value_problem(text: str) -> str | None:
    """What is wrong with a text as a value of a space, None if nothing is."""
    problem = next(_text_problems(text, "$"), None)
    return None if problem is None else problem.message


def dump_space(space: Space) -> str:
    """The space as YAML: `parse_space(dump_space(space), …) == space` for every valid space.

    Every text is quoted and what is not printable is escaped, so the result is safe to print.
    """
    lines = [f"name: {_quoted(space.name)}"]
    if space.description is not None:
        lines.append(f"description: {_quoted(space.description)}")
    if space.source is not None:
        lines.append(f"source: {_quoted(space.source)}")
    if space.duplicates != "refuse":
        lines.append(f"duplicates: {space.duplicates}")
    for dimension, entries in zip(DIMENSIONS, space.dimensions, strict=True):
        weighted = any(entry.weight != 1 for entry in entries)
        lines += ["", f"{dimension}:"]
        lines += [f"  - {_dumped(entry, weighted)}" for entry in entries]
    return "\n".join(lines) + "\n"


def content_sha256(space: Space) -> str:
    """SHA-256, in hex, of what scenarios depend on: the entries with all they hold, in order.

    Name, description, source, comments and layout are no part of it.
    """
    content = [
        # Adding 0.0 makes one number of 0.0 and -0.0.
        [dimension, [[e.value, float(e.weight) + 0.0, e.subject, e.level] for e in entries]]
        for dimension, entries in zip(DIMENSIONS, space.dimensions, strict=True)
    ]
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).hexdigest()


def forbidden(char: str) -> bool:
    """Whether a value may not hold this character.

    Control characters, line and paragraph separators, lone surrogates and bidirectional overrides
    may not stand in a value. Joiners and direction marks may: some scripts need them.
    """
    return char in _BIDI_OVERRIDES or unicodedata.category(char) in _FORBIDDEN_CATEGORIES


def blank(text: str) -> bool:
    """Whether nothing of the text can be seen: no character but spaces, controls and format characters."""
    return all(char in _INVISIBLE or unicodedata.category(char) in _INVISIBLE_CATEGORIES for char in text)


def likeness(text: str) -> str:
    """What two values have in common that a reader cannot tell apart.

    That is the text without format characters, such as a zero-width space, in Unicode's
    compatibility form (NFKC), which makes one of an é and an e with an accent put on it.
    """
    if text.isascii():
        return text
    seen = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", seen).strip()


def _entries(values: Any, path: str, problems: list[Problem]) -> list[Entry | None]:
    """Each element as an Entry, None in the place of one that nothing can be read of."""
    if not isinstance(values, list):
        problems.append(Problem(path, "expected a list, each entry on a line of its own after '- '"))
        return []
    if not values:
        problems.append(_empty(path))
    if len(values) > MAX_ENTRIES:
        problems.append(_too_many(path, len(values)))
        return []
    return [_entry(value, f"{path}[{i}]", problems) for i, value in enumerate(values)]


def _entry(value: Any, path: str, problems: list[Problem]) -> Entry | None:
    if isinstance(value, str):
        return Entry(value)
    if isinstance(value, dict):
        entry: Entry | None = convert(value, Entry, path, problems)
        return entry or _salvaged(value)
    if value is None:
        problems.append(Problem(path, "expected a text, got nothing"))
    elif isinstance(value, list):
        problems.append(Problem(path, "expected a text or a mapping, got a list"))
    else:
        kind = _YAML_TYPES.get(type(value), "something else")
        problems.append(Problem(path, f"expected a text, and YAML reads this as {kind}; put it in quotes"))
    return None


_YAML_TYPES = {bool: "true or false", int: "a number", float: "a number"}


def _salvaged(value: dict[Any, Any]) -> Entry | None:
    """What is sound in an entry that is refused, so that its other problems are found with the first."""
    texts = {key: value[key] for key in ("value", "subject", "level") if isinstance(value.get(key), str)}
    weight = value.get("weight")
    if not (isinstance(weight, int | float) and -1e300 < weight < 1e300):
        weight = 1.0
    return Entry(**texts, weight=float(weight)) if "value" in texts else None


def _list_problems(dimension: str, entries: Sequence[Entry | None], *, keep: bool) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if entry is None:
            continue
        path = f"$.{dimension}[{i}]"
        yield from _entry_problems(entry, path, topic=dimension == "topics")
        earlier = first.setdefault(likeness(entry.value), i)
        if not keep and earlier != i:
            yield _duplicate(entry.value, entries[earlier], path, f"$.{dimension}[{earlier}]")
    if entries and all(entry is not None and entry.weight == 0 for entry in entries):
        yield Problem(f"$.{dimension}", "every weight is 0; give at least one entry a positive weight")


def _entry_problems(entry: Entry, path: str, *, topic: bool) -> Iterator[Problem]:
    yield from _text_problems(entry.value, path)
    if not (math.isfinite(entry.weight) and entry.weight >= 0):
        yield Problem(f"{path}.weight", f"a weight is a finite number from 0 upwards, not {entry.weight!r}")
    for key in ("subject", "level"):
        text = getattr(entry, key)
        if text is not None and not topic:
            yield Problem(f"{path}.{key}", f"only topics have a {key}; remove it")
        elif text is not None:
            yield from _text_problems(text, f"{path}.{key}")


def _text_problems(text: str, path: str) -> Iterator[Problem]:
    if blank(text):
        yield Problem(path, "this text is empty or blank")
        return
    if text != text.strip():
        yield Problem(path, f"{_shown(text)} begins or ends with a blank; remove it")
    if text.isprintable():
        return
    bad = dict.fromkeys(char for char in text if forbidden(char))
    if bad:
        codes = ", ".join(f"U+{ord(char):04X}" for char in bad)
        yield Problem(path, f"{_shown(text)} holds {codes}; remove it, a text is one line without controls")


def _remark_problems(key: str, text: str) -> Iterator[Problem]:
    """Name, description and source; the last two may run over several lines."""
    line = text if key == "name" else text.translate(_LAYOUT).strip()
    yield from _text_problems(line, f"$.{key}")


def _empty(path: str) -> Problem:
    return Problem(path, "this list is empty; give it at least one entry")


def _too_many(path: str, count: int) -> Problem:
    return Problem(path, f"{count:,} entries are too many; a list holds at most {MAX_ENTRIES:,}")


def _total_problems(lists: Iterable[Any]) -> Iterator[Problem]:
    total = sum(len(entries) for entries in lists if isinstance(entries, list | tuple))
    if total > MAX_TOTAL:
        yield Problem(
            "$", f"{total:,} entries in all lists are too many; a space holds at most {MAX_TOTAL:,}"
        )


def _duplicate(value: str, earlier: Entry | None, path: str, first: str) -> Problem:
    if earlier is not None and earlier.value == value:
        said = f"is listed already, at {first}"
    else:
        said = f"differs from {first} only in invisible characters or in the Unicode form of its letters"
    return Problem(path, f"{_shown(value)} {said}; remove one (or give one a higher weight)")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _dumped(entry: Entry, weighted: bool) -> str:
    value = _quoted(entry.value)
    extra = [f"weight: {_number(entry.weight)}"] if weighted else []
    extra += [f"subject: {_quoted(entry.subject)}"] if entry.subject is not None else []
    extra += [f"level: {_quoted(entry.level)}"] if entry.level is not None else []
    return f"{{value: {value}, {', '.join(extra)}}}" if extra else value


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    # YAML 1.1 takes 1e-07 for a text; it wants the point.
    return text if "." in text else text.replace("e", ".0e")


def _quoted(text: str) -> str:
    """A YAML double-quoted scalar on one line. JSON's escapes are YAML's but for those beyond 16 bits."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)
