"""What is wrong with records, in lines: the files, then each kind of problem with its first places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from edgen.api.validating import Validation
from edgen.cli.render.figures import count_noun
from edgen.validation.checker import FileReport
from edgen.validation.findings import KINDS

_FILES = 20  # that are shown
_PLACES = 3


def render_validation(found: Validation) -> Iterator[str]:
    files = found.files
    for file in files[:_FILES]:
        yield f"{file.path}: {_describe_counts(file.records, file.valid, [file])}"
    if len(files) > _FILES:
        yield f"… and {len(files) - _FILES} more files; --json lists all"
    if len(files) > 1:
        yield f"together: {_describe_counts(found.records, found.valid, files)}"
    for kind in KINDS:
        yield from _render_kind(kind, files)
    if fixed := found.fixed:
        yield ""
        yield (
            f"fixed: {count_noun(fixed.records, 'record')} written to {fixed.out} ({fixed.changed} changed); "
            f"{fixed.left_out} left out; {fixed.changes} lists every change"
        )


def _render_kind(kind: str, files: Sequence[FileReport]) -> Iterator[str]:
    severity, title = KINDS[kind]
    places = [(file.path, problem) for file in files for problem in file.problems if problem.kind == kind]
    if not places:
        return
    yield ""
    yield f"{severity}: {title}: {len(places)}"
    for path, problem in places[:_PLACES]:
        record = "" if problem.record is None else f"record {problem.record}, "
        yield f"  {path}: {record}{problem.path}: {problem.problem}"
    if len(places) > _PLACES:
        yield f"  … and {len(places) - _PLACES} more; --json lists all"


def _describe_counts(records: int, valid: int, files: Sequence[FileReport]) -> str:
    severities = Counter(problem.severity for file in files for problem in file.problems)
    errors, warnings = (count_noun(severities[name], name) for name in ("error", "warning"))
    return f"{count_noun(records, 'record')}, {valid} valid, {errors}, {warnings}"
