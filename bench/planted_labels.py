"""Measured and predicted figures of three simulated annotators with planted confusions.

python -m bench annotate prints, among others, how often the predictions lie within their intervals.

Given the true labels of n units, the answers of the annotators are drawn independently: annotator a answers y
for a unit whose truth is t with chance C_a[t, y]. So the expected table of (truth, answers) is known, and
every figure is a smooth function of the table. Predictions are the figures of the expected table, written
here from their definitions, without edgen's code. Their standard errors are by the delta method, for
multinomials that are drawn separately for each truth. Truths are taken as they come: about even among the
labels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.measure import ROOT
from edgen.config.label_set import find_label_set, find_majority
from edgen.core.digest import hash64
from edgen.core.values import Address, Turn
from edgen.planning.allowed_files import allow_all_files
from edgen.planning.load import load_template
from edgen.prompting import Prompt
from edgen.protocols.base import Rules
from edgen.protocols.labelled_units import LabellingTask
from edgen.protocols.labelling import label_units, make_labelling_template
from edgen.protocols.labelling_simulated import find_true_labels
from edgen.simulator.text import respond
from edgen.space import load_space
from edgen.stats.annotators import AgreementCounts
from edgen.stats.label_figures import LabelCounts

Floats = NDArray[np.float64]
SEEDS = 20
_ROUNDING = 2e-6  # printed figures have six digits
SURE = 1.959964  # standard errors on either side of a 95% interval
SPACE = load_space(ROOT / "preference_space" / "education_dialogue.yaml")
LABELS = find_label_set("teacher_moves")
# How often each annotator confuses labels: one blurs two labels both ways, one overuses a label, one guesses.
CONFUSIONS: dict[str, dict[str, dict[str, float]]] = {
    "blurring": {"Focus": {"Probing": 0.3}, "Probing": {"Focus": 0.2}, "Telling": {"Generic": 0.05}},
    "lenient": {name: {"Generic": 0.25} for name in ("Focus", "Probing", "Telling")},
    "guessing": {"*": {"*": 0.36}},
}

Conversation = Sequence[Turn]


class Figure(NamedTuple):
    """A measured figure and its prediction.

    The measured value comes with the interval that edgen reports, if it reports one. The predicted value
    comes with the standard error of a measurement.
    """

    name: str
    measured: float
    reported: tuple[float, float] | None
    predicted: float
    error: float

    @property
    def near(self) -> bool:
        """True if the measured value lies in the predicted 95% interval."""
        return abs(self.measured - self.predicted) <= SURE * self.error + _ROUNDING

    @property
    def covered(self) -> bool | None:
        """True if the reported interval contains the predicted value; None without an interval."""
        if self.reported is None:
            return None
        low, high = self.reported
        return low - _ROUNDING <= self.predicted <= high + _ROUNDING


def label_planted(conversations: Sequence[Conversation], seed: int, *, together: bool) -> Iterator[Any]:
    """Yield (conversation's number, true label, answer of each annotator) of every unit.

    The annotators are asked as in a run: through the protocol, the template and the simulator.
    """
    asking = LabellingTask(labels=LABELS, together=together)
    prompt = load_template(
        make_labelling_template(None, "", "annotator", (LABELS,)), allow_all_files(), SPACE
    )
    for number, turns in enumerate(conversations):
        said = {name: _answers(asking, prompt, name, number, turns, seed) for name in CONFUSIONS}
        for place in asking.list_units(turns):
            assert place is not None
            (true,) = find_true_labels(turns[place].role, turns[place].text, LABELS.names, several=False)
            yield number, true, {name: answers[place] for name, answers in said.items()}


def _answers(
    asking: LabellingTask, prompt: Prompt, annotator: str, number: int, turns: Conversation, seed: int
) -> dict[int, str]:
    """Return an annotator's label of each unit of a conversation."""
    rules = Rules(asks=1, seed=hash64(f"annotator/{seed}/{annotator}") >> 1)
    found = {}
    for units in asking.group_units(turns):
        address = Address(number, f"r0@{units[0]}")
        protocol = label_units(asking.select_content(turns, units), address, prompt, rules, "annotator")
        request = next(protocol)
        reply = respond(
            request.messages, seed=request.seed, protocol=request.protocol, confusion=CONFUSIONS[annotator]
        )
        try:
            protocol.send(reply)
        except StopIteration as end:
            for unit, (label,) in zip(units, end.value, strict=True):
                assert unit is not None
                found[unit] = label
    return found


def figures(units: Iterator[Any]) -> list[Figure]:
    """Return every measured figure of a layer of three annotators, with its prediction."""
    agreement, right, truths, n = AgreementCounts(), 0, dict.fromkeys(LABELS.names, 0), 0
    counts = {name: LabelCounts() for name in CONFUSIONS}
    for cluster, true, said in units:
        n += 1
        truths[true] += 1
        agreement.add({name: (label,) for name, label in said.items()}, cluster)
        for name, label in said.items():
            counts[name].add(cluster, (true,), (label,))
        right += find_majority([(label,) for label in said.values()], LABELS)[0] == (true,)
    measured: dict[str, tuple[float, tuple[float, float] | None]] = {"majority is right": (right / n, None)}
    found = agreement.result()
    assert found.alpha is not None
    measured["alpha"] = (found.alpha, found.alpha_interval)
    for pair in found.between:
        assert pair.kappa is not None
        measured[f"kappa of {' and '.join(sorted(pair.annotators))}"] = (pair.kappa, pair.kappa_interval)
    for name, count in counts.items():
        for label, scores in count.figures().labels.items():
            for what in ("precision", "recall", "f1", "bias"):
                one = getattr(scores, what)
                span = None if one.low is None else (one.low, one.high)
                measured[f"{what} of {label} by {name}"] = (one.value, span)
    predicted = predict(truths)
    return [Figure(name, *measured[name], *predicted[name]) for name in predicted]


def chances(confusion: Mapping[str, Mapping[str, float]]) -> Floats:
    """Return C[truth, answer] of a backend's `confusion`, by its definition."""
    names = LABELS.names
    table = np.zeros((len(names), len(names)))
    for row, true in enumerate(names):
        for given, share in confusion.get(true, confusion.get("*", {})).items():
            others = [other for other in names if other != true] if given == "*" else [given]
            for other in others:
                table[row, names.index(other)] += share / len(others)
        table[row, row] += 1 - table[row].sum()
    return table


def predict(truths: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Return (value, standard error) of each figure, for units with these numbers of each true label."""
    n = sum(truths.values())
    shares = np.array([truths[name] / n for name in LABELS.names])
    a, b, c = (chances(confusion) for confusion in CONFUSIONS.values())
    given = np.einsum("ti,tj,tk->tijk", a, b, c)  # chances of the three answers, by truth
    expected = shares[:, None, None, None] * given
    step = 1e-6
    steps = np.eye(expected.size).reshape(-1, *expected.shape) * step
    values = {name: float(one[0]) for name, one in _figures_of(expected[None]).items()}
    up, down = _figures_of(expected + steps), _figures_of(expected - steps)
    found = {}
    for name, value in values.items():
        slope = ((up[name] - down[name]) / (2 * step)).reshape(expected.shape)
        mean = (given * slope).sum(axis=(1, 2, 3))
        spread = (given * slope**2).sum(axis=(1, 2, 3)) - mean**2
        found[name] = (value, math.sqrt(float((shares * spread).sum()) / n))
    return found


def _figures_of(tables: Floats) -> dict[str, Floats]:
    """Return the figures of tables (draws, truth, answers of the three) of shares, by their definitions."""
    names, total = LABELS.names, tables.sum(axis=(1, 2, 3, 4))
    tables = tables / total[:, None, None, None, None]
    annotators = [*CONFUSIONS]
    marginals = {  # (draws, label)
        one: tables.sum(axis=tuple(axis for axis in (1, 2, 3, 4) if axis != place + 2))
        for place, one in enumerate(annotators)
    }
    found: dict[str, Floats] = {}
    observed = []
    for (i, one), (j, other) in itertools.combinations(enumerate(annotators), 2):
        rest = ({2, 3, 4} - {i + 2, j + 2}).pop()
        joint = tables.sum(axis=(1, rest))
        alike = np.trace(joint, axis1=1, axis2=2)
        chance = (marginals[one] * marginals[other]).sum(axis=1)
        found[f"kappa of {' and '.join(sorted((one, other)))}"] = (alike - chance) / (1 - chance)
        observed.append(alike)
    pooled = sum(marginals.values()) / len(annotators)
    apart = 1 - sum(observed) / len(observed)
    found["alpha"] = 1 - apart / (1 - (pooled**2).sum(axis=1))  # for many units
    right = np.zeros(len(tables))
    for t, i, j, k in itertools.product(range(len(names)), repeat=4):
        if (i == t) + (j == t) + (k == t) >= 2:
            right += tables[:, t, i, j, k]
    found["majority is right"] = right
    truth = tables.sum(axis=(2, 3, 4))
    for place, one in enumerate(annotators):
        both = tables.sum(
            axis=tuple(axis for axis in (2, 3, 4) if axis != place + 2)
        )  # (draws, truth, answer)
        for at, label in enumerate(names):
            hit, gave, gold = both[:, at, at], both[:, :, at].sum(axis=1), truth[:, at]
            found[f"precision of {label} by {one}"] = hit / gave
            found[f"recall of {label} by {one}"] = hit / gold
            found[f"f1 of {label} by {one}"] = 2 * hit / (gave + gold)
            found[f"bias of {label} by {one}"] = gave - gold
    return found


def repeat(
    conversations: Sequence[Conversation], *, together: bool, seeds: int = SEEDS
) -> list[list[Figure]]:
    """Return the figures of each seed."""
    return [figures(label_planted(conversations, seed, together=together)) for seed in range(seeds)]
