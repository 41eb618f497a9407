"""Checks of a whole run: ledgers, inputs, layers, pairs, votes, written texts, notes, comparisons, finished
files."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgen.config import is_input, load_job
from edgen.core.digest import is_sealed_as_written
from edgen.core.errors import DamagedError, DataError, EdgenError, FileError
from edgen.core.files import read_regular
from edgen.core.kept_files import DIGESTS, find_damage, has_digest
from edgen.core.text import join_first
from edgen.execution.finished import find_stale_files
from edgen.store.layers import read_layer
from edgen.store.ledger import ACKNOWLEDGED, has_acknowledgement, has_tally
from edgen.store.ledger.checking import find_ledger_damage
from edgen.store.pairs_file import list_pair_sets, list_places_of_pairs, read_pairs_of, use_pair_set
from edgen.store.people import has_people
from edgen.store.run_folder import RunFolder
from edgen.store.split_side import read_test_side
from edgen.store.votes import read_filed_votes, read_stored_votes
from edgen.store.written_texts import read_written
from edgen.validation.checker import FileReport
from edgen.validation.findings import Finding
from edgen.validation.reading import make_printable

_LARGE = 1 << 26  # bytes of a ledger that takes seconds to check
_LARGEST = 1 << 30  # most bytes of a comparison


_NO_TALLY = (
    "an older edgen wrote this ledger, without a count of its rows. Every stored answer was checked; "
    "removed conversations, "
    "and changed notes about sessions and calls, would not be noticed. The next command that works on it "
    "counts them"
)

Reader = tuple[Path, str, Callable[[Path], object]]
"""A folder, the pattern of its files, and what reads one of them."""
FindReaders = Callable[[RunFolder], Iterable[Reader]]


class _Found(NamedTuple):
    """A problem of a file of a run: a kind of `validation.findings`, and a clause; `repair`: its remedy."""

    path: Path
    kind: str
    problem: str
    repair: str | None = None


class RunCheck(NamedTuple):
    """The files of a run with problems, and sentences about their repair."""

    folder: Path
    reports: tuple[FileReport, ...]
    repairs: tuple[str, ...]

    @property
    def damaged(self) -> bool:
        """True if any problem is an error."""
        return any(one.severity == "error" for report in self.reports for one in report.problems)


def check_run(run: RunFolder, note: Callable[[str], None], others: FindReaders) -> RunCheck:
    """Check everything that a run and its arms contain, except the records of its finished files. `note`
    receives remarks on long work; `others` returns readers of further files.

    Nothing is changed.
    """
    folders = [run, *(RunFolder(path) for path in sorted(run.arms_folder.glob("*")) if path.is_dir())]
    found = [*_find_missing_arms(run), *_check_ledgers(folders, note)]
    for folder in folders:
        found += _check_digests(folder, run, others)
    found += _check_readability(folders, others)
    if not any(one.kind in ("ledger", "damaged") for one in found):
        if sum(_read_size(folder.ledger) for folder in folders) > _LARGE:
            note(f"{run.path}: comparing the finished files with the ledger …")
        found += _check_finished_files(run)
    found.sort(key=lambda one: str(one.path))
    reports = (
        FileReport(
            make_printable(path),
            0,
            0,
            tuple(Finding.of(None, "$", one.problem, one.kind) for one in problems),
        )
        for path, problems in itertools.groupby(found, key=lambda one: one.path)
    )
    return RunCheck(run.path, tuple(reports), tuple(dict.fromkeys(one.repair for one in found if one.repair)))


def _find_missing_arms(run: RunFolder) -> Iterator[_Found]:
    """Yield the missing folders of arms that the run had."""
    with _report_errors(run.arm_numbers, "damaged") as told:
        for arm in run.number_arms():
            if not run.arm(arm).path.is_dir():
                problem = "the folder of this arm is missing, with its ledger"
                yield _Found(run.arm(arm).path, "missing", problem, _describe_copy(run.arm(arm).path))
    if not has_digest(run.arm_numbers):  # with a digest, the digest check reports it
        yield from told


def _check_ledgers(folders: Iterable[RunFolder], note: Callable[[str], None]) -> Iterator[_Found]:
    seen = set[Path]()
    for folder in folders:
        if (
            not folder.ledger.exists()
            and not folder.arms_folder.is_dir()
            and (folder.path / DIGESTS).is_file()
        ):
            problem = "the ledger is missing, and with it every raw reply"
            yield _Found(folder.ledger, "ledger", problem, _describe_copy(folder.ledger))
        for path in sorted({*folder.ledgers(), *_list_asker_ledgers(folder)} - seen):
            seen.add(path)
            if (size := _read_size(path)) > _LARGE:
                note(f"{path}: reading {size >> 20:,} MB …")
            with _report_errors(path, "ledger") as told:
                sentences = [*find_ledger_damage(path)]
                if not path.exists() and not sentences:
                    yield _Found(path, "missing", "the ledger is missing", _describe_copy(path))
                elif path.exists() and not has_acknowledgement(path):
                    note_of = path.with_name(path.name + ACKNOWLEDGED)
                    problem = (
                        "there is no valid count of stored answers in this file, so nothing says whether "
                        "the ledger lost some; the next command that asks writes it"
                    )
                    yield _Found(note_of, "no_digest", problem)
                if path.exists() and path.stat().st_nlink > 1:
                    yield _Found(path, "linked", "it is a hard link: another name leads to the same file")
                for sentence in sentences:
                    yield _Found(path, "ledger", sentence.removeprefix(f"{path}: "))
                if path.exists() and not sentences and not has_tally(path):
                    yield _Found(path, "no_tally", _NO_TALLY)
            yield from told


def _list_asker_ledgers(folder: RunFolder) -> Iterator[Path]:
    """Yield the ledgers of askers in a folder, including empty ones, and missing ones next to files that only
    accompany a ledger."""
    for place in folder.list_asker_folders():
        for pattern in ("*.db", f"*.db{ACKNOWLEDGED}", "*.json"):
            for path in place.glob(pattern):
                yield path.with_name(path.name.removesuffix(ACKNOWLEDGED)).with_suffix(".db")


def _check_digests(folder: RunFolder, run: RunFolder, others: FindReaders) -> Iterator[_Found]:
    """Yield the files that differ from their digests; count those without one."""
    if not (folder.path / DIGESTS).is_file():
        problem = "there are no digests, so nothing says whether the run's files are as edgen wrote them"
        yield _Found(folder.path / DIGESTS, "missing", problem)
    if not folder.job.is_file() and not has_digest(folder.job):
        yield _Found(folder.job, "damaged", "it is missing", _restore(run))
    with _report_errors(folder.path / DIGESTS, "damaged", _restore(run)) as told:
        for one in find_damage(folder.path):
            path = folder.path / one.name
            missing = one.missing and not is_input(one.name)
            yield _Found(path, "missing" if missing else "damaged", one.what, _repair(folder, run, one.name))
        kept = (
            folder.job,
            *sorted(folder.inputs.glob("*")),
            *(path for path, _ in _list_derived_files(folder, others)),
        )
        without = [path for path in kept if path.is_file() and path.suffix != ".db" and not _has_digest(path)]
        if without:
            shown = join_first([path.relative_to(folder.path).as_posix() for path in without], 3)
            problem = (
                f"no digest of {shown}: written by an older edgen or by hand; the command that makes "
                "the file writes one when it is run again"
            )
            yield _Found(folder.path, "no_digest", problem)
    yield from told


def _has_digest(path: Path) -> bool:
    if path.parent.name != "comparisons":
        return has_digest(path)
    return path.stat().st_size > _LARGEST or is_sealed_as_written(read_regular(path, _LARGEST)) is not None


def _list_derived_files(
    folder: RunFolder, others: FindReaders
) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Yield the files made from a run's answers or given by people, each with its reader."""
    for own in list_places_of_pairs(folder):
        for name in list_pair_sets(own):
            use_pair_set(own, name)
            yield own.pairs, partial(_exhaust_pairs, own.pairs, folder.path)
        if own.votes.exists():
            yield own.votes, partial(read_filed_votes, own)
    if has_people(folder.path):
        yield folder.path / "people" / "people.db", lambda: read_stored_votes(folder)
    readers: tuple[Reader, ...] = (
        (folder.layers, "*/labels.jsonl", lambda path: _exhaust(read_layer(path))),
        *others(folder),
        (folder.candidates, "*.jsonl", lambda path: _exhaust(read_written(path))),
        (folder.comparisons, "*.json", _read_comparison),
    )
    for place, pattern, read in readers:
        for path in sorted(place.glob(pattern)):
            yield path, partial(read, path)


