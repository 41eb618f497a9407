"""The choice of conversations for a report: twelve different ones, each with a reason.

One pass over all conversations keeps the extremes. Typical ones are chosen from a sample, the ids with the
smallest digests (a bottom-k sample: Cohen and Kaplan 2007, PODC). The choice is order-independent; memory
does not grow with the number of conversations.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from edgen.core.digest import hash64
from edgen.core.plugins.faults import refuse_value
from edgen.core.space_layouts import find_layout
from edgen.core.text import join_list, number, percent, quantity, readable_name
from edgen.evaluation.measure import Measure
from edgen.evaluation.measuring import ArmMeasures, list_measures
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.views import list_examples, show
from edgen.report.model import PickedConversation

SHOWN = 12
_SAMPLED = 2_000


class ConversationFacts(msgspec.Struct, frozen=True):
    """Facts for the choice of shown conversations."""

    id: str  # of the conversation
    turns: int  # number of turns
    words: int  # number of words
    share: float  # share of the words that the talker has
    talker: str  # the role with the most words
    probability: float | None  # probability of the family's event; None if unknown
    repairs: tuple[str, ...]  # the reader's fixes
    ended_by: str | None  # the speaker of the end marker; None without one
    different: str  # a clause if its roles want different things; empty if not, or if unknown
    measured: str = "probability"  # name of the probability


Score = Callable[[ConversationFacts], float | None]
# Kinds of extremes: a score, None for conversations not of the kind, and the wording.
_EXTREMES: tuple[tuple[Score, Callable[[ConversationFacts], str]], ...] = (
    (lambda f: -f.words, lambda f: f"shortest: {quantity(f.words, 'word')}"),
    (lambda f: f.words, lambda f: f"longest: {quantity(f.words, 'word')}"),
    (
        lambda f: None if f.probability is None else -f.probability,
        lambda f: f"lowest {f.measured}: {number(f.probability)}",
    ),
    (
        lambda f: f.probability,
        lambda f: f"highest {f.measured}: {number(f.probability)}",
    ),
    (
        lambda f: f.probability if f.different else None,
        lambda f: f"{f.different}, but the probability is {number(f.probability)}",
    ),
    (
        lambda f: len(f.repairs) or None,
        lambda f: f"most repairs by the reader: {join_list(map(readable_name, f.repairs))}",
    ),
    (
        lambda f: f.share,
        lambda f: f"most one-sided: {percent(f.share, 0)} of the words are the {f.talker.lower()}'s",
    ),
)
_Clause = tuple[str, str]  # a conversation's id, and a clause on why it is shown


class ReportSelection:
    """A selector that sees every conversation, like a measure, and finally chooses those to show. `measured`:
    the name of a conversation's probability."""

    def __init__(self, measured: str = "probability") -> None:
        self._measured = measured
        self._best: list[tuple[float, ConversationFacts] | None] = [None] * len(_EXTREMES)
        self._stating = False  # whether any conversation states a probability
        self._unstated: str | None = None  # the first conversation by id that states none
        self._ended: dict[str | None, tuple[int, str]] = {}
        self._sample: list[tuple[int, str, ConversationFacts]] = []

    def see(self, sample: Sample, words: Words) -> None:
        facts = _collect_facts(sample, words, self._measured)
        for place, (score, _) in enumerate(_EXTREMES):
            value, best = score(facts), self._best[place]
            if value is None:
                continue
            if best is None or value > best[0] or (value == best[0] and facts.id < best[1].id):
                self._best[place] = (value, facts)
        if facts.probability is not None:
            self._stating = True
        elif self._unstated is None or facts.id < self._unstated:
            self._unstated = facts.id
        count, first = self._ended.get(facts.ended_by, (0, facts.id))
        self._ended[facts.ended_by] = (count + 1, min(first, facts.id))
        entry = (-hash64(facts.id), facts.id, facts)
        if len(self._sample) < _SAMPLED:
            heapq.heappush(self._sample, entry)
        elif entry > self._sample[0]:
            heapq.heapreplace(self._sample, entry)

    def choose_picks(
        self, qualities: Iterable[ArmMeasures], is_known: Callable[[str], bool] = lambda _: True
    ) -> list[PickedConversation]:
        """Return at most SHOWN different conversations. A conversation that is extreme in several ways has a
        clause for each. `is_known`: whether there is a conversation with this id."""
        why: dict[str, list[str]] = {}
        for name, clause in self._iterate_kinds(qualities, is_known):
            if name in why:
                why[name].append(clause)
            elif len(why) < SHOWN:
                why[name] = [clause]
        for _, name, _ in sorted(self._sample, reverse=True):
            if len(why) < SHOWN and name not in why:
                why[name] = ["drawn at random"]
        return [PickedConversation(id=name, why=tuple(clauses)) for name, clauses in why.items()]

    def _iterate_kinds(
        self, qualities: Iterable[ArmMeasures], is_known: Callable[[str], bool]
    ) -> Iterator[_Clause]:
        sampled = [facts for _, _, facts in self._sample]
        yield from _find_typical(sampled)
        for best, (_, describe) in zip(self._best, _EXTREMES, strict=True):
            if best is not None:
                yield best[1].id, describe(best[1])
        if self._stating and self._unstated is not None:
            yield self._unstated, "states no probability"
        yield from _find_middle(sampled)
        yield from _list_findings(list(qualities), is_known)
        if len(self._ended) > 1:
            rare = min(self._ended, key=lambda who: self._ended[who])
            count, first = self._ended[rare]
            who = "nobody" if rare is None else f"the {rare.lower()}"
            share = percent(count / sum(n for n, _ in self._ended.values()))
            yield first, f"ended by {who}, like {share} of the conversations"


