"""All measures together: on any sample, and the small ones against a plain computation."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.domains.education.family import EDUCATION
from edgen.evaluation.measures.balance import BalanceCount
from edgen.evaluation.measuring import (
    ArmMeasures,
    find_measures_of_other_families,
    list_measures,
    measure,
    render,
)
from edgen.evaluation.sample import DataSet, Sample
from edgen.stats.distributions import (
    MOST_BINS,
    summarize,
    summarize_counts,
    summarize_shares,
)
from tests.evaluation.said import count_of, lesson, measured
from tests.evaluation.said import samples as any_sample
from tests.measures_page import PAGE, measures_page
from tests.timing import takes_under


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    sample = draw(any_sample())
    return msgspec.structs.replace(
        sample,
        split=draw(st.sampled_from(["train", "test", None])),
        marker=draw(st.sampled_from(["suffix", "own_turn", "inside", "absent"])),
        ended_by=draw(st.sampled_from(["Teacher", "Student", None])),
        defects=tuple(draw(st.lists(st.sampled_from(["quote_comma", "stage_tag"]), max_size=2))),
    )


def measured_together(data: list[Sample], **options: Any) -> ArmMeasures:
    found = DataSet(name="any", samples=lambda: iter(data), family=EDUCATION, roles=EDUCATION.roles)
    return measure(found, **options)


NAMES = [one.name for one in list_measures() if one.name not in find_measures_of_other_families(EDUCATION)]
SHARES = {
    "share",
    "rate",
    "value",
    "low",
    "high",
    "survived",
    "evenness",
    "similarity",
    "self_bleu",
    "p_holm",
}


def values(thing: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of a result with its key."""
    if isinstance(thing, dict):
        for name, part in thing.items():
            yield from values(part, name)
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from values(part, key)
    elif isinstance(thing, int | float):
        yield key, thing


@settings(max_examples=25, deadline=None)
@given(st.lists(samples(), max_size=6))
@pytest.mark.integration
def test_nothing_raises_and_everything_is_in_range(data: list[Sample]) -> None:
    data = [
        msgspec.structs.replace(s, probability=None) if s.probability != s.probability else s for s in data
    ]
    quality = measured_together(data)
    plain = quality.as_json()
    for part in ("diversity", "duplicates", "leakage", "coverage", "leaks", "answers"):
        for key, number in values(plain[part]):
            assert math.isfinite(number)
            if key in SHARES:
                assert -1e-9 <= number <= 1 + 1e-9, (part, key, number)
    assert quality.overview.records == len(data)
    assert quality.values["coverage"].planned == quality.values["coverage"].accepted == len(data)
    assert all(isinstance(line, str) for line in render(quality))
    assert list(plain) == ["name", "sources", *NAMES, "definitions", "notes"]
    assert json.loads(msgspec.json.encode(plain)) == json.loads(json.dumps(plain))


@pytest.mark.only_long
def test_a_megabyte_is_linear() -> None:
    texts = [
        "word " * 200_000,
        '"' * 1_000_000,
        "a" * 1_000_000,
        "水" * 300_000,
        "can you tell me? " * 60_000,
    ]
    found = []
    samples = [lesson(f"T {text}", f"S {text}", index=i) for i, text in enumerate(texts)]
    assert takes_under(25, lambda: found.append(measured_together(samples)), tries=2)
    quality = found[-1]
    assert quality.values["lengths"].words.max is not None
    assert all(len(line) <= 80 for line in render(quality))


def test_lengths_and_balance_are_what_plain_lists_give() -> None:
    data = [lesson("T one two three", "S four"), lesson("S one", "T two", "S three four"), lesson("T a")]
    lengths, balance = measured(count_of("lengths"), *data), measured(BalanceCount(), *data)
    assert (lengths.turns.mean, lengths.words.mean) == (2.0, 3.0)
    assert lengths.turns.sd == pytest.approx(statistics.stdev([2, 3, 1]))
    teacher = lengths.words_per_turn["Teacher"]
    assert (teacher.n, teacher.mean, teacher.median) == (3, 5 / 3, 1.0)
    assert balance.teacher_words.mean == pytest.approx((3 / 4 + 1 / 4 + 1) / 3)
    assert balance.teacher_turns.mean == pytest.approx((1 / 2 + 1 / 3 + 1) / 3)
    assert balance.begins == {"Teacher": 2, "Student": 1}


@given(st.lists(st.integers(0, 100_000), max_size=50))
def test_bars_hold_every_number_once(data: list[int]) -> None:
    found = summarize_counts(Counter(data))
    assert sum(bar.count for bar in found.bins) == found.n == len(data)
    assert len(found.bins) <= MOST_BINS
    for bar in found.bins:
        assert bar.count == sum(bar.low <= value < bar.high for value in data)
    if data:
        assert found.median == statistics.median_low(data)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=80))
