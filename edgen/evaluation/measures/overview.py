"""How much there is: records by split and by where their end marker stands, debris, repairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from edgen.core.text import number, percent, readable_name
from edgen.core.values import ROLES
from edgen.evaluation.figures import Bar, Block, Picture, bars_picture, label_with_arm, series_colour
from edgen.evaluation.measure import ArmResult, Measure, Shared
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import join_counts, row, rows

MARKERS = ("suffix", "own_turn", "inside", "absent")
_MOST_BARS = 24


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of records. `defects`: those with each kind of debris; `unread`: those that cannot be read, by why."""

    records: int
    splits: dict[str, int]  # train, test, none
    simulated: int
    markers: dict[str, int]  # suffix, own_turn, inside, absent
    ended_by: dict[str, int]  # by role; nobody
    defects: dict[str, int] = {}
    repairs: dict[str, int] = {}
    unread: dict[str, int] = {}


class OverviewMeasure(Measure[Overview]):
    name = "overview"
    definition = (
        "Records by split and by where the end marker stands; records with each kind of debris, as `edgen "
        "validate` names it, and with each repair that the reader made. edgen's own counts."
    )
    order = 1
    section = "shape"

    def start(self, shared: Shared) -> OverviewCount:
        return OverviewCount(shared.data.unread, [role.name for role in shared.data.roles])

    def lines(self, value: Overview) -> Iterator[str]:
        yield row("records", f"{value.records:,} ({join_counts(value.splits, {'none': 'of no split'})})")
        if value.simulated:
            yield row("simulated", f"{value.simulated:,}")
        names = {"own_turn": "as a turn of its own", "suffix": "as suffix"}
        yield row("end marker", join_counts(value.markers, names))
        yield row("spoken by", join_counts(value.ended_by))
        yield from rows("debris, in records", join_counts(value.defects))
        yield from rows("repairs, in records", join_counts(value.repairs))
        if value.unread:
            yield from rows("no records", "; ".join(f"{n:,} × {why}" for why, n in value.unread.items()))

    def blocks(self, found: Sequence[ArmResult[Overview]]) -> Iterator[Block]:
        yield from _shares(
            "endings", "Where the end marker stands", found, lambda value: value.markers,
            "suffix: behind the last turn's text; own turn: a turn of its own; inside: within a text; absent: nobody said it.",
        )  # fmt: skip
        yield from _shares(
            "repairs", "Repaired while the replies were read", found, lambda value: value.repairs,
            "Conversations with each repair. Look for one that most need: the template could ask for what is meant.",
        )  # fmt: skip
        yield from _shares(
            "defects", "Debris that is still in the turns", found, lambda value: value.defects,
            "Conversations with each kind that edgen validate finds. Look for any: what stands here was accepted as it is.",
        )  # fmt: skip


class OverviewCount:
    """`unread` is looked at when everything was seen."""

    def __init__(self, unread: Mapping[str, int], roles: Iterable[str] = ROLES) -> None:
        self._unread = unread
        self._roles = tuple(dict.fromkeys(roles))
        self._records = self._simulated = 0
        self._splits = Counter(dict.fromkeys(("train", "test", "none"), 0))
        self._markers = Counter(dict.fromkeys(MARKERS, 0))
        self._ended_by: Counter[str] = Counter()
        self._defects: Counter[str] = Counter()
        self._repairs: Counter[str] = Counter()

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        self._records += 1
        self._simulated += sample.simulated
        self._splits[sample.split or "none"] += 1
        self._markers[sample.marker] += 1
        self._ended_by[sample.ended_by or "nobody"] += 1
        for counts, names in ((self._defects, sample.defects), (self._repairs, sample.repairs)):
            if names:
                counts.update(set(names))

    def result(self) -> Overview:
        others = sorted(self._ended_by.keys() - {*self._roles, "nobody"})
        return Overview(
            records=self._records,
            splits=dict(self._splits),
            simulated=self._simulated,
            markers=dict(self._markers),
            ended_by={role: self._ended_by[role] for role in (*self._roles, *others, "nobody")},
            defects=_sort(self._defects),
            repairs=_sort(self._repairs),
            unread=_sort(self._unread),
        )


def _sort(counts: Mapping[str, int]) -> dict[str, int]:
    """The largest first, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _shares(
    name: str,
    title: str,
    found: Sequence[ArmResult[Overview]],
    get: Callable[[Overview], dict[str, int]],
    caption: str,
) -> Iterator[Picture]:
    """Shares of the conversations of each kind, the largest first, every arm beside every other."""
    drawn = [(place, one.arm, one.value) for place, one in enumerate(found) if one.value.records]
    largest: dict[str, float] = {}
    for _, _, value in drawn:
        for kind, count in get(value).items():
            if count:
                largest[kind] = max(largest.get(kind, 0.0), count / value.records)
    rows = []
    for kind in sorted(largest, key=lambda kind: (-largest[kind], kind)):
        for place, arm, value in drawn:
            count, total = get(value).get(kind, 0), value.records
            label = label_with_arm(readable_name(kind), arm)
            said = f"{number(count)} ({percent(count / total)})"
            rows.append(Bar(label, count / total, said, series_colour(place)))
    # whole kinds, so that no arm is missing beside the others
    most = max(_MOST_BARS // max(len(drawn), 1), 3)
    yield from bars_picture(name, title, rows, caption, most * len(drawn))


MEASURE = OverviewMeasure()