def _list_findings(qualities: Sequence[ArmMeasures], is_known: Callable[[str], bool]) -> Iterator[_Clause]:
    """Yield the measures' findings: for each measure, the first example in any arm."""
    for measure in list_measures({name for quality in qualities for name in quality.values}):
        for quality in qualities:
            if measure.name not in quality.values:
                continue
            given = partial(_find_example, measure, quality.values[measure.name], is_known)
            if examples := show(measure, given, tuple, quality.faults, "its examples"):
                yield examples[0]
                break


def _find_example(measure: Measure[Any], value: Any, is_known: Callable[[str], bool]) -> Iterator[_Clause]:
    """Yield a measure's first example, if any. Raises FaultyPluginError for one that cannot be shown."""
    for one in islice(list_examples(measure, value), 1):
        if not (isinstance(one, tuple) and [*map(type, one)] == [str, str]):
            refuse_value("measure", measure.name, f"gave the example {one!r}, not an (id, why) of two texts")
        if not is_known(one[0]):
            said = f"gave the conversation {one[0]!r} as an example, which is not in the run"
            refuse_value("measure", measure.name, said)
        yield one


def _collect_facts(sample: Sample, words: Words, measured: str) -> ConversationFacts:
    by_role: Counter[str] = Counter()
    for said, turn in zip(words, sample.turns, strict=True):
        by_role[turn.role] += len(said)
    talker, most = by_role.most_common(1)[0] if by_role else ("nobody", 0)
    total = by_role.total()
    layout = find_layout(sample.scenario.values)
    agreement = None if layout is None else layout.agreement
    differ = agreement is not None and agreement.check(sample.scenario.values) is False
    return ConversationFacts(
        id=sample.id,
        turns=len(sample.turns),
        words=total,
        share=most / total if total else 0.0,
        talker=talker,
        probability=sample.probability,
        repairs=sample.repairs,
        ended_by=sample.ended_by,
        different=agreement.different if agreement is not None and differ else "",
        measured=measured,
    )


def _find_typical(sampled: Sequence[ConversationFacts]) -> Iterator[_Clause]:
    """Yield the conversations nearest to the medians, each measure scaled by the width of its middle half."""
    if not sampled:
        return
    columns = zip(*((facts.turns, facts.words, facts.share) for facts in sampled), strict=True)
    scales = [_scale(sorted(column)) for column in columns]

    def measure_distance(facts: ConversationFacts) -> tuple[float, str]:
        values = (facts.turns, facts.words, facts.share)
        distances = (abs(v - middle) / width for v, (middle, width) in zip(values, scales, strict=True))
        return sum(distances), facts.id

    yield (
        min(sampled, key=measure_distance).id,
        "typical: near the medians of turns, words and shares of the talk",
    )


def _scale(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the median, and the width of the middle half."""
    n = len(ordered)
    return ordered[n // 2], (ordered[(3 * n) // 4] - ordered[n // 4]) or 1.0


def _find_middle(sampled: Sequence[ConversationFacts]) -> Iterator[_Clause]:
    known = sorted((facts.probability, facts.id) for facts in sampled if facts.probability is not None)
    if known:
        probability, name = known[len(known) // 2]
        yield name, f"probability at the median: {number(probability)}"