def test_how_often_each_number_came_is_all_that_is_needed(data: list[int]) -> None:
    plain, found = summarize(np.array(data, dtype=np.float64), ()), summarize_counts(Counter(data))
    quantiles = ("p5", "p25", "median", "p75", "p95", "min", "max", "n", "mean")
    assert [getattr(found, name) for name in quantiles] == [getattr(plain, name) for name in quantiles]
    assert found.sd == (None if plain.sd is None else pytest.approx(plain.sd))


@given(st.lists(st.floats(0, 1), max_size=50))
def test_shares_fall_into_twenty_bars(data: list[float]) -> None:
    found = summarize_shares(np.array(data))
    assert sum(bar.count for bar in found.bins) == found.n == len(data)
    assert len(found.bins) in (0, 20)


def test_edges_belong_to_the_upper_bar() -> None:
    assert [bar.count for bar in summarize_shares([0.0, 0.3, 0.7, 1.0], 10).bins] == [
        1,
        0,
        0,
        1,
        0,
        0,
        0,
        1,
        0,
        1,
    ]


def test_leakage_counts_groups_and_the_conversations_in_them() -> None:
    def at(index: int, topic: str, likes: str, split: str | None) -> Sample:
        return msgspec.structs.replace(lesson("T a", index=index, topic=topic, likes=likes), split=split)

    data = [
        at(0, "rivers", "a", "train"), at(1, "suns", "b", "train"), at(2, "rivers", "b", "test"),
        at(3, "rivers", "c", "test"), at(4, "moons", "a", "test"), at(5, "suns", "b", "test"), at(6, "x", "y", None),
    ]  # fmt: skip
    found = measured_together(data).values["leakage"]
    assert found.near_duplicates == 4  # all have the same text
    assert found.topic is not None
    assert (found.topic.test_groups, found.topic.shared_groups, found.topic.shared_conversations) == (3, 2, 3)
    assert found.persona is not None
    assert (found.persona.test_groups, found.persona.shared_groups, found.persona.share) == (3, 2, 0.75)
    assert found.topic_and_persona is not None
    assert (found.topic_and_persona.shared_groups, found.topic_and_persona.shared_conversations) == (1, 1)
    assert measured_together(data[:2]).values["leakage"].topic is None


def test_the_overview_counts_records() -> None:
    odd = msgspec.structs.replace(
        lesson("T a"),
        defects=("quote_comma", "stage_tag", "quote_comma"),
        marker="own_turn",
        ended_by="Student",
        simulated=True,
    )
    unread = {"no object": 2}
    found = measured(count_of("overview", unread=Counter(unread)), odd, odd, lesson("T b"))
    assert found.markers == {"suffix": 0, "own_turn": 2, "inside": 0, "absent": 1}
    assert found.defects == {"quote_comma": 2, "stage_tag": 2}
    assert (found.records, found.simulated, found.unread) == (3, 2, {"no object": 2})


def test_every_measure_is_defined_and_only_those_asked_for_are_told() -> None:
    quality = measured_together([lesson("T a b c", "S d")], only=["lengths"])
    assert quality.values["lengths"].turns.n == 1
    assert list(quality.values) == list(quality.definitions) == ["lengths"]


@pytest.mark.parametrize("name", NAMES)
def test_every_definition_has_its_source(name: str) -> None:
    """Every definition names a paper by its year, or states that it is the project's own."""
    (text,) = (one.definition for one in list_measures([name]))
    assert "edgen's own" in text or re.search(
        r"[A-Z]\w+(?: et al\.| and \w+)? \(?(?:18|19|20)\d\d\b", text
    ), text


@pytest.mark.parametrize("name", NAMES)
def test_each_measure_by_itself_finds_what_it_finds_among_all(name: str) -> None:
    data = [
        msgspec.structs.replace(lesson(f"T Do we know {i}?", "S Just tell me.", index=i), split=split)
        for i in range(6)
        for split in ("train", "test")
    ]
    alone, together = measured_together(data, only=[name]), measured_together(data)
    assert alone.values == {name: together.values[name]}


def test_what_stands_beside_hears_every_sample() -> None:
    class Ear:
        def __init__(self) -> None:
            self.heard: list[str] = []

        def see(self, sample: Sample, words: Any) -> None:
            self.heard.append(sample.id)

    ear = Ear()
    told: list[int] = []
    data = [lesson("T a", index=i) for i in range(1100)]
    measured_together(data, progress=told.append, observers=[ear])
    assert ear.heard == [sample.id for sample in data]
    assert told == [500, 1000, 1100]


def test_the_page_about_measures_is_as_they_are() -> None:
    assert PAGE.read_text("utf-8") == measures_page(), "make docs"
