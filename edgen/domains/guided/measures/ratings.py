"""Ratings of the questionnaire after guided conversations, and their correlation with success and with
dialogue acts.

Every test is one of many, so p-values are adjusted by Holm. Memory: a few numbers a conversation, role and
item.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from edgen.domains.guided.events import ACTS, GuidedEvents, acts_of
from edgen.plugin import Measure, Sample, Words
from edgen.plugin.measures import (
    SHARES,
    SUMMARY_HEAD,
    ArmResult,
    Axis,
    Block,
    HistogramBars,
    Interval,
    Table,
    histograms_picture,
    intervals_picture,
    label_with_arm,
    series_colour,
    summary,
    wrap,
)
from edgen.plugin.statistics import (
    SIGNIFICANT,
    Distribution,
    RankTest,
    holm,
    spearman,
    summarize_counts,
    superiority,
)
from edgen.plugin.texts import format_signed, number, quantity, shorten

MOST = 60  # roles and items that are reported
MOST_RATING = 1000  # what is rated higher is no rating


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """A test, and its p-value adjusted for all tests of these ratings."""

    test: RankTest
    p_holm: float


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of a `role` to an `item`: the ratings; `success`: the chance that one after a success is
    above one after a failure (0.5: no difference); `acts`: its correlation with how many acts of each type
    the conversation had."""

    role: str
    item: str
    ratings: Distribution
    success: Tested | None
    acts: dict[str, Tested]


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """Every role's ratings of every item, and how many `tests` were made."""

    ratings: tuple[Rating, ...]
    tests: int


class RatingsCount:
    def __init__(self) -> None:
        self._found: dict[tuple[str, str], _Answered] = {}

    def see(self, sample: Sample, words: Words) -> None:
        events = GuidedEvents(sample.events, len(sample.turns))
        if not events.answers:
            return
        success = None if events.end is None else events.end.success
        acts = Counter(act for turn in sample.turns for act in acts_of(turn.labels))
        for answers in events.answers:
            for item, rating in answers.ratings.items():
                key = (answers.role, item)
                if not abs(rating) <= MOST_RATING or (key not in self._found and len(self._found) >= MOST):
                    continue
                one = self._found.setdefault(key, _Answered())
                one.ratings.append(rating)
                one.scenarios.append(sample.scenario.index)
                one.success.append(-1 if success is None else success)
                for act, counts in one.acts.items():
                    counts.append(acts[act])

    def result(self) -> Ratings:
        tests = {key: one.tests() for key, one in self._found.items()}
        places = [(key, name) for key, made in tests.items() for name in made]
        adjusted = holm([tests[key][name].p for key, name in places])
        tested: defaultdict[tuple[str, str], dict[str, Tested]] = defaultdict(dict)
        for (key, name), p in zip(places, adjusted, strict=True):
            tested[key][name] = Tested(test=tests[key][name], p_holm=p)
        return Ratings(
            ratings=tuple(
                Rating(
                    role=key[0],
                    item=key[1],
                    ratings=summarize_counts(Counter(round(rating) for rating in one.ratings)),
                    success=tested[key].get("success"),
                    acts={act: tested[key][act] for act in ACTS if act in tested[key]},
                )
                for key, one in self._found.items()
            ),
            tests=len(places),
        )


