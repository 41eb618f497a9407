"""A space from released Education Dialogue (ED) files.

The values of the records are counted and written as a space, with the counts as weights. Values that a reader
cannot distinguish count as the first of them. Only two parts of a record are read: `background_info`, and
`scenario`, in which edgen's own records hold values beyond ED's five texts, or all of them. Conversations may
be broken in any way that leaves the file valid JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.domains.education.layout import BACKGROUND_KEYS, DIMENSIONS, LAYOUT, TOPIC_FIELDS
from edgen.plugin import Space
from edgen.plugin.errors import DataError, Problem
from edgen.plugin.files import read_text
from edgen.plugin.protocols import SpaceRole
from edgen.plugin.texts import quantity
from edgen.space import Dimension, Entry
from edgen.space.entries import is_blank, normalize_likeness
from edgen.space.new_file import MAX_DATA_BYTES, MAX_PROBLEMS, NewSpace, choose_name, clean, dump, write
from edgen.space.parse import make_default_roles


class _Record(msgspec.Struct):
    """The parts of a record that are read; msgspec skips the rest."""

    background_info: Any = None
    scenario: Any = None
    roles: Any = None


class _Observed:
    """The values of records: a count for each value, and remarks for the user."""

    def __init__(self) -> None:
        self.records = 0
        self.counts: dict[str, Counter[str]] = {}
        self.roles: dict[str, None] = {}  # roles in records, which do not say what each sees
        self.notes: list[str] = []
        self._fields: dict[tuple[str, str], dict[str, Any]] = {}  # of a value, from the first record with any
        self._first: dict[tuple[str, str], str] = {}  # (dimension, likeness) -> the value first seen
        self._source, self._problems = "", list[Problem]()  # path of the current file

    def make_space(self, title: str, source: str) -> Space:
        """Return the space with the counts as weights, the most frequent values first."""
        names = [*DIMENSIONS, *[name for name in self.counts if name not in DIMENSIONS]]
        names = [name for name in names if name in self.counts]
        dimensions = []
        for name in names:
            ranked = sorted(self.counts[name].items(), key=lambda item: (-item[1], item[0]))
            entries = (
                Entry(value, float(count), self._fields.get((name, value), {})) for value, count in ranked
            )
            dimensions.append(Dimension(name, tuple(entries)))
        roles = tuple(SpaceRole(role, tuple(names)) for role in self.roles) or make_default_roles(names)
        return Space(name=title, source=source, dimensions=tuple(dimensions), roles=roles)

    def add(self, source: str, text: str) -> None:
        """Count the records of one file. Raises DataError with the first problems of the file."""
        records = _split_records(source, text)
        self._source, self._problems = source, []
        decoder = msgspec.json.Decoder(_Record)
        for number, raw in enumerate(records):
            try:
                self._add_record(decoder.decode(raw), f"$[{number}]")
            except msgspec.ValidationError:
                self._complain(f"$[{number}]", "expected an object with background_info")
        if count := len(self._problems):
            shown = f", the first {MAX_PROBLEMS} of them" if count > MAX_PROBLEMS else ""
            summary = f"{quantity(count, 'problem')}{shown}:"
            raise DataError(source, summary, self._problems[:MAX_PROBLEMS])
        self.records += len(records)

    def _complain(self, path: str, message: str) -> None:
        self._problems.append(Problem(path, message))

    def _add_record(self, record: _Record, path: str) -> None:
        scenario = record.scenario if isinstance(record.scenario, dict) else None
        if record.background_info is None and scenario is not None:
            self._add_scenario(scenario, f"{path}.scenario")
            roles = record.roles if isinstance(record.roles, list) else ()
            self.roles |= dict.fromkeys(role for role in roles if isinstance(role, str))
            return
        self._add_background(record.background_info, f"{path}.background_info")
        if scenario is None:
            return
        if isinstance(record.background_info, dict):
            self._add_topic(record.background_info.get("topic"), scenario)
        if "topic" in scenario:  # records of the layout with more dimensions have the topic there, too
            more = {name: said for name, said in scenario.items() if name not in DIMENSIONS}
            self._add_scenario(more, f"{path}.scenario")

    def _add_background(self, background: Any, path: str) -> None:
        if not isinstance(background, dict):
            self._complain(path, "this key is missing" if background is None else "expected an object")
            return
        for dimension, keys in BACKGROUND_KEYS.items():
            key = next((key for key in keys if key in background), None)
            if key is None:
                self._complain(f"{path}.{keys[0]}", "this key is missing")
            else:
                self._add_value(dimension, background[key], f"{path}.{key}")

    def _add_topic(self, topic: Any, scenario: Mapping[str, Any]) -> None:
        """Note a record's topic. A value that is not a text is left out, as ED has none."""
        told = {name: clean(text) for name in TOPIC_FIELDS if isinstance(text := scenario.get(name), str)}
        kept = {name: text for name, text in told.items() if not is_blank(text)}
        if isinstance(topic, str) and kept:
            first = self._first.get(("topic", normalize_likeness(clean(topic))), topic)
            self._fields.setdefault(("topic", first), kept)

    def _add_scenario(self, scenario: Mapping[str, Any], path: str) -> None:
        """Count the values that a record has by dimension."""
        for name, said in scenario.items():
            fields = dict(said) if isinstance(said, dict) else {}
            value = fields.pop("value", None) if isinstance(said, dict) else said
            first = self._add_value(name, value, f"{path}.{name}")
            if first is not None and fields:
                self._fields.setdefault((name, first), fields)

    def _add_value(self, dimension: str, value: Any, path: str) -> str | None:
        """Count a value; return the one that it counts as, None for an invalid one."""
        if not isinstance(value, str):
            self._complain(path, f"expected a string, got {_TYPES[type(value)]}")
            return None
        text = clean(value)
        if is_blank(text):
            self._complain(path, "this string is empty or blank")
            return None
        where = f"{self._source}: {path}"
        if text != value.strip():
            self.notes.append(f"{where}: control characters were replaced in {value[:80]!r}")
        first = self._first.setdefault((dimension, normalize_likeness(text)), text)
        if text != first:
            self.notes.append(f"{where}: {text[:80]!a} is counted as {first[:80]!a}")
        self.counts.setdefault(dimension, Counter())[first] += 1
        return first


