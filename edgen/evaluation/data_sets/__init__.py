"""Data sets from runs and from anybody's files.

Samples and plan are read anew each time they are asked for, and streamed. A run is read from its ledger, so
that what was rejected is known too; a run with arms is one data set an arm. Of files there are the records
alone; those that cannot be read are counted by reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import load_kept_job, protocol_of
from edgen.config.label_set import LabelSet
from edgen.core.errors import RunError, ShortError
from edgen.core.kept_files import DIGESTS
from edgen.core.values import Scenario
from edgen.evaluation.data_sets.files import files_at
from edgen.evaluation.sample import SCENARIOS_A_PATH, DataSet, PlannedOutcome, Sample, Split, sample_of
from edgen.families.base import FiledRecord
from edgen.store.layers import LayerJoin, layer_files
from edgen.store.ledger import LedgerReader
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from edgen.store.split_side import read_test_side

__all__ = ["DataSet", "open_data_sets"]


def open_data_sets(paths: Sequence[Path]) -> list[DataSet]:
    """Open the data sets at these paths: one, or one per arm for a run with arms by itself.

    Raises LockedError for a run at work, ShortError if nothing of it is settled, RunError and DataError for
    unreadable ones. Faults inside a file show when it is read.
    """
    if len(paths) == 1:
        return _at(paths[0])
    return [_combine([found for number, path in enumerate(paths) for found in _at(path, number)])]


def _at(path: Path, number: int = 0) -> list[DataSet]:
    """Open the data sets at one path; `number` keeps its scenarios apart from those of other paths."""
    rundir = RunFolder(path)
    if rundir.exists:
        rundir.refuse_links()
    if not (rundir.job.exists() and (rundir.ledger.exists() or rundir.arms_folder.exists())):
        data = files_at(path, number)
        if not (rundir.path / DIGESTS).is_file():
            return [data]
        lost = f"{rundir.ledger}: the ledger of this run is missing, so the files in {rundir.shards} were read instead."
        return [dataclasses.replace(data, notes=(*data.notes, lost))]
    whole = RunFolder(path.resolve().parent.parent)
    if path.resolve().parent == whole.arms_folder and whole.job.exists():
        # an arm by itself has the test side of its run
        whole.refuse_links()
        with whole.lock_for_reading():
            return [dataclasses.replace(run_at(whole, path.resolve().name, number), arm="")]
    with rundir.lock_for_reading():
        arms = rundir.arms()
        begun = [arm for arm, own in arms if is_settled(own.ledger)]
        if not begun:
            raise nothing_settled(rundir)
        found = [run_at(rundir, arm, number) for arm in begun]
    if missing := [arm for arm, _ in arms if arm not in begun]:
        words = f"{'Arm' if len(missing) == 1 else 'Arms'} {', '.join(missing)}: nothing is settled yet."
        found = [dataclasses.replace(one, notes=(*one.notes, words)) for one in found]
    return found


def _combine(parts: Sequence[DataSet]) -> DataSet:
    """Several data sets as one data set."""
    unread: Counter[str] = Counter()
    stale: Counter[str] = Counter()

    def samples() -> Iterator[Sample]:
        unread.clear()
        stale.clear()
        for part in parts:
            yield from part.samples()
            unread.update(part.unread)
            stale.update(part.stale_labels)

    def plan() -> Iterator[PlannedOutcome] | None:
        known = [found for part in parts if (found := part.plan()) is not None]
        return itertools.chain.from_iterable(known) if known else None

    counts = [part.count for part in parts if part.count is not None]
    # files have no plan; with runs they would count as planned and all accepted
    files = [part.name for part in parts if part.plan() is None]
    runs = [part for part in parts if part.plan() is not None]
    spaces = [part.space for part in runs or parts]
    notes: dict[str, list[str]] = {}
    if runs and files:
        alone = ", ".join(part.name for part in runs)
        notes[f"no plan is known of files, so coverage is that of {alone} alone."] = files
    for part in parts:
        for note in part.notes:
            notes.setdefault(note, []).append(part.name)
    return DataSet(
        name=" + ".join(part.name for part in parts[:4]) + (" + …" if len(parts) > 4 else ""),
        sources=tuple(source for part in parts for source in part.sources),
        samples=samples,
        plan=plan,
        family=parts[0].family if all(part.family is parts[0].family for part in parts) else None,
        roles=parts[0].roles if all(part.roles == parts[0].roles for part in parts) else (),
        space=spaces[0] if all(space == spaces[0] for space in spaces) else None,
        find_guide=lambda: parts[0].guide if all(part.guide == parts[0].guide for part in parts) else None,
        count=sum(counts) if len(counts) == len(parts) else None,
        unread=unread,
        stale_labels=stale,
        repeated=_Repeated(parts),
        label_sets={
            name: labels
            for part in parts
            for name, labels in part.label_sets.items()
            if all(other.label_sets.get(name, labels) == labels for other in parts)
        },
        identical={name: groups for part in parts for name, groups in part.identical.items()},
        notes=tuple(f"{', '.join(names)}: {note}" for note, names in notes.items()),
    )


class _Repeated:
    """The repeated ids in the parts of a data set."""

    def __init__(self, parts: Sequence[DataSet]) -> None:
        self._parts = parts

    def told(self) -> str | None:
        """Return the sentences of all parts, None without any."""
        told = (part.repeated.told() for part in self._parts if part.repeated is not None)
        return " ".join(one for one in told if one) or None


MOST_PENDING = 100_000  # conversations that are drawn to say of them that they are pending


def is_settled(ledger: Path) -> bool:
    """Return whether any conversation of a ledger's plan has an outcome."""
    if not ledger.exists():
        return False
    with LedgerReader(ledger) as view:
        return view.status.planned > view.status.pending


