"""Released Education Dialogue (ED) files to a space file.

It counts what the records were drawn from and writes it as a space, the counts as weights. Values that a
reader cannot tell apart are counted as the first of them. Of a record only `background_info` is read, and `scenario`,
in which edgen's own records have what a space holds besides ED's five texts, or all of it; conversations may be broken
in any way that leaves the file JSON.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.core.errors import DataError, Problem, SpaceError, UsageError
from edgen.core.files import write_new, write_whole
from edgen.core.yaml_values import MAX_BYTES, read_text
from edgen.space import Dimension, Entry, Space, SpaceRole, dump_space, parse_space
from edgen.space.education import DIMENSIONS, LISTS, TOPIC_FIELDS
from edgen.space.parse import default_roles
from edgen.space.text_rules import is_blank, is_forbidden, likeness

MAX_ED_BYTES = 256 * 1024 * 1024  # the largest file of the release is a tenth of it
MAX_PROBLEMS = 20  # a file

# A space's dimension -> the key of `background_info` that it is counted from: ED's own spelling
# first, then the correct one.
KEYS = {
    "topic": ("topic",),
    "student_preference": ("student_prefrences", "student_preferences"),
    "student_reaction": ("student_reactions",),
    "teacher_preference": ("teacher_prefrences", "teacher_preferences"),
    "teacher_reaction": ("teacher_reactions",),
}


class _Record(msgspec.Struct):
    """What is read of a record; msgspec skips the rest."""

    background_info: Any = None
    scenario: Any = None
    roles: Any = None


class Observed:
    """What records were drawn from: a count for each value, and what was removed to make it one."""

    def __init__(self) -> None:
        self.records = 0
        self.counts: dict[str, Counter[str]] = {}
        self.notes: list[str] = []
        self._fields: dict[
            tuple[str, str], dict[str, Any]
        ] = {}  # of a value, as the first record with any has them
        self._first: dict[tuple[str, str], str] = {}  # (dimension, likeness) -> the value first seen
        self._roles: dict[str, None] = {}

    def space(self, title: str, source: str) -> Space:
        """The counts as weights, the most frequent value first."""
        names = [*DIMENSIONS, *[name for name in self.counts if name not in DIMENSIONS]]
        names = [name for name in names if name in self.counts]
        dimensions = []
        for name in names:
            ranked = sorted(self.counts[name].items(), key=lambda item: (-item[1], item[0]))
            entries = [
                Entry(value, float(count), self._fields.get((name, value), {})) for value, count in ranked
            ]
            dimensions.append(Dimension(name, tuple(entries)))
        roles = tuple(SpaceRole(role, tuple(names)) for role in self._roles) or default_roles(names)
        return Space(name=title, source=source, dimensions=tuple(dimensions), roles=roles)

    @property
    def has_own_roles(self) -> bool:
        """Whether the records name roles, of which they do not say what each knows."""
        return bool(self._roles)

    def sizes(self) -> dict[str, int]:
        """How many values each dimension has, by what ED's files call the list, or by the dimension's name."""
        return {LISTS.get(name, name): len(counts) for name, counts in self.counts.items()}

    def dump(self, name: str, source: str) -> str:
        """The space as a file's text. Raises DataError if it is none that edgen could read back."""
        text = dump_space(self.space(name, source))
        if len(text.encode()) > MAX_BYTES:
            raise DataError(
                source,
                f"the space file would be larger than {MAX_BYTES // 1024 // 1024} MiB, the most that edgen reads; "
                "make it from fewer records.",
            )
        try:
            parse_space(text, source)
        except SpaceError as error:
            raise DataError(source, "it makes no space that edgen could read back:", error.problems) from None
        return text

    def add(self, source: str, text: str) -> None:
        """Count the records of one file. Raises DataError, the first problems of the file in it."""
        records = _split_records(source, text)
        decoder = msgspec.json.Decoder(_Record)
        problems: list[Problem] = []
        for i, raw in enumerate(records):
            try:
                record = decoder.decode(raw)
            except msgspec.ValidationError:
                problems.append(Problem(f"$[{i}]", "expected an object with background_info"))
                continue
            if record.background_info is not None or not isinstance(record.scenario, dict):
                self._add_background(record.background_info, source, f"$[{i}].background_info", problems)
                self._add_topic(record)
                # A record of Education Dialogue's with more dimensions has the topic there as well.
                if isinstance(record.scenario, dict) and "topic" in record.scenario:
                    more = {name: said for name, said in record.scenario.items() if name not in DIMENSIONS}
                    self._add_scenario(more, source, f"$[{i}].scenario", problems)
            else:
                self._add_scenario(record.scenario, source, f"$[{i}].scenario", problems)
                self._add_roles(record.roles)
        if problems:
            raise DataError(source, *_summarise(problems))
        self.records += len(records)

    def _add_topic(self, record: _Record) -> None:
        """Note what a record says of its topic. What is no text is left out, as it is none of ED's."""
        if not (isinstance(record.scenario, dict) and isinstance(record.background_info, dict)):
            return
        topic = record.background_info.get("topic")
        told = {name: record.scenario.get(name) for name in TOPIC_FIELDS}
        kept = {
            name: clean(text)
            for name, text in told.items()
            if isinstance(text, str) and not is_blank(clean(text))
        }
        if isinstance(topic, str) and kept:
            self._fields.setdefault(
                ("topic", self._first.get(("topic", likeness(clean(topic))), topic)), kept
            )

    def _add_scenario(
        self, scenario: Mapping[str, Any], source: str, path: str, problems: list[Problem]
    ) -> None:
        """Count the values of a record that has all of them by their dimensions."""
        for name, said in scenario.items():
            value, fields = said, {}
            if isinstance(said, dict):
                value = said.get("value")
                fields = {key: one for key, one in said.items() if key != "value"}
            first = self._add_value(name, value, source, f"{path}.{name}", problems)
            if first is not None and fields:
                self._fields.setdefault((name, first), fields)

    def _add_roles(self, roles: Any) -> None:
        for role in roles if isinstance(roles, list) else ():
            if isinstance(role, str):
                self._roles.setdefault(role)

    def _add_background(self, background: Any, source: str, path: str, problems: list[Problem]) -> None:
        if not isinstance(background, dict):
            what = "this key is missing" if background is None else "expected an object"
            problems.append(Problem(path, what))
            return
        for dimension, keys in KEYS.items():
            key = next((key for key in keys if key in background), None)
            if key is None:
                problems.append(Problem(f"{path}.{keys[0]}", "this key is missing"))
                continue
            self._add_value(dimension, background[key], source, f"{path}.{key}", problems)

    def _add_value(
        self, dimension: str, value: Any, source: str, path: str, problems: list[Problem]
    ) -> str | None:
        """Count a value; returns the one that it is counted as, None where it is none."""
        if not isinstance(value, str):
            problems.append(Problem(path, f"expected a string, got {type_name(value)}"))
            return None
        text = clean(value)
        if is_blank(text):
            problems.append(Problem(path, "this string is empty or blank"))
            return None
        if text != value.strip():
            self.notes.append(f"{source}: {path}: control characters were replaced in {value[:80]!r}")
        first = self._first.setdefault((dimension, likeness(text)), text)
        if text != first:
            self.notes.append(f"{source}: {path}: {text[:80]!a} is counted as {first[:80]!a}")
        self.counts.setdefault(dimension, Counter())[first] += 1
        return first


