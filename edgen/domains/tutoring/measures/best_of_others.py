"""Similarity of responses to references: BLEU and BERTScore, each against the best of several references.

A response is scored against each of its references alone and the best score counts, as Stasaski, Kao and
Hearst (2020, BEA) score responses against those of three tutors. BLEU (Papineni, Roukos, Ward and Zhu 2002,
ACL) is sacrebleu's for a sentence (Post 2018, WMT), from 0 to 100; its signature states tokenization and
smoothing. BERTScore (Zhang, Kishore, Wu, Weinberger and Artzi 2020, ICLR) is its F1, not rescaled, and needs
a model. Intervals are by the bootstrap over groups, such as conversations (`stats.resampling`).
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from edgen.plugin.errors import UsageError
from edgen.plugin.files import require_extra
from edgen.plugin.statistics import Estimate, bootstrap, interval, ratios

RESAMPLES = 2000
SEED = 20200710
_AT_ONCE = 64  # texts in a batch for the model


class ScoredResponse(NamedTuple):
    """A response, its references (at least one), and the group with which it is resampled."""

    response: str
    references: Sequence[str]
    group: Hashable


class ReferenceOverlap(msgspec.Struct, frozen=True, kw_only=True):
    """Means over `responses` of the best score against one of their references, with intervals over groups.

    `bleu` is in [0, 100]; `bertscore` is the F1, mostly in [0, 1], None without a model. `scored_by`: the
    signatures of sacrebleu and BERTScore, so that others can compute the same scores.
    """

    responses: int
    bleu: Estimate | None
    bertscore: Estimate | None = None
    scored_by: tuple[str, ...] = ()


def reference_overlap(
    responses: Iterable[tuple[str, Sequence[str], Hashable]], bert_model: str | None = None
) -> ReferenceOverlap:
    """Return the overlap of (response, references, group). `bert_model`: the folder of a model for BERTScore,
    or a name known to transformers; None for BLEU alone.

    Raises UsageError if an extra is missing (`bleu`; `bertscore` with a model), a response has no reference,
    or the model cannot be loaded.
    """
    require_extra("bleu", "Overlaps with references")
    scored = [ScoredResponse(*one) for one in responses]
    if bare := next((one for one in scored if not one.references), None):
        raise UsageError(f"a response has no reference to be scored against: {bare.response[:60]!r}.")
    groups: dict[Hashable, int] = {}
    members = np.array([groups.setdefault(one.group, len(groups)) for one in scored], dtype=np.int64)
    bleu, signature = _score_best_bleu(scored)
    signatures, bert = [signature], None
    if bert_model is not None and scored:
        f1, name = _score_best_bertscore(scored, bert_model)
        bert, signatures = _estimate(f1, members, len(groups)), [signature, name]
    return ReferenceOverlap(
        responses=len(scored),
        bleu=_estimate(bleu, members, len(groups)),
        bertscore=bert,
        scored_by=tuple(signatures),
    )


def _score_best_bleu(scored: Sequence[ScoredResponse]) -> tuple[list[float], str]:
    """Return the best BLEU of each response, and the signature of all."""
    metric = importlib.import_module("sacrebleu.metrics").BLEU(effective_order=True)
    best = [
        max(metric.sentence_score(one.response, [reference]).score for reference in one.references)
        for one in scored
    ]
    return best, str(metric.get_signature()) if scored else ""


def _score_best_bertscore(scored: Sequence[ScoredResponse], model: str) -> tuple[list[float], str]:
    """Return the best F1 of each response by the last layer of a model, and the signature of all."""
    require_extra("bertscore", "BERTScores")
    try:
        scorer = _load_scorer(model)
    except (OSError, ValueError, KeyError) as problem:
        raise UsageError(
            f"BERTScore: the model {model} cannot be loaded ({str(problem).splitlines()[0][:200]}); name "
            "the folder of one."
        ) from None
    responses, references = [one.response for one in scored], [list(one.references) for one in scored]
    _, _, f1 = scorer.score(responses, references, batch_size=_AT_ONCE)
    return f1.tolist(), str(scorer.hash)


def _load_scorer(model: str) -> Any:
    """Return the scorer. bert_score has a best layer for the models that it knows; for others, the last layer
    is used."""
    known = importlib.import_module("bert_score.utils").model2layers
    layers = known.get(model)
    if layers is None:
        config = importlib.import_module("transformers").AutoConfig.from_pretrained(model)
        layers = int(config.num_hidden_layers)
    return importlib.import_module("bert_score").BERTScorer(model_type=model, num_layers=layers, device="cpu")


def _estimate(scores: Sequence[float], members: np.ndarray[Any, Any], groups: int) -> Estimate | None:
    """Return the mean of scores with its interval over groups; None without scores."""
    if not scores:
        return None
    values = np.array(scores)
    sums = np.stack([np.bincount(members, values, groups), np.bincount(members, minlength=groups)], axis=1)
    draws = ratios(bootstrap(sums.astype(np.float64), np.random.default_rng(SEED), RESAMPLES))
    low, high = interval(draws[:, 0], groups) or (None, None)
    return Estimate(value=float(values.mean()), low=low, high=high, n=len(scores), scenarios=groups)
