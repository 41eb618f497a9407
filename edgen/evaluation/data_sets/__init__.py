"""Data sets from runs and from files of any origin.

Samples and plan are streamed, and read again at each use. A run is read from its ledger, which includes
rejected conversations; a run with arms is one data set per arm. Files hold only records; unreadable ones are
counted by reason.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from edgen.core.kept_files import DIGESTS
from edgen.evaluation.data_sets.files import read_files
from edgen.evaluation.data_sets.runs import is_settled, make_nothing_settled_error, make_run_data_set
from edgen.evaluation.sample import DataSet, PlannedOutcome, Sample
from edgen.space import Space
from edgen.store.run_folder import RunFolder

__all__ = ["DataSet", "open_data_sets"]


def open_data_sets(paths: Sequence[Path]) -> list[DataSet]:
    """Open the data sets at these paths: one for all paths, but one per arm for a single run with arms.

    Raises LockedError for a run at work, ShortError if nothing in a run is settled, RunError and DataError
    for unreadable paths. Faults inside a file show when it is read.
    """
    if len(paths) == 1:
        return _open_path(paths[0])
    return [_combine([found for number, path in enumerate(paths) for found in _open_path(path, number)])]


def _open_path(path: Path, number: int = 0) -> list[DataSet]:
    """Open the data sets at one path. `number`: the path's number, which keeps scenarios of several paths
    apart."""
    rundir = RunFolder(path)
    if rundir.exists:
        rundir.refuse_links()
    if not (rundir.job.exists() and (rundir.ledger.exists() or rundir.arms_folder.exists())):
        data = read_files(path, number)
        if not (rundir.path / DIGESTS).is_file():
            return [data]
        lost = (
            f"{rundir.ledger}: the ledger of this run is missing, so the files in {rundir.shards} were read "
            "instead."
        )
        return [dataclasses.replace(data, notes=(*data.notes, lost))]
    whole = RunFolder(path.resolve().parent.parent)
    if path.resolve().parent == whole.arms_folder and whole.job.exists():
        # an arm opened alone has the test side of its run
        whole.refuse_links()
        with whole.lock_for_reading():
            return [dataclasses.replace(make_run_data_set(whole, path.resolve().name, number), arm="")]
    with rundir.lock_for_reading():
        arms = rundir.arms()
        begun = [arm for arm, own in arms if is_settled(own.ledger)]
        if not begun:
            raise make_nothing_settled_error(rundir)
        found = [make_run_data_set(rundir, arm, number) for arm in begun]
    if missing := [arm for arm, _ in arms if arm not in begun]:
        words = f"{'Arm' if len(missing) == 1 else 'Arms'} {', '.join(missing)}: nothing is settled yet."
        found = [dataclasses.replace(one, notes=(*one.notes, words)) for one in found]
    return found


def _combine(parts: Sequence[DataSet]) -> DataSet:
    """Return several data sets as one data set."""
    unread: Counter[str] = Counter()
    stale: Counter[str] = Counter()

    def iterate_samples() -> Iterator[Sample]:
        unread.clear()
        stale.clear()
        for part in parts:
            yield from part.samples()
            unread.update(part.unread)
            stale.update(part.stale_labels)

    def iterate_plan() -> Iterator[PlannedOutcome] | None:
        known = [found for part in parts if (found := part.plan()) is not None]
        return itertools.chain.from_iterable(known) if known else None

    names = Counter(part.name for part in parts)
    parts = [  # runs of one job: by their folders
        part if names[part.name] == 1 else dataclasses.replace(part, name=part.sources[0]) for part in parts
    ]
    counts = [part.count for part in parts if part.count is not None]
    # files have no plan: next to runs they would count as planned and all accepted
    files = [part.name for part in parts if part.plan() is None]
    runs = [part for part in parts if part.plan() is not None]
    notes: dict[str, list[str]] = {}
    if runs and files:
        alone = ", ".join(part.name for part in runs)
        notes[f"files have no known plan, so coverage is that of {alone} alone."] = files
    for part in parts:
        for note in part.notes:
            notes.setdefault(note, []).append(part.name)
    return DataSet(
        name=" + ".join(part.name for part in parts[:4]) + (" + …" if len(parts) > 4 else ""),
        sources=tuple(source for part in parts for source in part.sources),
        samples=iterate_samples,
        plan=iterate_plan,
        family=parts[0].family if all(part.family is parts[0].family for part in parts) else None,
        roles=parts[0].roles if all(part.roles == parts[0].roles for part in parts) else (),
        find_space=partial(_find_common_space, runs or parts),
        find_guide=lambda: parts[0].guide if all(part.guide == parts[0].guide for part in parts) else None,
        count=sum(counts) if len(counts) == len(parts) else None,
        unread=unread,
        stale_labels=stale,
        describe_repeats=partial(_describe_repeats, parts),
        label_sets={
            name: labels
            for part in parts
            for name, labels in part.label_sets.items()
            if all(other.label_sets.get(name, labels) == labels for other in parts)
        },
        identical={name: groups for part in parts for name, groups in part.identical.items()},
        notes=tuple(f"{', '.join(names)}: {note}" for note, names in notes.items()),
    )


def _find_common_space(parts: Sequence[DataSet]) -> Space | None:
    """Return the space that all parts share; None if they differ."""
    spaces = [part.space for part in parts]
    first, *others = (one and msgspec.structs.replace(one, family=None) for one in spaces)
    return spaces[0] if all(one == first for one in others) else None


def _describe_repeats(parts: Sequence[DataSet]) -> str | None:
    """Return the sentences of all parts on repeated ids; None without any."""
    return " ".join(said for part in parts if (said := part.describe_repeats())) or None