# JSON's name for the type of a decoded value.
_TYPES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
}


def make_space_from_ed(
    files: Sequence[Path], output: Path | None, name: str | None = None, *, force: bool = False
) -> NewSpace:
    """Write a space file with observed frequencies from released ED files; without `output`, only return the
    text.

    Raises DataError for unreadable files, UsageError if the file cannot be written. `force`: overwrite an
    existing file.
    """
    name = choose_name(name, output, "from-ed")
    observed = _observe(files)
    listed = clean(", ".join(path.name for path in files))
    source = f"Observed frequencies in {observed.records:,} records: {listed}"
    text = dump(observed.make_space(name, source), source, "edgen reads; make it from fewer records")
    if output is not None:
        write(output, text, force=force)
    notes, more = observed.notes[:MAX_PROBLEMS], len(observed.notes) - MAX_PROBLEMS
    if more > 0:
        notes.append(f"… and {more:,} more")
    if observed.roles:
        notes.append("every role sees every dimension, as records do not say more: give each its own `sees`")
    values = {LAYOUT.lists.get(name, name): len(counts) for name, counts in observed.counts.items()}
    return NewSpace(text, observed.records, values, tuple(notes))


def _observe(files: Sequence[Path]) -> _Observed:
    """Count the records of all files. Raises DataError with the problems of every file."""
    observed = _Observed()
    errors = []
    for path in files:
        try:
            observed.add(str(path), read_text(path, DataError, max_bytes=MAX_DATA_BYTES))
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


def _split_records(source: str, text: str) -> list[msgspec.Raw]:
    """Return the records of a file, each as JSON. So memory holds no conversation except in the file's
    text."""
    if not text.strip():
        raise DataError(source, "it is empty; an ED file is a JSON list of records.")
    try:
        records = msgspec.json.decode(text, type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise DataError(source, "it is JSON, but not a list; an ED file is a JSON list of records.") from None
    except (msgspec.DecodeError, UnicodeError) as problem:
        reason = str(problem).removeprefix("JSON is malformed: ")
        raise DataError(source, f"it is not valid JSON: {reason}.") from None
    except RecursionError:
        raise DataError(source, "it is nested too deeply.") from None
    if not records:
        raise DataError(source, "its list is empty; there is nothing to count.")
    return records
