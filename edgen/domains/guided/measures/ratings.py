"""Ratings of the questionnaire after guided conversations, and their correlation with success and with
dialogue acts.

Every test is one of many, so p-values are adjusted by Holm. Memory: a few numbers a conversation, role and
item.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from operator import attrgetter

import msgspec
import numpy as np

from edgen.domains.guided.events import ACTS, GuidedEvents, acts_of
from edgen.plugin import Histogram, Mean, Measure, OwnCount, Sample, Total, Words
from edgen.plugin.measures import SHARES, Aggregate, Axis, ByKey, Panel, TablePanel
from edgen.plugin.statistics import (
    SIGNIFICANT,
    Distribution,
    RankTest,
    holm,
    spearman,
    summarize_counts,
    superiority,
)
from edgen.plugin.texts import BRACKETS, format_interval, format_signed, number

MOST = 60  # roles and items in the report
MOST_RATING = 1000  # a higher rating counts as invalid
_CAPTION = "p is adjusted for all tests of this questionnaire (Holm)."
_NOTE = (
    "Higher after a success: 0.5 is no difference. Acts are shown where p is below 0.05. p is of the means of "
    "scenarios, adjusted for all {it:test} (Holm)."
)


class RatingTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test, and its p-value adjusted for all tests of these ratings."""

    test: RankTest
    p_holm: float

    @property
    def value(self) -> float:
        """The statistic."""
        return self.test.value

    @property
    def low(self) -> float | None:
        """The lower end of its interval; None without one."""
        return self.test.low

    @property
    def high(self) -> float | None:
        """The upper end of its interval; None without one."""
        return self.test.high

    @property
    def p(self) -> str:
        """The adjusted p-value as text."""
        return "p < 0.001" if self.p_holm < 0.001 else f"p = {self.p_holm:.3f}"

    @property
    def kind(self) -> str:
        """The computation of the p-value."""
        return "exact" if self.test.exact else "approximate"

    @property
    def brief(self) -> str:
        """The value and its adjusted p-value."""
        return f"{number(self.value, 2)}, {self.p}"

    def __str__(self) -> str:
        interval = format_interval(self.low, self.high, "{:.2f}".format, BRACKETS)
        return f"{self.value:.2f}{interval}, {self.p}"


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of a `role` to an `item`: its ratings. `success`: the chance that a rating after a success
    is above one after a failure (0.5: no difference). `acts`: the correlation of ratings with the number of
    acts of each type in the conversation."""

    role: str
    item: str
    ratings: Distribution
    success: RatingTest | None
    acts: dict[str, RatingTest]

    @property
    def about(self) -> str:
        """The role and the item."""
        return f"{self.role}: {self.item}"

    @property
    def significant(self) -> dict[str, RatingTest]:
        """The acts whose number correlates significantly with the rating."""
        return {act: found for act, found in self.acts.items() if found.p_holm < SIGNIFICANT}


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """Ratings of every item by every role, and the number of `tests`."""

    ratings: tuple[Rating, ...]
    tests: int

    @property
    def every_test(self) -> dict[str, RatingTest]:
        """All tests, by role, item and the other quantity."""
        return {
            f"{one.about}, {name}": found
            for one in self.ratings
            for name, found in (*([("success", one.success)] if one.success else []), *one.acts.items())
        }


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
        tests = {key: one.list_tests() for key, one in self._found.items()}
        places = [(key, name) for key, made in tests.items() for name in made]
        adjusted = holm([tests[key][name].p for key, name in places])
        tested: defaultdict[tuple[str, str], dict[str, RatingTest]] = defaultdict(dict)
        for (key, name), p in zip(places, adjusted, strict=True):
            tested[key][name] = RatingTest(test=tests[key][name], p_holm=p)
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


class RatingsMeasure(OwnCount, Measure[Ratings]):
    name = "ratings"
    definition = (
        "Ratings in the questionnaires after guided conversations, by role and item; the chance that a "
        "rating after a success exceeds one after a failure, a tie counting half (Mann and Whitney 1947), "
        "and the rank correlation with the number of acts of each type (Spearman 1904): the tests of "
        "CRWIZ's authors (Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020). p is of the means of scenarios, "
        "exact for few; intervals are by scenario. All p are adjusted for their number (Holm 1979)."
    )
    order = 20
    counts = RatingsCount
    section = "task"
    nothing = "No record has answers to a questionnaire."
    aggregates = (
        ByKey(
            "ratings",
            key=attrgetter("about"),
            each=(
                Histogram("ratings", label="{key}", title="{key}"),
                Mean(
                    "success",
                    label="  after a success",
                    says="higher {it}",
                    title="{key}",
                    drawn="{it.brief}",
                    if_any=True,
                ),
                Mean("acts", title="{key}", drawn="{it.brief}"),
                Aggregate("significant", label="  and acts: {key}", says="rho {it}", if_any=True),
            ),
        ),
        Total("tests", note=_NOTE, if_any=True),
        Aggregate("every_test"),
    )
    panels = (
        Panel(
            "ratings", "Ratings", ("ratings.ratings",), "Look for raters who give every item the same rating.",
            Axis(whole=True),
        ),
        Panel(
            "ratings-success", "Chance that a rating is higher after a success", ("ratings.success",),
            f"Dashed: no difference. {_CAPTION}", SHARES._replace(tick=lambda v: f"{v:g}"), reference=0.5,
        ),
        Panel(
            "ratings-acts", "Ratings and the number of acts (Spearman's rho)", ("ratings.acts",),
            f"Dashed: no correlation. {_CAPTION}", Axis(tick=format_signed, low=-1, high=1), reference=0.0, most=12,
        ),
        TablePanel(
            "All tests of the questionnaire", "every_test",
            ("", "value (95% interval), p (Holm)", "p is", "ratings"), ("{key}", "{it}", "{it.kind}", "{it.test.n:,}"),
        ),
    )  # fmt: skip


class _Answered:
    """The ratings of one role and item, each with facts about its conversation."""

    def __init__(self) -> None:
        self.ratings, self.scenarios, self.success = array("d"), array("q"), array("b")
        self.acts = {act: array("I") for act in ACTS}

    def list_tests(self) -> dict[str, RankTest]:
        """Return the possible tests by name: "success", or an act."""
        ratings, scenarios, success = map(np.array, (self.ratings, self.scenarios, self.success))
        yes, no = success == 1, success == 0
        made = {"success": superiority(ratings[yes], ratings[no], scenarios[yes], scenarios[no])}
        made |= {act: spearman(ratings, np.array(counts), scenarios) for act, counts in self.acts.items()}
        return {name: test for name, test in made.items() if test is not None}


MEASURE = RatingsMeasure()
