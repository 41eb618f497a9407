"""A measure: an object with a name and a definition that looks at every conversation of a data set once.

edgen's own are in `measures/`; a package's are found by the entry points of group `edgen.measures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from edgen.evaluation.figures import (
    Block,
    Histogram,
    Interval,
    interval_of,
    label_with_arm,
    series_colour,
    share_of,
)
from edgen.evaluation.sample import DataSet, PlannedOutcome, Sample, Words, sample_of_facts
from edgen.evaluation.texts.corpus import Corpus
from edgen.expressions.conversation import Facts
from edgen.expressions.language import Kind, Value
from edgen.machines.model import Machine
from edgen.space import Space
from edgen.stats.distributions import Distribution
from edgen.stats.intervals import Estimate

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class Observer(Protocol):
    """Sees every sample of a data set once. `words` are those of `sample.turns`, turn by turn, cut once for all."""

    def see(self, sample: Sample, words: Words) -> None: ...


class Count(Observer, Protocol[V_co]):
    """One measure at work on one data set. One that also has `see_planned(PlannedOutcome)` is given the plan."""

    def result(self) -> V_co: ...


class ArmResult(NamedTuple, Generic[V]):
    """What a measure found in a run, or in one arm of it. `arm` is "" without arms, `name` the arm's or the run's;
    `job` is as resolved, `machine` guides a role, None where none does."""

    arm: str
    name: str
    value: V
    job: Mapping[str, Any]
    machine: Machine | None = None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """What `edgen compare` tells of a measure: the sum of column `top` over that of column `bottom`.

    `kind` tells how it is printed, `over` what it is an average over.
    """

    name: str
    title: str
    kind: Literal["share", "number"]
    top: str
    bottom: str
    over: str
    definition: str


class Measure(Generic[V]):
    """What is measured, how it is defined, and how its value is shown.

    `definition` names its source, or says that it is edgen's own. `order` is its place among the measures. `section`
    names the section of the report that shows it. `nothing` is said where there is nothing to show. A measure
    that `tells_of_plan` has something to say where no conversation was accepted. msgspec encodes the value for
    `edgen stats --json`. `figures` are those that it has of one conversation, with the kind of each: an expression (`edgen
    select`, a job's gates) calls them `measures.<name>.<figure>`; that under "" goes by the measure's name alone. `counts` is
    a count that needs nothing of what is shared, `compares` what `edgen compare` tells whatever occurs.
    """

    name: ClassVar[str]
    definition: ClassVar[str]
    order: ClassVar[int] = 1000
    section: ClassVar[str] = "more"
    nothing: ClassVar[str] = "There is nothing to tell."
    tells_of_plan: ClassVar[bool] = False
    figures: ClassVar[Mapping[str, Kind]] = MappingProxyType({})
    counts: ClassVar[type[Count[Any]]]
    compares: ClassVar[Sequence[Compared]] = ()

    def __init__(self) -> None:
        if type(self).start is Measure.start and not hasattr(self, "counts"):
            raise TypeError(f"{type(self).__name__} has neither `start` nor `counts`")

    def start(self, shared: Shared) -> Count[V]:  # noqa: ARG002
        """A new count over one data set: what `counts` makes, where that is all it needs."""
        return self.counts()

    def lines(self, value: V) -> Iterator[str]:
        """The value for a person, in lines of at most 78 columns."""
        yield msgspec.json.encode(value).decode()

    def blocks(self, found: Sequence[ArmResult[V]]) -> Iterator[Block]:
        """What the report shows of it: pictures, tables, paragraphs, every arm beside every other."""
        for one in found:
            yield "\n".join([*([one.arm] if one.arm else []), *self.lines(one.value)])

    def tiles(self, value: V) -> Iterator[tuple[str, str, str]]:  # noqa: ARG002
        """Figures for the top of the report: (figure, what it is, a remark)."""
        return iter(())

    def sums(self, sample: Sample, space: Space) -> Iterable[tuple[str, float]]:  # noqa: ARG002
        """What an accepted conversation adds to which column, for `compared`: arms are compared in sums by scenario."""
        return ()

    def compared(self, columns: Collection[str]) -> Iterable[Compared]:  # noqa: ARG002
        """What `edgen compare` tells, by arm and with paired differences; `columns`: those that occur in any arm. Without a
        method of its own, what `compares` lists."""
        return self.compares

    def of_one(self, sample: Sample, words: Words, space: Space) -> Mapping[str, Value]:  # noqa: ARG002
        """Its `figures` of one conversation; one that is not there, or None, is missing. Without a method of its own, what
        `sums` adds to columns of these names, if it adds anything."""
        added: Counter[str] = Counter()
        for column, amount in self.sums(sample, space):
            added[column] += amount  # type: ignore[assignment]  # amounts need not be whole
        return {name: added[name] for name in self.figures} if added else {}

    def of_facts(self, facts: Facts, space: Space) -> Mapping[str, Value]:
        """`of_one` of a conversation as expressions see it."""
        return self.of_one(sample_of_facts(facts), Words(facts.words), space)

    def examples(self, value: V) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Conversations to read for what was found: (id, a clause on why), the clearest first."""
        return iter(())


def figure_kinds(
    *numbers: str, truths: Iterable[str] = (), texts: Iterable[str] = (), lists: Iterable[str] = ()
) -> Mapping[str, Kind]:
    """The `figures` of a measure, by what they are."""
    names: dict[Kind, Iterable[str]] = {"number": numbers, "truth": truths, "text": texts, "list": lists}
    return MappingProxyType({name: kind for kind, named in names.items() for name in named})


def share_intervals(
    found: Sequence[ArmResult[V]], shares: Iterable[tuple[str, Callable[[V], Estimate | None]]]
) -> list[Interval]:
    """Each share, that is what it is called and how a value has it, of each arm that has one."""
    return [
        interval_of(label_with_arm(words, one.arm), estimate, share_of(estimate), series_colour(place))
        for words, get in shares
        for place, one in enumerate(found)
        if (estimate := get(one.value)) is not None
    ]


def histograms_of(found: Sequence[ArmResult[V]], get: Callable[[V], Distribution]) -> list[Histogram]:
    """A distribution of each arm, under the arm's name."""
    return [Histogram(one.name, get(one.value), series_colour(place)) for place, one in enumerate(found)]


class Shared:
    """What the measures at work on one data set share."""

    def __init__(self, data: DataSet, find: Callable[[str], Measure[Any]], *, planned: bool = False) -> None:
        self.data = data
        self.planned = planned  # whether a plan is known, with the outcome of everything in it
        self._find = find
        self._counts: dict[str, Count[Any]] = {}
        self._results: dict[str, Any] = {}

    @cached_property
    def corpus(self) -> Corpus:
        """The words of all conversations. It is filled where a measure asks for it when it starts."""
        return Corpus()

    def start(self, names: Iterable[str]) -> None:
        """Start these measures, and those that they ask for."""
        for name in names:
            if name not in self._counts:
                self._counts[name] = self._find(name).start(self)

    @property
    def observers(self) -> list[Callable[[Sample, Words], None]]:
        """What has to see every sample."""
        corpus = [lambda _, words: self.corpus.add(words)] if "corpus" in self.__dict__ else []
        return [*(count.see for count in self._counts.values()), *corpus]

    @property
    def plan_observers(self) -> list[Callable[[PlannedOutcome], None]]:
        """What has to see every planned conversation."""
        return [count.see_planned for count in self._counts.values() if hasattr(count, "see_planned")]

    def result(self, name: str) -> Any:
        """The value of a measure that was started, once everything was seen."""
        if name not in self._results:
            self._results[name] = self._counts[name].result()
        return self._results[name]