class SpaceFromEd(NamedTuple):
    """The text of a space file, of how many records it was made, the values of each dimension, and remarks."""

    text: str
    records: int
    values: dict[str, int]
    notes: tuple[str, ...]


def make_space_from_ed(
    files: Sequence[Path], output: Path | None, name: str | None = None, *, force: bool = False
) -> SpaceFromEd:
    """Write a space file with observed frequencies out of released ED files; without `output` it is only returned.

    Raises DataError for files that cannot be read, UsageError where it cannot be written; `force`: over another.
    """
    name = name if name is not None else output.stem if output else "from-ed"
    if not (name := clean(name)):
        raise UsageError("--name: a space needs a name that is not blank.")
    observed = observe(files)
    listed = clean(", ".join(path.name for path in files))
    text = observed.dump(name, f"Observed frequencies in {observed.records:,} records: {listed}")
    if output is not None:
        write(output, text, force=force)
    shown, more = observed.notes[:MAX_PROBLEMS], len(observed.notes) - MAX_PROBLEMS
    notes = (*shown, *([f"… and {more:,} more"] if more > 0 else []))
    if observed.has_own_roles:
        notes = (
            *notes,
            "every role sees every dimension, as records do not say more: give each its own `sees`",
        )
    return SpaceFromEd(text, observed.records, observed.sizes(), notes)


