"""A measure: an object with a name and a definition that sees every conversation of a data set once.

It has columns of one conversation (`of_one`), and aggregates that compute figures from them. The terminal,
JSON, the report, `compare`, and names in expressions follow from these. Needs of some measures are in
optional parts, one for each purpose, from which a measure also derives:

class CoverageMeasure(OwnCount, OwnTexts, Measure[Coverage]): ...

edgen's own are in `measures/`; a package's are found by entry points of the group `edgen.measures`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from edgen.core.plugin_checks import find_misplaced_names
from edgen.core.plugins.faults import list_items, refuse_value
from edgen.core.registry import part_of
from edgen.core.text import join_list, shorten
from edgen.evaluation.aggregates import Aggregate, Columns
from edgen.evaluation.column_count import ColumnCount, check_columns
from edgen.evaluation.compared import Compared, complete_comparisons, list_usual_comparisons, sum_columns
from edgen.evaluation.panels import AnyPanel
from edgen.evaluation.sample import Sample, Words, copy_for_plugin, make_sample_of_facts
from edgen.evaluation.shared import Count, Shared, is_foreign
from edgen.expressions.conversation import Facts
from edgen.expressions.language import Kind, Value
from edgen.space import Space

V = TypeVar("V")
FIGURE_TYPES: Mapping[Kind, tuple[type, ...]] = {
    "number": (int, float),
    "truth": (bool,),
    "text": (str,),
    "list": (tuple, list),
    "any": (object,),
}
"""The types of a column of each kind."""


class OwnCount:
    """A measure's own count, for a value that sums of columns cannot give: `counts`, or `start` if it needs
    shared data."""

    counts: ClassVar[type[Count[Any]]]
    """The class of the count, made without arguments."""
    compares_all: ClassVar[bool] = False
    """Whether it compares all conversations with each other; with several processes, from
    `Shared.gathered`."""

    def start(self, shared: Shared) -> Count[Any]:  # noqa: ARG002
        """Return a new count over one data set."""
        return self.counts()


class NeedsDataSet:
    """Columns or figures that need the data set, not only one conversation."""

    def column_reader(self, shared: Shared) -> Callable[[Sample, Words], Columns] | None:  # noqa: ARG002
        """Return the function that gives each conversation's columns; None for `of_one` with the data set's
        space."""
        return None

    def finish(self, figures: dict[str, Any], shared: Shared) -> dict[str, Any]:  # noqa: ARG002
        """Return the figures of the value by name, given the aggregates' figures. Called after all
        conversations were seen."""
        return figures


class OwnTexts:
    """A measure's own texts: lines on the terminal instead of rows of figures, tiles at the top of the
    report, and conversations to read."""

    def lines(self, value: Any) -> Iterator[str] | None:  # noqa: ARG002
        """Return the value as lines of at most 78 columns; None for the rows of its figures."""
        return None

    def tiles(self, value: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ARG002
        """Yield (figure, its meaning, a remark) for the top of the report."""
        return iter(())

    def examples(self, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Yield (id, clause with the reason) of conversations to read, the clearest first, in addition to
        aggregates of the class Examples."""
        return iter(())


class OwnComparisons:
    """A measure's own comparisons in `edgen compare`, if no ratio of two columns expresses them."""

    def sums(self, sample: Sample, space: Space | None) -> Iterable[tuple[str, float]]:  # noqa: ARG002
        """Yield (name of a sum, amount) of a conversation, for `compared`. Arms are compared in sums by
        scenario. `space`: None for a data set."""
        return ()

    def compared(self, sums: Collection[str]) -> Iterable[Compared]:  # noqa: ARG002
        """Return the comparisons. `sums`: names of the sums that occur in any arm."""
        return ()


class JudgeAsking(NamedTuple):
    """Settings for asking a judge. `control`: callbacks and consent of the API call. `sample`: conversations
    of each arm. `overrides`: keys of the job, as for `--set`. `prompt`: the template; None for the measure's
    own."""

    control: Any
    sample: int
    overrides: Iterable[str] = ()
    prompt: str | None = None


class JudgeAnswers:
    """A judge's answers that are added to the measure's value (`edgen stats --adherence`)."""

    def ask_judge(self, run: Path, asking: JudgeAsking) -> dict[str, Any]:
        """Ask a run's judge about conversations of each begun arm; return its answers by arm's name."""
        raise NotImplementedError

    def estimate_judge(self, run: Path, asking: JudgeAsking) -> Any:
        """Return the calls that `ask_judge` would make."""
        raise NotImplementedError

    def with_judged(self, value: Any, judged: Any) -> Any:
        """Return the value of an arm with the judge's answers added."""
        raise NotImplementedError


