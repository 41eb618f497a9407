"""Conversations as samples, from a run or from anybody's files of Education Dialogue's form.

A `Material` is what the measures are told of: its samples and fates are read anew each time they are asked
for, and streamed. A run is asked for its ledger, so that what was rejected is known too; a run with arms is
one material an arm. Files are asked for their records alone; those that are none are counted by reason.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.config import load_job
from edgen.quality.model import Fate, Listener, Sample
from edgen.rundir import RunDir
from edgen.samples.files import files_at
from edgen.samples.material import Material
from edgen.samples.runs import nothing, run_at, settled

if TYPE_CHECKING:
    from edgen.quality.results import MeasureName, Quality

__all__ = ["Material", "materials", "quality_of"]


def materials(paths: Sequence[Path]) -> list[Material]:
    """What there is to measure at these paths: one data set, or one an arm for a run with arms by itself.

    Raises LockedError if somebody works on a run, ShortError if nothing of it is settled, RunError and
    DataError for what cannot be read. What is wrong inside a file shows when it is read.
    """
    if len(paths) == 1:
        return _at(paths[0])
    return [_together([found for number, path in enumerate(paths) for found in _at(path, number)])]


def quality_of(
    material: Material,
    only: Collection[MeasureName] | None = None,
    tell: Callable[[int], None] = lambda _: None,
    beside: Sequence[Listener] = (),
) -> Quality:
    """All measures of a material, or those in `only`, as `quality.measure` has them."""
    from edgen.quality.measure import measure

    return measure(
        material.name,
        material.sources,
        material.samples(),
        material.fates(),
        material.space,
        material.calibration,
        tell,
        unread=material.unread,
        notes=material.notes,
        only=only,
        beside=beside,
    )


def _at(path: Path, number: int = 0) -> list[Material]:
    """What is at one path; `number` keeps its scenarios apart from those of other paths."""
    rundir = RunDir(path)
    if rundir.exists:
        rundir.refuse_links()
    if not (rundir.job.exists() and (rundir.ledger.exists() or rundir.arms.exists())):
        return [files_at(path, number)]
    whole = RunDir(path.resolve().parent.parent)
    if path.resolve().parent == whole.arms and whole.job.exists():
        # an arm by itself has the test side of its run
        whole.refuse_links()
        with whole.read():
            return [dataclasses.replace(run_at(whole, path.resolve().name, number), arm=None)]
    with rundir.read():
        arms = load_job(rundir.job).arms
        if not arms:
            return [run_at(rundir, None, number)]
        begun = [arm for arm in arms if rundir.of(arm).ledger.exists()]
        told = [arm for arm in begun if settled(rundir.of(arm).ledger)]
        if not told:
            raise nothing(rundir)
        found = [run_at(rundir, arm, number) for arm in told]
    if missing := [arm for arm in arms if arm not in told]:
        words = f"{'Arm' if len(missing) == 1 else 'Arms'} {', '.join(missing)}: nothing is settled yet."
        found = [_noted(material, words) for material in found]
    return found


def _together(parts: Sequence[Material]) -> Material:
    """Several materials as one data set."""
    unread: Counter[str] = Counter()

    def samples() -> Iterator[Sample]:
        unread.clear()
        for part in parts:
            yield from part.samples()
            unread.update(part.unread)

    def fates() -> Iterator[Fate] | None:
        known = [found for part in parts if (found := part.fates()) is not None]
        return itertools.chain.from_iterable(known) if known else None

    counts = [part.count for part in parts if part.count is not None]
    # files know no plan; beside runs they would count as planned and all accepted
    files = [part.name for part in parts if part.fates() is None]
    runs = [part for part in parts if part.fates() is not None]
    spaces = [part.space for part in runs or parts]
    noted: dict[str, list[str]] = {}
    if runs and files:
        alone = ", ".join(part.name for part in runs)
        noted[f"no plan is known of files, so coverage is that of {alone} alone."] = files
    for part in parts:
        for note in part.notes:
            noted.setdefault(note, []).append(part.name)
    return Material(
        name=" + ".join(part.name for part in parts[:4]) + (" + …" if len(parts) > 4 else ""),
        sources=tuple(source for part in parts for source in part.sources),
        samples=samples,
        fates=fates,
        space=spaces[0] if all(space == spaces[0] for space in spaces) else None,
        count=sum(counts) if len(counts) == len(parts) else None,
        unread=unread,
        notes=tuple(f"{', '.join(names)}: {note}" for note, names in noted.items()),
    )


def _noted(material: Material, words: str) -> Material:
    return dataclasses.replace(material, notes=(*material.notes, words))
