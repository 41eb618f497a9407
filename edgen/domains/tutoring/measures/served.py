"""Sources of the turns that students are served, in sessions of rounds with a pool, and repetitions of
responses.

Turns of the tutor with a source (`domains/tutoring/served_turns`) count. Intervals are clustered by scenario.
Memory: some bytes per session, and a line for each different response that is served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from edgen.domains.tutoring.served_turns import SOURCES, find_origin, find_source
from edgen.plugin import Measure, NeedsDataSet, Sample, Share, Space, Tally, Total, Turn, Words
from edgen.plugin.measures import Aggregate, Compared, Crossed, Panel, Shared


class ServedMeasure(NeedsDataSet, Measure[Any]):
    name = "served"
    definition = (
        "Of the turns that students are served in rounds: the shares from the pool, from a drawn "
        "template, from a template because the pool had nothing (dry), and new because no template was "
        "left; by the student's action, by round, and how many of each the student calls nonsense; how "
        "often a pooled response is served; and the share of turns that tutors respond to. edgen's own, "
        "for the method of CIMA (Stasaski, Kao and Hearst 2020, section 3)."
    )
    order = 15
    section = "behaviour"
    nothing = "No turn was served from a pool."
    aggregates = (
        Total("turns", label="turns served", says="{it:turn}"),
        Share(
            "sources", "by_source", "of_source", label="  {key}", title="Served: {key}", by_key=True,
            says="{it}, {nonsense[key]:.1%} called nonsense",
        ),
        Tally("nonsense", "called_nonsense"),
        Crossed("by_action", columns=SOURCES, label="after {key}"),
        Crossed("by_round", columns=SOURCES, order="key", label="round {key}", heads=("round (turns)", "sources")),
        Tally("responses", "exposures", order="seen"),
        Aggregate(
            "exposure", label="from the pool", if_any=True,
            says="{responses:response}, each served {it:.2f} times, at most {most}",
        ),
        Aggregate("most"),
        Share("answered", "answered", "turns", label="tutors respond to", says="{it} of them"),
    )  # fmt: skip
    panels = (
        Panel(
            "served", "Sources of the turns that students are served", ("sources",),
            "Look for a pool that runs dry: more rounds, more sessions a round, or fewer keywords to share.",
        ),
        Panel("rounds", "Sources by round", ("by_round",)),
    )  # fmt: skip
    compares = (
        Compared(
            name="served_from_pool", title="served from the pool", kind="share", top="pool", bottom="turns",
            over="served turns", definition="Turns from the pool, of those that students are served.",
        ),
        Compared(
            name="served_dry", title="the pool had nothing", kind="share", top="dry", bottom="turns",
            over="served turns", definition="Templates because the pool had nothing, of turns served.",
        ),
        Compared(
            name="served_nonsense", title="served turns called nonsense", kind="share", top="nonsense",
            bottom="turns", over="served turns", definition="Served turns that a student calls nonsense.",
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Count served turns, those from each source, and facts about them."""
        served = [*_find_served_turns(sample.turns)]
        if not served:
            return {}
        counts = Counter(source for _, _, source in served)
        nonsense = [source for _, turn, source in served if turn.data.get("nonsense") is True]
        number = (sample.outcome or {}).get("round")
        return {
            **counts,
            "turns": len(served),
            "nonsense": len(nonsense),
            "by_source": {source: counts[source] for source in SOURCES},
            "of_source": dict.fromkeys(SOURCES, len(served)),
            "called_nonsense": nonsense,
            "exposures": [
                "/".join(map(str, origin)) for _, turn, _ in served if (origin := find_origin(turn))
            ],
            "answered": sum(bool(turn.alternatives) or source == "new" for _, turn, source in served),
            "by_action": [(action, (source,)) for before, _, source in served for action in before],
            "by_round": [(number, (source,)) for *_, source in served] if isinstance(number, int) else None,
        }

    def finish(self, figures: dict[str, Any], shared: Shared) -> dict[str, Any]:
        """Return the figures with the sources that occur, the number of different responses, and how often
        each was served."""
        exposures, sources, nonsense = figures["responses"], figures["sources"], figures["nonsense"]
        occur = {name: sources[name] for name in SOURCES if name in sources and sources[name].value}
        return figures | {
            "sources": occur,
            "nonsense": {
                name: nonsense.get(name, 0) / round(one.value * one.n) for name, one in occur.items()
            },
            "responses": len(exposures),
            "exposure": sum(exposures.values()) / len(exposures) if exposures else None,
            "most": max(exposures.values(), default=0),
        }


def _find_served_turns(turns: Iterable[Turn]) -> Iterator[tuple[tuple[str, ...], Turn, str]]:
    """Yield each served turn, with the student's actions before it and its source."""
    before: tuple[str, ...] = ()
    for turn in turns:
        if (source := find_source(turn)) is not None:
            yield before, turn, source
        before = turn.labels


MEASURE = ServedMeasure()
