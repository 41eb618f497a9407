"""Where the turns come from that students are served, in sessions of rounds with a pool; and how often the same is shown.

A turn of the tutor that says where it comes from (`families/tutoring/served`) counts. Intervals are clustered by scenario.
Memory: some bytes a session, and 8 bytes for each different response that is served.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from edgen.core.text import quantity
from edgen.core.values import Turn
from edgen.evaluation.figures import Block, Table, intervals_picture, label_with_arm
from edgen.evaluation.measure import ArmResult, Compared, Measure, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import row, rows, share_with_interval
from edgen.families.tutoring.served import SOURCES, origin_of, source_of
from edgen.space import Space
from edgen.stats.intervals import Estimate, ShareCount


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """`turns` that were served; `sources`: the share of each source, and `nonsense` of each the share that the student
    called so. `by_action` and `by_round`: the turns, and the share of each source, by the student's action before (a turn
    of several counts for each) and by round, from 1. `responses`: different ones from the pool; `exposure`: how often each
    was served, on average, and `most` the most. `answered`: the share of turns that tutors responded to."""

    turns: int
    sources: dict[str, Estimate]
    nonsense: dict[str, float]
    by_action: dict[str, tuple[int, dict[str, float]]]
    by_round: dict[str, tuple[int, dict[str, float]]]
    responses: int
    exposure: float | None
    most: int
    answered: Estimate | None


class ServedCount:
    def __init__(self) -> None:
        self._answered = ShareCount()
        self._sources = {source: ShareCount() for source in SOURCES}
        self._nonsense: Counter[str] = Counter()
        self._by_action: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._by_round: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._exposures: Counter[int] = Counter()  # by hash

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        counts, answered = Counter[str](), 0
        for before, turn, source in _served(sample.turns):
            counts[source] += 1
            answered += bool(turn.alternatives) or source == "new"
            self._nonsense[source] += turn.data.get("nonsense") is True
            for action in before:
                self._by_action[action][source] += 1
            if (origin := origin_of(turn)) is not None:
                self._exposures[hash(origin)] += 1
        if not counts:
            return
        number = (sample.outcome or {}).get("round")
        if isinstance(number, int):
            self._by_round[number].update(counts)
        self._answered.add(sample.scenario.index, answered, counts.total())
        for source, counted in self._sources.items():
            counted.add(sample.scenario.index, counts[source], counts.total())

    def result(self) -> Served:
        totals = {source: hits for source, counted in self._sources.items() if (hits := counted.hits)}
        estimates = {source: self._sources[source].result() for source in totals}
        served = self._exposures.total()
        return Served(
            turns=self._answered.of,
            sources={source: one for source, one in estimates.items() if one is not None},
            nonsense={source: self._nonsense[source] / total for source, total in totals.items()},
            by_action={
                action: (counts.total(), _shares(counts))
                for action, counts in sorted(self._by_action.items(), key=lambda item: -item[1].total())
            },
            by_round={
                str(number): (counts.total(), _shares(counts))
                for number, counts in sorted(self._by_round.items())
            },
            responses=len(self._exposures),
            exposure=served / len(self._exposures) if served else None,
            most=max(self._exposures.values(), default=0),
            answered=self._answered.result(),
        )


class ServedMeasure(Measure[Served]):
    name = "served"
    definition = (
        "Of the turns that students are served in rounds: the share from the pool, by a template that was drawn, by a "
        "template since the pool had nothing (dry), and new ones since no template was left; by the student's action, by "
        "round, and how many of each the student calls nonsense; how often a response from the pool is served; and the share "
        "of turns that tutors respond to. edgen's own, for the way of CIMA (Stasaski, Kao and Hearst 2020, section 3)."
    )
    order = 15
    counts = ServedCount
    section = "behaviour"
    nothing = "No turn was served from a pool."

    def sums(self, sample: Sample, space: Space) -> Iterator[tuple[str, float]]:  # noqa: ARG002
        """Served turns, and those of each source."""
        for _, turn, source in _served(sample.turns):
            yield "turns", 1
            yield source, 1
            yield "nonsense", turn.data.get("nonsense") is True

    def compared(self, columns: Collection[str]) -> Iterable[Compared]:
        """How far the pool carries, and what it serves."""
        return _COMPARED if "turns" in columns else ()

    def lines(self, value: Served) -> Iterator[str]:
        if not value.turns:
            return
        yield row("turns served", quantity(value.turns, "turn"))
        for source, estimate in value.sources.items():
            called = f", {value.nonsense[source]:.1%} called nonsense"
            yield row(f"  {source}", f"{share_with_interval(estimate)}{called}")
        if value.exposure is not None:
            told = f"{quantity(value.responses, 'response')}, each served {value.exposure:.2f} times, at most {value.most}"
            yield row("from the pool", told)
        yield row("tutors respond to", f"{share_with_interval(value.answered)} of them")
        for action, (turns, shares) in value.by_action.items():
            yield from rows(f"after {action}", f"{_join(shares)} (of {turns:,})")
        for number, (turns, shares) in value.by_round.items():
            yield from rows(f"round {number}", f"{_join(shares)} (of {turns:,})")

    def blocks(self, found: Sequence[ArmResult[Served]]) -> Iterator[Block]:
        shares = [
            (f"Served: {source}", lambda value, source=source: value.sources.get(source))
            for source in SOURCES
        ]
        yield from intervals_picture(
            "served", "Where the turns come from that students are served", share_intervals(found, shares),
            "Look for a pool that runs dry: more rounds, more sessions a round, or fewer keywords to share.",
        )  # fmt: skip
        rounds = tuple(
            (label_with_arm(f"{number} ({turns:,})", one.arm), _join(of_round))
            for one in found
            for number, (turns, of_round) in one.value.by_round.items()
        )
        if rounds:
            yield Table(("round (turns)", "sources"), rounds, "Sources by round", "plain")


def _served(turns: Iterable[Turn]) -> Iterator[tuple[tuple[str, ...], Turn, str]]:
    """Each turn that was served, with what the student did before and where it comes from."""
    before: tuple[str, ...] = ()
    for turn in turns:
        if (source := source_of(turn)) is not None:
            yield before, turn, source
        before = turn.labels


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {source: counts[source] / total for source in SOURCES if counts[source]}


def _join(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{source} {of:.1%}" for source, of in shares.items())


def _compared(name: str, title: str, top: str, definition: str) -> Compared:
    return Compared(
        name=name,
        title=title,
        kind="share",
        top=top,
        bottom="turns",
        over="served turns",
        definition=definition,
    )


_COMPARED = (
    _compared("served_from_pool", "served from the pool", "pool", "Turns from the pool, of those that students are served."),
    _compared("served_dry", "the pool had nothing", "dry", "Templates since the pool had nothing, of turns served."),
    _compared("served_nonsense", "served turns called nonsense", "nonsense", "Served turns that a student calls nonsense."),
)  # fmt: skip

MEASURE = ServedMeasure()
