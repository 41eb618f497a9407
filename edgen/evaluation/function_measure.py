"""A user's function as a measure: its value for each conversation, counted, averaged and compared.

It takes a conversation and returns a number, a boolean, a text, None (no value), or a dict of these by
column. Booleans become shares, texts a share for each text, numbers means, each with its 95% interval, with
scenarios as clusters.
"""

from __future__ import annotations

import math
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from edgen.core import registry
from edgen.core.errors import InputError
from edgen.core.text import describe_type, shorten
from edgen.core.values import Event, Role, Scenario, Turn
from edgen.core.yaml_values import shorten_word
from edgen.evaluation.aggregate_sums import MeanSum, ShareSum
from edgen.evaluation.aggregates import Mean, Share
from edgen.evaluation.compared import Compared
from edgen.evaluation.measure import Measure, OwnComparisons, OwnCount
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.shared import Shared
from edgen.expressions.language import Kind, Value
from edgen.space import Space
from edgen.stats.intervals import Estimate, share

F = TypeVar("F", bound=Callable[..., Any])
_MOST_TEXTS = 50  # maximum texts of a column with a share of their own


class MeasureError(InputError):
    """A function that cannot be used as a measure, or that fails for a conversation."""


class MeasuredConversation(msgspec.Struct, frozen=True, kw_only=True):
    """The argument of a user's function: fields of `Sample`. `str()` of it is the turns, a line each."""

    id: str  # as in the shards
    scenario: Scenario  # `scenario["topic"]` is one of its values
    turns: tuple[Turn, ...]  # without the end marker
    probability: float | None = None  # of the family's event; None if unknown
    ended_by: Role | None = None  # the speaker of the end marker
    outcome: dict[str, Any] | None = None  # its result, if its protocol states one
    events: tuple[Event, ...] = ()  # events other than turns

    def __str__(self) -> str:
        return "\n".join(f"{turn.role}: {turn.text}" for turn in self.turns)


class OwnFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures by column ("" if the function returns a single value): means of numbers, shares of booleans,
    shares of each text."""

    means: dict[str, Estimate] = {}
    shares: dict[str, Estimate] = {}
    texts: dict[str, dict[str, Estimate]] = {}

    @property
    def every_text(self) -> dict[str, Estimate]:
        """The shares of all columns' texts, by column and text."""
        return {
            f"{column}: {text}" if column else text: one
            for column, texts in self.texts.items()
            for text, one in texts.items()
        }


class _AnyFigure(dict[str, Kind]):
    """A mapping that knows every name: a function's columns are unknown until it is called."""

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return "any"


class OwnMeasure(OwnCount, OwnComparisons, Measure[OwnFigures]):
    """A measure that calls a function."""

    order = 900
    nothing = "The function returned no value for any conversation."
    aggregates = (
        Mean("means", label="{key}", title="{key}", names={"": "mean"}),
        Share("shares", label="{key}", title="{key}", by_key=True, names={"": "share"}),
        Share("every_text", label="{key}", title="{key}", by_key=True),
    )

    def __init__(self, function: Callable[[MeasuredConversation], Any], name: str) -> None:
        super().__init__()
        said = (getattr(function, "__doc__", None) or "").strip().split("\n")[0]
        self.function = function
        self.name = name  # type: ignore[misc]  # one per object
        self.definition = f"{said or 'No definition given'} (a user-defined function, {name})."  # type: ignore[misc]
        self.figures = MappingProxyType(_AnyFigure({"": "any"}))  # type: ignore[misc]

    def start(self, shared: Shared) -> _OwnCount:  # noqa: ARG002
        return _OwnCount(self)

    def call(self, sample: Sample) -> dict[str, Value]:
        """Return the function's values for a conversation, by column. Raises MeasureError if it fails."""
        known = {name: getattr(sample, name) for name in MeasuredConversation.__struct_fields__}
        try:
            said = self.function(MeasuredConversation(**known))
        except (Exception, SystemExit) as problem:
            raise MeasureError(self._explain(problem, sample.id)) from problem
        columns = dict(said) if isinstance(said, Mapping) else {"": said}
        for column, value in columns.items():
            odd = isinstance(value, float) and not math.isfinite(value)
            if odd or not isinstance(column, str) or not isinstance(value, int | float | str | None):
                what = (
                    f"{shorten_word(repr(value))} under {column!r}"
                    if isinstance(said, Mapping)
                    else shorten_word(repr(said))
                )
                raise MeasureError(
                    f"the measure {self.name} returned {what} for conversation {sample.id}; it "
                    "must be a finite number, a boolean, a text, None, or a dict of these with "
                    "texts as keys."
                )
        return {column: value for column, value in columns.items() if value is not None}

    def _explain(self, problem: BaseException, identifier: str) -> str:
        steps = traceback.extract_tb(problem.__traceback__)[1:]
        file = getattr(getattr(self.function, "__code__", None), "co_filename", None)
        steps = [
            step for step in steps if step.filename == file
        ] or steps  # the user's own line, not a line of code that it called
        where = f" ({steps[-1].filename}, line {steps[-1].lineno})" if steps else ""
        said = " ".join(f"{type(problem).__name__}: {problem}".split())
        return f"the measure {self.name} failed for conversation {identifier}{where}: {shorten(said, 200)}"

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Value]:  # noqa: ARG002
        return self.call(sample)

    def sums(self, sample: Sample, space: Space | None) -> Iterable[tuple[str, float]]:  # noqa: ARG002
        for column, value in self.call(sample).items():
            if isinstance(value, str):
                yield f"{column}|text {value[:80]}", 1
                yield f"{column}|texts", 1
            elif isinstance(value, bool):
                yield f"{column}|true", int(value)
                yield f"{column}|truths", 1
            elif isinstance(value, int | float):
                yield f"{column}|sum", value
                yield f"{column}|numbers", 1

    def compared(self, sums: Collection[str]) -> Iterable[Compared]:
        kinds = {"sum": ("number", "numbers"), "true": ("share", "truths"), "text": ("share", "texts")}
        for name in sorted(sums):
            column, _, what = name.partition("|")
            first, _, text = what.partition(" ")
            if first not in kinds:
                continue
            kind, bottom = kinds[first]
            called = self.name if not column else f"{self.name}.{column}"
            yield Compared(
                name=f"{called}={text}" if text else called,
                title=f"{called}: {text}" if text else called,
                kind=kind,  # type: ignore[arg-type]
                top=name,
                bottom=f"{column}|{bottom}",
                over="accepted conversations",
                definition=self.definition,
            )


