"""`edgen validate`: what is wrong with records, whoever wrote them, and repaired copies of them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_line
from edgen.errors import UsageError
from edgen.rundir import RunDir
from edgen.shards import MANIFEST, strays, verify_manifest, write_jsonl_atomic, write_list_atomic
from edgen.space import load_space
from edgen.validation import (
    KINDS,
    Checker,
    FileReport,
    Finding,
    Fixed,
    Fixer,
    Inputs,
    LeftOut,
    Vocabulary,
    find_inputs,
    read_records,
    runs_at,
)

CHANGES = "changes.jsonl"
SHOWN_FILES = 20
SHOWN_PLACES = 3


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Runs, folders of shards, or files: JSON lists or JSON Lines of records.",
            show_default=False,
        ),
    ],
    json: JsonOption = False,
    fix: Annotated[
        Path | None,
        typer.Option(
            "--fix",
            metavar="OUT",
            help="Write repaired copies to the folder OUT, and what was changed to OUT/changes.jsonl.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check records against the schema and the rules, whoever wrote them.

    Errors make a record invalid; warnings do not. Exits with 0 if all records are valid, with 3 if
    some are not (with --fix, too).

    Example: edgen validate outputs/quickstart

    Example: edgen validate conversations_train1.json --fix repaired
    """
    for path in paths:
        _refuse_links(path)
    inputs = [_listed(find_inputs(run)) for path in paths for run in runs_at(path)]
    targets = _targets(inputs, paths, fix) if fix else {}
    checker, reports = Checker(), []
    vocabularies = [_vocabulary(found) for found in inputs]
    for found, vocabulary in zip(inputs, vocabularies, strict=True):
        reports += _check(found, vocabulary, checker)
    summary: dict[str, Any] = {
        "records": sum(report.records for report in reports),
        "valid": sum(report.valid for report in reports),
        "files": [_as_json(report) for report in reports],
    }
    if fix:
        summary["fixed"] = _fix(inputs, vocabularies, targets, fix)
    if json:
        print_json(summary)
    else:
        _print(reports, summary)
    if any(finding.severity == "error" for report in reports for finding in report.findings):
        raise typer.Exit(3)


def _refuse_links(path: Path) -> None:
    """Raise RunError if this is a run, a run's shards or one of them, and the run holds links. A folder of
    anybody's files may."""
    for run in map(RunDir, (path, path.parent, path.parent.parent)):
        with contextlib.suppress(OSError):  # what cannot be looked at is named by whoever reads it
            if (run.path == path or run.shards in (path, path.parent)) and run.exists:
                run.refuse_links()


def _listed(found: Inputs) -> Inputs:
    """Without the files that its manifest does not list: they are told of, and are no part of the data set."""
    if found.manifest is None:
        return found
    others = strays(found.manifest)
    return replace(found, files=tuple(path for path in found.files if path.name not in others))


def _vocabulary(found: Inputs) -> Vocabulary | None:
    """What the space of a run allows under each key of `background_info`.

    None if there is none; where a run's is gone, a note says so.
    """
    if found.space is None:
        if found.manifest is not None:
            missing = found.manifest.parent / "inputs" / "space.yaml"
            note(f"{_label(missing)} is not there, so the scenario strings are not checked against it.")
        return None
    space = load_space(found.space)
    lists = {
        "topic": space.topics,
        "student_prefrences": space.student_preferences,
        "teacher_prefrences": space.teacher_preferences,
        "student_reactions": space.student_reactions,
        "teacher_reactions": space.teacher_reactions,
    }
    return {key: frozenset(entry.value for entry in entries) for key, entries in lists.items()}


def _check(found: Inputs, vocabulary: Vocabulary | None, checker: Checker) -> list[FileReport]:
    reports = [checker.file(_label(path), read_records(path), vocabulary) for path in found.files]
    if found.manifest is not None:
        records = {path.name: report.records for path, report in zip(found.files, reports, strict=True)}
        findings = [
            Finding(None, d.path, d.message, "manifest") for d in verify_manifest(found.manifest, records)
        ]
        findings += [
            Finding(None, "$.files", f"{name} is in the folder, but is not listed", "stray")
            for name in strays(found.manifest)
        ]
        if findings:
            reports.append(FileReport(_label(found.manifest / MANIFEST), 0, 0, tuple(findings)))
    return reports


def _label(path: Path) -> str:
    """The path as text that can be printed, whatever bytes its name holds."""
    return str(path).encode(errors="replace").decode()


def _as_json(report: FileReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "records": report.records,
        "valid": report.valid,
        "problems": [
            {
                "record": finding.record,
                "path": finding.path,
                "problem": finding.problem,
                "severity": finding.severity,
                "kind": finding.kind,
            }
            for finding in report.findings
        ],
    }


