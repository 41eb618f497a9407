"""Damage each file of a run, and find the commands that read it without a report.

python -m bench flips [--flips N] [--seed S] [--kinds KIND…] [--only COMMAND…] (--help: all of them)

Runs of several kinds are made with the embedded model. Each trial copies one, damages one file, and runs one
command on the copy. The damage: a flipped bit, a cut end, lines or pages removed, swapped, repeated or
cleared, no content, no file. A trial is

- silent where the command ends as without the damage, but prints or writes something else or stores new
  replies; and where `validate` ends as without it, though a file or the content of a ledger differs,
- vague where the command stops or warns without the name of the damaged file,
- a bug where it prints a traceback or ends with an undocumented exit code.

A command that does not open a file is not tried on it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.flips.damages import choose_damage
from bench.flips.reading import Result, dump, import_all, must, read
from bench.flips.rows import apply_change, find_silent_changes, list_changes
from bench.flips.runs import KINDS, SELFPLAY, Kind, Reading
from bench.measure import ROOT

_NOT = (".lock", ".html", ".db-wal", ".db-shm")
_CODES = frozenset({0, 2, 3, 4, 5, 6})
ENDS = ("same", "reported", "vague", "silent", "bug")


class Trial(NamedTuple):
    """One command on one damaged file, and how it ended: one of ENDS."""

    file: str
    damage: str
    reading: str
    ended: str
    calls: int
    detail: str


def main(arguments: list[str]) -> int:
    """Run the campaign; return how many trials were silent or a bug."""
    parser = argparse.ArgumentParser(
        prog="python -m bench flips",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [kind.name for kind in KINDS]
    parser.add_argument("--flips", type=int, default=12, help="damages of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", choices=names, default=names, help="only these kinds of runs")
    parser.add_argument("--files", default="*", help="only these files, as in '*.db'")
    parser.add_argument(
        "--only", nargs="*", default=[], help="only these commands, by their names in the table"
    )
    parser.add_argument("--rows", action="store_true", help="change fields and rows of ledgers instead")
    parser.add_argument(
        "--commands",
        action="store_true",
        help="with --rows: run the commands on --flips changes of each table, too",
    )
    given = parser.parse_args(arguments)
    os.chdir(ROOT)
    if given.rows and given.commands:
        return sum(_try_commands(kind, given) for kind in KINDS if kind.name in given.kinds)
    if given.rows:
        return sum(_change_rows(kind) for kind in KINDS if kind.name in given.kinds)
    wrong = 0
    for kind in (kind for kind in KINDS if kind.name in given.kinds):
        chosen = tuple(one for one in kind.readings if not given.only or one.name in given.only)
        wrong += len(flips(given.flips, given.seed, kind=kind._replace(readings=chosen), files=given.files))
    return wrong


def _change_rows(kind: Kind) -> int:
    """Print how many changes of a run's ledgers `validate` does not report; return the number."""
    with tempfile.TemporaryDirectory() as folder:
        count, silent = find_silent_changes(kind.make(Path(folder), must))
    print(f"  {kind.name}: {count} changes of fields and rows, {len(silent)} silent", flush=True)
    for change in silent:
        print(f"  silent: {change.ledger}: {change.table}: {change.what}", flush=True)
    return len(silent)


def _try_commands(kind: Kind, given: argparse.Namespace) -> int:
    """Change rows of a run's ledgers, and run commands on them.

    Print and return the trials that were silent or a bug.
    """
    import_all()
    by_command: defaultdict[str, Counter[str]] = defaultdict(Counter)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        run = kind.make(Path(folder), must)
        count, silent = find_silent_changes(run)
        print(
            f"  {kind.name}: {count} changes, {len(silent)} not named: {Counter(one.table for one in silent)}"
        )
        readings = tuple(one for one in kind.readings if not given.only or one.name in given.only)
        for trial in _try_changes(run, given.flips, given.seed, readings):
            by_command[trial.reading][trial.ended] += 1
            if trial.ended in ("silent", "bug"):
                wrong += 1
                print(
                    f"  {trial.ended}: {trial.reading} after {trial.damage} in {trial.file}: {trial.calls} calls more; {trial.detail}",
                    flush=True,
                )
    _print_table(f"{kind.name}: command", by_command)
    return wrong


def _try_changes(run: Path, count: int, seed: int, readings: tuple[Reading, ...]) -> Iterator[Trial]:
    """Run each command on `count` changes of each table of each ledger."""
    by_table = defaultdict(list)
    for change in list_changes(run):
        by_table[change.ledger, change.table].append(change)
    with tempfile.TemporaryDirectory() as scratch:
        attempt = _attempts(run, Path(scratch) / "place")
        sound = {reading: (attempt(reading), attempt(reading)) for reading in readings}
        for (ledger, table), changes in by_table.items():
            chance = random.Random(f"{seed}/{ledger}/{table}")
            for change in chance.sample(changes, min(count, len(changes))):
                for reading in readings:
                    if ledger not in sound[reading][0].opened:
                        continue
                    found = attempt(reading, lambda there: apply_change(change, there))  # noqa: B023
                    ended = _judge(ledger, sound[reading], found)
                    detail = (
                        "" if ended in ("same", "reported") else _describe(ledger, sound[reading][0], found)
                    )
                    more = found.calls - sound[reading][0].calls
                    yield Trial(f"{ledger}: {table}", change.what, reading.name, ended, more, detail)