def _read_comparison(path: Path) -> None:
    """Read a comparison, which contains its own digest: it may be written without the lock that digests.json
    needs, by a command that only reads the run."""
    data = read_regular(path, _LARGEST)
    msgspec.json.decode(data)
    if is_sealed_as_written(data) is False:
        raise DataError(
            str(path),
            "its content does not match its own digest; `edgen compare` with the same runs and arms "
            "writes it again",
        )


def _exhaust_pairs(path: Path, run: Path) -> None:
    _exhaust(read_pairs_of(path, run))


def _check_readability(folders: Iterable[RunFolder], others: FindReaders) -> Iterator[_Found]:
    """Yield the files that no command could read, except damaged ones, which their digests report."""
    for folder in folders:
        for path, read in _list_derived_files(folder, others):
            try:
                read()
            except DamagedError:  # its digest reports it
                continue
            except FileError as problem:
                yield _Found(path, "unreadable_file", problem.summary)
            except EdgenError as problem:
                yield _Found(path, "unreadable_file", str(problem).removeprefix(f"{path}: "))
            except (OSError, ValueError, RecursionError) as problem:
                yield _Found(path, "unreadable_file", f"it cannot be read ({problem})")


def _check_finished_files(run: RunFolder) -> Iterator[_Found]:
    """Yield finished files that differ from the ledger."""
    with _report_errors(run.path, "ledger") as told:
        arms = run.list_begun_arms()
        side = read_test_side([own for _, own in arms], load_job(run.job).split.test)
        again = describe_rewriting(run)
        for _, own in arms:
            try:
                for name, problem in find_stale_files(own, side) if own.shards.exists() else ():
                    yield _Found(own.path / name, "manifest", problem, again)
            except DataError as problem:  # the manifest
                yield _Found(Path(problem.source), "manifest", problem.summary, again)
    yield from told