def observe(files: Sequence[Path]) -> Observed:
    """Count the records of all files. Raises DataError with the problems of every file."""
    observed = Observed()
    errors = []
    for path in files:
        try:
            observed.add(str(path), read_text(path, DataError, max_bytes=MAX_ED_BYTES))
        except DataError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        problems = []
        for one in errors:
            problems.append(Problem(one.source, one.summary))
            problems += [Problem(f"{one.source} {p.path}", p.message) for p in one.problems]
        raise DataError(f"({len(files)} files)", f"{len(errors)} of them cannot be used:", problems)
    return observed


def write(path: Path, text: str, *, force: bool) -> None:
    """Write `text` to a new file, or with `force` to any. Raises UsageError if that cannot be done."""
    try:
        if not force:
            write_new(path, text)
        elif path.exists() and not path.is_file():
            raise UsageError(f"-o {path}: this is no file, and is left as it is; choose another name.")
        else:
            write_whole(Path(os.path.realpath(path)), text)  # what a link of the person's own leads to
    except FileExistsError:
        raise UsageError(
            f"-o {path}: there is something of that name already; "
            "choose another name, or pass --force to overwrite it."
        ) from None
    except FileNotFoundError:
        raise UsageError(f"-o {path}: there is no folder {path.parent}; make it first.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"-o {path}: it cannot be written: {reason}.") from None


def clean(text: str) -> str:
    """`text` stripped, each control character, surrogate or bidirectional override made a blank."""
    if not text.isprintable():
        text = "".join(" " if is_forbidden(char) else char for char in text)
    return text.strip()


def type_name(value: Any) -> str:
    """What JSON calls the type of a decoded value."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), "a string")


def _split_records(source: str, text: str) -> list[msgspec.Raw]:
    """The records of a file, each still JSON, so that memory holds no conversation but the text's."""
    if not text.strip():
        raise DataError(source, "it is empty; an ED file is a JSON list of records.")
    try:
        records = msgspec.json.decode(text, type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise DataError(source, "it is JSON, but no list; an ED file is a JSON list of records.") from None
    except (msgspec.DecodeError, UnicodeError) as problem:
        reason = str(problem).removeprefix("JSON is malformed: ")
        raise DataError(source, f"it is not valid JSON: {reason}.") from None
    except RecursionError:
        raise DataError(source, "it is nested too deeply.") from None
    if not records:
        raise DataError(source, "its list is empty; there is nothing to count.")
    return records


def _summarise(problems: Iterable[Problem]) -> tuple[str, list[Problem]]:
    """A summary and the problems to show."""
    problems = list(problems)
    count = len(problems)
    summary = f"{count:,} problem{'s' if count > 1 else ''}"
    shown = f", the first {MAX_PROBLEMS} of them" if count > MAX_PROBLEMS else ""
    return f"{summary}{shown}:", problems[:MAX_PROBLEMS]
