"""A run, or one arm of it, as a data set, read from its ledger, which includes rejected conversations."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import load_kept_job
from edgen.config.job import guide_of
from edgen.config.label_set import LabelSet
from edgen.core.errors import RunError, ShortError
from edgen.core.values import Scenario, Turn
from edgen.evaluation.sample import SCENARIOS_A_PATH, DataSet, PlannedOutcome, Sample, Split, make_sample
from edgen.families.base import FiledRecord
from edgen.protocols.reasons import explain_own_reasons
from edgen.space import Space
from edgen.store.layers import LayerJoin, find_layer_files
from edgen.store.ledger import LedgerReader, RunPlan
from edgen.store.run_folder import RunFolder
from edgen.store.run_parts import cut_plan
from edgen.store.run_reader import RunReader
from edgen.store.split_side import read_test_side

MOST_PENDING = 100_000  # maximum pending conversations that are drawn and listed


def is_settled(ledger: Path) -> bool:
    """Return whether any planned conversation of a ledger has an outcome."""
    if not ledger.exists():
        return False
    with LedgerReader(ledger) as view:
        return view.status.planned > view.status.pending


def make_nothing_settled_error(rundir: RunFolder) -> ShortError:
    """Return the error for a run in which nothing is settled."""
    return ShortError(
        f"{rundir.path}: no conversation of this run has ended yet, so there is nothing to measure. "
        "`edgen generate` with its job resumes it."
    )


def make_run_data_set(rundir: RunFolder, arm: str, number: int) -> DataSet:
    """Return a run, or one arm of it, as a data set. `number`: the path's number, which keeps scenarios
    apart. The caller holds the run's lock. Raises ShortError if nothing is settled."""
    own = rundir.arm(arm)
    where = (rundir, arm, number * SCENARIOS_A_PATH)
    stale: Counter[str] = Counter()
    with RunReader(own.path) as reader:
        view = reader.views[""]
        if view.status.planned == view.status.pending:
            raise make_nothing_settled_error(rundir)
        notes = list(_list_notes(rundir, own, view))
        calibration = None
        if not arm and rundir.pairs.exists():
            try:
                calibration = _read_calibration(reader)
            except RunError as problem:
                notes.append(f"No calibration: {problem}")
        label_sets, identical = _read_layers(own)
        return DataSet(
            name=arm or reader.name,
            sources=(str(own.path),),
            samples=partial(_iterate_samples, *where, stale),
            divide=partial(_divide, view.plan),
            turns=partial(_iterate_turns, rundir, arm),
            plan=partial(_iterate_plan, *where),
            family=reader.family,
            roles=reader.roles,
            find_space=partial(_read_space, rundir, arm),
            find_guide=partial(guide_of, reader.job),
            arm=arm,
            count=view.status.accepted,
            calibration=calibration,
            stale_labels=stale,
            label_sets=label_sets,
            identical=identical,
            notes=tuple(notes),
            reasons=explain_own_reasons(view.status.rejected, reader.job.protocol)
            if view.status.rejected
            else {},
        )


def _read_space(rundir: RunFolder, arm: str) -> Space:
    with _open(rundir, arm) as reader:
        return reader.space


def _read_layers(run: RunFolder) -> tuple[dict[str, LabelSet], Mapping[str, tuple[tuple[str, ...], ...]]]:
    """Return the label sets of a run's layers, and annotators with the same labels (see `DataSet`)."""
    if not run.has_layers or not find_layer_files(run):
        return {}, {}
    from edgen.annotation.identical import find_identical_annotators
    from edgen.annotation.layer import read_label_sets  # late: loads the code for asking

    return read_label_sets(run), find_identical_annotators(run)


def _list_notes(rundir: RunFolder, own: RunFolder, view: LedgerReader) -> Iterator[str]:
    if view.status.pending:
        yield (
            f"{view.status.pending:,} of {view.status.planned:,} conversations are pending: the measures "
            "cover the settled conversations, and the pending ones may change them."
        )
    if view.status.pending > MOST_PENDING:
        yield (
            f"Coverage counts the first {MOST_PENDING:,} pending conversations as planned, and no more of "
            "them."
        )
    if view.simulated:
        yield (
            "A simulator wrote all or part of this data: it shows what the measures report, not how a model "
            "writes."
        )
    if own is not rundir and rundir.pairs.exists():
        yield (
            f"The pairs of this run are across its arms: `edgen pairs {rundir.path} --report` has their "
            "calibration."
        )


