"""A measure: an object with a name and a definition that looks at every conversation of a data set once.

It has columns of one conversation (`of_one`), and aggregates that say what they come to. The terminal, JSON,
the report, `compare`, and names in expressions follow from these. A measure that needs more brings a count,
lines or pictures of its own.

edgen's own are in `measures/`; a package's are found by the entry points of group `edgen.measures`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, get_args

import msgspec

from edgen.core import registry
from edgen.core.plugin_faults import FaultyPluginError, blame, plugin_error, refuse_value, require_type
from edgen.evaluation.aggregates import Aggregate, ByKey, Columns, Examples
from edgen.evaluation.column_count import ColumnCount, check_columns
from edgen.evaluation.compared import Compared as Compared
from edgen.evaluation.compared import complete_comparisons, list_usual_comparisons, sum_columns
from edgen.evaluation.drawings import Block
from edgen.evaluation.panels import ArmResult as ArmResult
from edgen.evaluation.panels import Panel as Panel
from edgen.evaluation.panels import draw_panels, list_usual_panels
from edgen.evaluation.sample import DataSet, PlannedOutcome, Sample, Words, sample_of_facts
from edgen.evaluation.terminal import render_lines
from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.shingles import GatheredShingles
from edgen.expressions.conversation import Facts
from edgen.expressions.language import Kind, Value
from edgen.space import Space

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class Observer(Protocol):
    """Sees every sample of a data set once. `words` are those of `sample.turns`, turn by turn, cut once
    for all."""

    def see(self, sample: Sample, words: Words) -> None: ...


class Count(Observer, Protocol[V_co]):
    """One measure at work on one data set. One that also has `see_planned(PlannedOutcome)` is given the
    plan."""

    def result(self) -> V_co: ...


class JudgeAsking(NamedTuple):
    """Request of a judge for a measure. `control`: callbacks and consent of the call; `sample`: conversations
    of each arm; `overrides`: keys of the job, as for `--set`; `prompt`: the template, None for its own."""

    control: Any
    sample: int
    overrides: Iterable[str] = ()
    prompt: str | None = None


class Measure(Generic[V]):
    """A measure: its definition, how it is counted, and how its value is shown.

    A measure has `of_one` and `aggregates`; or a count of its own (`counts`, or `start` where it needs what
    is shared; docs/decisions.md says when); or, where its value follows from what is shared alone, `finish`.
    """

    name: ClassVar[str]  # by which options and expressions know it
    definition: ClassVar[str]
    """Names its source, or says that it is edgen's own."""
    order: ClassVar[int] = 1000
    """Its place among the measures."""
    section: ClassVar[str] = "more"
    """The section of the report that shows it."""
    nothing: ClassVar[str] = "There is nothing to tell."
    """Said where there is nothing to show."""
    tells_of_plan: ClassVar[bool] = False
    """Whether it has something to say where no conversation was accepted."""
    aggregates: ClassVar[Sequence[Aggregate]] = ()
    """The figures of its value, in their order. A measure with a count of its own lists those that are
    shown."""
    panels: ClassVar[Sequence[Panel] | None] = None
    """The pictures of its figures; None for the usual ones."""
    compares_all: ClassVar[bool] = False
    """Whether it compares all conversations with each other, by `Shared.gathered` if other processes help."""
    reads_space: ClassVar[bool] = True
    """Whether `of_one` needs the space; otherwise it gets None."""
    judged: ClassVar[bool] = False
    """Whether a judge's answers (`edgen stats --adherence`) are added to its value."""
    figures: ClassVar[Mapping[str, Kind]] = MappingProxyType({})
    """The columns that expressions (`edgen select`, a job's gates) know as `measures.<name>.<figure>`,
    with the kind of each; "" goes by the measure's name alone, and is the column of that name."""
    compares: ClassVar[Sequence[Compared] | None] = None
    """The metrics of `edgen compare`; None for all shares, means, distributions and counts of texts, ()
    for nothing."""
    counts: ClassVar[type[Count[Any]]]
    """A count of its own that needs nothing of what is shared."""

    def __init__(self) -> None:
        own = type(self)
        brings = ("of_one", "column_reader", "start", "finish")
        if not hasattr(self, "counts") and all(getattr(own, one) is getattr(Measure, one) for one in brings):
            raise TypeError(f"{own.__name__} has neither `of_one` nor `counts` nor `start`")

    # ---- what is counted

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Columns:  # noqa: ARG002
        """Return the columns of one conversation. A column that is missing or None does not count. `space`
        is None if unknown."""
        return {}

    def column_reader(self, shared: Shared) -> Callable[[Sample, Words], Columns]:
        """Return the function that gives each conversation's columns: `of_one` with the data set's space."""
        space = shared.data.space if self.reads_space else None
        return lambda sample, words: self.of_one(sample, words, space)

    def read_columns(self, sample: Sample, words: Words, space: Space | None) -> Columns:
        """Return `of_one`, checked for a measure that is not edgen's own. Raises FaultyPluginError."""
        return self._check(self.of_one(sample, words, space))

    def start(self, shared: Shared) -> Count[V]:
        """Return a new count over one data set."""
        if hasattr(self, "counts"):
            return self.counts()
        read = self.column_reader(shared)
        checked = (lambda sample, words: self._check(read(sample, words))) if self._is_foreign else read
        return ColumnCount(
            self.aggregates, shared.data, checked, lambda figures: self.finish(figures, shared)
        )

    def _check(self, columns: Columns) -> Columns:
        return check_columns(self.name, self.aggregates, columns) if self._is_foreign else columns

    @cached_property
    def _is_foreign(self) -> bool:
        """True if it is not edgen's own."""
        return registry.is_added("measure", self.name) or registry.plugin_of("measure", self.name) is not None

    @cached_property
    def value_type(self) -> type[Any]:
        """The struct of its figures, one field for each aggregate."""
        named = type(self).__name__.removesuffix("Measure")
        fields = [(one.name, Any) for one in self.aggregates]
        return msgspec.defstruct(named, fields, frozen=True, kw_only=True)

    def finish(self, figures: dict[str, Any], shared: Shared) -> V:  # noqa: ARG002
        """Make the value of the figures, by their names. msgspec encodes it for `edgen stats --json`."""
        return self.value_type(**figures)  # type: ignore[no-any-return]

    # ---- how it is shown

    def shown(self, value: V) -> Any:
        """Return the object that has what `aggregates` name: the value, unless figures are nested."""
        return value

    def lines(self, value: V) -> Iterator[str]:
        """Yield the value for a person, in lines of at most 78 columns."""
        if self.aggregates:
            yield from render_lines(self.aggregates, self.shown(value))
        else:
            yield msgspec.json.encode(value).decode()

    def blocks(self, found: Sequence[ArmResult[V]]) -> Iterator[Block]:
        """Yield its part of the report: pictures, tables, paragraphs, every arm side by side."""
        if self.aggregates:
            panels = [*list_usual_panels(self.name, self.aggregates)] if self.panels is None else self.panels
            told = [one._replace(value=self.shown(one.value)) for one in found]
            yield from draw_panels(panels, self.aggregates, told)
            return
        for one in found:
            yield "\n".join([*([one.arm] if one.arm else []), *self.lines(one.value)])

    def tiles(self, value: V) -> Iterator[tuple[str, str, str]]:  # noqa: ARG002
        """Figures for the top of the report: (figure, what it is, a remark)."""
        return iter(())

    def examples(self, value: V) -> Iterator[tuple[str, str]]:
        """Conversations to read for what was found: (id, a clause on why), the clearest first."""
        for one in self.aggregates:
            if isinstance(one, Examples):
                yield from ((identifier, one.why) for identifier in getattr(value, one.name))

    # ---- what is compared

    @cached_property
    def comparisons(self) -> Sequence[Compared]:
        """The comparisons of its columns: `compares`, or the usual ones."""
        if self.compares is not None:
            return self.compares
        return (
            tuple(list_usual_comparisons(self.name, self.definition, self.aggregates))
            if type(self).of_one is not Measure.of_one
            else ()
        )

    def sums(self, sample: Sample, space: Space | None) -> Iterable[tuple[str, float]]:  # noqa: ARG002
        """Yield (sum, amount) for `compared`, where columns are not enough. Arms are compared in sums by
        scenario. `space` is None for a data set."""
        return ()

    def add_up(self, sample: Sample, words: Words, space: Space | None) -> Iterable[tuple[str, float]]:
        """Return what an accepted conversation adds to which sum: its own `sums`, or its columns that are
        compared."""
        if type(self).sums is not Measure.sums:
            return self.sums(sample, space)
        return (
            sum_columns(self.read_columns(sample, words, space), self.comparisons) if self.comparisons else ()
        )

    def compared(self, columns: Collection[str]) -> Iterable[Compared]:
        """Return its comparisons by `edgen compare`, by arm and with paired differences; `columns`: the sums
        that occur in any arm."""
        return complete_comparisons(self.comparisons, columns)

    # ---- expressions

    def of_facts(self, facts: Facts, space: Space) -> Mapping[str, Value]:
        """Return the columns of a conversation as expressions see it. "" is the column of the measure's
        name, unless there is another."""
        columns = self.read_columns(sample_of_facts(facts), Words(facts.words), space)
        return columns if "" in columns else {"": columns.get(self.name), **columns}

    def lost(self, value: V) -> tuple[int, Mapping[str, int]] | None:  # noqa: ARG002
        """Return the number of planned conversations, and the reasons of those that were not accepted with
        their counts; None for a measure without this knowledge.

        It is called for a measure with `tells_of_plan`, if nothing was accepted.
        """
        return None

    # ---- for one that is `judged`

    def ask_judge(self, run: Path, asking: JudgeAsking) -> dict[str, Any]:
        """Have a run's judge read conversations of each arm that was begun. Return its answers by the arm's
        name."""
        raise NotImplementedError

    def estimate_judge(self, run: Path, asking: JudgeAsking) -> Any:
        """Return the calls that `ask_judge` would make."""
        raise NotImplementedError

    def with_judged(self, value: V, judged: Any) -> V:  # noqa: ARG002
        """Return the value, with a judge's answers for its arm added."""
        return value


