"""What is wrong with records, whoever wrote them, and repaired copies of them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.errors import UsageError
from edgen.core.files import write_lines
from edgen.families import family_of, family_of_record
from edgen.space import load_space
from edgen.store.run_folder import RunFolder
from edgen.store.shards import MANIFEST, strays, verify_manifest, write_list_atomic
from edgen.validation.checker import Checker, FileReport
from edgen.validation.findings import Finding, Vocabulary
from edgen.validation.reading import Inputs, find_inputs, printable, read_records, runs_at
from edgen.validation.repair import Fixed, Fixer, LeftOut

CHANGES = "changes.jsonl"


class FixedFile(msgspec.Struct, frozen=True):
    """A repaired copy: where it was written, its records, how many changed, and how many were left out."""

    path: str
    written: str
    records: int
    changed: int
    left_out: int


class FixedFiles(msgspec.Struct, frozen=True):
    """All repaired copies, and the list of every change."""

    out: str
    records: int
    changed: int
    left_out: int
    changes: str
    files: tuple[FixedFile, ...]


class Validation(msgspec.Struct, frozen=True):
    """What the files of some runs, folders or people are like. Errors make a record invalid; warnings do not."""

    records: int
    valid: int
    files: tuple[FileReport, ...]
    fixed: FixedFiles | UnsetType = UNSET

    @property
    def sound(self) -> bool:
        """Whether no file has an error."""
        return all(problem.severity != "error" for file in self.files for problem in file.problems)


def validate(
    paths: Sequence[Path], fix: Path | None = None, note: Callable[[str], None] = lambda _text: None
) -> Validation:
    """Check records against the schema and the rules, whoever wrote them. `fix`: the folder for repaired copies.

    Raises DataError for what cannot be read, UsageError where the copies cannot be written, RunError for a run with
    links in it.
    """
    for path in paths:
        _refuse_links(path)
    inputs = [_drop_strays(find_inputs(run)) for path in paths for run in runs_at(path)]
    targets = _choose_targets(inputs, paths, fix) if fix else {}
    data = [(found, _read_vocabulary(found, note)) for found in inputs]
    checker = Checker(_schema_of, _more_findings, _begins_anew)
    reports = [report for found, vocabulary in data for report in _check(found, vocabulary, checker)]
    return Validation(
        sum(report.records for report in reports),
        sum(report.valid for report in reports),
        tuple(reports),
        _fix(data, targets, fix) if fix else UNSET,
    )


def _refuse_links(path: Path) -> None:
    """Raise RunError if this is a run, a run's shards or one of them, and the run holds links. A folder of
    anybody's files may."""
    for run in map(RunFolder, (path, path.parent, path.parent.parent)):
        with contextlib.suppress(OSError):  # what cannot be looked at is named by whoever reads it
            if (run.path == path or run.shards in (path, path.parent)) and run.exists:
                run.refuse_links()


def _drop_strays(found: Inputs) -> Inputs:
    """Without the files that its manifest does not list: they are told of, and are no part of the data set."""
    if found.manifest is None:
        return found
    others = strays(found.manifest)
    return replace(found, files=tuple(path for path in found.files if path.name not in others))


def _read_vocabulary(found: Inputs, note: Callable[[str], None]) -> Vocabulary | None:
    """What the space of a run allows under each key of `background_info`.

    None if there is none; where a run's is gone, a note says so.
    """
    if found.space is None:
        if found.manifest is not None:
            missing = found.manifest.parent / "inputs" / "space.yaml"
            note(f"{printable(missing)} is not there, so the scenario strings are not checked against it.")
        return None
    space = load_space(found.space)
    return family_of(space).vocabulary(space)


def _schema_of(record: Any) -> str:
    """The schema of the family whose layout a decoded record has."""
    return family_of_record(record).schema_of(record)


def _more_findings(record: Any) -> Iterator[tuple[str, str]]:
    """What that family finds wrong beyond the schema."""
    return family_of_record(record).more_findings(record)


def _begins_anew(record: Any, turn: Any) -> bool:
    """Whether in that family a turn may stand behind one of the same role."""
    return family_of_record(record).begins_anew(turn)


def _check(found: Inputs, vocabulary: Vocabulary | None, checker: Checker) -> list[FileReport]:
    reports = [checker.file(printable(path), read_records(path), vocabulary) for path in found.files]
    if found.manifest is not None:
        records = {path.name: report.records for path, report in zip(found.files, reports, strict=True)}
        findings = [
            Finding.of(None, d.path, d.message, "manifest") for d in verify_manifest(found.manifest, records)
        ]
        findings += [
            Finding.of(None, "$.files", f"{name} is in the folder, but is not listed", "stray")
            for name in strays(found.manifest)
        ]
        if findings:
            reports.append(FileReport(printable(found.manifest / MANIFEST), 0, 0, tuple(findings)))
    return reports


def _choose_targets(inputs: Sequence[Inputs], paths: Sequence[Path], out: Path) -> dict[Path, Path]:
    """Where the copy of each file goes. Raises UsageError if anything is there or must not be."""
    try:
        if out.exists() and not out.is_dir():
            raise UsageError(f"--fix {out}: this is a file; name a folder for the copies.")
        inside = [path for path in paths if path.is_dir() and out.resolve().is_relative_to(path.resolve())]
        files = [path for found in inputs for path in found.files]
        targets = {path: out / f"{path.stem}.json" for path in files}
        taken = [target for target in (*targets.values(), out / CHANGES) if target.exists()]
    except (OSError, RuntimeError) as problem:  # links in a circle are a RuntimeError
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"--fix {out}: the folder cannot be used ({reason}).") from None
    if inside:
        raise UsageError(f"--fix {out}: this lies inside {inside[0]}; name a folder outside of what is read.")
    for target, many in Counter(targets.values()).items():
        if many > 1:
            raise UsageError(f"--fix {out}: two files would be written to {target}; fix them one at a time.")
    if taken:
        raise UsageError(
            f"--fix {out}: {taken[0]} exists already and is not written over; name a new folder."
        )
    return targets


def _fix(
    data: Sequence[tuple[Inputs, Vocabulary | None]], targets: dict[Path, Path], out: Path
) -> FixedFiles:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"--fix {out}: the folder cannot be made ({problem.strerror}).") from None
    fixer, lines, files = Fixer(_schema_of), list[bytes](), list[FixedFile]()
    for found, vocabulary in data:
        for path in found.files:
            label, target = printable(path), targets[path]
            counts = Counter(changed=0, left_out=0)
            fixed = fixer.file(label, read_records(path), vocabulary)
            records = write_list_atomic(target, _note_changes(fixed, label, counts, lines))
            files.append(FixedFile(label, printable(target), records, **counts))
    write_lines(out / CHANGES, lines)
    records, changed, left_out = (
        sum(getattr(file, key) for file in files) for key in ("records", "changed", "left_out")
    )
    return FixedFiles(printable(out), records, changed, left_out, printable(out / CHANGES), tuple(files))


def _note_changes(
    results: Iterator[Fixed | LeftOut], label: str, counts: Counter[str], lines: list[bytes]
) -> Iterator[bytes]:
    """The repaired records of a file, while what was changed is counted and added to the list of changes."""
    for number, result in enumerate(results):
        where = {"file": label, "record": number}
        if isinstance(result, LeftOut):
            counts["left_out"] += 1
            lines.append(msgspec.json.encode({**where, "left_out": result.reason}))
            continue
        counts["changed"] += bool(result.changes)
        lines += [msgspec.json.encode({**where, **msgspec.to_builtins(change)}) for change in result.changes]
        yield msgspec.json.encode(result.record)
