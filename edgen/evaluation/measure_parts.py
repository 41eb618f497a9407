"""Optional parts of measures, one a purpose. A measure that needs one derives from it next to `Measure`:

    class CoverageMeasure(OwnCount, OwnLines, Measure[Coverage]): ...

`part_of` (`core.registry`) gives edgen a measure's part, or the defaults here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from edgen.evaluation.aggregates import Columns
from edgen.evaluation.compared import Compared
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.shared import Count, Shared
from edgen.space import Space


class OwnCount:
    """A count of its own, where sums of columns do not give the value. `counts`, or `start` where the count
    needs what is shared."""

    counts: ClassVar[type[Count[Any]]]
    """The class of the count, made without arguments."""
    compares_all: ClassVar[bool] = False
    """Whether it compares all conversations with each other, by `Shared.gathered` if other processes help."""

    def start(self, shared: Shared) -> Count[Any]:  # noqa: ARG002
        """Return a new count over one data set."""
        return self.counts()


class NeedsDataSet:
    """Columns or figures that need more than one conversation: its data set."""

    def column_reader(self, shared: Shared) -> Callable[[Sample, Words], Columns] | None:  # noqa: ARG002
        """Return the function that gives each conversation's columns; None for `of_one` with the data set's
        space."""
        return None

    def finish(self, figures: dict[str, Any], shared: Shared) -> dict[str, Any]:  # noqa: ARG002
        """Return the figures of the value by name, given those that columns came to. It is called once
        everything was seen."""
        return figures


class OwnLines:
    """Lines of its own on the terminal, where rows of figures cannot say it."""

    def lines(self, value: Any) -> Iterator[str]:  # noqa: ARG002
        """Yield the value for a person, in lines of at most 78 columns; none for nothing."""
        return iter(())


class OwnComparisons:
    """Comparisons of its own by `edgen compare`, where a column over another does not say it."""

    def sums(self, sample: Sample, space: Space | None) -> Iterable[tuple[str, float]]:  # noqa: ARG002
        """Yield (sum, amount) for `compared`: arms are compared in sums by scenario. `space` is None for a
        data set."""
        return ()

    def compared(self, sums: Collection[str]) -> Iterable[Compared]:  # noqa: ARG002
        """Return the comparisons, by arm and with paired differences; `sums`: those that occur in any arm."""
        return ()


class Highlights:
    """Figures for the top of the report, and conversations to read."""

    def tiles(self, value: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ARG002
        """Yield (figure, what it is, a remark) for the top of the report."""
        return iter(())

    def examples(self, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Yield (id, a clause on why) of conversations to read, the clearest first, besides those that
        aggregates of the class Examples name."""
        return iter(())


class PlanOutcomes:
    """Knowledge of the plan: the measure is shown even if no conversation was accepted."""

    def count_lost(self, value: Any) -> tuple[int, Mapping[str, int]]:  # noqa: ARG002
        """Return the number of planned conversations, and how many were not accepted, by reason."""
        return 0, {}


class JudgeAsking(NamedTuple):
    """Request of a judge for a measure. `control`: callbacks and consent of the call; `sample`: conversations
    of each arm; `overrides`: keys of the job, as for `--set`; `prompt`: the template, None for its own."""

    control: Any
    sample: int
    overrides: Iterable[str] = ()
    prompt: str | None = None


class JudgeAnswers:
    """A judge's answers that are added to its value (`edgen stats --adherence`)."""

    def ask_judge(self, run: Path, asking: JudgeAsking) -> dict[str, Any]:
        """Have a run's judge read conversations of each arm that was begun. Return its answers by the arm's
        name."""
        raise NotImplementedError

    def estimate_judge(self, run: Path, asking: JudgeAsking) -> Any:
        """Return the calls that `ask_judge` would make."""
        raise NotImplementedError

    def with_judged(self, value: Any, judged: Any) -> Any:
        """Return the value, with a judge's answers for its arm added."""
        raise NotImplementedError


PARTS = (OwnCount, NeedsDataSet, OwnLines, OwnComparisons, Highlights, PlanOutcomes, JudgeAnswers)
