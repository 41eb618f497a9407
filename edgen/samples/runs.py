"""A run's conversations as samples, and what became of everything it planned, out of its ledger."""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.config import load_job
from edgen.errors import RunError, ShortError
from edgen.ledger import View
from edgen.model import Scenario
from edgen.quality.model import Fate, Sample
from edgen.records import Record
from edgen.rundir import RunDir
from edgen.runreader import RunReader, decoded
from edgen.samples.material import NUMBERED, Material
from edgen.splits import Side, choose, group_hash
from edgen.transcript import clean_turn, is_plain
from edgen.validation import said


def settled(ledger: Path) -> int:
    """How many conversations of a ledger's plan have an outcome."""
    with View(ledger) as view:
        return view.status.planned - view.status.pending


def nothing(rundir: RunDir) -> ShortError:
    """What there is to say where nothing is settled."""
    return ShortError(
        f"{rundir.path}: nothing of this run is settled yet, so there is nothing to measure. "
        "`edgen generate` with its job goes on with it."
    )


def run_at(rundir: RunDir, arm: str | None, number: int) -> Material:
    """A run, or one arm of it. The caller holds the run's lock."""
    own = rundir.of(arm)
    with RunReader(own.path) as reader:
        view, space, name = reader.views[None], reader.space, arm or reader.name
        if not view.status.planned - view.status.pending:
            raise nothing(rundir)
        notes = list(_notes(rundir, own, view))
        accepted = view.status.accepted
        calibration = None
        if arm is None and rundir.pairs.exists():
            try:
                calibration = _calibration(reader)
            except RunError as problem:
                notes.append(f"No calibration: {problem}")
    reading = _Reading(rundir, arm, number * NUMBERED)
    return Material(
        name=name,
        sources=(str(own.path),),
        samples=reading.samples,
        fates=reading.fates,
        space=space,
        arm=arm,
        count=accepted,
        calibration=calibration,
        notes=tuple(notes),
    )


def _notes(rundir: RunDir, own: RunDir, view: View) -> Iterator[str]:
    if view.status.pending:
        yield (
            f"{view.status.pending} of {view.status.planned} conversations are pending: measured is what is there, and "
            "the rest may change it."
        )
    if view.simulated:
        yield "A simulator wrote this, or a part of it: it shows how the measures look, not how a model writes."
    if own is not rundir and rundir.pairs.exists():
        yield (
            f"The pairs of this run are across its arms: `edgen pairs {rundir.path} --report` has their calibration."
        )


def _calibration(reader: RunReader) -> dict[str, Any] | None:
    from edgen.pairing.bias import bias_report

    report = bias_report((compared.pair, {}) for compared in reader.compared())
    kept = ("judge", "model", "compare", "calibration")
    known = [judge for judge in report["judges"] if judge["calibration"] is not None]
    return {"judges": [{key: judge[key] for key in kept} for judge in known]} if known else None


class _Reading:
    """One run, or one arm of a run, read anew by each method. The arms of a run have one test side."""

    def __init__(self, rundir: RunDir, arm: str | None, offset: int) -> None:
        self._rundir = rundir
        self._arm = arm
        self._offset = offset

    @contextlib.contextmanager
    def _open(self) -> Iterator[RunReader]:
        with self._rundir.read(), RunReader(self._rundir.of(self._arm).path) as reader:
            yield reader

    def samples(self) -> Iterator[Sample]:
        with self._open() as reader:
            side = None if self._arm is None else self._common_side()
            for index, _, data in reader.views[None].records():
                scenario = reader.scenario(index)
                if side is None:
                    split = reader.split(scenario)
                else:
                    group = group_hash(reader.job.split.by, reader.job.seed, scenario)
                    split = "test" if side.is_test(group) else "train"
                yield _of_record(decoded(data), self._placed(scenario), split, str(self._rundir.path))

    def _common_side(self) -> Side:
        job = load_job(self._rundir.job)
        ledgers = [ledger for arm in job.arms if (ledger := self._rundir.of(arm).ledger).exists()]
        with contextlib.ExitStack() as stack:
            views = [stack.enter_context(View(ledger)) for ledger in ledgers]
            merged = heapq.merge(*(view.groups() for view in views))
            together = itertools.groupby(merged, key=lambda item: item[0])
            groups = ((group, sum(count for _, count in counts)) for group, counts in together)
            return choose(groups, sum(view.status.accepted for view in views), job.split.test)

    def fates(self) -> Iterator[Fate]:
        """What was planned, scenario by scenario; what has no outcome is pending."""
        with self._open() as reader:
            view = reader.views[None]
            outcomes = view.settled()
            settled = next(outcomes, None)
            for index in range(view.plan.first, view.plan.scenarios):
                scenario = self._placed(reader.scenario(index))
                for replicate in range(view.plan.replicates):
                    if settled is None or settled[:2] != (index, replicate):
                        yield Fate(scenario, replicate, "pending")
                        continue
                    status, reason = settled[2:]
                    yield Fate(scenario, replicate, status, reason)  # type: ignore[arg-type]
                    settled = next(outcomes, None)

    def _placed(self, scenario: Scenario) -> Scenario:
        if not self._offset:
            return scenario
        return msgspec.structs.replace(scenario, index=scenario.index + self._offset)


def _of_record(record: Record, scenario: Scenario, split: Literal["train", "test"], source: str) -> Sample:
    """A sample of a run. Its record is read as one of a file is."""
    found = said([(turn.role, turn.text) for turn in record.conversation], clean_turn, is_plain)
    return Sample(
        id=record.id,
        source=source,
        split=split,
        scenario=scenario,
        turns=found.turns,
        entries=len(record.conversation),
        defects=found.defects,
        marker=found.marker,
        ended_by=record.ended_by,
        probability=record.probability,
        simulated=record.provenance.simulated,
        repairs=record.provenance.repairs,
    )
