"""`edgen validate`: what is wrong with records, whoever wrote them, and repaired copies of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from edgen.cli.options import JsonOption
from edgen.cli.output import count_noun, note, print_value

if TYPE_CHECKING:
    from edgen.api.validating import Validation
    from edgen.validation.checker import FileReport


def command(
    paths: Annotated[
        list[Path],
        Argument(
            metavar="PATH...", help="Runs, folders of shards, or files: JSON lists or JSON Lines of records."
        ),
    ],
    json: JsonOption = False,
    fix: Annotated[
        Path | None,
        Option(
            "--fix",
            metavar="OUT",
            help="Write repaired copies to the folder OUT, and what was changed to OUT/changes.jsonl.",
        ),
    ] = None,
) -> None:
    """Check records against the schema and the rules, whoever wrote them.

    Errors make a record invalid; warnings do not. Exits with 0 if all records are valid, with 3 if
    some are not (with --fix, too).

    Example: edgen validate outputs/quickstart

    Example: edgen validate conversations_train1.json --fix repaired
    """
    from edgen.api.validating import validate

    found = validate(paths, fix, note)
    print_value(found, _render(found), json=json)
    if not found.sound:
        raise Exit(3)


_FILES = 20  # that are shown
_PLACES = 3


def _render(found: Validation) -> Iterator[str]:
    """The files, then each kind of problem with its first places."""
    from edgen.validation.findings import KINDS

    files = found.files
    for file in files[:_FILES]:
        yield f"{file.path}: {_describe_counts(file.records, file.valid, [file])}"
    if len(files) > _FILES:
        yield f"… and {len(files) - _FILES} more files; --json lists all"
    if len(files) > 1:
        yield f"together: {_describe_counts(found.records, found.valid, files)}"
    for kind, (severity, title) in KINDS.items():
        yield from _render_kind(kind, f"{severity}: {title}", files)
    if fixed := found.fixed:
        yield ""
        yield (
            f"fixed: {count_noun(fixed.records, 'record')} written to {fixed.out} ({fixed.changed} changed); "
            f"{fixed.left_out} left out; {fixed.changes} lists every change"
        )


def _render_kind(kind: str, title: str, files: Sequence[FileReport]) -> Iterator[str]:
    places = [(file.path, problem) for file in files for problem in file.problems if problem.kind == kind]
    if not places:
        return
    yield ""
    yield f"{title}: {len(places)}"
    for path, problem in places[:_PLACES]:
        record = "" if problem.record is None else f"record {problem.record}, "
        yield f"  {path}: {record}{problem.path}: {problem.problem}"
    if len(places) > _PLACES:
        yield f"  … and {len(places) - _PLACES} more; --json lists all"


def _describe_counts(records: int, valid: int, files: Sequence[FileReport]) -> str:
    severities = Counter(problem.severity for file in files for problem in file.problems)
    errors, warnings = (count_noun(severities[name], name) for name in ("error", "warning"))
    return f"{count_noun(records, 'record')}, {valid} valid, {errors}, {warnings}"
