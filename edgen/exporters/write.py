"""An export from start to end: rows counted and written to a folder that appears whole or not at all.

Everything is written to a hidden folder beside the target and renamed at the end. A target that holds anything
is refused, and so is one inside a run's folder. An export without a row is an error that says what else to
ask for, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from edgen.errors import ShortError, StoppedError, UsageError
from edgen.exporters import croissant
from edgen.exporters.base import REASONS, SPLITS, Format, Row, Run, Storage
from edgen.exporters.card import Contents, Stated, card
from edgen.exporters.digest import digest_of
from edgen.exporters.evidence import Evidence
from edgen.exporters.files import CsvFiles, open_files
from edgen.exporters.hub import HubFiles
from edgen.exporters.voice import Voice
from edgen.files import sync_folder, temporary, write_new
from edgen.pairing.labels import LEFT_OUT
from edgen.pairing.model import Source
from edgen.rundir import run_around

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
CARD = "README.md"


class Exported(msgspec.Struct, frozen=True):
    """What an export wrote: rows of each config by split, what was left out by reason, and the cells that were
    disarmed."""

    rows: dict[str, dict[str, int]]
    left_out: dict[str, int]
    disarmed: int = 0


def export(
    run: Run,
    format_: Format,
    voice: Voice,
    target: Path,
    license_: str | None = None,
    *,
    language: str | None = None,
    storage: Storage = "parquet",
    csv_safe: bool = True,
) -> Exported:
    """Write the run in a format to the folder `target`, with its card, which states the licence and the language.
    `storage` is how a data set for the hub is stored, `csv_safe` whether cells that a spreadsheet would take for
    formulas are disarmed; no other format asks.

    Raises UsageError if the target holds something or cannot be written, ShortError if there is no
    row to write, StoppedError if the disk is full, and what reading the run raises.
    """
    check_target(target)
    with _worded(target), _staged(target) as stage, contextlib.ExitStack() as end:
        files = open_files(format_, run, stage, storage, csv_safe=csv_safe)
        end.callback(files.close)
        counts: Counter[tuple[str, str]] = Counter()
        left_out: Counter[str] = Counter()
        found: Counter[Evidence] = Counter()
        tally = None if format_.tally is None else format_.tally()
        for item in format_.rows(run, voice):
            if not isinstance(item, Row):
                left_out[item.reason] += 1
                continue
            files.add(item)
            counts[item.config, item.split] += 1
            if item.evidence is not None:
                found[item.evidence] += 1
            if tally is not None:
                tally.add(item)
        exported = Exported(
            _by_config(format_, counts),
            dict(sorted(left_out.items())),
            files.disarmed if isinstance(files, CsvFiles) else 0,
        )
        if not counts:
            raise ShortError(_nothing(run, format_, voice, exported.left_out))
        patterns = files.finish()
        contents = Contents(
            rows=exported.rows,
            left_out=exported.left_out,
            patterns=patterns,
            evidence=found,
            notes=[
                *(() if tally is None else tally.notes()),
                *(_cells(exported.disarmed, safe=csv_safe) if isinstance(files, CsvFiles) else ()),
            ],
            sizes=files.sizes if isinstance(files, HubFiles) else {},
            digests={config.name: digest_of(config, patterns, stage) for config in format_.configs},
        )
        stated = Stated(license=license_, language=language)
        write_new(stage / CARD, card(format_, run, voice, contents, stated))
        if format_.croissant:
            described = croissant.croissant(format_, run, contents, stated, stage)
            write_new(stage / croissant.NAME, _json(described))
    return exported


def _cells(disarmed: int, *, safe: bool) -> Iterator[str]:
    """What whoever opens a table is to know of its cells."""
    if not safe:
        yield (
            "Texts are kept to the letter. A cell may begin with =, +, - or @, which a spreadsheet takes for a "
            "formula: import the file as text, do not double-click it."
        )
    elif disarmed:
        yield (
            f"Cells that a spreadsheet would take for formulas begin with an apostrophe that nobody said: {disarmed:,} of "
            "them. All others are kept to the letter; --no-csv-safe keeps these too."
        )


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def check_target(target: Path) -> None:
    """Raises UsageError if the folder cannot be one that is made now: it is a file, holds something, or
    is in a run's folder."""
    try:
        if (run := run_around(target)) is not None:
            raise UsageError(
                f"{target}: this is inside the run {run}, and a run's folder is the run's; "
                "name a folder elsewhere with -o."
            )
        if target.is_dir():
            if any(target.iterdir()):
                raise UsageError(
                    f"{target}: the folder is not empty, and nothing is overwritten; name a new one with -o."
                )
        elif target.exists():
            raise UsageError(f"{target}: this is no folder; name a new one with -o.")
    except OSError as problem:
        raise UsageError(f"{target}: it cannot be looked at ({problem.strerror}).") from None


def _by_config(format_: Format, counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    return {
        config.name: {split: counts[config.name, split] for split in SPLITS} for config in format_.configs
    }


def _nothing(run: Run, format_: Format, voice: Voice, left_out: dict[str, int]) -> str:
    if not left_out:
        where = "accepted conversations" if format_.of == "conversations" else "pairs"
        return f"{run.name}: the run has no {where}, so there is nothing to export as {format_.name}."
    reasons = "; ".join(
        f"{reason} {count}{f' ({REASONS[reason]})' if reason in REASONS else ''}"
        for reason, count in left_out.items()
    )
    said = f"{run.name}: nothing of the run can be exported as {format_.name}. Left out: {reasons}."
    return " ".join([said, *_ways_out(run, voice, left_out)])


def _ways_out(run: Run, voice: Voice, left_out: Mapping[str, int]) -> Iterator[str]:
    """What else to ask for, a sentence for each kind of reason."""
    if "differs_at_other_side" in left_out:
        other = "student" if voice.train == "Teacher" else "teacher"
        yield (
            f"Where conversations part at a turn of the other side, `--train {other}` trains that side; "
            "`--to trl-conversation` and `--to mtpo` take conversations that part anywhere."
        )
    elif "one_ends" in left_out:
        yield "Where one conversation only goes on, `--to trl-conversation` and `--to mtpo` take both whole."
    if "system_message" in left_out or "assistant_first" in left_out:
        yield "`--opening user` lets the user speak first, with no system message."
    if left_out.keys() & {*LEFT_OUT, "no_label"} - {"identical"}:
        by = "|".join(get_args(Source))
        yield (
            f"Where pairs have no label, see what `edgen pairs {run.rundir.path} --by {by}` left out: another source, "
            "another judge, more votes or a smaller --min-margin may give labels."
        )


@contextlib.contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """A new folder that becomes `target` if all goes well, and else is removed with all it holds."""
    place = Path(os.path.realpath(target))
    made = [parent for parent in place.parents if not parent.exists()]
    stage = temporary(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        stage.mkdir()
        yield stage
        stage.replace(place)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    with contextlib.suppress(OSError):
        sync_folder(place.parent)


@contextlib.contextmanager
def _worded(target: Path) -> Iterator[None]:
    """The operating system's errors as sentences."""
    full = (
        f"{target}: there is no room left on the disk; nothing was written. "
        "Make room and start the same command again."
    )
    try:
        yield
    except StoppedError as problem:  # of the shards' writer, which knows only the folder it was made in
        raise StoppedError(full) if f"/.{target.name}." in str(problem) else problem from None
    except OSError as problem:
        if problem.errno in _FULL:
            raise StoppedError(full) from None
        raise UsageError(
            f"{target}: it cannot be written ({problem.strerror}); nothing was written."
        ) from None
