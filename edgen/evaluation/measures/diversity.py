"""Variety of words: distinct-n, the growth of the vocabulary, self-BLEU.

distinct-n is counted within conversations, across their turns. Its blocks have 1,000 words each, in the order
of the data; words after the last whole block are left out. Growth is shown at points of equal ratio; Heaps'
law is fitted to points from 100 tokens on. `DiversityMeasure.definition` has the sources; `compute_self_bleu`
has those of self-BLEU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgen.evaluation.texts.corpus import Codes, Corpus, narrow_codes, number_ngrams
from edgen.evaluation.texts.distinct_counter import DistinctCounter
from edgen.evaluation.texts.self_bleu import SelfBleuSample
from edgen.plugin import Measure, OwnCount, Sample, Space, Total, Words, figure_kinds
from edgen.plugin.measures import (
    Aggregate,
    ArmResult,
    Curve,
    Curves,
    Panel,
    Picture,
    Shared,
    Table,
    Value,
    sentence_of_arm,
    series_colour,
)
from edgen.plugin.texts import number

BLOCK_WORDS = 1000
ORDERS = (1, 2, 3)
_GRAMS = {str(n): f"{n}-grams" for n in ORDERS}
_POINTS = 25
_FIT_FROM = 100
_AT_ONCE = 256  # blocks sorted at once
_MOST_CURVES = 7


class Growth(msgspec.Struct, frozen=True):
    """The number of different words (types) among the first words (tokens)."""

    tokens: int
    types: int


class Diversity(msgspec.Struct, frozen=True, kw_only=True):
    """Lexical diversity. Heaps' law: types = `heaps_k` * tokens ** `heaps_beta`."""

    tokens: int  # tokens of all conversations
    types: int  # distinct tokens
    distinct: dict[str, float]  # by n: "1", "2", "3"
    distinct_error: float  # relative standard error of `distinct`; 0 if all were counted
    distinct_in_blocks: dict[str, float]  # mean over blocks of `block_words` words
    block_words: int  # words of a block
    growth: tuple[Growth, ...]  # growth of types with tokens
    heaps_k: float | None  # None with too few tokens
    heaps_beta: float | None  # None with too few tokens
    self_bleu: float | None  # mean BLEU of sampled conversations against the others
    self_bleu_sampled: int  # conversations in the sample


_SAID = 3  # maximum arms whose numbers are in the caption


def _draw_growth(found: Sequence[ArmResult[Diversity]]) -> Iterator[Picture]:
    grown = [one for one in found if one.value.growth]
    drawn, total = grown[:_MOST_CURVES], len(grown)
    if not drawn:
        return
    curves, said, totals, cells = [], [], [], []
    for place, one in enumerate(drawn):
        growth, colour = one.value.growth, series_colour(place)
        if one.value.heaps_k is not None and one.value.heaps_beta is not None:
            ends = (growth[0].tokens, growth[-1].tokens)
            fitted = [one.value.heaps_k * end**one.value.heaps_beta for end in ends]
            curves.append(Curve(ends, fitted, colour, dashed=True))
        curves.append(Curve([g.tokens for g in growth], [g.types for g in growth], colour))
        beta = "" if one.value.heaps_beta is None else f", exponent {number(one.value.heaps_beta)}"
        words = f"{number(one.value.types)} different among {number(one.value.tokens)} words{beta}"
        said.append(sentence_of_arm(words, one.arm))
        totals.append(
            (one.arm, number(one.value.tokens), number(one.value.types), number(one.value.heaps_beta))
        )
        cells += [(one.arm, number(g.tokens), number(g.types)) for g in growth]
    yield Picture(
        name="growth",
        title="Growth of the vocabulary",
        chart=Curves(curves, "words", "different words"),
        caption=f"Dashed: Heaps' law fitted{' to each, in its colour' if len(drawn) > 1 else ''}. Look for a "
        "curve that bends away below it: new conversations bring no new words. "
        f"{'; '.join(said) if len(said) <= _SAID else 'Data has the numbers of each arm'}."
        + (f" The first {len(drawn)} of {total} arms." if total > len(drawn) else ""),
        alternative=f"Curve of different words against words, on logarithmic axes. {'; '.join(said)}.",
        tables=(
            Table(("", "words", "different words", "exponent"), tuple(totals)),
            Table(("", "words", "different words"), tuple(cells)),
        ),
        legend=tuple((series_colour(place), one.arm) for place, one in enumerate(drawn)) if total > 1 else (),
    )


