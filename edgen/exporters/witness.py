"""Watches what an export reads of a run, so that its card can say who gave the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from edgen.exporters.base import Run
from edgen.pairing.model import Pair

if TYPE_CHECKING:
    from edgen.runreader import Compared, Lesson


class Witness:
    """A Run that passes another's on. `judges` counts, after a reading, the labels by who gave them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.name = run.name
        self.job = run.job
        self.simulated = run.simulated
        self.judges: Counter[str] = Counter()

    def lessons(self) -> Iterator[Lesson]:
        yield from self._run.lessons()

    def compared(self) -> Iterator[Compared]:
        judges: Counter[str] = Counter()
        for compared in self._run.compared():
            if (who := _who(compared.pair)) is not None:
                judges[who] += 1
            yield compared
        self.judges = judges

    def describe(self) -> dict[str, Any]:
        return self._run.describe()


def _who(pair: Pair) -> str | None:
    label = pair.label
    if label is None:
        return None
    model = next((signal.model for signal in pair.signals.oracle if signal.judge == label.judge), None)
    words = [label.by, label.judge, model]
    return " · ".join(word for word in words if word)