class RatingsMeasure(Measure[Ratings]):
    name = "ratings"
    definition = (
        "Ratings in the questionnaires after guided conversations, by role and item; the chance that a "
        "rating after a success exceeds one after a failure, a tie counting half (Mann and Whitney 1947), "
        "and the rank correlation with the number of acts of each type (Spearman 1904): the tests of "
        "CRWIZ's authors (Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020). p is exact for few ratings "
        "and takes conversations as independent, which those of one scenario are not; intervals are by "
        "scenario. All p are adjusted for their number (Holm 1979)."
    )
    order = 20
    counts = RatingsCount
    section = "task"
    nothing = "No record has answers to a questionnaire."

    def lines(self, value: Ratings) -> Iterator[str]:
        if not value.ratings:
            return
        yield SUMMARY_HEAD
        for one in value.ratings:
            yield summary(shorten(f"{one.role}: {one.item}", 22), one.ratings)
        tested = [one for one in value.ratings if one.success is not None]
        if tested:
            yield "higher after a success (0.5: as often as not)"
        for one in tested:
            yield _line(f"{one.role}: {one.item}", _format_test(one.success))
        together = [
            (f"{one.role}: {one.item}, {act}", found)
            for one in value.ratings
            for act, found in one.acts.items()
            if found.p_holm < SIGNIFICANT
        ]
        if together:
            yield "goes together with the number of acts (rho), where p is below 0.05"
        for label, found in together:
            yield _line(label, _format_test(found))
        if value.tests:
            yield from wrap(_note(value))

    def blocks(self, found: Sequence[ArmResult[Ratings]]) -> Iterator[Block]:
        rated = [
            HistogramBars(
                label_with_arm(f"{one.role}: {one.item}", arm.arm), one.ratings, series_colour(place)
            )
            for place, arm in enumerate(found)
            for one in arm.value.ratings
        ]
        yield from histograms_picture(
            "ratings", "Ratings", rated, Axis(whole=True), "Look for raters who give everything the same."
        )
        after = [
            _interval(f"{one.role}: {one.item}", arm.arm, one.success, series_colour(place))
            for place, arm in enumerate(found)
            for one in arm.value.ratings
            if one.success is not None
        ]
        yield from intervals_picture(
            "ratings-success", "Chance that a rating is higher after a success", after,
            "Dashed: as often as not. " + _CAPTION, SHARES._replace(tick=lambda v: f"{v:g}"), 0.5,
        )  # fmt: skip
        acts = [
            _interval(f"{one.role}: {one.item}, {act}", arm.arm, tested, series_colour(place))
            for place, arm in enumerate(found)
            for one in arm.value.ratings
            for act, tested in one.acts.items()
        ]
        acts.sort(key=lambda one: -abs(one.value or 0))
        yield from intervals_picture(
            "ratings-acts", "Ratings and how many acts there were (Spearman's rho)", acts[:_DRAWN],
            f"Dashed: no correlation. {_CAPTION}" + (f" The strongest {_DRAWN} of {len(acts)}." if len(acts) > _DRAWN else ""),
            Axis(tick=format_signed, low=-1, high=1), 0.0,
        )  # fmt: skip
        for arm in found:
            if arm.value.tests:
                yield _table(arm.value, arm.arm)


_DRAWN = 12
_CAPTION = "p is adjusted for all tests of this questionnaire (Holm)."


class _Answered:
    """The ratings of one role and item, each with what its conversation was."""

    def __init__(self) -> None:
        self.ratings, self.scenarios, self.success = array("d"), array("q"), array("b")
        self.acts = {act: array("I") for act in ACTS}

    def tests(self) -> dict[str, RankTest]:
        """Return the tests that can be made, by what is tested: "success", or an act."""
        ratings, scenarios, success = map(np.array, (self.ratings, self.scenarios, self.success))
        yes, no = success == 1, success == 0
        made = {"success": superiority(ratings[yes], ratings[no], scenarios[yes], scenarios[no])}
        made |= {act: spearman(ratings, np.array(counts), scenarios) for act, counts in self.acts.items()}
        return {name: test for name, test in made.items() if test is not None}


def _format_test(found: Tested | None) -> str:
    """Return a test as `0.71 [0.64, 0.77], p = 0.003` with the adjusted p; "" for None."""
    if found is None:
        return ""
    one = found.test
    span = "" if one.low is None or one.high is None else f" [{one.low:.2f}, {one.high:.2f}]"
    return f"{one.value:.2f}{span}, p {_p(found.p_holm)}"


def _line(label: str, said: str) -> str:
    """Return a row with more room for its label."""
    return f"  {shorten(label, 40):<41}{said}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _note(value: Ratings) -> str:
    few = [one for one in value.ratings if any(t.test.scenarios < t.test.n for t in one.acts.values())]
    more = " p takes conversations of one scenario as independent, which they are not." if few else ""
    return f"p is adjusted for all {quantity(value.tests, 'test')} (Holm).{more}"


def _interval(label: str, arm: str, found: Tested, colour: str) -> Interval:
    one = found.test
    said = f"{number(one.value, 2)}, p {_p(found.p_holm)}"
    return Interval(label_with_arm(label, arm), one.value, one.low, one.high, said, colour)


def _table(value: Ratings, arm: str) -> Table:
    rows = [
        (f"{one.role}: {one.item}", name, _format_test(found), "exact" if found.test.exact else "approximate",
        number(found.test.n))
        for one in value.ratings
        for name, found in (*([("success", one.success)] if one.success else []), *one.acts.items())
    ]  # fmt: skip
    title = label_with_arm("All tests of the questionnaire", arm)
    return Table(
        ("", "with", "value (95% interval), p (Holm)", "p is", "ratings"), tuple(rows), title, "plain"
    )


MEASURE = RatingsMeasure()
