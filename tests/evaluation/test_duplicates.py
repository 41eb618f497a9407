"""Near-duplicates: exactly the planted ones are found, within a side and across, compared with all pairs."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from array import array
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.errors import RunError
from edgen.evaluation.measures.duplicates import Duplicates, DuplicatesCount
from edgen.evaluation.sample import Sample, cut
from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.near_duplicates import find_matches, walk
from edgen.evaluation.texts.shingles import CorpusShingles, GatheredShingles, ShinglePart
from tests.dose import dose
from tests.evaluation.said import lesson
from tests.timing import takes_under


def found(*samples: Sample) -> Duplicates:
    corpus = Corpus()
    measure = DuplicatesCount(corpus)
    for sample in samples:
        said = cut(sample.turns)
        corpus.add(said)
        measure.see(sample, said)
    return measure.result()


def talk(draw: random.Random, length: int = 200) -> list[str]:
    return [f"w{draw.randrange(2000)}" for _ in range(length)]


def sample(text: list[str], index: int, split: str | None = None) -> Sample:
    return msgspec.structs.replace(lesson(f"T {' '.join(text)}", index=index), split=split)


def changed(text: list[str], every: int) -> list[str]:
    """Return the words with each `every`-th one changed, from the `every`-th on."""
    return [f"other{i}" if i % every == every - 1 else word for i, word in enumerate(text)]


def shingles(text: list[str]) -> set[tuple[str, ...]]:
    return {tuple(text[i : i + 3]) for i in range(max(len(text) - 2, 1))}


def jaccard(a: list[str], b: list[str]) -> float:
    one, two = shingles(a), shingles(b)
    return len(one & two) / len(one | two)


def near(texts: list[list[str]]) -> set[int]:
    """Return the places of texts with a Jaccard index of 0.8 to another one, all pairs compared."""
    pairs = itertools.combinations(enumerate(map(shingles, texts)), 2)
    alike_ = [(i, j) for (i, one), (j, two) in pairs if len(one & two) >= 0.8 * len(one | two)]
    return {place for pair in alike_ for place in pair}


def alike(texts: Sequence[Sequence[str]]) -> set[int]:
    """Return the places of the texts that have a near-duplicate."""
    corpus = Corpus()
    for text in texts:
        corpus.add([text])
    found = find_matches(CorpusShingles(corpus), np.zeros(len(texts), dtype=np.int8))
    return {place for match in found for place in (match.a, match.b)}


def test_planted_ones_are_found_by_side() -> None:
    draw = random.Random(3)
    texts = [talk(draw) for _ in range(40)]
    data = [sample(text, i, "train" if i < 30 else "test") for i, text in enumerate(texts)]
    data += [
        sample(changed(texts[0], 60), 40, "train"),  # within train
        sample(changed(texts[1], 60), 41, "test"),  # across
        sample(texts[35], 42, "test"),  # within test, exactly
        sample(changed(texts[2], 12), 43, "test"),  # too far away
    ]
    result = found(*data)
    assert jaccard(texts[0], changed(texts[0], 60)) > 0.8 > jaccard(texts[2], changed(texts[2], 12))
    assert result.exact == 1
    assert result.near == 6
    assert result.within == {"train": 2, "test": 2}
    assert result.across == 1
    assert {(pair.a, pair.b) for pair in result.examples} == {
        ("lesson-0", "lesson-40"), ("lesson-1", "lesson-41"), ("lesson-35", "lesson-42"),
    }  # fmt: skip
    assert result.examples[0].similarity == 1.0
    assert result.examples[1].similarity == pytest.approx(jaccard(texts[0], changed(texts[0], 60)))
    assert result.share is not None
    assert (result.share.value, result.share.n) == (6 / 44, 44)
    # the conversations are not independent draws of being near-duplicates
    assert (result.share.low, result.share.high) == (None, None)


def test_across_counts_the_test_side() -> None:
    draw = random.Random(4)
    one, other = talk(draw), talk(draw)
    data = [
        sample(one, 0, "train"), sample(changed(one, 60), 1, "test"), sample(changed(one, 70), 2, "test"),
        sample(changed(one, 80), 3, "test"), sample(other, 4, "train"), sample(other, 5, "train"), sample(other, 6, "test"),
    ]  # fmt: skip
    assert found(*data).across == 4
    assert (
        found(
            *[msgspec.structs.replace(one, split="train" if one.split == "test" else "test") for one in data]
        ).across
        == 3
    )


def test_every_pair_above_the_threshold_is_found_and_none_below() -> None:
    draw = random.Random(5)
    texts = []
    for _ in range(60):
        base = talk(draw, 120)
        texts += [base, changed(base, draw.choice([12, 20, 25, 30, 40, 60, 90]))]
    expected = near(texts)
    assert 20 < len(expected) < 100
    assert alike(texts) == expected


@settings(max_examples=dose(10, 60), deadline=None)
@given(st.lists(st.lists(st.sampled_from("ab"), max_size=5), max_size=8))
def test_short_texts(texts: list[list[str]]) -> None:
    expected = {
        i
        for i, one in enumerate(texts)
        for j, other in enumerate(texts)
        if i != j and one and other and jaccard(one, other) >= 0.8
    }
    assert alike(texts) == expected


def test_what_holds_no_word_is_the_same_to_the_letter_or_not_at_all() -> None:
    result = found(lesson("T 🙂"), lesson("T 🙂"), lesson("T 🙃"), lesson())
    assert (result.exact, result.near) == (1, 2)
    assert found().share is None


def test_the_roles_count_to_the_letter_but_not_nearly() -> None:
    result = found(lesson("T a b c d", "S e"), lesson("S a b c d", "T e"))
    assert (result.exact, result.near) == (0, 2)


@pytest.mark.integration
def test_many_that_are_all_alike_take_little_memory() -> None:
    base = talk(random.Random(7), 60)
    corpus = Corpus()
    for i in range(1500):
        corpus.add([[*base, f"n{i}"]])
    sides = np.zeros(1500, dtype=np.int8)
    alike([["x"], ["x"]])  # data loaded once
    tracemalloc.start()
    try:
        find_matches(CorpusShingles(corpus), sides)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000 * 1500  # bytes; the pairs of all bands together take three times as many


@pytest.mark.parametrize("seed", range(5))
def test_those_a_little_too_far_hide_no_nearer_one(seed: int) -> None:
    """Six texts are a little below 0.8 to each other, and one has a twin a little above."""
    draw = random.Random(seed)
    texts = []
    for _ in range(6):
        base = talk(draw, 200)
        for _ in range(6):
            version = list(base)
            for place in draw.sample(range(200), 4):
                version[place] = f"x{draw.randrange(10**9)}"
            texts.append(version)
        texts.append(changed(texts[-1], 28))
    expected = near(texts)
    assert len(expected) >= 12
    assert alike(texts) == expected


def test_many_that_are_all_alike_cost_no_square() -> None:
    draw = random.Random(7)
    base = talk(draw, 60)
    corpus = Corpus()
    for i in range(4000):
        corpus.add([[*base, f"n{i}"]])
    sides = np.array([i % 20 == 0 for i in range(4000)], dtype=np.int8)
    found = []
    assert takes_under(8, lambda: found.append(find_matches(CorpusShingles(corpus), sides)), tries=2)
    alike = found[-1]
    own = {place for m in alike if sides[m.a] == sides[m.b] for place in (m.a, m.b)}
    across = {place for m in alike if sides[m.a] != sides[m.b] for place in (m.a, m.b)}
    assert len(own) == 4000
    assert {i for i in range(4000) if sides[i]} <= across


def kept(texts: Sequence[Sequence[str]]) -> list[int]:
    """Return the places of the texts that are near-duplicates of no kept earlier one."""
    corpus = Corpus()
    for text in texts:
        corpus.add([text])
    found: list[int] = []

    def keep(place: int, near: bool) -> bool:
        if not near:
            found.append(place)
        return not near

    walk(corpus, keep)
    return found


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_in_order_each_is_held_against_those_that_are_kept(seed: int, count: int) -> None:
    """The result equals that of comparing all pairs in order. Pairs close to the limit are not made."""
    draw = random.Random(seed)
    texts: list[list[str]] = []
    for _ in range(count):
        one = draw.choice(texts) if texts and draw.random() < 0.6 else talk(draw, draw.choice([3, 60]))
        texts.append(changed(one, 55) if draw.random() < 0.5 else one)
    expected: list[int] = []
    for place, text in enumerate(texts):
        alike_ = [jaccard(texts[other], text) for other in expected]
        if any(0.7 < one < 0.9 for one in alike_):
            return
        if not any(one >= 0.8 for one in alike_):
            expected.append(place)
    assert kept(texts) == expected


def test_of_very_many_that_are_alike_the_first_is_kept() -> None:
    draw = random.Random(1)
    one, other = talk(draw, 80), talk(draw, 80)
    assert kept([one, other] * 300 + [[]] * 3) == [0, 1, 600, 601, 602]
    assert kept([]) == []


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_texts_cut_in_ranges_give_the_same_pairs(data: st.DataObject) -> None:
    draw = random.Random(data.draw(st.integers(0, 999)))
    texts = [talk(draw, draw.randrange(60)) for _ in range(40)]
    texts += [changed(text, draw.choice([20, 30, 50])) for text in texts]
    draw.shuffle(texts)
    sides = np.array([draw.randrange(2) for _ in texts], dtype=np.int8)
    whole, gathered = Corpus(), GatheredShingles()
    start = 0
    while start < len(texts):
        end = start + data.draw(st.integers(1, 30))
        part = Corpus(chunk=100)
        for text in texts[start:end]:
            whole.add([text])
            part.add([text])
        digests = array("Q", map(len, texts[start:end]))
        gathered.add(ShinglePart.of(part, digests))
        start = end
    pairs = find_matches(CorpusShingles(whole), sides)
    assert find_matches(gathered, sides) == pairs
    assert len(pairs) > 5
    assert gathered.list_digests(len(texts)).tolist() == [*map(len, texts)]
    with pytest.raises(RunError, match="changed while it was measured"):
        gathered.list_digests(len(texts) + 1)