def nothing_settled(rundir: RunFolder) -> ShortError:
    """Return the error for a run in which nothing is settled."""
    return ShortError(
        f"{rundir.path}: no conversation of this run has ended yet, so there is nothing to measure. "
        "`edgen generate` with its job resumes it."
    )


def run_at(rundir: RunFolder, arm: str, number: int) -> DataSet:
    """Return a run, or one arm of it. The caller holds the run's lock."""
    own = rundir.arm(arm)
    where = (rundir, arm, number * SCENARIOS_A_PATH)
    stale: Counter[str] = Counter()
    with RunReader(own.path) as reader:
        view = reader.views[""]
        if view.status.planned == view.status.pending:
            raise nothing_settled(rundir)
        notes = list(_notes(rundir, own, view))
        calibration = None
        if not arm and rundir.pairs.exists():
            try:
                calibration = _calibration(reader)
            except RunError as problem:
                notes.append(f"No calibration: {problem}")
        return DataSet(
            name=arm or reader.name,
            sources=(str(own.path),),
            samples=partial(_samples, *where, stale),
            plan=partial(_plan, *where),
            family=reader.family,
            roles=reader.space.roles,
            space=reader.space,
            find_guide=partial(protocol_of(reader.job).guide, reader.job),
            arm=arm,
            count=view.status.accepted,
            calibration=calibration,
            stale_labels=stale,
            label_sets=_label_sets(own),
            identical=_identical(own),
            notes=tuple(notes),
        )


def _label_sets(run: RunFolder) -> dict[str, LabelSet]:
    if not run.has_layers or not layer_files(run):
        return {}
    from edgen.annotation.layer import noted_sets  # which brings all that asks annotators

    return noted_sets(run)


def _identical(run: RunFolder) -> Mapping[str, tuple[tuple[str, ...], ...]]:
    if not run.has_layers or not layer_files(run):
        return {}
    from edgen.annotation.identical import identical_annotators

    return identical_annotators(run)