def list_flaws(measure: Measure[Any]) -> Iterator[str]:
    """Yield what keeps an object from being used as a measure, as clauses."""
    if not isinstance(definition := getattr(measure, "definition", None), str) or not definition:
        yield "has no `definition`: name its source, or say that it is your own"
    each = [*measure.aggregates]
    if wrong := next((one for one in each if not isinstance(one, Aggregate)), None):
        yield f"has {wrong!r} among its `aggregates`, which is no aggregate such as edgen.plugin.Share"
        return
    for listed in (each, *(one.each for one in each if isinstance(one, ByKey))):
        names = [one.name for one in listed]
        for name in names:
            if not name.isidentifier():
                yield f"has an aggregate named {name!r}; name it with letters, digits and _"
            if names.count(name) > 1:
                yield (
                    f"has two aggregates named {name!r}; name one of them otherwise, and give it "
                    f"`column={name!r}`"
                )
    for name, kind in measure.figures.items():
        if kind not in get_args(Kind):
            yield f"has {kind!r} for {name!r} in `figures`; the kinds are {', '.join(get_args(Kind))}"


def figure_kinds(
    *numbers: str, truths: Iterable[str] = (), texts: Iterable[str] = (), lists: Iterable[str] = ()
) -> Mapping[str, Kind]:
    """Return the `figures` of a measure, by kind."""
    names: dict[Kind, Iterable[str]] = {"number": numbers, "truth": truths, "text": texts, "list": lists}
    return MappingProxyType({name: kind for kind, named in names.items() for name in named})


