"""The measures of one data set, with their shared data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol, TypeVar

import msgspec

from edgen.core import registry
from edgen.core.plugins.faults import FaultyPluginError, blame, make_plugin_error, refuse_value
from edgen.core.text import describe_type
from edgen.evaluation.sample import DataSet, PlannedOutcome, Sample, Words, copy_for_plugin
from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.shingles import GatheredShingles

V_co = TypeVar("V_co", covariant=True)
Faults = dict[str, FaultyPluginError]
"""The errors of plugins' measures that raised and are left out, by the measure's name."""


class Observer(Protocol):
    """An observer of every sample of a data set. `words`: the words of `sample.turns`, turn by turn, split
    once for all observers."""

    def see(self, sample: Sample, words: Words) -> None: ...


class Count(Observer, Protocol[V_co]):
    """The running count of one measure over one data set. If it has `see_planned(PlannedOutcome)`, it also
    gets the plan."""

    def result(self) -> V_co: ...


class Shared:
    """The counts of one data set's measures, and their shared data."""

    def __init__(self, data: DataSet, *, planned: bool = False) -> None:
        self.data = data
        self.planned = planned  # whether the data set has a plan with outcomes
        self.gathered: Callable[[], GatheredShingles] | None = None  # see `Parts.gathered`
        self._counts: dict[str, Count[Any]] = {}
        self._foreign: set[str] = set()  # names of measures of plugins and users
        self._results: dict[str, Any] = {}
        self.faults: Faults = {}  # of plugins' measures that raised and are left out

    @cached_property
    def corpus(self) -> Corpus:
        """The words of all conversations. It is filled only if a measure reads it at its start."""
        return Corpus()

    def start(self, names: Iterable[str]) -> None:
        """Start these measures, and measures that they start themselves. A plugin's measure that raises is
        left out."""
        for name in names:
            if name not in self._counts and name not in self.faults:
                try:
                    self._counts[name] = registry.find("measure", name).begin_count(self)
                    if is_foreign(name):
                        self._foreign.add(name)
                except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                    leave_out(name, error, self.faults)

    def count(self, name: str) -> Count[Any]:
        """Return the running count of a started measure."""
        return self._counts[name]

    def see(self, sample: Sample, words: Words) -> None:
        """Show a sample to every started measure."""
        for name, count in self._counts.items():
            shown = copy_for_plugin(sample, words) if name in self._foreign else (sample, words)
            try:
                count.see(*shown)
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                leave_out(name, error, self.faults, f"for conversation {sample.id}")
        if self.faults.keys() & self._counts.keys():
            self._counts = {name: count for name, count in self._counts.items() if name not in self.faults}
        if "corpus" in self.__dict__:
            self.corpus.add(words)

    @property
    def plan_observers(self) -> list[Callable[[PlannedOutcome], None]]:
        """The observers of every planned conversation."""
        return [count.see_planned for count in self._counts.values() if hasattr(count, "see_planned")]

    def result(self, name: str) -> Any:
        """Return the value of a measure, after all samples were seen. Raises the measure's FaultyPluginError,
        if any."""
        if name in self.faults:
            raise self.faults[name]
        if name not in self._results:
            try:
                value = self._counts[name].result()
                if registry.find_plugin("measure", name) is not None:
                    _require_value(registry.find("measure", name), value)
            except BaseException as error:  # noqa: BLE001 - raised again
                blame("measure", name, error)
            self._results[name] = value
        return self._results[name]

    def results(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the values of the measures that were not left out, by name."""
        found = {}
        for name in names:
            try:
                found[name] = self.result(name)
            except FaultyPluginError as fault:
                self.faults[name] = fault
        return found


def leave_out(name: str, error: BaseException, faults: Faults, about: str = "") -> None:
    """Note in `faults` the error of a plugin's measure. `about`: the purpose of the call that raised it.

    Raises the error itself if the measure is one of edgen's own, or the error a signal's.
    """
    fault = make_plugin_error("measure", name, error, about)
    if not isinstance(fault, FaultyPluginError):
        raise fault
    faults[name] = fault


def is_foreign(name: str) -> bool:
    """Return whether a measure is a plugin's or a user's."""
    return registry.is_added("measure", name) or registry.find_plugin("measure", name) is not None


def _require_value(measure: Any, value: Any) -> None:
    """Raise FaultyPluginError if the value of a plugin's measure lacks a figure of its aggregates, TypeError
    if JSON cannot hold it."""
    if missing := [one.name for one in measure.aggregates if not _has_figure(value, one.name)]:
        said = f"has the aggregate {missing[0]!r}, and its value, {describe_type(value)}, has no such figure"
        refuse_value("measure", measure.name, said)
    with contextlib.suppress(UnicodeEncodeError):  # outputs replace lone surrogates
        msgspec.json.encode(value)


def _has_figure(value: Any, name: str) -> bool:
    return not name or (name in value if isinstance(value, Mapping) else hasattr(value, name))
