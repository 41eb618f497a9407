"""Runs as arms of a comparison: their choice, checks of common scenarios, and the file of the result."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from edgen.config import Job, find_job_protocol, load_job, settings_of
from edgen.core.digest import seal
from edgen.core.errors import DataError, EdgenError, RunError, ShortError, UsageError
from edgen.core.files import write_lines
from edgen.core.registry import part_of
from edgen.core.text import replace_surrogates
from edgen.core.values import Turn
from edgen.core.yaml_values import suggest_name
from edgen.evaluation.comparison.arms import Arm, SettledConversation
from edgen.evaluation.comparison.compare import compare_arms
from edgen.evaluation.comparison.data_arms import load_arm
from edgen.evaluation.comparison.result import ComparisonResult, PromptDifference
from edgen.evaluation.measuring import list_measures_to_compare
from edgen.evaluation.sample import Sample, make_sample
from edgen.families.base import FiledRecord
from edgen.families.reader import ReportWords
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.job_differences import find_differences, list_settings_by_key
from edgen.planning.load import load_job_space, make_plan
from edgen.planning.plan import Plan
from edgen.preferences.bias import round_values
from edgen.preferences.policies import PolicyCounts
from edgen.prompting.diff import join_messages, unified_diff
from edgen.protocols.base import SelfDescription
from edgen.space import digest_content
from edgen.store.layers import LayerJoin
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from edgen.store.several_runs import AgainstFolder, SeveralRuns, label_runs, name_together, refuse_duplicates
from edgen.store.written_file import check_file
from edgen.validation.reading import find_inputs

_MARK = b'"kind": "edgen comparison"'


@dataclass(frozen=True)
class _Chosen:
    """A run that becomes an arm: its own folder, and the job and path of the whole run."""

    label: str
    run: RunFolder
    whole: Job
    arm: str
    path: Path


@dataclass(frozen=True)
class _ChosenData:
    """A data set that becomes an arm."""

    label: str
    path: Path


def is_run(path: Path) -> bool:
    """Return whether a path is a run's folder."""
    return RunFolder(path).exists


@contextlib.contextmanager
def open_comparison(
    paths: Sequence[Path],
    names: Sequence[str] = (),
    *,
    prompts: bool = False,
    roles: Mapping[str, str] | None = None,
    on_stage: Callable[[str], None] = lambda _stage: None,
) -> Iterator[ComparisonResult]:
    """Compare the arms of the runs and data sets at these paths; the first is the baseline. `names` chooses
    arms. The runs stay locked until the context ends, so a result that is stored within it describes them.
    `roles`: names for the roles of data sets in the comparison, by their names there.

    A path without a run is a data set: one arm, compared as an independent sample. Its intervals are by the
    bootstrap of each arm (Efron and Tibshirani 1993), p by a permutation test of the difference over its
    standard error (Janssen 1997; Chung and Romano 2013), which is Welch's statistic for a mean.

    Raises UsageError if the arms cannot be compared (fewer than two, one twice, other scenarios), ShortError
    if nothing is settled, LockedError if a run is at work, RunError, and errors of reading a run.
    """
    refuse_duplicates(paths)
    folders = [path for path in paths if is_run(path) or not _holds_records(path)]
    with contextlib.ExitStack() as stack:
        for path in folders:
            _require(path, folders)
            stack.enter_context(RunFolder(path).lock_for_reading())
        whole = _list_arms(paths)
        labels = [one.label for one in whole]
        every = _choose(whole, names, paths)
        chosen = [one for one in every if isinstance(one, _Chosen)]
        named = [path for path in folders if any(one.path == path for one in chosen)]
        if isinstance(every[0], _Chosen):
            _refuse_other_scenarios(chosen, named)
        readers = {one.label: stack.enter_context(RunReader(one.run.path)) for one in chosen}
        seed = readers[chosen[0].label].job.seed if chosen else 0
        of_runs = {one.label: _read_arm(one, readers[one.label], readers[chosen[0].label]) for one in chosen}
        spelling = {role.casefold(): role for arm in of_runs.values() for role in arm.roles}
        spelling |= {word.casefold(): role for word, role in (roles or {}).items()}
        arms = [
            of_runs[one.label] if isinstance(one, _Chosen) else load_arm(one.path, one.label, spelling, seed)
            for one in every
        ]
        differences = list(_compare_prompts(chosen, list(of_runs.values()))) if prompts and chosen else []
        name = " and ".join(label_runs(paths))
        found = compare_arms(name, arms, seed=seed, prompts=differences, on_stage=on_stage)
        if len(chosen) < len(every):  # pairs are of runs alone
            yield found
            return
        policies, caveats = find_policies(paths, labels, [one.label for one in chosen])
        yield msgspec.structs.replace(
            found,
            policies=tuple(round_values(msgspec.to_builtins([*policies]))) or UNSET,
            caveats=(*found.caveats, *caveats),
        )


