"""distinct-n, growth and self-BLEU against a direct computation of their definitions."""

from __future__ import annotations

import random
import resource
import signal
import tempfile
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.errors import StoppedError
from edgen.core.values import Turn
from edgen.evaluation.measures.diversity import BLOCK_WORDS, Diversity, DiversityCount, compute_distinct_share
from edgen.evaluation.measures.duplicates import DuplicatesCount
from edgen.evaluation.sample import Sample, cut
from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.distinct_counter import DistinctCounter
from edgen.evaluation.texts.self_bleu import SelfBleuSample, compute_self_bleu
from edgen.reading.detect import words
from tests.dose import dose
from tests.evaluation.said import lesson
from tests.late import Late

bleu_score = Late("nltk.translate.bleu_score")

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=9), max_size=6)


def found(*samples: Sample) -> Diversity:
    corpus = Corpus()
    measure = DiversityCount(corpus)
    for sample in samples:
        said = cut(sample.turns)
        corpus.add(said)
        measure.see(sample, said)
    return measure.result()


def talks(count: int, length: int, vocabulary: int, seed: int = 1) -> list[Sample]:
    draw = random.Random(seed)
    texts = [" ".join(f"w{draw.randrange(vocabulary)}" for _ in range(length)) for _ in range(count)]
    return [lesson(f"T {text[: len(text) // 2]}", f"S {text[len(text) // 2 :]}") for text in texts]


def grams(texts: list[list[str]], n: int) -> list[tuple[str, ...]]:
    return [tuple(text[i : i + n]) for text in texts for i in range(len(text) - n + 1)]


def test_distinct_by_hand() -> None:
    result = found(lesson("T a b a", "S b"), lesson("T b a"))
    # a b a b | b a: 2 of 6 words; ab ba ab ba: 2 of 4 pairs, none across the end of a conversation
    assert result.distinct == {"1": 2 / 6, "2": 2 / 4, "3": 1.0}
    assert (result.tokens, result.types) == (6, 2)
    assert result.distinct_in_blocks == {}
    assert result.heaps_k is None


@given(TEXTS, st.sampled_from([1, 2, 3]))
def test_distinct_is_what_a_set_counts(texts: list[list[str]], n: int) -> None:
    every = grams(texts, n)
    assert compute_distinct_share(texts, n) == (len(set(every)) / len(every) if every else None)


def test_blocks_and_growth_are_what_slices_give() -> None:
    samples = talks(60, 97, 300)
    result = found(*samples)
    flat = [(word, place) for place, s in enumerate(samples) for turn in cut(s.turns) for word in turn]
    means = []
    for start in range(0, len(flat) - BLOCK_WORDS + 1, BLOCK_WORDS):
        block = flat[start : start + BLOCK_WORDS]
        pairs = [(a[0], b[0]) for a, b in pairwise(block) if a[1] == b[1]]
        means.append(len(set(pairs)) / len(pairs))
    assert result.distinct_in_blocks["2"] == pytest.approx(sum(means) / len(means))
    for point in result.growth:
        assert point.types == len({word for word, _ in flat[: point.tokens]})
    assert result.growth[-1].tokens == result.tokens == len(flat)


@settings(max_examples=dose(10, 60), deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=40), max_size=30), st.integers(1, 50))
def test_words_that_wait_in_a_file_are_those_that_were_told(texts: list[list[str]], chunk: int) -> None:
    corpus, whole = Corpus(chunk), Corpus()
    for text in texts:
        corpus.add([text[:3], text[3:]])
        whole.add([text])
    assert len(corpus) == len(texts)
    assert (corpus.tokens, corpus.types) == (whole.tokens, whole.types)
    assert [corpus.read_text(i).tolist() for i in range(len(texts))] == [
        whole.read_text(i).tolist() for i in range(len(texts))
    ]
    seen = []
    for part in corpus.iterate_chunks():
        assert part.first == len(seen)
        assert len(part.ids) < chunk + 40
        seen += [ids.tolist() for ids in np.split(part.ids, part.ends[:-1])]
    assert seen == [whole.read_text(i).tolist() for i in range(len(texts))]


def test_figures_are_the_same_in_many_chunks_as_in_one() -> None:
    samples = talks(80, 97, 300)
    results = []
    for chunk in (700, 1 << 20):
        corpus = Corpus(chunk)
        measure, alike = DiversityCount(corpus), DuplicatesCount(corpus)
        for one in [*samples, *samples[:3]]:
            said = cut(one.turns)
            corpus.add(said)
            measure.see(one, said)
            alike.see(one, said)
        results.append((measure.result(), alike.result()))
    assert results[0] == results[1]
    assert results[0][1].near == 6
    assert results[0][0].distinct_error == 0


