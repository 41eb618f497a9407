"""Wrong candidates that are drawn, and candidates that BM25 finds."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgen.domains.retrieval.bm25 import K1, MOST, STOP_WORDS, B, Bm25
from edgen.domains.retrieval.candidates import CandidatePool, RightAnswers, make_key
from edgen.domains.retrieval.negatives import MOST_DRAWS, WrongAnswers, are_alike
from edgen.reading.detect import words
from tests.dose import dose


def draw(
    candidates: CandidatePool,
    among: Sequence[int],
    right: list[str],
    count: int,
    seed: str,
    lengths: range | None = None,
) -> list[str] | None:
    """Draw this number of wrong answers; return None if there are too few."""
    wrong = WrongAnswers(candidates, right, count, seed, lengths)
    wrong.draw(among)
    return wrong.texts if wrong.enough else None


SAID = st.lists(st.sampled_from(["one", "two", "three", "four", "five", "six"]), min_size=1, max_size=6).map(
    " ".join
)


@settings(max_examples=25, deadline=None)
@given(st.lists(SAID, min_size=1, max_size=30), SAID, st.integers(0, 5))
def test_nothing_drawn_is_right_or_doubled_or_short(texts: list[str], right: str, count: int) -> None:
    candidates = CandidatePool()
    for text in texts:
        candidates.add(text, "all")
    fit = {t for t in texts if len(t.split()) >= 3 and not are_alike(t, right)}
    wanted = (candidates, candidates.list_group("all"), [right], max(count, 1), "seed", range(3, 401))
    drawn = draw(*wanted)
    assert drawn == draw(*wanted)
    if drawn is None:
        assert len(fit) < max(count, 1)
    else:
        assert len(set(drawn)) == len(drawn) == max(count, 1)
        assert fit >= {*drawn}


def test_draws_are_uniform_and_end() -> None:
    candidates = CandidatePool()
    for number in range(20):
        candidates.add(f"this is number {number}", "all")
    found = Counter(
        text
        for seed in range(400)
        for text in draw(candidates, candidates.list_group("all"), [], 5, str(seed)) or ()
    )
    assert len(found) == 20
    # 100 expected each; chi-square with 19 degrees of freedom, p = 0.001
    assert sum((count - 100) ** 2 / 100 for count in found.values()) < 43.8
    assert draw(candidates, [0] * (MOST_DRAWS + 1), [], 2, "") is None


def test_a_text_has_one_number_and_is_in_its_groups_once() -> None:
    candidates = CandidatePool()
    hidden = candidates.add("only the test side says so", ("test", "a"))
    shown = candidates.add("the train side says this", "train", ("train", "a"))
    assert candidates.add("the train side says this", "train") == shown
    assert candidates.add("only the test side says so") == hidden
    assert list(candidates.list_group("train")) == list(candidates.list_group(("train", "a"))) == [shown]
    assert list(candidates.list_group(("test", "a"))) == [hidden]
    assert list(candidates.list_group("b")) == []


@settings(max_examples=dose(10, 60), deadline=None)
@given(SAID, SAID)
@example("one two three one two three", "one two three one two")  # different words, the same 3-grams
def test_texts_that_look_different_are_not_alike(a: str, b: str) -> None:
    candidates = CandidatePool()
    number = candidates.add(a, "all")
    drawn = draw(candidates, [number], [b], 1, "")
    assert drawn == (None if are_alike(a, b) else [a])


def test_all_that_follows_a_context_is_right() -> None:
    answers = RightAnswers()
    answers.add(make_key(["a", "bc"]), [1, 2])
    answers.add(make_key(["a", "bc"]), [2, 3])
    assert answers.of(make_key(["a", "bc"])) == (1, 2, 3)
    assert answers.of(make_key(["ab", "c"])) == ()


def _scores(texts: list[str], query: str) -> list[float]:
    """Return BM25 by its definition (Robertson and Zaragoza 2009), without the factor k1 + 1, like Lucene
    since 8.0."""
    split = [[word for word in words(text) if word not in STOP_WORDS] for text in texts]
    mean = sum(map(len, split)) / len(split)
    scores = [0.0] * len(texts)
    for word in (word for word in words(query) if word not in STOP_WORDS):
        n = sum(word in said for said in split)
        idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        for at, said in enumerate(split):
            f = said.count(word)
            scores[at] += idf * f / (f + K1 * (1 - B + B * len(said) / mean))
    return scores


def test_the_thousand_best_are_those_by_the_formula() -> None:
    rng = random.Random(3)
    vocabulary = [f"w{n}" for n in range(60)] * 8 + [f"rare{n}" for n in range(400)]
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(1, 12))) for _ in range(9000)]
    texts = list(dict.fromkeys(texts))
    index = Bm25(enumerate(texts))
    for query in ("w1 w2 the w3", "W7", "w9 w9 unknown", "rare1 w2 rare3", "rare4"):
        best = index.find_best(query)
        assert best is not None
        by_book = _scores(texts, query)
        assert len(best) == min(MOST, sum(score > 0 for score in by_book))
        lowest = sorted(by_book)[-len(best)]
        assert {int(n) for n in best} >= {at for at, score in enumerate(by_book) if score > lowest + 1e-5}
        assert all(by_book[n] >= lowest - 1e-5 for n in best)


@pytest.mark.parametrize("texts", [[], ["the of"], ["a cat sat"]])
def test_queries_without_words_and_empty_indexes(texts: list[str]) -> None:
    index = Bm25(enumerate(texts))
    assert index.find_best("the of and") is None
    found = index.find_best("a dog")
    assert found is not None
    assert len(found) == 0
