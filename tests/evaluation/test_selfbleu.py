"""Self-BLEU is bounded in memory for texts of any length."""

from __future__ import annotations

import random
import tracemalloc

from edgen.evaluation.texts.self_bleu import MOST_WORDS, SelfBleuSample, compute_self_bleu


def test_empty_texts_and_lone_ones_have_none() -> None:
    assert compute_self_bleu([]) == []
    assert compute_self_bleu([["a"]]) == [0.0]
    assert compute_self_bleu([[], []]) == [0.0, 0.0]
    assert compute_self_bleu([["a"], [], ["a"]])[1] == 0.0


def test_long_texts_are_cut_and_memory_is_bounded() -> None:
    draw = random.Random(3)
    words = [str(draw.randrange(5000)) for _ in range(MOST_WORDS)]
    sample = SelfBleuSample(20)
    tracemalloc.start()
    for number in range(20):
        sample.add([words[number:], ["more"] * 50_000])
    value, count = sample.result()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20
    assert value is not None
    assert value > 0.9
    assert peak < 150 * MOST_WORDS * 20