def store(comparison: ComparisonResult, path: Path | None, output: Path | None = None) -> Path:
    """Write a comparison to the file `output` or, without one, into the folder of the run `path`, in place of
    an earlier one of the same arms. In a run, its last key is a digest of everything before it. Return the
    file's path. Raises UsageError if something else has this path."""
    run = RunFolder(path or Path())
    if output is None:
        output = run.comparisons / f"{name_together([arm.label for arm in comparison.arms])}.json"
        if not run.comparisons.is_dir():
            if run.comparisons.exists() or run.comparisons.is_symlink():
                raise UsageError(
                    f"{run.comparisons}: this is not a folder; move it away, or name a file with -o."
                )
            run.comparisons.mkdir()
    check_file(output, run, _MARK, "comparison")
    told = replace_surrogates(msgspec.to_builtins(comparison))  # folder names may be any bytes
    document = msgspec.json.format(msgspec.json.encode(told), indent=2)
    write_lines(output, [seal(document) if output.parent == run.comparisons else document])
    return output


def _holds_records(path: Path) -> bool:
    """Return whether a path is a file, or a folder with files of records."""
    try:
        find_inputs(path)
    except DataError:
        return False
    return path.exists()


def _require(path: Path, paths: Sequence[Path]) -> None:
    """Raise RunError if `path` is no run; UsageError if it looks like the name of an arm of the first run."""
    first = RunFolder(paths[0])
    arms = list(load_job(first.job).arms) if not path.exists() and first.job.exists() else []
    if str(path) in arms:
        meant = [str(other) for other in paths[1:] if str(other) in arms]
        meant = meant if len(meant) > 1 else [arm for arm in arms if arm not in meant][:1] + meant
        raise UsageError(
            f"{path}: there is no run here, but {paths[0]} has an arm of this name; "
            f"did you mean --arms {' '.join(meant)}?"
        )
    RunFolder(path).require()


def _list_arms(paths: Sequence[Path]) -> list[_Chosen | _ChosenData]:
    """Return every arm of these runs (a run without arms is one), and the data sets."""
    found: list[_Chosen | _ChosenData] = []
    for path, label in zip(paths, label_runs(paths), strict=True):
        if not is_run(path):
            found.append(_ChosenData(label, path))
            continue
        run = RunFolder(path)
        job = load_job(run.job)
        for arm in job.arm_names:
            name = arm or label if len(paths) == 1 else f"{label}.{arm}".rstrip(".")
            found.append(_Chosen(name, run.arm(arm), job, arm, path))
    return found