class Shared:
    """Shared data of the measures at work on one data set."""

    def __init__(self, data: DataSet, find: Callable[[str], Measure[Any]], *, planned: bool = False) -> None:
        self.data = data
        self.planned = planned  # whether a plan is known, with the outcome of everything in it
        self.gathered: Callable[[], GatheredShingles] | None = None  # what other processes cut
        self._find = find
        self._counts: dict[str, Count[Any]] = {}
        self._results: dict[str, Any] = {}
        self.faults: dict[str, FaultyPluginError] = {}  # of measures that raised and are left out

    @cached_property
    def corpus(self) -> Corpus:
        """The words of all conversations. It is filled where a measure asks for it when it starts."""
        return Corpus()

    def start(self, names: Iterable[str]) -> None:
        """Start these measures, and those that they ask for. A plugin's that raises is left out."""
        for name in names:
            if name not in self._counts and name not in self.faults:
                try:
                    self._counts[name] = self._find(name).start(self)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
                    self._leave_out(name, error)

    def count(self, name: str) -> Count[Any]:
        """Return the count of a measure that was started."""
        return self._counts[name]

    def see(self, sample: Sample, words: Words) -> None:
        """Show a sample to every measure that was started."""
        for name, count in self._counts.items():
            try:
                count.see(sample, words)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
                self._leave_out(name, error, f"for conversation {sample.id}")
        if self.faults.keys() & self._counts.keys():
            self._counts = {name: count for name, count in self._counts.items() if name not in self.faults}
        if "corpus" in self.__dict__:
            self.corpus.add(words)

    @property
    def plan_observers(self) -> list[Callable[[PlannedOutcome], None]]:
        """The observers of every planned conversation."""
        return [count.see_planned for count in self._counts.values() if hasattr(count, "see_planned")]

    def result(self, name: str) -> Any:
        """Return the value of a measure once everything was seen. Raises its FaultyPluginError, if any."""
        if name in self.faults:
            raise self.faults[name]
        if name not in self._results:
            try:
                value = self._counts[name].result()
                if registry.plugin_of("measure", name) is not None:
                    _require_value(self._find(name), value)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again
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

    def _leave_out(self, name: str, error: BaseException, about: str = "") -> None:
        """Note why a plugin's measure is left out. Raises the error of one of edgen's own."""
        fault = plugin_error("measure", name, error, about)
        if not isinstance(fault, FaultyPluginError):
            raise fault
        self.faults[name] = fault