def _attempts(run: Path, place: Path) -> Callable[..., Result]:
    """Return a function that runs a command on a damaged copy of a run."""

    def attempt(reading: Reading, damage: Callable[[Path], object] = lambda _run: None) -> Result:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copytree(run, place / "run")
        damage(place / "run")
        return read(reading, place / "run", place / "out", run.parent)

    return attempt


def flips(
    count: int = 12, seed: int = 0, run: Path | None = None, kind: Kind = SELFPLAY, files: str = "*"
) -> list[Trial]:
    """Damage each file of a run `count` times, and print the tables.

    Return the trials that were silent or a bug. `run`: a run of this kind, else one is made. `files`: a
    pattern of names.
    """
    import_all()
    by_command: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_file: defaultdict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        run = kind.make(Path(folder), must) if run is None else run
        for trial in _try_all(run, count, seed, kind.readings, files):
            by_command[trial.reading][trial.ended] += 1
            by_file[trial.file][trial.ended] += 1
            if trial.ended in ("silent", "bug"):
                wrong.append(trial)
            if trial.ended not in ("same", "reported"):
                print(
                    f"  {trial.ended}: {trial.reading} after {trial.damage} of {trial.file}: {trial.calls} calls more; {trial.detail}",
                    flush=True,
                )
    _print_table(f"{kind.name}: command", by_command)
    _print_table(f"{kind.name}: file", by_file)
    return wrong


def _print_table(title: str, table: dict[str, Counter[str]]) -> None:
    print(f"  {title:<54}" + "".join(f"{end:>10}" for end in ENDS))
    for name, row in table.items():
        print(f"  {name:<54}" + "".join(f"{row[end]:>10}" for end in ENDS))
    total: Counter[str] = sum(table.values(), Counter())
    print(f"  {'all':<54}" + "".join(f"{total[end]:>10}" for end in ENDS), flush=True)


def _try_all(
    run: Path, count: int, seed: int, readings: tuple[Reading, ...], pattern: str
) -> Iterator[Trial]:
    files = sorted(
        path.relative_to(run).as_posix()
        for path in run.rglob(pattern)
        if path.is_file() and not path.name.endswith(_NOT) and path.stat().st_size
    )
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "place"
        attempt = _attempts(run, place)
        sound = {reading: (attempt(reading), attempt(reading)) for reading in readings}
        for reading, (one, other) in sound.items():
            if one.code:
                raise SystemExit(f"{reading.name}: {one}")
            if unsteady := _find_differences(one, other, ""):
                print(f"  ({reading.name}: not compared, since they differ each time: {', '.join(unsteady)})")
        for file in files:
            data = (run / file).read_bytes()
            for number in range(count):
                chance = random.Random(f"{seed}/{file}/{number}")
                damage = choose_damage(file, number)
                changed = damage(data, chance)
                if changed == data:
                    continue
                for reading in readings:
                    if file not in sound[reading][0].opened:
                        continue
                    found = attempt(reading, lambda there: _write(there / file, changed))  # noqa: B023
                    ended = _judge(file, sound[reading], found)
                    if (
                        ended == "same"
                        and reading.name == "validate"
                        and _is_another(run / file, changed, place)
                    ):
                        ended = "silent"
                    detail = (
                        "" if ended in ("same", "reported") else _describe(file, sound[reading][0], found)
                    )
                    more = found.calls - sound[reading][0].calls
                    yield Trial(file, damage.__name__, reading.name, ended, more, detail)


def _write(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)


def _judge(file: str, sound: tuple[Result, Result], found: Result) -> str:
    """Return how a trial ended."""
    whole, again = sound
    if found.code not in _CODES or "Traceback" in found.output:
        return "bug"
    name = file.rpartition("/")[2]
    if found.output.count(name) > whole.output.count(name):
        return "reported"
    if found.code != whole.code or (whole.stderr == again.stderr != found.stderr):
        return "vague"
    unsteady = _find_differences(whole, again, "")
    other = set(_find_differences(whole, found, file)) - set(unsteady)
    return "silent" if other or found.calls > whole.calls else "same"


def _find_differences(one: Result, other: Result, damaged: str) -> list[str]:
    """Return where two results differ: "stdout", and the names of files.

    The damaged file itself may differ.
    """
    differing = [
        name
        for name in sorted(one.files.keys() | other.files.keys())
        if one.files.get(name) != other.files.get(name) and name != f"run/{damaged}"
    ]
    return ["stdout"] * (one.stdout != other.stdout) + differing


def _describe(file: str, whole: Result, found: Result) -> str:
    """Return what a trial printed, or what it wrote that differs from the output without the damage."""
    place = next((i for i, (a, b) in enumerate(zip(whole.stdout, found.stdout, strict=False)) if a != b), 0)
    differing = ", ".join(_find_differences(whole, found, file)[:4])
    return f"{differing}: {found.stdout[max(0, place - 60) : place + 60]!r} {found.stderr.strip()[-300:]!r}"


def _is_another(path: Path, changed: bytes | None, place: Path) -> bool:
    """Return whether a file with this content differs from the one at `path`: for a ledger, in any row."""
    if path.suffix != ".db" or changed is None:
        return True
    other = place / "other.db"
    other.write_bytes(changed)
    copy = place / "whole.db"
    shutil.copyfile(path, copy)
    return dump(other) != dump(copy)
