"""An export from start to end: rows counted and written to a folder that appears whole or not at all.

Everything is written to a hidden folder next to the target and renamed at the end. A non-empty target is
refused, and so is one inside a run's folder. An export without a row is an error that suggests alternatives,
and leaves nothing on disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from edgen.core.errors import ShortError, StoppedError, UsageError
from edgen.core.files import new_folder, write_new
from edgen.core.pair import Source
from edgen.core.plugins.faults import blame, refuse_value, require_type
from edgen.core.registry import find_plugin
from edgen.core.text import shorten
from edgen.export.card import Contents, digest_table, write_card
from edgen.export.caveats import list_unfinished
from edgen.export.chat import Chat, build_chat
from edgen.export.croissant import describe_files
from edgen.export.evidence import Evidence, list_credit_notes, warn_of_credit
from edgen.export.files import CARD, CROISSANT, Patterns, RowFiles, Staging
from edgen.export.format import Format, iterate_items
from edgen.export.layer_columns import list_layer_notes
from edgen.export.options import OptionValues
from edgen.export.ranges import iterate_items_by_workers
from edgen.export.row_check import find_row_flaw
from edgen.export.rows import SPLITS, Item, LeftOut, Row
from edgen.export.shared_options import ExportOptions
from edgen.preferences.labels import UNLABELLED
from edgen.store.run_reader import RunReader
from edgen.store.written_file import run_around

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an export."""

    format: str  # name of the format
    dir: str  # the folder that was written
    summary: str  # summary of the format, for people
    rows: dict[str, dict[str, int]]  # number of rows of each table, by split
    left_out: dict[str, int]  # number of omissions by reason
    disarmed: int | None = None  # cells that a spreadsheet would run as formulas; None without cells
    trains: str | None = None
    """The role that becomes the assistant; None if the format keeps the roles."""
    remarks: tuple[str, ...] = ()  # remarks, in sentences
    meanings: dict[str, str] = {}  # clauses that explain the reasons

    def as_json(self) -> dict[str, Any]:
        """Return the output of `--json`. `rows` are those of the first table; `tables` has all if there are
        several."""
        first = next(iter(self.rows.values()))
        facts: dict[str, Any] = {
            "format": self.format,
            "dir": self.dir,
            "trains": self.trains,
            "rows": first,
            "left_out": self.left_out,
        }
        if len(self.rows) > 1:
            facts["tables"] = self.rows
        if self.disarmed is not None:
            facts["disarmed"] = self.disarmed
        return facts

    def list_lines(self) -> list[str]:
        """Return the same content as lines for a person."""
        tables = self.rows if len(self.rows) > 1 else {"rows": next(iter(self.rows.values()))}
        return [
            f"{self.dir} is ready: {self.summary}",
            f"trains     {self.trains or 'no role: all roles stay as they are'}",
            *(f"{name:10} {rows['train']:,} train, {rows['test']:,} test" for name, rows in tables.items()),
            *(
                f"left out   {count:,} "
                f"{reason}{f': {meaning}' if (meaning := self.meanings.get(reason)) else ''}"
                for reason, count in self.left_out.items()
            ),
            f"How to load it and what it holds: {Path(self.dir) / CARD}",
        ]


def export(
    run: RunReader,
    format_: Format,
    target: Path,
    options: OptionValues | None = None,
    workers: int = 1,
    on: str | None = None,
) -> Exported:
    """Write the run in a format to the folder `target`, with its card. `options`: as read by `Format.read`.
    `workers`: processes that make the rows, of this machine or `on` a cluster.

    Raises UsageError if the target is not empty or cannot be written, ShortError if there is no row to write,
    StoppedError if the disk is full, TemplateError for an unusable opening, and errors of reading the run.
    """
    options = options or format_.read({})
    check_target(target)
    if (refusal := format_.refuse(run)) is not None:
        raise UsageError(refusal)
    chat = build_chat(run, options)
    with _explain_disk_errors(target), new_folder(target) as stage:
        layers = () if format_.layout.layer_columns is None else run.layers
        staging = Staging(stage, run, format_.tables_of(run.space, options, layers), options)
        if workers == 1:
            made = iterate_items(run, format_, chat)
        else:
            made = iterate_items_by_workers(run, format_, options, workers, on)
        opened = format_.layout.files(staging)
        require_type("format", format_.name, opened, RowFiles, "RowFiles from `layout.files`")
        with contextlib.closing(opened) as files, contextlib.closing(made) as items:
            contents = _write_rows(run, format_, chat, files, items)
        _sync_files(stage)
        write_new(stage / CARD, write_card(format_, run, chat, contents, options))
        if format_.card.hub:
            described = msgspec.json.encode(
                describe_files(format_, run, contents, options.of(ExportOptions), stage)
            )
            write_new(stage / CROISSANT, msgspec.json.format(described, indent=2) + b"\n")
    return Exported(
        format=format_.name,
        dir=str(target),
        summary=format_.summary,
        rows=contents.rows,
        left_out=contents.left_out,
        meanings={reason: format_.meaning(reason) for reason in contents.left_out},
        disarmed=files.disarmed,
        trains=chat.assistant if format_.chat else None,
        remarks=(
            *files.remarks,
            *list_unfinished(run.describe()),
            *warn_of_credit(format_.layout.level, contents.evidence),
        ),
    )


