"""Measuring: one pass over the samples of a data set, whose words are split once, and one over its plan.

`render` formats the results for a terminal of 80 columns.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from edgen.core.errors import UsageError
from edgen.core.registry import PluginError, find, find_all, list_names, part_of
from edgen.core.text import join_list, quantity
from edgen.evaluation.measure import JudgeAnswers, Measure, is_compared
from edgen.evaluation.measures.overview import MEASURE as OVERVIEW
from edgen.evaluation.sample import DataSet, cut
from edgen.evaluation.shared import Faults, Observer, Shared
from edgen.evaluation.terminal import join_counts, wrap
from edgen.evaluation.texts.shingles import GatheredShingles
from edgen.evaluation.views import list_lines, show
from edgen.families.base import Family
from edgen.families.reader import DataSetReader, KindDefaults

_TELL_EVERY = 500  # conversations


class ArmMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """Measures of a data set."""

    name: str  # name of the data set
    sources: tuple[str, ...]  # paths it was read from
    overview: Any  # counts of conversations and turns
    values: dict[str, Any]  # each measure's value, in the measures' order
    definitions: dict[str, str]  # each measure's definition, with its source
    notes: tuple[str, ...] = ()  # limits, in sentences
    reasons: Mapping[str, str] = {}  # explanations of the protocol's own reasons; not in JSON
    faults: Faults = {}
    """Faults of plugins' measures that raised and so have no value, by name."""

    def __getitem__(self, measure: str) -> Any:
        """Return a measure's value. Raises UsageError for a measure without one."""
        if measure not in self.values:
            raise UsageError(f"{measure!r} was not measured; there are {', '.join(self.values)}.")
        return self.values[measure]

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the names of the measures, as a mapping does."""
        return iter(self.values)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `edgen stats --json`: each measure's value under its name."""
        return {
            "name": self.name,
            "sources": list(self.sources),
            **msgspec.to_builtins(self.values),
            "definitions": self.definitions,
            "notes": list(self.notes),
        }


def describe_as_json(arms: Mapping[str, ArmMeasures]) -> dict[str, Any]:
    """Return the JSON of `edgen stats --json`: by arm, or of the whole run without arms."""
    plain = {arm: quality.as_json() for arm, quality in arms.items()}
    return plain.get("", {"arms": plain})


def list_measures(only: Collection[str] | None = None, without: Collection[str] = ()) -> list[Measure[Any]]:
    """Return all measures, or the ones in `only`, in order. Measures in `without` are left out and not
    loaded. Raises PluginError if one in `only` cannot be used."""
    found: list[Measure[Any]] = (
        find_all("measure", without)
        if only is None
        else [find("measure", name) for name in list_names("measure") if name in only and name not in without]
    )
    return sorted(found, key=lambda measure: (measure.order, measure.name))


def find_judged_measure() -> tuple[str, JudgeAnswers]:
    """Return the measure that takes a judge's answers, as (name, part). Raises PluginError without a usable
    one."""
    found = next(((one.name, one) for one in list_measures() if isinstance(one, JudgeAnswers)), None)
    if found is None:
        raise PluginError("No measure takes a judge's answers.")
    return found


def find_measures_of_other_families(family: DataSetReader | None) -> dict[str, str]:
    """Return the measures that only other families have, with the family's name."""
    found: dict[str, str] = {}
    for name in list_names("family"):
        with contextlib.suppress(PluginError):  # an unusable family has no data here
            found |= dict.fromkeys(part_of(find("family", name), KindDefaults).measures, name)
    own = part_of(family, KindDefaults).measures
    return {measure: owner for measure, owner in found.items() if measure not in own}


def list_measures_to_compare(family: DataSetReader) -> tuple[Measure[Any], ...]:
    """Return the measures with comparisons for conversations of a family."""
    others = find_measures_of_other_families(family)
    able = list_measures(without=others)
    return tuple(filter(is_compared, able))


def _name_kind(family: DataSetReader | None) -> str:
    if family is None:
        return "several families"
    return f"the {family.name} family" if isinstance(family, Family) else family.title


def _note_skipped(
    others: Mapping[str, str], only: Collection[str], family: DataSetReader | None
) -> Iterator[str]:
    """Yield a note on requested measures that belong to other families."""
    if skipped := [name for name in others if name in only]:
        needs = join_list(sorted({others[name] for name in skipped}))
        yield (
            f"Not measured: {join_list(skipped)}. {'These are' if len(skipped) > 1 else 'This is'} for "
            f"conversations of the {needs} family, and these are of {_name_kind(family)}."
        )