@pytest.mark.only_long
def test_memory_grows_by_little_a_conversation() -> None:
    """Words, n-grams and shingles of 300 words would take thousands of bytes per conversation."""

    def peak(count: int) -> int:
        draw, corpus = random.Random(count), Corpus(4000)
        measure, alike = DiversityCount(corpus), DuplicatesCount(corpus)
        tracemalloc.start()
        try:
            for index in range(count):
                said = [draw.choices("abcdefghij", k=300)]
                corpus.add(said)
                measure.see(lesson(index=index), said)
                alike.see(lesson(index=index), said)
            measure.result()
            alike.result()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(220)  # data loaded once, and the sample of self-BLEU
    few, many = peak(300), peak(1200)
    assert (many - few) / 900 < 1000


@given(st.lists(st.lists(st.integers(0, 2**64 - 2), max_size=30), max_size=10))
def test_few_different_numbers_are_counted(parts: list[list[int]]) -> None:
    counted = DistinctCounter()
    for part in parts:
        counted.add(np.array(part, dtype=np.uint64))
    assert (counted.count, counted.error) == (len({number for part in parts for number in part}), 0.0)


@pytest.mark.parametrize("dense", [True, False])
def test_many_different_numbers_are_estimated_as_closely_as_is_said(dense: bool) -> None:
    """Consecutive numbers, and random ones, each twice, are estimated within the stated error."""
    rng, real, wrong = np.random.default_rng(5), 200_000, []
    for round_ in range(8):
        counted = DistinctCounter(most=2000)
        numbers = np.arange(real, dtype=np.uint64) + np.uint64(round_ * real)
        if not dense:
            numbers = rng.integers(0, 2**63, real).astype(np.uint64)
        for part in np.split(np.concatenate((numbers, numbers[::-1])), 40):
            counted.add(part)
            assert len(counted._table) <= 2000
        wrong.append(counted.count / real - 1)
        assert counted.error == pytest.approx(1.2 / 2000**0.5)
    assert max(map(abs, wrong)) < 4 * counted.error
    assert abs(sum(wrong) / len(wrong)) < 2 * counted.error


def test_what_is_measured_leaves_nothing_behind_and_says_where_room_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    corpus = Corpus(10)
    for _ in range(20):
        corpus.add([["a", "b", "c"]])
    assert list(tmp_path.iterdir()) == []
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
        with pytest.raises(StoppedError, match="no room left for temporary files"):
            corpus.add([["a", "b", "c"] * 100])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_blocks_do_not_fall_with_size_and_the_whole_does() -> None:
    small, large = found(*talks(40, 100, 100)), found(*talks(400, 100, 100))
    assert large.distinct["2"] < small.distinct["2"] / 2
    assert large.distinct_in_blocks["2"] == pytest.approx(small.distinct_in_blocks["2"], abs=0.01)


def test_a_vocabulary_that_grows_by_a_power_has_that_power() -> None:
    # every word is new with a chance of 1: types = tokens
    result = found(*[lesson("T " + " ".join(f"w{i}x{j}" for j in range(50)), index=i) for i in range(40)])
    assert result.heaps_beta == pytest.approx(1.0)
    assert result.heaps_k == pytest.approx(1.0)


@settings(max_examples=dose(10, 60), deadline=None)
@given(TEXTS)
def test_self_bleu_is_nltks(texts: list[list[str]]) -> None:
    smooth = bleu_score.SmoothingFunction().method1
    for i, value in enumerate(compute_self_bleu(texts)):
        others = texts[:i] + texts[i + 1 :]
        expected = bleu_score.sentence_bleu(others, texts[i], smoothing_function=smooth) if others else 0.0
        assert value == pytest.approx(float(expected), abs=1e-12)


def test_self_bleu_of_the_same_and_of_nothing_in_common() -> None:
    same = words("we could go by the river and see what the water does")
    assert compute_self_bleu([same, list(same)]) == pytest.approx([1.0, 1.0])
    assert compute_self_bleu([["a", "b"], ["c", "d"]]) == [0.0, 0.0]
    assert compute_self_bleu([]) == []


def test_the_sample_is_fair_and_the_same_each_time() -> None:
    hits = [0] * 40
    for start in range(400):
        sample = SelfBleuSample(10)
        sample._random.seed(start)  # another random stream each time
        for i in range(40):
            sample.add([[str(i)]])
        for (text,) in sample._kept:
            hits[int(text)] += 1
    assert all(60 < count < 140 for count in hits), hits
    texts = [s.turns for s in talks(300, 30, 50)]
    one, two = SelfBleuSample(), SelfBleuSample()
    for turns in texts:
        one.add(cut(turns))
        two.add(cut(turns))
    assert one.result() == two.result()
    assert one.result()[1] == 200


def test_signs_and_scripts_are_words() -> None:
    assert cut([Turn("Teacher", "Don’t say 2+2=5, 水!")]) == [["don't", "say", "2", "+", "2", "=", "5", "水"]]
