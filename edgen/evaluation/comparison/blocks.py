"""Variety of an arm's conversations, in blocks with the same number of words in every arm.

With more text, the share of distinct n-grams falls and self-BLEU rises. So arms are compared on blocks of the
same size (in the spirit of the mean segmental type-token ratio: Johnson 1944, Psychological Monographs 56).
Each block is a cluster: blocks are independent of each other, conversations in a block are not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgen.evaluation.comparison.arms import ArmSums, Array, list_conversation_words
from edgen.evaluation.comparison.metrics import BLOCK, BLOCK_METRICS
from edgen.evaluation.measures.diversity import ORDERS, compute_distinct_share
from edgen.evaluation.texts.self_bleu import compute_self_bleu

MOST = 250  # maximum blocks
_SCARCE = 0.2  # arms with less than this share of the largest arm's conversations are left out

Indices = NDArray[np.int64]


def compute_block_metrics(tables: Sequence[ArmSums], rng: np.random.Generator) -> dict[str, dict[str, Array]]:
    """Return the block metrics by arm's label and metric's name, each an array of shape (blocks,).

    Arms that share scenarios use the same scenarios in their blocks: those accepted in all of these arms.
    Other arms use their own. Arms with too few conversations are left out.
    """
    taking_part = _select_rich(tables)
    if not taking_part:
        return {}
    drawn = [table.arm.draws for table in taking_part]
    shared = {
        draws: _find_accepted_scenarios([t for t in taking_part if t.arm.draws == draws]) for draws in drawn
    }
    size = min(map(len, shared.values()))
    width = min(BLOCK, size)
    blocks = min(MOST, size // BLOCK) or 1
    if width < 2:
        return {}
    orders = {draws: rng.permutation(indices)[: blocks * width] for draws, indices in shared.items()}
    found = {table.arm.label: {name: np.zeros(blocks) for name in BLOCK_METRICS} for table in taking_part}
    for block in range(blocks):
        places = range(block * width, (block + 1) * width)
        texts = [
            [list_conversation_words(t.read_first_conversation(int(orders[t.arm.draws][p]))) for p in places]
            for t in taking_part
        ]
        lengths = [min(map(len, row)) for row in zip(*texts, strict=True)]
        for table, rows in zip(taking_part, texts, strict=True):
            cut = [row[:length] for row, length in zip(rows, lengths, strict=True)]
            for name, value in _measure_block(cut).items():
                found[table.arm.label][name][block] = value
    return found


def _select_rich(tables: Sequence[ArmSums]) -> list[ArmSums]:
    counts = [len(_find_accepted_scenarios([table])) for table in tables]
    # with data sets any size takes part: they share no scenarios with others
    least = 0 if any(table.arm.data for table in tables) else _SCARCE * max(counts)
    return [t for t, count in zip(tables, counts, strict=True) if count > 1 and count >= least]


def _find_accepted_scenarios(tables: Sequence[ArmSums]) -> Indices:
    """Return the scenarios with an accepted conversation in all of these arms."""
    everywhere = np.all([table.find_column("accepted") > 0 for table in tables], axis=0)
    return tables[0].scenarios[everywhere]


def _measure_block(texts: list[list[str]]) -> dict[str, float]:
    """Return the metrics of one block of conversations, each a list of words."""
    found = {f"distinct_{n}": compute_distinct_share(texts, n) or 0.0 for n in ORDERS}
    return {**found, "self_bleu": float(np.mean(compute_self_bleu(texts)))}
