"""Echoes: turns that repeat another role's recent turns and add little.

A turn echoes if it has at least four words, and at least two thirds of it are runs of four words or more from
other roles' turns among the three turns before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgen.evaluation.measures.personas import FOLDED
from edgen.plugin import Measure, Sample, Share, Space, Total, Words, figure_kinds
from edgen.plugin.measures import Examples, Panel

_RUN = 4
_BACK = 3
_MOST = 2 / 3


class EchoesMeasure(Measure[Any]):
    name = "echoes"
    definition = (
        "Turns that echo another role: at least two thirds of their words, and four or more, are runs of "
        "four words or more from turns of others among the three turns before. edgen's own definition."
    )
    order = 9
    section = "behaviour"
    reads_space = False
    figures = figure_kinds("echoes")
    aggregates = (
        Total("turns"),
        Share(
            "share", "echoes", of="turns", label="turns", says="{it} of {turns}", title="Echoes another role"
        ),
        Examples(
            "examples",
            "echoes",
            label="for example",
            if_any=True,
            why="a turn repeats what another role said",
        ),
    )
    panels = (
        Panel(
            "echoes",
            "Turns that echo",
            ("share",),
            "Turns that repeat what another role has just said, and add little. Look for any.",
            folded=FOLDED,
            told="Turns that echo another role",
        ),
    )
    compares = ()

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the numbers of turns and of echoes."""
        if not sample.turns:
            return {}
        roles = [turn.role for turn in sample.turns]
        said = [{*turn} for turn in words]
        return {
            "turns": len(roles),
            "echoes": sum(_is_echo(i, roles, words, said) for i in range(1, len(roles))),
        }


def _list_runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield every run of four words in a turn."""
    return zip(words, words[1:], words[2:], words[3:], strict=False)


def _is_echo(i: int, roles: Sequence[str], words: Words, said: Sequence[set[str]]) -> bool:
    """Return whether turn `i` echoes. `said`: the distinct words of each turn; they rule out most turns
    quickly."""
    least = _MOST * len(words[i])
    near = [j for j in range(max(0, i - _BACK), i) if roles[j] != roles[i]]
    known = set().union(*(said[j] for j in near))
    if len(words[i]) < _RUN or sum(map(known.__contains__, words[i])) < least:
        return False
    heard = {run for j in near for run in _list_runs(words[j])}
    covered, end = 0, 0
    for place, run in enumerate(_list_runs(words[i])):
        if run in heard:
            covered += place + _RUN - max(place, end)
            end = place + _RUN
    return covered >= least


MEASURE = EchoesMeasure()
