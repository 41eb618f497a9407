"""Collection of a report's contents from pairs.jsonl, in one pass that keeps little per pair."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable

import msgspec
from msgspec import UNSET

from edgen.core.errors import EdgenError
from edgen.core.pair import Label, Pair, SideName
from edgen.core.registry import part_of
from edgen.core.values import Turn
from edgen.families.reader import ReportWords
from edgen.preferences.bias import report_bias_of_compared
from edgen.preferences.pairs import PairCounts
from edgen.report.model import PairExample, PairSide, PairsReport
from edgen.stats.distributions import summarize_shares
from edgen.store.run_folder import RunFolder
from edgen.store.run_parts import ComparedPair
from edgen.store.run_reader import RunReader

_TURNS = 3  # turns of each side, from where they part
_CUT = 400  # characters of a turn

# The basis of a label, by source; judges themselves state what they compared.
_RESTS = {
    "probability": "the conversations' own {probabilities}",
    "human": "people's votes",
    "flag": "a {hearer} who called one of the responses nonsense",
    "judged": "the run's own judge: its best response against its worst",
}
_JUDGED = {
    "conversation": "verdicts on whole conversations, in both orders",
    "response": "verdicts on the two responses alone, in both orders",
}
_Ranked = tuple[tuple[float, str], ComparedPair]  # the lowest of these (number, id) is shown


def gather_pairs(run: RunFolder, progress: Callable[[str], None]) -> PairsReport | str | None:
    """Return the report on the run's pairs; None if it has none; a text with the reason if they cannot be
    read."""
    if not run.pairs.exists():
        return None
    progress("reading the preference pairs")
    try:
        with RunReader(run.path) as reader:
            seen = _SeenPairs(part_of(reader.family, ReportWords))
            bias = report_bias_of_compared(map(seen.note, reader.compared()), reader)
            return seen.report(bias)
    except EdgenError as problem:
        return str(problem).removeprefix(f"{run.path}: ")


class _SeenPairs:
    """Counts of all pairs, and the few that are shown. `words`: the words of the family."""

    def __init__(self, words: ReportWords) -> None:
        self._words = words
        self._counts = PairCounts()
        self._margins = array("d")
        self._rests: Counter[str] = Counter()
        self._clearest: _Ranked | None = None
        self._closest: _Ranked | None = None
        self._left_out: dict[str, ComparedPair] = {}

    def note(self, one: ComparedPair) -> ComparedPair:
        """Count a pair, and return the pair."""
        pair = one.pair
        self._counts.add(pair)
        if pair.label is None:
            reason = pair.left_out or "unknown"
            if reason not in self._left_out or pair.id < self._left_out[reason].pair.id:
                self._left_out[reason] = one
            return one
        margin = pair.label.margin
        self._margins.append(margin)
        self._rests[_describe_label(pair.label, self._words)] += 1
        if self._clearest is None or (-margin, pair.id) < self._clearest[0]:
            self._clearest = (-margin, pair.id), one
        if self._closest is None or (margin, pair.id) < self._closest[0]:
            self._closest = (margin, pair.id), one
        return one

    def report(self, bias: dict[str, object]) -> PairsReport:
        examples = []
        if self._clearest is not None and self._closest is not None:
            examples.append(_make_example(self._clearest[1], "the clearest label"))
            if self._closest[1] is not self._clearest[1]:
                examples.append(_make_example(self._closest[1], "the least clear label"))
        told = {reason: one for reason, one in self._left_out.items() if reason != "identical"}
        if told:
            reason = min(told, key=lambda reason: (-self._counts.left_out[reason], reason))
            examples.append(_make_example(told[reason], f"without a label: {reason.replace('_', ' ')}"))
        return PairsReport(
            train=self._counts.train,
            test=self._counts.test,
            left_out=dict(sorted(self._counts.left_out.items(), key=lambda one: (-one[1], one[0]))),
            simulated=self._counts.simulated,
            rests=dict(sorted(self._rests.items(), key=lambda one: (-one[1], one[0]))),
            margins=summarize_shares(self._margins),
            bias=bias,
            probability_of=self._words.probability_of,
            examples=tuple(examples),
        )


def _describe_label(label: Label, words: ReportWords) -> str:
    """Describe the basis of a label in words."""
    if label.k is not UNSET:
        by = "compared by a judge" if label.judge else "by their probabilities"
        return f"{label.by}: rollouts, {label.k} from each response, {by}"
    basis = _RESTS.get(label.by) or _JUDGED.get(label.compare or "", "verdicts in both orders")
    named = basis.format(hearer=words.hearer, probabilities=f"probabilities {words.probability_of}".rstrip())
    return f"{label.by}: {named}"


def _make_example(one: ComparedPair, why: str) -> PairExample:
    pair, shared = one.pair, one.a.turns[: one.pair.prefix_turns]
    return PairExample(
        id=pair.id,
        why=why,
        facts=tuple(_list_facts(pair)),
        shared=len(shared),
        before=_cut(shared[-1]) if shared else None,
        sides=(_make_side(one, "a"), _make_side(one, "b")),
    )


def _make_side(one: ComparedPair, name: SideName) -> PairSide:
    candidate, side = (one.a, one.pair.a) if name == "a" else (one.b, one.pair.b)
    label, start = one.pair.label, one.pair.prefix_turns
    turns = candidate.turns[start:]
    return PairSide(
        name=name,
        id=side.id,
        verdict="" if label is None else "chosen" if label.chosen == name else "rejected",
        turns=tuple(map(_cut, turns[:_TURNS])),
        more=max(len(turns) - _TURNS, 0),
    )


def _cut(turn: Turn) -> Turn:
    text = turn.text if len(turn.text) <= _CUT else f"{turn.text[:_CUT].rstrip()} …"
    return msgspec.structs.replace(turn, text=text, alternatives=())


def _list_facts(pair: Pair) -> list[tuple[str, str]]:
    """Return each source's signal on a pair."""
    said, signals = [], pair.signals
    if pair.label is not None:
        said.append(("Chosen", f"{pair.label.chosen}, by {pair.label.by}, margin {pair.label.margin:.2f}"))
    for one in signals.oracle:
        wins = [
            f"{share:.0%} when a {where}"
            for share, where in ((one.wins_ab, "is first"), (one.wins_ba, "is second"))
            if share is not None
        ]
        said.append(
            (f"Judge {one.model}", f"prefers a in {', '.join(wins)}" if wins else "no verdict could be read")
        )
    if signals.probability.a is not None and signals.probability.b is not None:
        said.append(("Probabilities", f"a {signals.probability.a:g}, b {signals.probability.b:g}"))
    if signals.human is not None:
        said.append(("Votes", f"{signals.human.p:.0%} of {len(signals.human.votes)} for a"))
    marks = (("Flag", signals.flag), ("Judged", signals.judged))
    said += [(name, f"a {mark.a or '–'}, b {mark.b or '–'}") for name, mark in marks if mark is not UNSET]
    if signals.rollouts is not UNSET:
        for rolled in signals.rollouts:
            p = "unknown" if rolled.p is None else f"{rolled.p:.2f}"
            said.append((f"Rollouts by {rolled.by}", f"p for a {p}, {rolled.counted} of {rolled.k} counted"))
    return said
