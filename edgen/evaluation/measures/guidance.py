"""What the one who is guided makes of it: offered utterances, fixed replies, free text, and hints.

Memory: some bytes a conversation.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

import msgspec

from edgen.core.text import quantity
from edgen.evaluation.figures import Block, intervals_picture
from edgen.evaluation.measure import ArmResult, Compared, Measure, figure_kinds, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import row, share_with_interval
from edgen.families.guided import GuidedEvents
from edgen.space import Space
from edgen.stats.intervals import Estimate, ShareCount, average


class Guidance(msgspec.Struct, frozen=True, kw_only=True):
    """`choices`: utterances of the guided role; the shares of them that were `offered` by the machine, `fixed` replies and
    `typed` freely; `options`: how many utterances a choice had to choose from, on the average; `hinted`: the share of
    choices made with a hint, and `followed`: of these, the share that took what it named."""

    choices: int
    offered: Estimate | None
    fixed: Estimate | None
    typed: Estimate | None
    options: Estimate | None
    hinted: Estimate | None
    followed: Estimate | None


_SHARES: tuple[tuple[str, str, Callable[[Guidance], Estimate | None]], ...] = (
    ("offered", "Takes what is offered", lambda value: value.offered),
    ("fixed replies", "Takes a fixed reply", lambda value: value.fixed),
    ("typed freely", "Types freely", lambda value: value.typed),
    ("with a hint", "Has a hint", lambda value: value.hinted),
    ("hints followed", "Follows the hint", lambda value: value.followed),
)


_COMPARED = (
    Compared(
        name="typed", title="typed freely", kind="share", top="free", bottom="choices",
        over="utterances of the guided role", definition="Utterances of the guided role that it typed freely.",
    ),
    Compared(
        name="fixed_replies", title="fixed replies", kind="share", top="fixed", bottom="choices",
        over="utterances of the guided role", definition="Utterances of the guided role that were a fixed reply.",
    ),
    Compared(
        name="hints_followed", title="hints followed", kind="share", top="followed", bottom="hinted",
        over="choices with a hint", definition="Choices that took what the hint named, of those for which there was one.",
    ),
)  # fmt: skip


class GuidanceCount:
    def __init__(self) -> None:
        self._by = {by: ShareCount() for by in ("state", "fixed", "free", "hinted", "followed")}
        self._options, self._scenarios = array("d"), array("q")

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        events, scenario = GuidedEvents(sample.events, len(sample.turns)), sample.scenario.index
        choices = events.choices
        if not choices:
            return
        for by in ("state", "fixed", "free"):
            self._by[by].add(scenario, sum(one.by == by for one in choices), len(choices))
        hinted = [one.followed for one in choices if one.followed is not None]
        self._by["hinted"].add(scenario, len(hinted), len(choices))
        self._by["followed"].add(scenario, sum(hinted), len(hinted))
        if offers := [len(names) for _, names in events.offered]:
            self._options.append(sum(offers) / len(offers))
            self._scenarios.append(scenario)

    def result(self) -> Guidance:
        shares = {by: counted.result() for by, counted in self._by.items()}
        return Guidance(
            choices=self._by["hinted"].of,
            offered=shares["state"],
            fixed=shares["fixed"],
            typed=shares["free"],
            options=average(self._options, self._scenarios),
            hinted=shares["hinted"],
            followed=shares["followed"],
        )


class GuidanceMeasure(Measure[Guidance]):
    name = "guidance"
    definition = (
        "Utterances of the guided role by whether the machine offered them, they were one of the fixed replies, or typed "
        "freely (CRWIZ's typed share: Chiyah Garcia, Lopes, Liu and Hastie, LREC 2020); how many utterances were offered; of "
        "the choices for which a hint was there, those that took what it named. The last is edgen's own."
    )
    order = 17
    counts = GuidanceCount
    section = "task"
    compares = _COMPARED
    figures = figure_kinds("choices", "fixed", "free", "hinted", "followed")
    nothing = "No conversation was guided."

    def sums(self, sample: Sample, space: Space) -> Iterator[tuple[str, float]]:  # noqa: ARG002
        """The utterances of the guided role by how they came to be said."""
        for one in GuidedEvents(sample.events, len(sample.turns)).choices:
            yield from (("choices", 1), (one.by, 1))
            if one.followed is not None:
                yield from (("hinted", 1), ("followed", one.followed))

    def lines(self, value: Guidance) -> Iterator[str]:
        if not value.choices:
            return
        yield row("guided", quantity(value.choices, "utterance"))
        for words, _, get in _SHARES:
            yield row(f"  {words}", share_with_interval(get(value)))
        if value.options is not None:
            yield row("  offered each time", f"{value.options.value:.1f} utterances")

    def blocks(self, found: Sequence[ArmResult[Guidance]]) -> Iterator[Block]:
        rows = share_intervals(found, [(words, get) for _, words, get in _SHARES])
        yield from intervals_picture(
            "guidance", "What is made of the machine's offers", rows,
            "Look for much free text: the machine lacks what is needed. Hints that are always followed leave no choice.",
        )  # fmt: skip


MEASURE = GuidanceMeasure()