def _choose(
    every: Sequence[_Chosen | _ChosenData], names: Sequence[str], paths: Sequence[Path]
) -> list[_Chosen | _ChosenData]:
    """Return the arms with these names, in this order; all arms without names. Raises UsageError and
    ShortError."""
    known = {one.label: one for one in every}
    for name in names:
        if name not in known:
            near = suggest_name(name, known)
            near += f"; there are {', '.join(known)}" if "did you mean" in near else ""
            raise UsageError(f"--arms: there is no arm '{name}'{near}.")
        if names.count(name) > 1:
            raise UsageError(f"--arms: '{name}' is named twice; compared with itself, nothing differs.")
    chosen = [known[name] for name in names] or list(every)
    if len(chosen) < 2:
        if names:
            raise UsageError(
                f"--arms: name at least two of {', '.join(known)}; the first is what others are compared "
                "with."
            )
        if every and isinstance(every[0], _ChosenData):
            raise UsageError(
                f"{paths[0]}: this is one data set; name a run, or another data set, to compare it with."
            )
        raise UsageError(
            f"{paths[0]}: this run has one arm or none, so there is nothing to compare it with. Name a "
            "second run of the same scenarios, or a data set, or give the job `arms:`."
        )
    begun = [one.label for one in chosen if isinstance(one, _ChosenData) or one.run.ledger.exists()]
    for one in chosen:
        if isinstance(one, _Chosen) and one.label not in begun:
            others = f" The others can be compared by themselves: --arms {' '.join(begun)}."
            raise ShortError(
                f"{one.run.path}: {one.label} has no answers yet; generate it "
                f"first.{others if len(begun) > 1 else ''}"
            )
    return chosen


def _refuse_other_scenarios(chosen: Sequence[_Chosen], paths: Sequence[Path]) -> None:
    """Raise UsageError if runs draw different scenarios, RunError if an arm was made under another form of
    the job."""
    facts = {path: _read_draw_settings(RunFolder(path)) for path in paths}
    first = facts[paths[0]]
    for path, theirs in facts.items():
        other = [
            f"{key} ({theirs[key][:12]} here, {first[key][:12]} in {paths[0]})"
            for key in first
            if theirs[key] != first[key]
        ]
        if other:
            raise UsageError(
                f"{path}: it shares no scenarios with {paths[0]}: other {', other '.join(other)}. "
                "Runs can be compared that have the same seed, design and space."
            )
    for one in chosen:
        own_space = bool(one.arm) and "space" in one.whole.arms[one.arm]
        for key, value in _read_draw_settings(one.run).items():
            if value != first[key] and not (key == "space" and own_space):
                raise RunError(
                    f"{one.run.path}: arm {one.label} was made with another {key} than its run's job now "
                    "has: generation "
                    "with a changed job was begun and not ended. Run `edgen generate` with the job again, "
                    "to its end."
                )


def _read_draw_settings(run: RunFolder) -> dict[str, str]:
    """Return the values that determine a run's scenarios."""
    job = load_job(run.job)
    if job.resolved is not None:
        space = job.resolved.space_sha256
    else:  # a run with arms
        space = digest_content(load_job_space(job, AllowedFiles.of(run.job)))
    return {
        "seed": str(job.seed),
        "design": job.design if job.design != "pairwise" else f"pairwise {job.strength}",
        "space": space,
    }


def _read_arm(one: _Chosen, reader: RunReader, baseline: RunReader) -> Arm:
    view, job = reader.views[""], reader.job
    protocol = find_job_protocol(job)
    stale: Counter[str] = Counter()
    theirs, ours = (
        list_settings_by_key(each.job, each.space, AllowedFiles.of(each.rundir.job))
        for each in (baseline, reader)
    )
    return Arm(
        label=one.label,
        run=str(one.run.path),
        fingerprint=view.plan.fingerprint,
        scenarios=view.plan.scenarios,
        first=view.plan.first,
        replicates=view.plan.replicates,
        outcomes=partial(_iterate_outcomes, reader, stale),
        turns=partial(_read_turns, reader),
        draws="/".join(_read_draw_settings(one.run).values()),
        roles=tuple(role.name for role in reader.space.roles),
        asking=part_of(protocol, SelfDescription).probability_by(settings_of(job)) or protocol.name,
        pending=reader.pending,
        simulated=view.simulated,
        earlier=one.run.previous.exists(),
        branching=job.branch is not None,
        measures=list_measures_to_compare(reader.family),
        space=reader.space,
        probability_words=part_of(reader.family, ReportWords).probability_words,
        stale_labels=stale,
        changes={key: here for key, (_, here) in find_differences(theirs, ours).items()},
    )


