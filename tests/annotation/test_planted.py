"""Figures of three simulated annotators match the predictions from their planted confusions, over 20 seeds.

The predictions are from the confusion matrices alone, by definitions (`bench.planted_labels`). A correct
figure lies within its predicted 95% interval in 13 of 20 seeds or fewer with chance 3.4e-5. So with other
seeds, one of the 53 figures would fail with chance .002. Of the five figures over all labels together, one
would lie in its interval in 16 seeds or fewer with chance .08. The seeds here are fixed.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import edgen
from bench.planted_labels import CONFUSIONS, LABELS, SEEDS, chances, label_planted, predict, repeat
from edgen.core.values import Turn
from edgen.store.run_reader import RunReader

JOB = {
    "name": "t", "seed": 3, "conversations": 26, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip
OF_ALL_LABELS = ("alpha", "kappa", "majority")


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Turn, ...]]:
    run = edgen.generate(JOB, output=tmp_path_factory.mktemp("made") / "run", progress=False).folder
    with RunReader(run) as reader:
        return [one.candidate.turns for one in reader.conversations()]


@pytest.mark.only_long
@pytest.mark.integration
def test_figures_are_what_was_planted(conversations: list[tuple[Turn, ...]]) -> None:
    near, covered, told = Counter[str](), Counter[str](), set[str]()
    for seed in repeat(conversations, together=True):
        for figure in seed:
            near[figure.name] += figure.near
            if figure.covered is not None:
                told.add(figure.name)
                covered[figure.name] += figure.covered
    assert len(near) == 3 + 1 + 1 + 3 * 4 * len(LABELS.names)
    assert {name: count for name, count in near.items() if count < 14} == {}
    headlines = {name: count for name, count in near.items() if name.startswith(OF_ALL_LABELS)}
    assert len(headlines) == 5
    assert min(headlines.values()) >= 17, headlines
    assert 0.93 < sum(near.values()) / (SEEDS * len(near)) < 0.98
    # edgen's intervals are by a bootstrap of 26 conversations. An interval that contains the truth 92 times
    # in 100 does so in 12 of 20 seeds or fewer with chance 9e-5.
    assert told == near.keys() - {"majority is right"}
    assert {name: covered[name] for name in told if covered[name] < 13} == {}
    assert sum(covered.values()) / (SEEDS * len(told)) > 0.9


def test_the_predictions_are_those_of_the_matrices() -> None:
    """The predictions match values computed by hand."""
    blurring, lenient, guessing = (chances(one) for one in CONFUSIONS.values())
    assert np.allclose(np.diag(guessing), 0.64)
    assert np.allclose(guessing[~np.eye(4, dtype=bool)], 0.12)
    assert blurring[LABELS.names.index("Focus"), LABELS.names.index("Probing")] == 0.3
    predicted = predict(dict.fromkeys(LABELS.names, 50))
    right = [np.diag(one) for one in (blurring, lenient, guessing)]
    a, b, c = right
    assert math.isclose(predicted["majority is right"][0], np.mean(a * b + a * c + b * c - 2 * a * b * c))
    assert math.isclose(predicted["bias of Generic by lenient"][0], 0.25 * 0.75)
    value, error = predicted["recall of Focus by blurring"]
    assert math.isclose(value, 0.7)
    assert math.isclose(error, math.sqrt(0.7 * 0.3 / 50), rel_tol=1e-4)
    alike = np.mean((blurring * guessing).sum(axis=1))
    chance = (blurring.mean(axis=0) * guessing.mean(axis=0)).sum()
    assert math.isclose(predicted["kappa of blurring and guessing"][0], (alike - chance) / (1 - chance))


def test_turn_by_turn_and_together_it_is_the_same_annotator(conversations: list[tuple[Turn, ...]]) -> None:
    """The simulator errs equally often in both modes.

    The confusions are compared by a chi-squared test of two samples. Its limit lies four standard deviations
    above the mean, which has chance .001.
    """
    counts = {
        together: Counter(
            (name, true, label)
            for _, true, said in label_planted(conversations, 1, together=together)
            for name, label in said.items()
        )
        for together in (False, True)
    }
    one, all_at_once = counts[False], counts[True]
    assert one.total() == all_at_once.total()
    cells = {*one, *all_at_once}
    squared = sum((one[key] - all_at_once[key]) ** 2 / (one[key] + all_at_once[key]) for key in cells)
    free = len(cells) - len({key[:2] for key in cells})
    assert squared < free + 4 * math.sqrt(2 * free)
    assert any(one[key] != all_at_once[key] for key in cells), "they are drawn apart"
