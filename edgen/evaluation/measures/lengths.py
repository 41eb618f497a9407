"""How long conversations are: turns as the files have them, words, words a turn by role."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from edgen.core.text import number
from edgen.core.values import ROLES
from edgen.evaluation.figures import (
    WHOLE_NUMBERS,
    Block,
    Histogram,
    histograms_picture,
    label_with_arm,
    series_colour,
)
from edgen.evaluation.measure import ArmResult, Measure, Shared, figure_kinds, histograms_of
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import SUMMARY_HEAD, histogram, summary
from edgen.expressions.language import Value
from edgen.space import Space
from edgen.stats.distributions import Distribution, summarize_counts


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Turns a conversation (as the files have them), words a conversation, words a turn by role."""

    turns: Distribution
    words: Distribution
    words_per_turn: dict[str, Distribution]


class LengthsMeasure(Measure[Lengths]):
    name = "lengths"
    definition = (
        "Turns as the file has them, an end marker that stands by itself among them; words without debris "
        "and end marker. Words are runs of letters and digits; in scripts without spaces each character "
        "is one: edgen's own rule. Quantiles are values of the data (type 1 of Hyndman and Fan 1996, "
        "American Statistician 50), the deviation is the sample's, with n - 1."
    )
    order = 2
    section = "shape"
    figures = figure_kinds("turns", "words", "words_per_turn", "longest")

    def start(self, shared: Shared) -> LengthsCount:
        return LengthsCount([role.name for role in shared.data.roles])

    def of_one(self, sample: Sample, words: Words, space: Space) -> Mapping[str, Value]:  # noqa: ARG002
        """Turns, words, words a turn, and words of the longest turn."""
        sizes = [len(turn) for turn in words]
        each = sum(sizes) / len(sizes) if sizes else None
        return {
            "turns": sample.entries,
            "words": sum(sizes),
            "words_per_turn": each,
            "longest": max(sizes, default=None),
        }

    def lines(self, value: Lengths) -> Iterator[str]:
        yield SUMMARY_HEAD
        yield summary("turns", value.turns)
        yield summary("words", value.words)
        for role, distribution in value.words_per_turn.items():
            yield summary(f"words a turn, {role}", distribution)
        yield from histogram("turns", value.turns)
        yield from histogram("words", value.words)

    def blocks(self, found: Sequence[ArmResult[Lengths]]) -> Iterator[Block]:
        turns = histograms_of(found, lambda value: value.turns)
        yield from histograms_picture(
            "turns", "Turns a conversation", turns, WHOLE_NUMBERS,
            "Look for a pile at one end: talks cut off at a limit, or ended at once.",
        )  # fmt: skip
        words = histograms_of(found, lambda value: value.words)
        yield from histograms_picture(
            "words", "Words a conversation", words, WHOLE_NUMBERS,
            "Look for a long tail to the right: a few very long ones weigh most in training.",
        )  # fmt: skip
        by_role = [
            Histogram(label_with_arm(role, one.arm), distribution, series_colour(place))
            for one in found
            for place, (role, distribution) in enumerate(one.value.words_per_turn.items())
        ]
        yield from histograms_picture(
            "words-a-turn", "Words a turn, by role", by_role, WHOLE_NUMBERS,
            "Look for how far apart the roles are: a teacher that lectures, a student that only nods.",
        )  # fmt: skip

    def tiles(self, value: Lengths) -> Iterator[tuple[str, str, str]]:
        if value.turns.n:
            yield number(value.turns.median), "turns, median", f"{number(value.words.median)} words"


class LengthsCount:
    """Keeps how often each length occurred."""

    def __init__(self, roles: Iterable[str] = ROLES) -> None:
        self._turns: Counter[int] = Counter()
        self._words: Counter[int] = Counter()
        self._by_role: defaultdict[str, Counter[int]] = defaultdict(
            Counter, {role: Counter() for role in roles}
        )

    def see(self, sample: Sample, words: Words) -> None:
        lengths = [len(turn) for turn in words]
        self._turns[sample.entries] += 1
        self._words[sum(lengths)] += 1
        for turn, length in zip(sample.turns, lengths, strict=True):
            self._by_role[turn.role][length] += 1

    def result(self) -> Lengths:
        return Lengths(
            turns=summarize_counts(self._turns),
            words=summarize_counts(self._words),
            words_per_turn={role: summarize_counts(counts) for role, counts in self._by_role.items()},
        )


MEASURE = LengthsMeasure()