def _iterate_outcomes(reader: RunReader, stale: Counter[str]) -> Iterator[SettledConversation]:
    """Yield the settled conversations with usage and content. At the end, `stale` counts the units left out
    of layers."""
    view = reader.views[""]
    spent, records = _Sought(view.list_spending()), _Sought(view.iterate_records())
    with LayerJoin(reader.rundir) as layers:
        for index, replicate, status, reason in view.list_settled():
            paid, kept = spent.find_row(index, replicate), records.find_row(index, replicate)
            calls, prompt_tokens, completion_tokens, cost = paid[2:] if paid is not None else (0, 0, 0, None)
            yield SettledConversation(
                scenario=index,
                replicate=replicate,
                status=status,
                reason=reason,
                calls=calls,
                tokens=prompt_tokens + completion_tokens,
                cost=cost,
                said=None if kept is None else _make_sample(reader, kept[-1], layers),
            )
        layers.finish()
        stale.clear()
        stale.update(layers.left_out)


def _make_sample(reader: RunReader, data: bytes, layers: LayerJoin) -> Sample:
    record = reader.read(data)
    labels = layers.of(record.scenario.index, record.id, record.turns)
    return make_sample(
        FiledRecord.of(record), record.id, record.scenario, str(reader.rundir.path), None, labels
    )


class _Sought:
    """Rows that begin with (index, replicate), ascending; look-ups must ascend, too."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def find_row(self, index: int, replicate: int) -> tuple[Any, ...] | None:
        while self._next is not None and self._next[:2] < (index, replicate):
            self._next = next(self._rows, None)
        found = self._next
        return found if found is not None and found[:2] == (index, replicate) else None


def _read_turns(reader: RunReader, index: int, replicate: int) -> tuple[Turn, ...]:
    data = reader.views[""].read_record(index, replicate)
    return () if data is None else reader.read(data).turns


def _compare_prompts(chosen: Sequence[_Chosen], arms: Sequence[Arm]) -> Iterator[PromptDifference]:
    """Yield the differences between the arms' prompts for the first scenario, as at the beginning of a
    conversation."""
    plans = [make_plan(load_job(one.run.job), AllowedFiles.of(one.run.job)) for one in chosen]
    # An arm with other weights draws another scenario, so its templates are rendered with the baseline's.
    plans = [Plan(plan.job, plans[0].space, plan.prompts) for plan in plans]
    before = plans[0].opening(plans[0].scenario(0))
    for arm, plan in zip(arms[1:], plans[1:], strict=True):
        after = plan.opening(plan.scenario(0))
        for use in dict.fromkeys([*before, *after]):
            one, other = (join_messages(messages.get(use, ())) for messages in (before, after))
            if diff := unified_diff(one, other, arms[0].label, arm.label):
                yield PromptDifference(arm=arm.label, use=use, scenario=0, diff=diff)


def find_policies(
    paths: Sequence[Path], labels: Sequence[str], chosen: Sequence[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the policy matrices of the chosen arms (empty without pairs), and caveats. `labels`: of all arms
    of these runs, in their order. The caller holds the runs' locks."""
    folder = RunFolder(paths[0]) if len(paths) == 1 else AgainstFolder(paths)
    if not folder.pairs.exists():
        return [], []
    try:
        with RunReader(paths[0]) if len(paths) == 1 else SeveralRuns(paths) as reader:
            counts = PolicyCounts()
            for one in reader.compared():
                counts.add(one.pair)
            named = dict(zip(reader.arms, labels, strict=True)) if len(paths) > 1 else {}
            found = counts.report(reader.arms)
    except EdgenError as problem:
        return [], [f"There is no policy matrix, since the pairs cannot be read: {problem}"]
    matrices = [_of_chosen(one, named, chosen) for one in found]
    return [one for one in matrices if one["cells"]], []


def _of_chosen(matrix: dict[str, Any], named: dict[str, str], chosen: Sequence[str]) -> dict[str, Any]:
    """Return a matrix of the chosen arms, with their names in the comparison."""
    cells = [
        {
            **cell,
            "row": named.get(cell["row"], cell["row"]),
            "column": named.get(cell["column"], cell["column"]),
        }
        for cell in matrix["cells"]
    ]
    kept = [cell for cell in cells if cell["row"] in chosen and cell["column"] in chosen]
    return {**matrix, "arms": list(chosen), "cells": kept}
