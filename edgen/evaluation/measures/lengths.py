"""Lengths of conversations: turns as in the files, words, words per turn by role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgen.plugin import Histogram, Measure, OwnTexts, Sample, Space, Words, figure_kinds
from edgen.plugin.measures import ArmResult, Panel, roles_of
from edgen.plugin.texts import number


def _describe_roles(found: Sequence[ArmResult[Any]]) -> str:
    """Return a sentence on what to look for between the first and the last role."""
    named = [f"{'an' if name[0] in 'AEIOU' else 'a'} {name.lower()}" for name in found[0].roles]
    first, last = (named[0], named[-1]) if len(named) > 1 else ("one", "another")
    return f"Look for how far apart the roles are: {first} that lectures, {last} that only nods."


class LengthsMeasure(OwnTexts, Measure[Any]):
    name = "lengths"
    definition = (
        "Turns as in the file, an end marker alone included; words without debris and end marker. Words "
        "are runs of letters and digits; in scripts without spaces each character is one: edgen's own "
        "rule. Quantiles are values of the data (type 1 of Hyndman and Fan 1996, American Statistician "
        "50); the deviation is the sample's, with n - 1."
    )
    order = 2
    section = "shape"
    reads_space = False
    figures = figure_kinds("turns", "words", "words_per_turn", "longest")
    aggregates = (
        Histogram("turns", label="turns", line="turns"),
        Histogram("words", label="words", line="words"),
        Histogram(
            "words_per_turn",
            "by_role",
            label="words a turn, {key}",
            title="{key}",
            by_key=True,
            keys=roles_of,
        ),
    )
    panels = (
        Panel(
            "turns", "Turns a conversation", ("turns",),
            "Look for a pile at one end: conversations cut off at a limit, or ended at once.",
        ),
        Panel(
            "words", "Words a conversation", ("words",),
            "Look for a long tail to the right: a few very long ones weigh most in training.",
        ),
        Panel(
            "words-a-turn", "Words a turn, by role", ("words_per_turn",),
            _describe_roles,
            colour_keys=True,
        ),
    )  # fmt: skip
    compares = ()  # `edgen compare` has its own metrics of lengths

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:  # noqa: ARG002
        """Return turns, words, words per turn, words of the longest turn, and words of each turn by role."""
        sizes = [len(turn) for turn in words]
        total = sum(sizes)
        return {
            "turns": sample.entries,
            "words": total,
            "words_per_turn": total / len(sizes) if sizes else None,
            "longest": max(sizes, default=None),
            "by_role": [(turn.role, size) for turn, size in zip(sample.turns, sizes, strict=True)],
        }

    def tiles(self, value: Any) -> Iterator[tuple[str, str, str]]:
        if value.turns.n:
            yield number(value.turns.median), "turns, median", f"{number(value.words.median)} words"


MEASURE = LengthsMeasure()