class DiversityMeasure(OwnCount, Measure[Diversity]):
    name = "diversity"
    definition = (
        "distinct-n: different n-grams over all n-grams within conversations (Li et al. 2016, arXiv "
        "1510.03055), of the whole (above two million different ones estimated by adaptive sampling, "
        "Flajolet 1990, Computing 43: `distinct_error`) and as the mean over blocks of 1,000 words (after "
        "Johnson's 1944 mean segmental type-token ratio). Growth: types among the first tokens, with "
        "Heaps' law (1978) by least squares of the logarithms. Self-BLEU: mean BLEU-4 of up to 200 "
        "sampled conversations, each against the others (their first 5,000 words; Zhu et al. 2018, arXiv "
        "1802.01886; smoothing 1 of Chen and Cherry 2014)."
    )
    order = 4
    section = "language"
    figures = figure_kinds("distinct_1", "distinct_2", "distinct_3", "repeated_turns")
    aggregates = (
        Total("tokens", label="words", says="{it:,} tokens, {types:,} types"),
        Aggregate(
            "distinct", label="distinct-n", says="{it:.3g}; falls as data grow", names=_GRAMS, if_any=True
        ),
        Aggregate("distinct_error", label="  estimated to", says="± {it:.2%}", if_any=True),
        Aggregate(
            "distinct_in_blocks",
            label=f"  by {BLOCK_WORDS:,} words",
            says="{it:.3g}",
            if_any=True,
            names=_GRAMS,
            title="{key}",
            drawn="{it:.3f}",
        ),
        Aggregate(
            "heaps_k", label="growth", says="types = {it:.2f} × tokens^{heaps_beta:.2f} (Heaps)", if_any=True
        ),
        Aggregate(
            "self_bleu",
            label="self-BLEU",
            says="{it:.3f} over {self_bleu_sampled} sampled; lower is more varied",
            if_any=True,
            title="self-BLEU",
            drawn="{it:.3f}",
        ),
    )
    panels = (
        _draw_growth,
        Panel(
            "variety-0", "Distinct n-grams", ("distinct_in_blocks",),
            "The share of n-grams that are different, in blocks of equal length, so that the size of the data "
            "does not matter. 1: nothing is said twice. A comparison of arms uses blocks of scenarios, so its "
            "values differ from these.",
        ),
        Panel(
            "variety-1", "Self-BLEU", ("self_bleu",),
            "How much of a conversation also occurs in others, from 0 to 1; lower is more varied. Of at most "
            "200 conversations. A comparison of arms computes it within blocks, so its value differs from this.",
        ),
    )  # fmt: skip

    def start(self, shared: Shared) -> DiversityCount:
        return DiversityCount(shared.corpus)

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Value]:  # noqa: ARG002
        """Return distinct-n over all turns, with n-grams within turns, and the number of turns with exactly
        the words of an earlier turn."""
        found: dict[str, Value] = {}
        for n in ORDERS:
            grams = [tuple(turn[at : at + n]) for turn in words for at in range(len(turn) - n + 1)]
            found[f"distinct_{n}"] = len({*grams}) / len(grams) if grams else None
        said = [tuple(turn) for turn in words if turn]
        return {**found, "repeated_turns": len(said) - len({*said})}