class _OwnCount:
    """The running count of a function's columns, by the types of their values."""

    def __init__(self, measure: OwnMeasure) -> None:
        self._measure = measure
        self._means: defaultdict[str, MeanSum] = defaultdict(lambda: MeanSum(sized=False))
        self._shares: defaultdict[str, ShareSum] = defaultdict(ShareSum)
        self._texts: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        for column, value in self._measure.call(sample).items():
            if isinstance(value, str):
                self._texts[column].append((value, sample.scenario.index))
            else:
                kind = self._shares if isinstance(value, bool) else self._means
                kind[column].add(sample, value, None)

    def result(self) -> OwnFigures:
        return OwnFigures(
            means=_drop_missing({column: one.result() for column, one in self._means.items()}),
            shares=_drop_missing({column: one.result() for column, one in self._shares.items()}),
            texts={column: _compute_shares(said) for column, said in self._texts.items()},
        )


def _compute_shares(said: Sequence[tuple[str, int]]) -> dict[str, Estimate]:
    """Return the share of each of the most frequent texts. `said`: texts, each with its scenario."""
    counts = Counter(text for text, _ in said)
    common = sorted(counts, key=lambda text: (-counts[text], text))[:_MOST_TEXTS]
    scenarios = [scenario for _, scenario in said]
    return _drop_missing({text: share([own == text for own, _ in said], scenarios) for text in common})


def _drop_missing(found: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    return {name: one for name, one in found.items() if one is not None}


def measure(function: F, name: str | None = None) -> F:
    """Register a function as a measure under its own name, or `name`, for `edgen stats`, `compare`,
    expressions and gates of this process. It takes a conversation (`id`, `scenario`, `turns`, `probability`,
    `ended_by`, `outcome`, `events`) and returns a number, a boolean, a text, None, or a dict of these by
    column. Return the function, so this is also a decorator.

    >>> @measure ... def question_marks(conversation): ...     "Question marks in a conversation." ... return
    str(conversation).count("?")

    Raises MeasureError if `function` cannot be called, or another measure has the name.
    """
    if not callable(function):
        raise MeasureError(
            f"a measure is a function that takes a conversation, and this is {describe_type(function)}."
        )
    called = name or str(getattr(function, "__name__", ""))
    if not called.isidentifier():
        raise MeasureError(f"{called!r} cannot name a measure; give it a name of letters, digits and _.")
    if called in registry.list_names("measure") and not registry.is_added("measure", called):
        raise MeasureError(f"there is a measure {called} already; rename the function.")
    registry.add("measure", called, OwnMeasure(function, called))
    return function