def _read_calibration(reader: RunReader) -> dict[str, Any] | None:
    from edgen.preferences.bias import make_bias_report

    report = make_bias_report((compared.pair, {}) for compared in reader.compared())
    keys = ("judge", "model", "compare", "calibration")
    known = [one for one in report["judges"] if one["calibration"] is not None or "logprobs" in one]
    kept = [{key: one[key] for key in (*keys, "logprobs") if key in one} for one in known]
    return {"judges": kept} if kept else None


@contextlib.contextmanager
def _open(rundir: RunFolder, arm: str) -> Iterator[RunReader]:
    with rundir.lock_for_reading(), RunReader(rundir.arm(arm).path) as reader:
        yield reader


def _iterate_samples(rundir: RunFolder, arm: str, offset: int, stale: Counter[str]) -> Iterator[Sample]:
    """Yield the conversations of a run, or of one arm of it.

    The arms of a run share one test side. Units left out of layers are counted in `stale`, which is cleared
    first.
    """
    stale.clear()
    own = rundir.arm(arm)
    with _open(rundir, arm) as reader, contextlib.ExitStack() as stack:
        layers = stack.enter_context(LayerJoin(own)) if own.has_layers else None
        if arm:
            arms = (one for _, one in rundir.list_begun_arms())
            side = read_test_side(arms, load_kept_job(rundir.job).split.test)
        else:
            side = reader.test_side
        for _, _, group, data in reader.views[""].iterate_records():
            record = reader.read(data)
            split: Split = "test" if side.is_test(group) else "train"
            scenario = _with_offset(record.scenario, offset)
            labels = layers.of(record.scenario.index, record.id, record.turns) if layers else {}
            yield make_sample(FiledRecord.of(record), record.id, scenario, str(rundir.path), split, labels)
        if layers:
            layers.finish()
            stale.update(layers.left_out)


def _divide(plan: RunPlan, size: int) -> Iterator[range]:
    """Yield ranges of scenarios with about `size` conversations."""
    return cut_plan(plan.scenarios, max(1, size // plan.replicates))


def _iterate_turns(rundir: RunFolder, arm: str, scenarios: range) -> Iterator[Sequence[Turn]]:
    """Yield the turns of the conversations of some scenarios of a run, or of one arm of it."""
    with _open(rundir, arm) as reader:
        for _, _, _, data in reader.views[""].iterate_records(scenarios):
            yield FiledRecord.of(reader.read(data)).speech.turns


def _iterate_plan(rundir: RunFolder, arm: str, offset: int) -> Iterator[PlannedOutcome]:
    """Yield every planned conversation, scenario by scenario; those without an outcome are pending.

    Only the first MOST_PENDING pending ones: a plan may be too large to list.
    """
    with _open(rundir, arm) as reader:
        view = reader.views[""]
        replicates, left = view.plan.replicates, MOST_PENDING

        @lru_cache(maxsize=1)
        def draw_scenario(index: int) -> Scenario:
            return _with_offset(reader.scenario(index), offset)

        def list_pending(start: int, stop: int) -> Iterator[PlannedOutcome]:
            for number in range(start, min(stop, start + left)):
                yield PlannedOutcome(draw_scenario(number // replicates), number % replicates, "pending")

        start = view.plan.first * replicates  # conversations are numbered through all scenarios
        for index, replicate, status, reason in view.list_settled():
            number = index * replicates + replicate
            yield from list_pending(start, number)
            left -= min(left, number - start)
            yield PlannedOutcome(draw_scenario(index), replicate, status, reason)  # type: ignore[arg-type]
            start = number + 1
        yield from list_pending(start, view.plan.scenarios * replicates)


def _with_offset(scenario: Scenario, offset: int) -> Scenario:
    return msgspec.structs.replace(scenario, index=scenario.index + offset) if offset else scenario