def _write_rows(
    run: RunReader, format_: Format, chat: Chat, files: RowFiles, items: Iterator[Item]
) -> Contents:
    """Write all rows and finish the files. Raises ShortError if there is no row."""
    counts: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    evidence: Counter[Evidence] = Counter()
    by_name = {table.name: table for table in files.staging.tables}
    is_foreign = find_plugin("format", format_.name) is not None
    for item in items:
        if isinstance(item, LeftOut):
            left_out[item.reason] += 1
            continue
        if is_foreign and (flaw := find_row_flaw(format_, item, by_name)) is not None:
            refuse_value("format", format_.name, flaw)
        _add(files, item, format_.name)
        counts[item.table, item.split] += 1
        if item.evidence is not None:
            evidence[item.evidence] += 1
    if not counts:
        raise ShortError(_explain_nothing(run, format_, chat, dict(sorted(left_out.items()))))
    # Without columns of layers, omissions from layers are not reported.
    told_of_layers = (
        [*list_layer_notes(run)] if format_.layout.layer_columns is not None or run.labels_of else []
    )
    patterns, tables, folder = _finish(files, format_.name), files.staging.tables, files.folder
    return Contents(
        tables=tables,
        rows={table.name: {split: counts[table.name, split] for split in SPLITS} for table in tables},
        left_out=dict(sorted(left_out.items())),
        patterns=patterns,
        evidence=evidence,
        notes=[*files.notes(), *told_of_layers, *list_credit_notes(format_.layout.level, evidence)],
        sizes=files.sizes,
        digests={table.name: digest_table(table, patterns, folder) for table in tables},
    )


def _add(files: RowFiles, row: Row, name: str) -> None:
    """Write a row of the format `name`. Raises FaultyPluginError for a plugin's row that no file can hold."""
    try:
        files.add(row)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - raised again
        blame("format", name, error, f"for the row {shorten(repr(row.value), 80)}")


def _finish(files: RowFiles, name: str) -> Patterns:
    """Finish the files of the format `name`; return their patterns. Raises FaultyPluginError if a plugin's
    pattern is for no table, or there is no such file."""
    tables = {(table.name, split) for table in files.staging.tables for split in SPLITS}
    try:
        patterns: Patterns = require_type("format", name, files.finish(), dict, "a dict from `finish`")
        for place, pattern in patterns.items():
            if place not in tables or not any(files.folder.glob(pattern)):
                said = f"named {pattern!r} for the table and split {place!r} in `finish`"
                refuse_value("format", name, f"{said}; there is no such table, split or file")
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - raised again
        blame("format", name, error, "in `finish`")
    return patterns


def _sync_files(folder: Path) -> None:
    """Sync all written files to disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def check_target(target: Path) -> None:
    """Raise UsageError if the folder cannot be created: it is a file, not empty, or in a run's folder."""
    try:
        if (run := run_around(target)) is not None:
            raise UsageError(
                f"{target}: this is inside the run {run}, and a run's folder is the run's; "
                "name a folder elsewhere with -o."
            )
        if target.is_dir():
            if any(target.iterdir()):
                raise UsageError(
                    f"{target}: the folder is not empty and is not overwritten; name a new one with -o."
                )
        elif target.exists():
            raise UsageError(f"{target}: this is not a folder; name a new one with -o.")
    except OSError as problem:
        raise UsageError(f"{target}: it cannot be read ({problem.strerror}).") from None


def _explain_nothing(run: RunReader, format_: Format, chat: Chat, left_out: dict[str, int]) -> str:
    if not left_out:
        where = "accepted conversations" if format_.of == "conversations" else "pairs"
        return f"{run.name}: the run has no {where}, so there is nothing to export as {format_.name}."
    reasons = "; ".join(
        f"{reason} {count}{f' ({meaning})' if (meaning := format_.meaning(reason)) else ''}"
        for reason, count in left_out.items()
    )
    said = f"{run.name}: nothing of the run can be exported as {format_.name}. Left out: {reasons}."
    return " ".join([said, *_list_ways_out(run, chat, left_out)])


def _list_ways_out(run: RunReader, chat: Chat, left_out: Mapping[str, int]) -> Iterator[str]:
    """Yield alternatives that the user can request, one sentence per kind of reason."""
    if "differs_at_other_side" in left_out:
        yield (
            "Where conversations part at a turn of the other side, "
            f"{' or '.join(f'`--train {role.lower()}`' for role in chat.users)} trains that side; "
            "`--to trl-conversation` and `--to mtpo` take conversations that part anywhere."
        )
    elif "one_ends" in left_out:
        yield "If one conversation only continues, `--to trl-conversation` and `--to mtpo` take both whole."
    if left_out.keys() & {"system_message", "assistant_first", "no_prompt"}:
        yield "`--opening user` lets the user speak first, with an added line and no system message."
    if left_out.keys() & {*UNLABELLED, "no_label"} - {"identical"}:
        by = "|".join(get_args(Source))
        yield (
            f"Where pairs have no label, see what `edgen pairs {run.rundir.path} --signal {by}` left out: "
            "another source, another judge, more votes or a smaller margin may give labels."
        )


@contextlib.contextmanager
def _explain_disk_errors(target: Path) -> Iterator[None]:
    full = f"{target}: the disk is full; nothing was written. Free some space and run the same command again."
    try:
        yield
    except StoppedError as problem:  # the writer of shards knows only the temporary folder
        raise StoppedError(full) if f"/.{target.name}." in str(problem) else problem from None
    except OSError as problem:
        if problem.errno in _FULL:
            raise StoppedError(full) from None
        raise UsageError(
            f"{target}: it cannot be written ({problem.strerror}); nothing was written."
        ) from None