def _notes(rundir: RunFolder, own: RunFolder, view: LedgerReader) -> Iterator[str]:
    if view.status.pending:
        yield (
            f"{view.status.pending:,} of {view.status.planned:,} conversations are pending: the measures are of what "
            "is there, and the rest may change them."
        )
    if view.status.pending > MOST_PENDING:
        yield f"Coverage counts the first {MOST_PENDING:,} pending conversations as planned, and no more of them."
    if view.simulated:
        yield "A simulator wrote this, or a part of it: it shows how the measures look, not how a model writes."
    if own is not rundir and rundir.pairs.exists():
        yield (
            f"The pairs of this run are across its arms: `edgen pairs {rundir.path} --report` has their calibration."
        )


def _calibration(reader: RunReader) -> dict[str, Any] | None:
    from edgen.preferences.bias import bias_report

    report = bias_report((compared.pair, {}) for compared in reader.compared())
    keys = ("judge", "model", "compare", "calibration")
    known = [one for one in report["judges"] if one["calibration"] is not None or "logprobs" in one]
    kept = [{key: one[key] for key in (*keys, "logprobs") if key in one} for one in known]
    return {"judges": kept} if kept else None


@contextlib.contextmanager
def _open(rundir: RunFolder, arm: str) -> Iterator[RunReader]:
    with rundir.lock_for_reading(), RunReader(rundir.arm(arm).path) as reader:
        yield reader


def _samples(rundir: RunFolder, arm: str, offset: int, stale: Counter[str]) -> Iterator[Sample]:
    """Yield the conversations of a run, or of one arm of it.

    The arms of a run have one test side. Units left out of the layers are counted in `stale`, which is
    cleared first.
    """
    stale.clear()
    own = rundir.arm(arm)
    with _open(rundir, arm) as reader, contextlib.ExitStack() as stack:
        layers = stack.enter_context(LayerJoin(own)) if own.has_layers else None
        if arm:
            arms = (one for _, one in rundir.begun_arms())
            side = read_test_side(arms, load_kept_job(rundir.job).split.test)
        else:
            side = reader.test_side
        for _, _, group, data in reader.views[""].records():
            record = reader.read(data)
            split: Split = "test" if side.is_test(group) else "train"
            scenario = _with_offset(record.scenario, offset)
            labels = layers.of(record.scenario.index, record.id, record.turns) if layers else {}
            yield sample_of(FiledRecord.of(record), record.id, scenario, str(rundir.path), split, labels)
        if layers:
            layers.finish()
            stale.update(layers.left_out)


def _plan(rundir: RunFolder, arm: str, offset: int) -> Iterator[PlannedOutcome]:
    """Yield every planned conversation, scenario by scenario; one without an outcome is pending.

    Of pending ones, only the first MOST_PENDING: a plan may be too large to list.
    """
    with _open(rundir, arm) as reader:
        view = reader.views[""]
        replicates, left = view.plan.replicates, MOST_PENDING

        @lru_cache(maxsize=1)
        def scenario(index: int) -> Scenario:
            return _with_offset(reader.scenario(index), offset)

        def pending(start: int, stop: int) -> Iterator[PlannedOutcome]:
            for number in range(start, min(stop, start + left)):
                yield PlannedOutcome(scenario(number // replicates), number % replicates, "pending")

        start = view.plan.first * replicates  # conversations are numbered through all scenarios
        for index, replicate, status, reason in view.settled():
            number = index * replicates + replicate
            yield from pending(start, number)
            left -= min(left, number - start)
            yield PlannedOutcome(scenario(index), replicate, status, reason)  # type: ignore[arg-type]
            start = number + 1
        yield from pending(start, view.plan.scenarios * replicates)


def _with_offset(scenario: Scenario, offset: int) -> Scenario:
    return msgspec.structs.replace(scenario, index=scenario.index + offset) if offset else scenario