@contextlib.contextmanager
def _report_errors(path: Path, kind: str, repair: str | None = None) -> Iterator[list[_Found]]:
    """Add an error of the body as a finding."""
    found: list[_Found] = []
    try:
        yield found
    except (EdgenError, OSError) as problem:
        found.append(_Found(path, kind, str(problem).removeprefix(f"{path}: "), repair))


def _repair(folder: RunFolder, run: RunFolder, name: str) -> str:
    """Return a sentence about the repair of a file."""
    path, suffix = folder.path / name, Path(name).suffix
    if is_input(name):
        return _restore(run)
    parts = Path(name).parts
    if parts[0] == "pairs" and len(parts) < 4 and path.name == "pairs.jsonl":
        return f"`edgen pairs {folder.path} --signal …` writes {path} again; all verdicts are stored."
    if name.startswith("candidates/") and suffix == ".jsonl":
        return (
            f"`edgen annotate {folder.path} --write {path.stem}` writes {path} again from the stored answers."
        )
    if path.name == "labels.jsonl":
        return (
            f"`edgen annotate {folder.path}` with the same labels writes {path} again from what its "
            "annotators said; a layer of the job's own gates is written by `edgen generate`."
        )
    return _describe_copy(path)


def _describe_copy(path: Path) -> str:
    return f"Restore {path} from a copy of the run: nothing else has its content."


def describe_rewriting(run: RunFolder) -> str:
    """Return a sentence about the repair of a run's finished files."""
    return (
        f"`edgen generate` the job of {run.path} again: it writes finished files from the ledger, without a "
        "call."
    )


def _restore(run: RunFolder) -> str:
    return f"`edgen validate {run.path} --restore` puts back the run's inputs from the ledger."


def _exhaust(lines: Iterable[object]) -> None:
    for _ in lines:
        pass


def _read_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