class MeasuringProcesses(Protocol):
    """Other processes that compute some of the measures; see `evaluation.parallel`."""

    gathered: Callable[[], GatheredShingles] | None
    """Waits for the shingles of all conversations; None if the others do not cut them."""

    def share(self, names: Sequence[str]) -> list[str]:
        """Distribute the measures; return the names of this process's measures."""

    def collect(self) -> tuple[dict[str, Any], Faults]:
        """Wait for the others' values, and the faults of plugins' measures."""


def measure(
    data: DataSet,
    only: Collection[str] | None = None,
    progress: Callable[[int], None] = lambda _: None,
    observers: Sequence[Observer] = (),
    helpers: MeasuringProcesses | None = None,
) -> ArmMeasures:
    """Measure a data set with the measures in `only`, or all.

    `progress` gets the number of samples every 500. `observers`: observers that see every sample, too; the
    caller reads their values. `helpers`: other processes that compute some of the measures.
    """
    others = find_measures_of_other_families(data.family)
    notes = [*data.notes, *_note_skipped(others, only or (), data.family)]
    chosen = list_measures(only, without=others)
    own = [one.name for one in chosen]
    if helpers is not None:
        own = helpers.share(own)
    plan = data.plan()
    shared = Shared(data, planned=plan is not None)
    shared.gathered = None if helpers is None else helpers.gathered
    shared.start([OVERVIEW.name, *own])
    see = [shared.see, *(observer.see for observer in observers)]
    done = 0
    for done, sample in enumerate(data.samples(), 1):
        words = cut(sample.turns)
        for one in see:
            one(sample, words)
        if done % _TELL_EVERY == 0:
            progress(done)
    progress(done)
    notes += [
        f"{quantity(count, 'unit')} left out of the layer {what}."
        for what, count in data.stale_labels.items()
    ]
    notes += filter(None, [data.describe_repeats()])
    if plan is not None and (see_planned := shared.plan_observers):
        for outcome in plan:
            for tell in see_planned:
                tell(outcome)
    values = shared.results(own)
    faults = dict(shared.faults)
    if helpers is not None:
        more, failed = helpers.collect()
        every = values | more
        values = {one.name: every[one.name] for one in chosen if one.name in every}
        faults |= failed
    notes += describe_faults(faults)
    return ArmMeasures(
        name=data.name,
        sources=data.sources,
        overview=shared.result(OVERVIEW.name),
        values=values,
        definitions={one.name: one.definition for one in chosen if one.name in values},
        notes=tuple(notes),
        reasons=data.reasons,
        faults=faults,
    )


def render(quality: ArmMeasures, only: Collection[str] | None = None) -> Iterator[str]:
    """Yield the measures' sections and the notes as lines, without line ends."""
    faults: Faults = {}
    clauses = {**quality.reasons}
    yield f"{quality.name}: {quantity(quality.overview.records, 'conversation')}"
    if not quality.overview.records:
        nothing = [*_explain_nothing(quality)]
        yield from (*nothing, *_explain_reasons(nothing, clauses))
    for measure in list_measures(quality.values):
        if not (quality.overview.records or measure.describes_plan):
            continue
        value = quality.values[measure.name]
        lines = show(measure, partial(list_lines, measure, value), str, faults, "its lines")
        if measure.name in faults:
            continue
        if not lines and only is not None:
            lines = wrap(measure.nothing)
        if lines:
            yield ""
            yield measure.name
            yield from (f"  {line}" for line in (*lines, *_explain_reasons(lines, clauses)))
    quality.faults.update(faults)  # the command fails for these, too
    notes = [*quality.notes, *describe_faults(faults)]
    if notes:
        yield ""
    for note in notes:
        yield from wrap(f"Note: {note}")


def describe_faults(faults: Faults) -> Iterator[str]:
    """Yield a sentence on each measure that is left out."""
    for name, fault in faults.items():
        yield f"Not measured: {name}. {fault}"


def _explain_reasons(lines: Sequence[str], clauses: dict[str, str]) -> Iterator[str]:
    """Yield explanations of the reasons that the lines count. Remove them from `clauses`: each is explained
    once."""
    text = " ".join(line.strip() for line in lines)
    for code in [code for code in clauses if re.search(rf"\d {code}\b", text)]:
        yield from wrap(f"{code}: {clauses.pop(code)}")


def _explain_nothing(quality: ArmMeasures) -> Iterator[str]:
    """Yield the sentences for a data set without accepted conversations."""
    described = (quality.values[one.name] for one in list_measures(quality.values) if one.describes_plan)
    plan = next(described, None)
    planned, reasons = (0, {}) if plan is None else (plan.planned, plan.reasons)
    why = f" of {planned:,} planned ({join_counts(reasons)})" if planned else ""
    left = "Only the outcomes of the plan are known." if planned else "There is nothing to measure."
    yield ""
    yield from wrap(f"Nothing was accepted{why}. {left}")
