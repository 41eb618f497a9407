"""Problems of records from any source, and repaired copies of them."""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgen.annotation.layer import find_readers
from edgen.config import load_kept_job
from edgen.core.errors import DataError, EdgenError, SpaceError, UsageError
from edgen.core.files import new_folder, write_lines
from edgen.core.kept_files import DIGESTS
from edgen.core.registry import find, part_of
from edgen.families.base import find_family_of_record, find_kind_part
from edgen.families.reader import DataSetReader, RecordContents, find_reader_of_record, find_schema_of_record
from edgen.families.record_files import make_unknown_layout_error, open_records
from edgen.runtime.run_check import check_run, describe_rewriting
from edgen.space import load_space
from edgen.store.inputs_copy import restore_inputs
from edgen.store.run_folder import RunFolder
from edgen.store.shards import MANIFEST, find_strays, verify_manifest, write_list_atomic
from edgen.validation.checker import Checker, FileReport, RecordLayout
from edgen.validation.findings import Finding, Vocabulary
from edgen.validation.layout import LayoutChecks
from edgen.validation.reading import Inputs, find_inputs, list_runs, make_printable
from edgen.validation.repair import Fixed, Fixer, IrreparableRecord

CHANGES = "changes.jsonl"


class FixedFile(msgspec.Struct, frozen=True):
    """A repaired copy: its path, its records, and the numbers of changed and omitted ones."""

    path: str
    written: str
    records: int
    changed: int
    left_out: int


class FixedFiles(msgspec.Struct, frozen=True):
    """All repaired copies, and the list of every change."""

    out: str  # folder of the copies
    records: int  # in all files
    changed: int  # repaired records
    left_out: int  # records that cannot be repaired
    changes: str  # path of the list of changes
    files: tuple[FixedFile, ...]  # each copy


class Validation(msgspec.Struct, frozen=True):
    """The result of a check. Errors make a record, or a file of a run, invalid; warnings do not."""

    records: int  # records that were checked
    valid: int  # records without an error
    files: tuple[FileReport, ...]  # reports of the files, with findings
    fixed: FixedFiles | UnsetType = UNSET  # copies, if asked for
    repairs: tuple[str, ...] | UnsetType = UNSET  # sentences about remedies for damaged files of runs
    restored: tuple[str, ...] | UnsetType = UNSET  # restored inputs of runs

    @property
    def sound(self) -> bool:
        """True if no file has an error."""
        return all(problem.severity != "error" for file in self.files for problem in file.problems)


def validate(
    paths: Sequence[Path],
    fix: Path | None = None,
    note: Callable[[str], None] = lambda _text: None,
    *,
    restore: bool = False,
) -> Validation:
    """Check records from any source against the schema and the rules, and all files of runs.

    `fix`: the folder for repaired copies. `restore`: restore damaged inputs of runs from their ledgers first.
    Raises DataError for unreadable files, UsageError for copies that cannot be written, RunError for a run
    with links in it.
    """
    for path in paths:
        _refuse_links(path)
    runs = [RunFolder(path) for path in paths if _is_run(path)]
    restored = [path for run in runs for path in _restore(run)] if restore else None
    checks = [check_run(run, note, find_readers) for run in runs]
    damaged = {one.folder for one in checks if one.damaged}
    inputs = [_drop_unknown(found, note) for path in paths for found in _find(path, damaged=path in damaged)]
    targets = _choose_targets(inputs, paths, fix) if fix else {}
    data = [(found, _read_vocabulary(found, note)) for found in inputs]
    layouts = _Layouts()
    checker = Checker(layouts.of)
    reports = [report for found, vocabulary in data for report in _check(found, vocabulary, checker, layouts)]
    known = {(report.path, one.problem) for report in reports for one in report.problems}
    reports += [report for check in checks for report in check.reports if not _is_known(report, known)]
    repairs = tuple(
        dict.fromkeys(
            [repair for check in checks for repair in check.repairs] + _list_rewritten(runs, reports)
        )
    )
    return Validation(
        sum(report.records for report in reports),
        sum(report.valid for report in reports),
        tuple(reports),
        _fix(data, targets, fix) if fix else UNSET,
        repairs if runs else UNSET,
        UNSET if restored is None else tuple(make_printable(path) for path in restored),
    )


def _find(path: Path, *, damaged: bool) -> Iterator[Inputs]:
    """Yield the readable inputs at a path. The missing files of a damaged run are already reported."""
    for run in list_runs(path):
        try:
            yield _drop_strays(find_inputs(run))
        except DataError:
            if not damaged:
                raise


