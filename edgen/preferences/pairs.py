"""From judged comparisons, votes and probabilities to pairs.jsonl: every pair with all its signals.

Each line has a label, or the reason why none can be defended. The file is made anew, whole, from what
the ledgers hold; nothing is asked here.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import UNSET

from edgen.core.errors import RunError
from edgen.core.files import write_lines
from edgen.core.pair import JudgeDirected, OracleSignal, Pair, Side, Signals
from edgen.core.values import RejectionReason, Status
from edgen.core.version import __version__
from edgen.preferences.choice import PairChoice, Parting
from edgen.preferences.comparisons import JudgedComparison, name_comparison
from edgen.preferences.judge_directed import first_directed
from edgen.preferences.labels import LabelRules, label_scenario
from edgen.preferences.signals import human_signal, probability_signal
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


def write_pairs(choice: PairChoice, rules: LabelRules, votes: Votes) -> PairCounts:
    """Write pairs.jsonl in the run's folder, in place of an earlier one. `choice`: the pairs that were to be judged."""
    counts, reader = PairCounts(), choice.reader

    def lines() -> Iterator[bytes]:
        for index, names in reader.scenarios():
            if len(names) > 1:
                outcomes = [view.outcomes(index) for view in views]
                pairs = _pairs_of(choice, index, names, votes, outcomes)
                for pair in label_scenario(list(pairs), rules):
                    counts.add(pair)
                    yield _encode(pair)

    path = reader.rundir.pairs
    path.parent.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        views = [stack.enter_context(LedgerReader(ledger)) for ledger in reader.rundir.judge_ledgers()]
        write_lines(path, lines())
    return counts


def _pairs_of(
    choice: PairChoice,
    index: int,
    names: list[str],
    votes: Votes,
    outcomes: Sequence[Mapping[str, Outcome]],
) -> Iterator[Pair]:
    """The pairs of one scenario that some source was asked about, or would have been but for the turns that are left,
    or every pair there is, with all that is known of each. `outcomes` are each judge's, by task."""
    reader, least = choice.reader, choice.wanted.min_turns_left
    chosen = {*choice.names(index, names)}
    candidates = {name: reader.candidate(index, name) for name in names}
    directed = {
        name: first_directed(turn.text for turn in candidate.turns) for name, candidate in candidates.items()
    }
    for (a, one), (b, other) in itertools.combinations(candidates.items(), 2):
        task, parting = name_comparison(a, b), Parting.of(one, other)
        human = human_signal(votes_that_hold(votes, one, other))
        asked = choice.every or parting.near_end(least)
        if not (human or (asked and (a, b) in chosen) or any(task in judged for judged in outcomes)):
            continue
        said = JudgeDirected(a=directed[a], b=directed[b])
        signals = Signals(
            probability=probability_signal(one.probability, other.probability),
            oracle=tuple(_judgements((judged.get(task) for judged in outcomes), texts_digest(one, other))),
            human=human,
            judge_directed=UNSET if said.a is None and said.b is None else said,
        )
        pair = _pair(reader, f"{reader.name}-{index:06d}-{a}-{b}", parting, signals)
        if pair.left_out is None and parting.near_end(least):
            pair = msgspec.structs.replace(pair, left_out="turns_left")
        yield pair


def _pair(reader: RunReader, identifier: str, parting: Parting, signals: Signals) -> Pair:
    """A pair without a label."""
    a, b, prefix = parting
    responses = parting.responses
    simulated = a.simulated or b.simulated or any(signal.simulated for signal in signals.oracle)
    return Pair(
        id=identifier,
        scenario=a.scenario,
        split=reader.split(reader.scenario(a.scenario)),
        origin=reader.origin,
        a=Side(id=a.id, replicate=a.replicate, arm=a.arm or None),
        b=Side(id=b.id, replicate=b.replicate, arm=b.arm or None),
        prefix_turns=prefix,
        differs_at=None if responses is None else responses[0].role,
        texts=texts_digest(a, b),
        signals=signals,
        label=None,
        left_out="identical" if a.turns == b.turns else None,
        provenance={"run": reader.name, "edgen": __version__, "simulated": simulated},
    )


def _judgements(outcomes: Iterable[Outcome | None], texts: str) -> Iterator[OracleSignal]:
    """What judges said of a pair, where it was about these very texts."""
    for status, reason, record in filter(None, outcomes):
        if record is None or not (status == Status.ACCEPTED or reason == RejectionReason.UNREAD):
            continue
        try:
            judged = _decode(record)
        except ValueError as problem:
            raise RunError(
                f"a judge's ledger holds a judgement that is none ({problem}); it is damaged."
            ) from None
        if judged.texts == texts:
            yield judged.signal
