"""`edgen validate`: problems of records or raw replies, and repaired copies of records."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from typer import Argument, Exit

from edgen.cli import complete
from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_json_line, print_value
from edgen.core.errors import UsageError
from edgen.core.options import RoleWords, option
from edgen.core.text import quantity

if TYPE_CHECKING:
    from edgen.api.validating import Validation
    from edgen.validation.checker import FileReport


PathsArgument = Annotated[
    list[Path],
    Argument(
        metavar="PATH...",
        help="Runs, folders of shards, or files of records.",
        autocompletion=complete.runs,
    ),
]


class ValidateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of checks of records, and of raw replies."""

    fix: Annotated[
        Path | None, option("Write repaired copies, and changes.jsonl, to DIR.", metavar="DIR")
    ] = None
    replies: Annotated[bool, option("Print the turns of a raw reply (- for stdin) as JSON.")] = False
    jsonl: Annotated[bool, option('With --replies: PATH has one {"id", "reply"} a line.')] = False
    role: RoleWords = ()  # the words for roles in raw replies
    restore: Annotated[bool, option("Restore a run's job and inputs from the ledger.")] = False


def command(
    paths: PathsArgument,
    options: ValidateOptions,
    json: JsonOption = False,
) -> None:
    """Check that records of conversations are valid, and repair copies.

    In a run, it also checks ledgers, inputs, layers, pairs, votes and finished files; the last lines say how
    to repair damage. It exits with 3 if anything is invalid, also with --fix; warnings make nothing invalid.
    With --replies, it reads raw replies as `edgen generate` does, and exits with 3 if one contains no
    conversation.

    Example: edgen validate outputs/quickstart

    Example: edgen validate conversations_train1.json --fix repaired

    Example: edgen validate --replies --jsonl replies.jsonl
    """
    if options.replies:
        if options.fix is not None:
            raise UsageError("--fix repairs records, and --replies reads raw replies; leave one of them out.")
        if len(paths) > 1:
            raise UsageError(f"{paths[1]}: --replies reads one file; with --jsonl it has a reply a line.")
        _print_replies(paths[0], options.role, jsonl=options.jsonl)
        return
    if options.jsonl or options.role:
        raise UsageError(
            f"{'--jsonl' if options.jsonl else '--role'} goes with --replies; add it, or leave this out."
        )
    from edgen.api.validating import validate

    found = validate(paths, options.fix, note, restore=options.restore)
    print_value(found, _render(found), json=json)
    if not found.sound:
        raise Exit(3)


def _print_replies(path: Path, role: Sequence[str], *, jsonl: bool) -> None:
    """Read raw replies, one per file or line, and print their turns."""
    from edgen.api.parsing import parse_file, parse_lines, read_role_words

    words, rejected = read_role_words(role), False
    source = sys.stdin.buffer if path == Path("-") else path
    for answer in parse_lines(source, words) if jsonl else [parse_file(source, words)]:
        rejected = rejected or answer["status"] != "ok"
        (print_json_line if jsonl else print_json)(answer)
    if rejected:
        raise Exit(3)


_FILES = 20  # files shown at most
_PLACES = 3


def _render(found: Validation) -> Iterator[str]:
    """Yield the files, then each kind of problem with its first places."""
    from edgen.validation.findings import KINDS

    files = found.files
    for path in found.restored or ():
        yield f"restored {path}"
    for file in files[:_FILES]:
        yield f"{file.path}: {_describe_counts(file.records, file.valid, [file])}"
    if len(files) > _FILES:
        yield f"… and {len(files) - _FILES:,} more files; --json lists all"
    if len(files) > 1:
        yield f"together: {_describe_counts(found.records, found.valid, files)}"
    for kind, (severity, title) in KINDS.items():
        yield from _render_kind(kind, f"{severity}: {title}", files)
    if fixed := found.fixed:
        yield ""
        yield (
            f"fixed: {quantity(fixed.records, 'record')} written to {fixed.out} ({fixed.changed:,} changed); "
            f"{fixed.left_out:,} left out; {fixed.changes} lists every change"
        )
    if found.repairs:
        yield ""
    for repair in found.repairs or ():
        yield f"repair: {repair}"


def _render_kind(kind: str, title: str, files: Sequence[FileReport]) -> Iterator[str]:
    places = [(file.path, problem) for file in files for problem in file.problems if problem.kind == kind]
    if not places:
        return
    yield ""
    count = sum(file.counts[kind] for file in files)
    yield f"{title}: {count:,}"
    for path, problem in places[:_PLACES]:
        record = "" if problem.record is None else f"record {problem.record}, "
        yield f"  {path}: {record}{problem.path}: {problem.problem}"
    if count > _PLACES:
        lists = "all" if count == len(places) else f"{len(places):,} of them"
        yield f"  … and {count - _PLACES:,} more; --json lists {lists}"


def _describe_counts(records: int, valid: int, files: Sequence[FileReport]) -> str:
    from edgen.validation.findings import KINDS

    severities: Counter[str] = Counter()
    for file in files:
        for kind, count in file.counts.items():
            severities[KINDS[kind][0]] += count
    errors, warnings = (quantity(severities[name], name) for name in ("error", "warning"))
    return f"{quantity(records, 'record')}, {valid:,} valid, {errors}, {warnings}"