def _targets(inputs: Sequence[Inputs], paths: Sequence[Path], out: Path) -> dict[Path, Path]:
    """Where the copy of each file goes. Raises UsageError if anything is there or must not be."""
    try:
        return _checked_targets(inputs, paths, out)
    except (OSError, RuntimeError) as problem:  # links in a circle are a RuntimeError
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"--fix {out}: the folder cannot be used ({reason}).") from None


def _checked_targets(inputs: Sequence[Inputs], paths: Sequence[Path], out: Path) -> dict[Path, Path]:
    if out.exists() and not out.is_dir():
        raise UsageError(f"--fix {out}: this is a file; name a folder for the copies.")
    for path in paths:
        if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
            raise UsageError(f"--fix {out}: this lies inside {path}; name a folder outside of what is read.")
    targets: dict[Path, Path] = {}
    for path in (path for found in inputs for path in found.files):
        target = out / f"{path.stem}.json"
        if target in targets.values():
            raise UsageError(f"--fix {out}: two files would be written to {target}; fix them one at a time.")
        targets[path] = target
    for target in [*targets.values(), out / CHANGES]:
        if target.exists():
            raise UsageError(
                f"--fix {out}: {target} exists already and is not written over; name a new folder."
            )
    return targets


def _fix(
    inputs: Sequence[Inputs],
    vocabularies: Sequence[Vocabulary | None],
    targets: dict[Path, Path],
    out: Path,
) -> dict[str, Any]:
    from edgen.transcript import clean_turn

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"--fix {out}: the folder cannot be made ({problem.strerror}).") from None
    fixer, notes = Fixer(clean_turn), _Notes()
    files: list[dict[str, Any]] = []
    for found, vocabulary in zip(inputs, vocabularies, strict=True):
        for path in found.files:
            notes.begin(_label(path))
            fixed = notes.through(fixer.file(_label(path), read_records(path), vocabulary))
            written = {"path": _label(path), "written": _label(targets[path])}
            count = write_list_atomic(targets[path], fixed)
            files.append({**written, "records": count, **notes.counts})
    write_jsonl_atomic(out / CHANGES, notes.lines)
    totals = {key: sum(file[key] for file in files) for key in ("records", "changed", "left_out")}
    return {"out": _label(out), **totals, "changes": _label(out / CHANGES), "files": files}


class _Notes:
    """Keeps the list of what was changed while repaired records pass through."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self._path = ""

    def begin(self, path: str) -> None:
        self._path = path
        self.counts = Counter(changed=0, left_out=0)

    def through(self, results: Iterator[Fixed | LeftOut]) -> Iterator[bytes]:
        for number, result in enumerate(results):
            where = {"file": self._path, "record": number}
            if isinstance(result, LeftOut):
                self.counts["left_out"] += 1
                self._note({**where, "left_out": result.reason})
                continue
            self.counts["changed"] += bool(result.changes)
            for change in result.changes:
                self._note({**where, **msgspec.to_builtins(change)})
            yield msgspec.json.encode(result.record)

    def _note(self, line: dict[str, Any]) -> None:
        self.lines.append(msgspec.json.encode(line))


def _print(reports: Sequence[FileReport], summary: dict[str, Any]) -> None:
    for report in reports[:SHOWN_FILES]:
        print_line(f"{report.path}: {_counts(report.records, report.valid, [report])}")
    if len(reports) > SHOWN_FILES:
        print_line(f"… and {len(reports) - SHOWN_FILES} more files; --json lists all")
    if len(reports) > 1:
        print_line(f"together: {_counts(summary['records'], summary['valid'], reports)}")
    for kind, (severity, title) in KINDS.items():
        places = [(report.path, f) for report in reports for f in report.findings if f.kind == kind]
        if places:
            print_line()
            print_line(f"{severity}: {title}: {len(places)}")
            for path, finding in places[:SHOWN_PLACES]:
                record = "" if finding.record is None else f"record {finding.record}, "
                print_line(f"  {path}: {record}{finding.path}: {finding.problem}")
            if len(places) > SHOWN_PLACES:
                print_line(f"  … and {len(places) - SHOWN_PLACES} more; --json lists all")
    if fixed := summary.get("fixed"):
        print_line()
        print_line(
            f"fixed: {_some(fixed['records'], 'record')} written to {fixed['out']} ({fixed['changed']} changed); "
            f"{fixed['left_out']} left out; {fixed['changes']} lists every change"
        )


def _counts(records: int, valid: int, reports: Sequence[FileReport]) -> str:
    by_severity = Counter(finding.severity for report in reports for finding in report.findings)
    errors, warnings = by_severity["error"], by_severity["warning"]
    return (
        f"{_some(records, 'record')}, {valid} valid, {_some(errors, 'error')}, {_some(warnings, 'warning')}"
    )


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