def _require_value(measure: Measure[Any], value: Any) -> None:
    """Raise FaultyPluginError for a value of a plugin's measure that has not what its aggregates name, and
    TypeError for one that JSON cannot hold."""
    shown = measure.shown(value)
    if missing := [one.name for one in measure.aggregates if not hasattr(shown, one.name)]:
        said = (
            f"has the aggregate {missing[0]!r}, and its value, a {type(value).__name__}, has no such figure"
        )
        refuse_value("measure", measure.name, said)
    with contextlib.suppress(UnicodeEncodeError):  # lone surrogates, which every output replaces
        msgspec.json.encode(value)


def show(
    measure: Measure[Any], given: Callable[[], Iterable[V]], type_: Any, faults: dict[str, FaultyPluginError]
) -> list[V]:
    """Return what a measure yields for people, each of a type. For a plugin's that raises or yields anything
    else, note its fault and return nothing."""
    try:
        shown = [*given()]
        for one in shown:
            require_type(
                "measure", measure.name, one, type_, f"a {getattr(type_, '__name__', 'part of a page')}"
            )
    except (Exception, SystemExit) as error:
        fault = plugin_error("measure", measure.name, error)
        if not isinstance(fault, FaultyPluginError):
            raise
        faults[measure.name] = fault
        return []
    return shown