PARTS = (OwnCount, NeedsDataSet, OwnTexts, OwnComparisons, JudgeAnswers)


class Measure(Generic[V]):
    """A measure: its definition, the columns of a conversation, and the figures from them.

    A measure has `of_one` and `aggregates`, or a count of its own (`OwnCount`; docs/decisions.md says when).
    """

    name: ClassVar[str]  # name in options and expressions
    definition: ClassVar[str]
    """Its definition, which names the source or says that it is edgen's own."""
    order: ClassVar[int] = 1000
    """Its place among the measures; they are shown in ascending order."""
    section: ClassVar[str] = "more"
    """The section of the report that shows it."""
    nothing: ClassVar[str] = "There is nothing to measure."
    """Sentence shown if there are no figures."""
    aggregates: ClassVar[Sequence[Aggregate]] = ()
    """The figures of its value, in order. A measure with a count of its own lists the figures to show."""
    reads_space: ClassVar[bool] = True
    """Whether `of_one` needs the space; otherwise it gets None."""
    panels: ClassVar[Sequence[AnyPanel] | None] = None
    """The pictures, tables and sentences of the report; None for the usual pictures of its figures. An item
    may be a function that draws."""
    figures: ClassVar[Mapping[str, Kind]] = MappingProxyType({})
    """The columns that expressions (`edgen select`, a job's gates) know as `measures.<name>.<figure>`, and
    their kinds; "" is the column with the measure's name, known as `measures.<name>`."""
    compares: ClassVar[Sequence[Compared] | None] = None
    """The metrics of `edgen compare`; None for all shares, means, distributions and counts of texts, ()
    for nothing."""

    describes_plan: ClassVar[bool] = False
    """Whether its value describes the plan, with the fields `planned` (conversations) and `reasons` (counts
    of conversations not accepted). Then it is shown even if no conversation was accepted."""

    def __init__(self) -> None:
        named = type(self).__name__
        if isinstance(self, OwnCount):
            if not hasattr(self, "counts") and type(self).start is OwnCount.start:
                raise TypeError(f"{named} has neither `counts` nor `start`")
            return
        reads = isinstance(self, NeedsDataSet) and type(self).column_reader is not NeedsDataSet.column_reader
        if not reads and type(self).of_one is Measure.of_one:
            raise TypeError(f"{named} has neither `of_one` nor a count of its own (OwnCount)")

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Columns:  # noqa: ARG002
        """Return the columns of one conversation. A column that is missing or None does not count. `space`
        is None if unknown."""
        return {}

    def begin_count(self, shared: Shared) -> Count[V]:
        """Return a new count over one data set: the measure's own, or one of its columns."""
        if isinstance(self, OwnCount):
            count = self.start(shared)
            if missing := [name for name in ("see", "result") if not callable(getattr(count, name, None))]:
                said = f"has a count without the method `{missing[0]}`: {count!r}"
                refuse_value("measure", self.name, said)
            return count
        whole = part_of(self, NeedsDataSet)
        if (read := whole.column_reader(shared)) is None:
            space = shared.data.space if self.reads_space else None

            def read(sample: Sample, words: Words) -> Columns:
                return self.of_one(sample, words, space)

        own: Callable[[Sample, Words], Columns] = read
        checked = (
            (lambda sample, words: _check(self, own(sample, words), sample)) if self._is_foreign else own
        )

        def finish(figures: dict[str, Any]) -> V:
            found = whole.finish(figures, shared)
            names = [one.name for one in self.aggregates]
            if not isinstance(found, Mapping) or {*found} != {*names}:
                said = f"has a `finish` that did not return a mapping of {join_list(names)}"
                refuse_value("measure", self.name, said)
            made: V = self._value_type(**found)
            return made

        return ColumnCount(self.aggregates, shared.data, checked, finish)

    def of_facts(self, facts: Facts, space: Space) -> Mapping[str, Value]:
        """Return the columns of a conversation for expressions. "" is the column with the measure's name,
        unless `of_one` returns "" itself."""
        columns = read_columns(self, make_sample_of_facts(facts), Words(facts.words), space)
        if self._is_foreign:
            self._require_kinds(columns)
        return columns if "" in columns else {"": columns.get(self.name), **columns}

    def _require_kinds(self, columns: Columns) -> None:
        """Raise FaultyPluginError for a column of another kind than `figures` declares."""
        for name, kind in self.figures.items():
            value = columns.get(name or self.name) if "" not in columns else columns.get(name)
            if value is not None and not isinstance(value, FIGURE_TYPES[kind]):
                said = f"gave {value!r} in the column {name!r}, which its `figures` say is a {kind}"
                refuse_value("measure", self.name, said)

    @cached_property
    def _value_type(self) -> type[Any]:
        named = type(self).__name__.removesuffix("Measure")
        fields = [(one.name, Any) for one in self.aggregates]
        return msgspec.defstruct(named, fields, frozen=True, kw_only=True)

    @cached_property
    def _comparisons(self) -> Sequence[Compared]:
        if self.compares is not None:
            return self.compares
        if type(self).of_one is Measure.of_one:
            return ()
        return tuple(list_usual_comparisons(self.name, self.definition, self.aggregates))

    @cached_property
    def _is_foreign(self) -> bool:
        """True for a measure of a plugin or a user."""
        return is_foreign(self.name)