def _is_run(path: Path) -> bool:
    """Return whether this is the folder of a run."""
    with contextlib.suppress(OSError):
        run = RunFolder(path)
        if run.job.is_file() and run.arms_folder.is_dir():
            return True
        # Any of its files may be lost, even the job.
        ledgers = (run.ledger, *run.arms_folder.glob("*/run.db"))
        return (run.path / DIGESTS).is_file() or any(ledger.is_file() for ledger in ledgers)
    return False


def _list_rewritten(runs: Iterable[RunFolder], reports: Sequence[FileReport]) -> list[str]:
    """Return the remedies for finished files that differ from their manifest, of each run that has such files
    and its ledger."""
    differ = {Path(report.path) for report in reports for one in report.problems if one.kind == "manifest"}
    return [
        describe_rewriting(run)
        for run in runs
        if run.ledgers() and any(run.path in path.parents for path in differ)
    ]


def _restore(run: RunFolder) -> list[Path]:
    with run.lock_for_writing():
        return restore_inputs(run)


def _is_known(report: FileReport, known: Collection[tuple[str, str]]) -> bool:
    """Return whether all findings of a run's check of a file are also among the findings in its records."""
    return all((report.path, one.problem) in known for one in report.problems)


def _refuse_links(path: Path) -> None:
    """Raise RunError if this is a run, a run's shards folder or one of its shards, and the run contains
    links. Other folders may contain links."""
    for run in map(RunFolder, (path, path.parent, path.parent.parent)):
        with contextlib.suppress(OSError):  # the reader reports unreadable paths
            if (run.path == path or run.shards in (path, path.parent)) and run.exists:
                run.refuse_links()


def _drop_strays(found: Inputs) -> Inputs:
    """Return the inputs without files that the manifest does not list. These are reported, and are not part
    of the data set."""
    if found.manifest is None:
        return found
    others = find_strays(found.manifest)
    return replace(found, files=tuple(path for path in found.files if path.name not in others))


def _drop_unknown(found: Inputs, note: Callable[[str], None]) -> Inputs:
    """Return the inputs of a folder without the files whose layout is unknown, such as tables next to a data
    set, which a note names; unchanged if no layout is known."""
    if found.manifest is not None or len(found.files) < 2:
        return found
    every = [open_records(path) for path in found.files]
    unknown = [one.path for one in every if one.reader is None and not one.is_empty]
    if not unknown or len(unknown) == len(every):
        return found
    names = ", ".join(make_printable(path) for path in unknown[:3]) + (", …" if len(unknown) > 3 else "")
    note(f"not checked, since no reader knows the layout: {names}")
    return replace(found, files=tuple(path for path in found.files if path not in unknown))


def _read_vocabulary(found: Inputs, note: Callable[[str], None]) -> Vocabulary | None:
    """Return the values that the space of a run allows in a record, by key of its scenario.

    None without a space; a note says so if a run's is missing.
    """
    if found.space is None:
        if found.manifest is not None:
            missing = found.manifest.parent / "inputs" / "space.yaml"
            note(f"{make_printable(missing)} is missing, so the scenario strings are not checked against it.")
        return None
    try:
        space = load_space(found.space)
    except SpaceError as problem:  # the check of the run reports this
        note(f"{problem.source}: {problem.summary} So the scenario strings are not checked against it.")
        return None
    space = msgspec.structs.replace(space, family=_find_job_family(found.space))
    return find_kind_part(space, RecordContents).vocabulary(space)


def _find_job_family(space: Path) -> str | None:
    """Return the family of a run's job, by the path of the run's space; None if it cannot be used."""
    with contextlib.suppress(EdgenError):
        named = load_kept_job(space.parents[1] / "job.yaml").family
        return named if named is not None and find("family", named) else None
    return None


class _Layouts:
    """The layout of each record of a file: recognised from the record, else the file's."""

    def __init__(self) -> None:
        self._own: DataSetReader = find_family_of_record(None)

    def begin(self, own: DataSetReader | None) -> None:
        """Begin a file whose records have this layout; None: that of Education Dialogue."""
        self._own = own or find_family_of_record(None)

    def of(self, record: Any) -> RecordLayout:
        """Return the layout of a record, with a clause if it is misplaced in this file."""
        found = find_reader_of_record(record) or self._own
        misplaced = None
        if found.title != self._own.title and not self._own.recognizes(record):
            misplaced = f"this has the layout of {found.title}, and earlier records that of {self._own.title}"
        return RecordLayout(find_schema_of_record(found, record), part_of(found, LayoutChecks), misplaced)


