"""`edgen space from-ed`: released Education Dialogue (ED) files to a space file.

It counts what the records were drawn from and writes it as a space, the counts as weights. Values that a
reader cannot tell apart are counted as the first of them. Of a record only `background_info` is read, and the
topic's subject and level, which edgen's own records have; conversations may be broken in any way that leaves the
file JSON.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from edgen.cli.output import note, print_line
from edgen.errors import DataError, Problem, UsageError
from edgen.files import write_new, write_whole
from edgen.loading import MAX_BYTES, read_text
from edgen.space import DIMENSIONS, Entry, Space, blank, check, dump_space, forbidden, likeness

MAX_ED_BYTES = 256 * 1024 * 1024  # the largest file of the release is a tenth of it
MAX_PROBLEMS = 20  # a file

# A space's dimension -> the key of `background_info` that it is counted from: ED's own spelling
# first, then the correct one.
KEYS = {
    "topics": ("topic",),
    "student_preferences": ("student_prefrences", "student_preferences"),
    "student_reactions": ("student_reactions",),
    "teacher_preferences": ("teacher_prefrences", "teacher_preferences"),
    "teacher_reactions": ("teacher_reactions",),
}


class _Record(msgspec.Struct):
    """What is read of a record; msgspec skips the rest."""

    background_info: Any = None
    scenario: Any = None


class Observed:
    """What records were drawn from: a count for each value, and what was removed to make it one."""

    def __init__(self) -> None:
        self.records = 0
        self.counts: dict[str, Counter[str]] = {dimension: Counter() for dimension in DIMENSIONS}
        self.notes: list[str] = []
        self._told: dict[
            str, dict[str, str]
        ] = {}  # a topic's subject and level, as the first record with any has them
        self._first: dict[tuple[str, str], str] = {}  # (dimension, likeness) -> the value first seen

    def space(self, name: str, source: str) -> Space:
        """The counts as weights, the most frequent value first. Raises DataError if they make no space."""
        space = Space(
            name=name,
            source=source,
            topics=tuple(
                msgspec.structs.replace(topic, **self._told.get(topic.value, {}))
                for topic in _ranked(self.counts["topics"])
            ),
            student_preferences=_ranked(self.counts["student_preferences"]),
            student_reactions=_ranked(self.counts["student_reactions"]),
            teacher_preferences=_ranked(self.counts["teacher_preferences"]),
            teacher_reactions=_ranked(self.counts["teacher_reactions"]),
        )
        if problems := check(space):
            raise DataError(source, "it makes no space that edgen could read back:", problems)
        return space

    def dump(self, name: str, source: str) -> str:
        """The space as a file's text. Raises DataError if it is none that edgen could read back."""
        text = dump_space(self.space(name, source))
        if len(text.encode()) > MAX_BYTES:
            raise DataError(
                source,
                f"the space file would be larger than {MAX_BYTES // 1024 // 1024} MiB, the most that edgen reads; "
                "make it from fewer records.",
            )
        return text

    def add(self, source: str, text: str) -> None:
        """Count the records of one file. Raises DataError, the first problems of the file in it."""
        records = _records(source, text)
        decoder = msgspec.json.Decoder(_Record)
        problems: list[Problem] = []
        for i, raw in enumerate(records):
            try:
                record = decoder.decode(raw)
            except msgspec.ValidationError:
                problems.append(Problem(f"$[{i}]", "expected an object with background_info"))
                continue
            self._add_background(record.background_info, source, f"$[{i}].background_info", problems)
            self._add_told(record)
        if problems:
            raise DataError(source, *_worded(problems))
        self.records += len(records)

    def _add_told(self, record: _Record) -> None:
        """Note what a record says of its topic. What is no text is left out, as it is none of ED's."""
        if not (isinstance(record.scenario, dict) and isinstance(record.background_info, dict)):
            return
        topic = record.background_info.get("topic")
        told = {name: record.scenario.get(name) for name in ("subject", "level")}
        kept = {
            name: clean(text)
            for name, text in told.items()
            if isinstance(text, str) and not blank(clean(text))
        }
        if isinstance(topic, str) and kept:
            self._told.setdefault(self._first.get(("topics", likeness(clean(topic))), topic), kept)

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
            value = background[key]
            if not isinstance(value, str):
                problems.append(Problem(f"{path}.{key}", f"expected a string, got {type_name(value)}"))
                continue
            text = clean(value)
            if blank(text):
                problems.append(Problem(f"{path}.{key}", "this string is empty or blank"))
                continue
            if text != value.strip():
                self.notes.append(
                    f"{source}: {path}.{key}: control characters were replaced in {value[:80]!r}"
                )
            first = self._first.setdefault((dimension, likeness(text)), text)
            if text != first:
                self.notes.append(f"{source}: {path}.{key}: {text[:80]!a} is counted as {first[:80]!a}")
            self.counts[dimension][first] += 1


def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Released ED files: JSON lists of records.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="The file to write (else: printed).", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The space's name (else: after OUT).", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT if it is there.")] = False,
) -> None:
    """Write a space file with observed frequencies out of released ED files.

    Example: edgen space from-ed conversations_train*.json -o my_space.yaml
    """
    name = name if name is not None else output.stem if output else "from-ed"
    if not (name := clean(name)):
        raise UsageError("--name: a space needs a name that is not blank.")
    observed = observe(files)
    listed = clean(", ".join(path.name for path in files))
    text = observed.dump(name, f"Observed frequencies in {observed.records:,} records: {listed}")
    if output is None:
        print_line(text.rstrip("\n"))
    else:
        write(output, text, force=force)
    for remark in observed.notes[:MAX_PROBLEMS]:
        note(remark)
    if len(observed.notes) > MAX_PROBLEMS:
        note(f"… and {len(observed.notes) - MAX_PROBLEMS:,} more")
    found = ", ".join(f"{len(observed.counts[d])} {d.replace('_', ' ')}" for d in DIMENSIONS)
    note(f"{observed.records:,} records: {found}" + (f"; written to {output}" if output else ""))


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
        text = "".join(" " if forbidden(char) else char for char in text)
    return text.strip()


def type_name(value: Any) -> str:
    """What JSON calls the type of a decoded value."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), "a string")


def _ranked(counts: Counter[str]) -> tuple[Entry, ...]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Entry(value, float(count)) for value, count in ranked)


def _records(source: str, text: str) -> list[msgspec.Raw]:
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


def _worded(problems: Iterable[Problem]) -> tuple[str, list[Problem]]:
    """A summary and the problems to show."""
    problems = list(problems)
    count = len(problems)
    summary = f"{count:,} problem{'s' if count > 1 else ''}"
    shown = f", the first {MAX_PROBLEMS} of them" if count > MAX_PROBLEMS else ""
    return f"{summary}{shown}:", problems[:MAX_PROBLEMS]