def make_value_type(measure: Measure[Any]) -> type[Any]:
    """Return the struct of a measure's figures, one field for each aggregate."""
    return measure._value_type


def read_columns(measure: Measure[Any], sample: Sample, words: Words, space: Space | None) -> Columns:
    """Return the columns of a conversation; those of a foreign measure are checked. Raises
    FaultyPluginError."""
    if measure._is_foreign:
        sample, words = copy_for_plugin(sample, words)
    return _check(measure, measure.of_one(sample, words, space), sample)


def _check(measure: Measure[Any], columns: Columns, sample: Sample) -> Columns:
    if not measure._is_foreign:
        return columns
    checked = check_columns(measure.name, measure.aggregates, columns, f", for conversation {sample.id}")
    if isinstance(measure, OwnCount | OwnComparisons) or measure.compares is not None:
        return checked  # the measure itself may read other columns
    known = {*measure.figures, *(name for one in measure.aggregates for name in (one.reads, one.of))}
    if checked and measure.aggregates and known.isdisjoint(checked):
        listed = shorten(", ".join(map(repr, checked)), 200)
        said = f"gave the columns {listed}, none of which its `aggregates` read"
        refuse_value("measure", measure.name, said)
    return checked


def is_compared(measure: Measure[Any]) -> bool:
    """Return whether `edgen compare` has comparisons of a measure."""
    return isinstance(measure, OwnComparisons) or bool(measure._comparisons)


def add_up(
    measure: Measure[Any], sample: Sample, words: Words, space: Space | None
) -> Iterable[tuple[str, float]]:
    """Return (name of a sum, amount) of an accepted conversation: the measure's own sums, or its compared
    columns. `space`: None for a data set."""
    if isinstance(measure, OwnComparisons):
        shown = copy_for_plugin(sample, words)[0] if measure._is_foreign else sample
        return _check_sums(measure, measure.sums(shown, space))
    if not measure._comparisons:
        return ()
    return sum_columns(read_columns(measure, sample, words, space), measure._comparisons)


def _check_sums(measure: Measure[Any], sums: Iterable[tuple[str, float]]) -> Iterable[tuple[str, float]]:
    """Return a measure's own sums. Raises FaultyPluginError if a plugin's sums are invalid."""
    if not measure._is_foreign:
        return sums
    found = list_items("measure", measure.name, sums, "a sum")
    for one in found:
        pair = isinstance(one, tuple) and len(one) == 2
        if not (pair and isinstance(one[0], str) and isinstance(one[1], int | float) and isfinite(one[1])):
            refuse_value("measure", measure.name, f"gave {one!r} in `sums`, not a (name, number)")
    return found


def list_comparisons(measure: Measure[Any], sums: Collection[str]) -> Iterable[Compared]:
    """Return a measure's comparisons by `edgen compare`. `sums`: names of the sums that occur in any arm."""
    if isinstance(measure, OwnComparisons):
        found = list_items("measure", measure.name, measure.compared(sums), "a Compared")
        if wrong := [one for one in found if not isinstance(one, Compared)]:
            refuse_value("measure", measure.name, f"returned {wrong[0]!r} from `compared`, not a Compared")
        return found
    return complete_comparisons(measure._comparisons, sums)


def list_flaws(measure: Measure[Any]) -> Iterator[str]:
    """Yield the flaws that keep an object from being used as a measure, as clauses."""
    from edgen.evaluation.measure_flaws import list_declared_flaws  # loaded late: only plugins are checked

    yield from find_misplaced_names(measure, PARTS)
    yield from list_declared_flaws(measure, counts_alone=isinstance(measure, OwnCount))


def figure_kinds(
    *numbers: str, truths: Iterable[str] = (), texts: Iterable[str] = (), lists: Iterable[str] = ()
) -> Mapping[str, Kind]:
    """Return the `figures` of a measure, by kind."""
    names: dict[Kind, Iterable[str]] = {"number": numbers, "truth": truths, "text": texts, "list": lists}
    return MappingProxyType({name: kind for kind, named in names.items() for name in named})