def _find_schema(record: Any) -> str:
    """Return the schema of the layout of a decoded record."""
    return find_schema_of_record(find_reader_of_record(record) or find_family_of_record(None), record)


def _check(
    found: Inputs, vocabulary: Vocabulary | None, checker: Checker, layouts: _Layouts
) -> list[FileReport]:
    reports = [_check_file(path, found, vocabulary, checker, layouts) for path in found.files]
    if found.manifest is not None:
        records = {path.name: report.records for path, report in zip(found.files, reports, strict=True)}
        findings = [
            Finding.of(None, d.path, d.message, "manifest") for d in verify_manifest(found.manifest, records)
        ]
        findings += [
            Finding.of(None, "$.files", f"{name} is in the folder, but is not listed", "stray")
            for name in find_strays(found.manifest)
        ]
        if findings:
            reports.append(FileReport(make_printable(found.manifest / MANIFEST), 0, 0, tuple(findings)))
    return reports


def _check_file(
    path: Path, found: Inputs, vocabulary: Vocabulary | None, checker: Checker, layouts: _Layouts
) -> FileReport:
    """Return the report on a file. Raises DataError for one that is unreadable or whose layout is unknown,
    unless it belongs to a run: that is damage."""
    try:
        file = open_records(path)
        if file.reader is None and not file.is_empty and found.manifest is None:
            raise make_unknown_layout_error(path)
        layouts.begin(file.reader)
        return checker.check_file(make_printable(path), file.iterate_pieces(), vocabulary)
    except DataError as problem:
        if found.manifest is None or not _is_run(found.manifest.parent):
            raise
        return FileReport(make_printable(path), 0, 0, (Finding.of(None, "$", problem.summary, "unreadable"),))


def _choose_targets(inputs: Sequence[Inputs], paths: Sequence[Path], out: Path) -> dict[Path, Path]:
    """Return the path of each file's copy. Raises UsageError if a path exists or must not be written."""
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
        raise UsageError(f"--fix {out}: {taken[0]} already exists and is not overwritten; name a new folder.")
    return targets


def _fix(
    data: Sequence[tuple[Inputs, Vocabulary | None]], targets: dict[Path, Path], out: Path
) -> FixedFiles:
    """Write the repaired copies and the list of changes. All are written before any is moved to its place: as
    a new folder, or into an existing one, the list of changes last."""
    try:
        if not out.is_dir():
            with new_folder(out) as place:
                return _fix_into(place, data, targets, out)
        stage = out / f".fixed-{secrets.token_hex(8)}"
        with new_folder(stage) as place:
            fixed = _fix_into(place, data, targets, out)
        for name in (*(target.name for target in targets.values()), CHANGES):
            (stage / name).replace(out / name)
        stage.rmdir()
        return fixed
    except OSError as problem:
        raise UsageError(f"--fix {out}: the folder cannot be made ({problem.strerror}).") from None


def _fix_into(
    place: Path, data: Sequence[tuple[Inputs, Vocabulary | None]], targets: dict[Path, Path], out: Path
) -> FixedFiles:
    """Write them to `place`, which is or becomes `out`."""
    fixer, lines, files = Fixer(_find_schema), list[bytes](), list[FixedFile]()
    for found, vocabulary in data:
        for path in found.files:
            label, target = make_printable(path), targets[path]
            counts = Counter(changed=0, left_out=0)
            fixed = fixer.fix_file(label, open_records(path).iterate_pieces(), vocabulary)
            records = write_list_atomic(place / target.name, _note_changes(fixed, label, counts, lines))
            files.append(FixedFile(label, make_printable(target), records, **counts))
    write_lines(place / CHANGES, lines)
    records, changed, left_out = (
        sum(getattr(file, key) for file in files) for key in ("records", "changed", "left_out")
    )
    return FixedFiles(
        make_printable(out), records, changed, left_out, make_printable(out / CHANGES), tuple(files)
    )


def _note_changes(
    results: Iterator[Fixed | IrreparableRecord], label: str, counts: Counter[str], lines: list[bytes]
) -> Iterator[bytes]:
    """Yield the repaired records of a file; count and list the changes."""
    for number, result in enumerate(results):
        where = {"file": label, "record": number}
        if isinstance(result, IrreparableRecord):
            counts["left_out"] += 1
            lines.append(msgspec.json.encode({**where, "left_out": result.reason}))
            continue
        counts["changed"] += bool(result.changes)
        lines += [msgspec.json.encode({**where, **msgspec.to_builtins(change)}) for change in result.changes]
        yield msgspec.json.encode(result.record)
