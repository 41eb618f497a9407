"""From judged comparisons, votes and probabilities to pairs.jsonl: every pair with all its signals.

Each line has a label, or the reason why none can be defended. The file is made anew, whole, from what
the ledgers hold; nothing is asked here.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import UNSET

from edgen.core.errors import RunError
from edgen.core.files import write_lines
from edgen.core.pair import JudgeDirected, Pair, Side, Signals
from edgen.core.values import RejectionReason, Status
from edgen.core.version import __version__
from edgen.preferences.comparisons import JudgedComparison, name_comparison
from edgen.preferences.judge_directed import first_directed
from edgen.preferences.labels import LabelRules, label_scenario
from edgen.preferences.signals import human_signal, probability_signal
from edgen.protocols.oracle import shared_prefix
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader, texts_digest
from edgen.store.votes import Votes, votes_that_hold

_decode = msgspec.json.Decoder(JudgedComparison).decode
_encode = msgspec.json.Encoder().encode
Outcome = tuple[str, str | None, bytes | None]  # status, reason and record, as a ledger has them


class PairCounts(msgspec.Struct):
    """What a pairs file holds: labelled pairs by side of the split, and the others by reason. `simulated`: a
    simulator had a part in a conversation or a verdict."""

    train: int = 0
    test: int = 0
    simulated: bool = False
    left_out: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, pair: Pair) -> None:
        self.simulated |= bool(pair.provenance["simulated"])
        if pair.label is None:
            self.left_out[pair.left_out or "unknown"] += 1
        elif pair.split == "test":
            self.test += 1
        else:
            self.train += 1


def write_pairs(reader: RunReader, rules: LabelRules, votes: Votes) -> PairCounts:
    """Write pairs.jsonl in the run's folder, in place of an earlier one."""
    counts = PairCounts()

    def lines() -> Iterator[bytes]:
        for index, names in reader.scenarios():
            if len(names) > 1:
                signals = _ScenarioSignals(
                    reader, index, names, votes, [view.outcomes(index) for view in views]
                )
                for pair in label_scenario(list(signals.pairs(every=rules.by == "probability")), rules):
                    counts.add(pair)
                    yield _encode(pair)

    path = reader.rundir.pairs
    path.parent.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        views = [stack.enter_context(LedgerReader(ledger)) for ledger in reader.rundir.judge_ledgers()]
        write_lines(path, lines())
    return counts


class _ScenarioSignals:
    """What is known of the pairs of one scenario. `outcomes` are each judge's, by task."""

    def __init__(
        self,
        reader: RunReader,
        index: int,
        names: list[str],
        votes: Votes,
        outcomes: list[Mapping[str, Outcome]],
    ) -> None:
        self._reader = reader
        self._scenario = reader.scenario(index)
        self._candidates = {name: reader.candidate(index, name) for name in names}
        self._directed = {
            name: first_directed(turn.text for turn in candidate.turns)
            for name, candidate in self._candidates.items()
        }
        self._votes = votes
        self._outcomes = outcomes

    def pairs(self, *, every: bool) -> Iterator[Pair]:
        """Every pair that some source was asked about, or every pair there is, with all that is known of it."""
        asked = set().union(*self._outcomes)
        for a, b in itertools.combinations(self._candidates, 2):
            if (
                every
                or name_comparison(a, b) in asked
                or votes_that_hold(self._votes, self._candidates[a], self._candidates[b])
            ):
                yield self._pair(a, b)

    def _pair(self, a: str, b: str) -> Pair:
        one, other = self._candidates[a], self._candidates[b]
        texts = texts_digest(one, other)
        judged = [_read_judged(outcomes.get(name_comparison(a, b)), texts) for outcomes in self._outcomes]
        oracle = tuple(comparison.signal for comparison in judged if comparison is not None)
        said = JudgeDirected(a=self._directed[a], b=self._directed[b])
        signals = Signals(
            probability=probability_signal(one.probability, other.probability),
            oracle=oracle,
            human=human_signal(votes_that_hold(self._votes, one, other)),
            judge_directed=UNSET if said.a is None and said.b is None else said,
        )
        simulated = one.simulated or other.simulated or any(signal.simulated for signal in oracle)
        prefix = shared_prefix(one, other)
        speakers = [turns[prefix].role for turns in (one.turns, other.turns) if len(turns) > prefix]
        return Pair(
            id=f"{self._reader.name}-{self._scenario.index:06d}-{a}-{b}",
            scenario=self._scenario.index,
            split=self._reader.split(self._scenario),
            origin=self._reader.origin,
            a=Side(id=one.id, replicate=one.replicate, arm=one.arm or None),
            b=Side(id=other.id, replicate=other.replicate, arm=other.arm or None),
            prefix_turns=prefix,
            differs_at=speakers[0] if len(speakers) == 2 and len(set(speakers)) == 1 else None,
            texts=texts,
            signals=signals,
            label=None,
            left_out="identical" if one.turns == other.turns else None,
            provenance={"run": self._reader.name, "edgen": __version__, "simulated": simulated},
        )


def _read_judged(outcome: Outcome | None, texts: str) -> JudgedComparison | None:
    """What a judge said of a pair, if it was about these very texts."""
    if outcome is None:
        return None
    status, reason, record = outcome
    if record is None or not (status == Status.ACCEPTED or reason == RejectionReason.UNREAD):
        return None
    try:
        judged = _decode(record)
    except (ValueError, msgspec.MsgspecError) as problem:
        raise RunError(
            f"a judge's ledger holds a judgement that is none ({problem}); it is damaged."
        ) from None
    return judged if judged.texts == texts else None