class DiversityCount:
    """The running count. `corpus` is filled with the same conversations elsewhere."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._sample = SelfBleuSample()

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        self._sample.add(words)

    def result(self) -> Diversity:
        corpus = self._corpus
        whole, blocks, errors = {}, {}, [0.0]
        for n in ORDERS:
            share, mean, error = _compute_distinct_shares(corpus, n)
            errors.append(error)
            if share is not None:
                whole[str(n)] = share
            if mean is not None:
                blocks[str(n)] = mean
        growth = _compute_growth(corpus)
        k, beta = _fit_heaps(growth)
        bleu, sampled = self._sample.result()
        return Diversity(
            tokens=corpus.tokens,
            types=corpus.types,
            distinct=whole,
            distinct_error=max(errors),
            distinct_in_blocks=blocks,
            block_words=BLOCK_WORDS,
            growth=growth,
            heaps_k=k,
            heaps_beta=beta,
            self_bleu=bleu,
            self_bleu_sampled=sampled,
        )


def _compute_distinct_shares(corpus: Corpus, n: int) -> tuple[float | None, float | None, float]:
    """Return distinct-n of the whole, its mean over blocks, and the first's relative standard error."""
    counted, in_blocks, total = DistinctCounter(), _Blocks(n), 0
    for chunk in corpus.iterate_chunks():
        codes = narrow_codes(number_ngrams(chunk.ids, chunk.ends, n, corpus.types), n, corpus.types)
        in_blocks.add(codes)
        known = codes[codes != np.iinfo(codes.dtype).max]
        total += len(known)
        if n > 1:
            counted.add(known)
    # a corpus numbers only words that occur
    different = corpus.types if n == 1 else counted.count
    return different / total if total else None, in_blocks.compute_mean(), counted.error if total else 0.0


def compute_distinct_share(texts: Sequence[Sequence[str]], n: int) -> float | None:
    """Return distinct n-grams over all n-grams of some texts; n is 1 to 3. None without n-grams."""
    corpus = Corpus()
    for text in texts:
        corpus.add([text])
    return _compute_distinct_shares(corpus, n)[0]


class _Blocks:
    """distinct-n of whole blocks, from the n-grams that begin at each word."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._begun: Codes | None = None  # n-grams of an incomplete block
        self._shares: list[NDArray[np.float64]] = []

    def add(self, codes: Codes) -> None:
        codes = codes if self._begun is None else np.concatenate((self._begun, codes))
        none = np.iinfo(codes.dtype).max
        count = len(codes) // BLOCK_WORDS
        for start in range(0, count, _AT_ONCE):
            rows = codes[start * BLOCK_WORDS : min(start + _AT_ONCE, count) * BLOCK_WORDS]
            # n-grams across the end of a block are left out
            block = np.sort(rows.reshape(-1, BLOCK_WORDS)[:, : BLOCK_WORDS - self._n + 1], axis=1)
            total = np.count_nonzero(block != none, axis=1)
            different = 1 + np.count_nonzero(block[:, 1:] != block[:, :-1], axis=1) - (total < block.shape[1])
            self._shares.append(different[total > 0] / total[total > 0])
        self._begun = codes[count * BLOCK_WORDS :].copy()

    def compute_mean(self) -> float | None:
        """Return the mean over whole blocks that hold an n-gram; None without any."""
        values = np.concatenate(self._shares) if self._shares else np.array([])
        return float(np.mean(values)) if values.size else None


def _compute_growth(corpus: Corpus) -> tuple[Growth, ...]:
    size = corpus.tokens
    if size == 0:
        return ()
    points = sorted({*np.geomspace(min(10, size), size, _POINTS).round().astype(np.int64).tolist()})
    found, types, start = [], 0, 0
    for chunk in corpus.iterate_chunks():
        highest = np.maximum.accumulate(chunk.ids)  # words are numbered in the order of first use
        end = start + len(chunk.ids)
        inside = [point for point in points if start < point <= end]
        found += [Growth(point, max(types, int(highest[point - start - 1]) + 1)) for point in inside]
        types = max(types, int(highest[-1]) + 1) if len(highest) else types
        start = end
    return tuple(found)


def _fit_heaps(growth: Sequence[Growth]) -> tuple[float | None, float | None]:
    """Return k and beta of types = k * tokens ** beta; None with fewer than three points."""
    points = [point for point in growth if point.tokens >= _FIT_FROM]
    if len(points) < 3:
        return None, None
    x = np.log([point.tokens for point in points])
    y = np.log([point.types for point in points])
    spread = x - np.mean(x)
    beta = float(spread @ (y - np.mean(y)) / (spread @ spread))
    return float(np.exp(np.mean(y) - beta * np.mean(x))), beta


MEASURE = DiversityMeasure()
