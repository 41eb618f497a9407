"""From judged comparisons, votes and probabilities to pairs.jsonl: every pair with all its signals.

Each line has a label, or the reason why the pair has none. The whole file is made again from the ledgers,
without any calls.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.errors import RunError
from edgen.core.pair import (
    Candidate,
    JudgeDirected,
    OracleSignal,
    Pair,
    RolloutSignal,
    Side,
    Signals,
    digest_texts,
)
from edgen.core.values import RejectionReason, Status
from edgen.core.version import __version__
from edgen.preferences.choice import Divergence, PairChoice
from edgen.preferences.comparisons import decode_judged, name_comparison, read_comparison
from edgen.preferences.judge_directed import find_first_directed
from edgen.preferences.labels import LabelRules, label_scenario
from edgen.preferences.response_pairs import list_response_pairs
from edgen.preferences.rollout_signals import Outcomes, list_rollout_signals
from edgen.preferences.rollouts import DivergingTurn, PlayedRollouts
from edgen.preferences.signals import make_human_signal, make_probability_signal
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader
from edgen.store.votes import Votes, select_votes_that_hold

_encode = msgspec.json.Encoder().encode
Outcome = tuple[str, str | None, bytes | None]  # status, reason and record by task, as in a ledger


class PairCounts(msgspec.Struct):
    """Counts of a pairs file: labelled pairs by side of the split, and the others by reason. `simulated`: a
    simulator took part in a conversation or a verdict. `stale_votes`: people's votes on texts that have
    changed."""

    train: int = 0
    test: int = 0
    simulated: bool = False
    stale_votes: int = 0
    left_out: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, pair: Pair) -> None:
        self.simulated |= bool(pair.provenance["simulated"])
        if pair.label is None:
            self.left_out[pair.left_out or "unknown"] += 1
        elif pair.split == "test":
            self.test += 1
        else:
            self.train += 1


def write_pairs(
    choice: PairChoice, rules: LabelRules, votes: Votes, played: PlayedRollouts | None = None
) -> PairCounts:
    """Write pairs.jsonl in the run's folder and replace an earlier one. `choice`: the pairs that were to be
    judged. `played`: the rollouts on which the labels rest; None if they rest on no rollouts."""
    reader = choice.reader
    with contextlib.ExitStack() as stack:
        views = {one.stem: stack.enter_context(LedgerReader(one)) for one in reader.rundir.judge_ledgers()}
        partners: dict[str, list[str]] = defaultdict(list)
        for a, b in votes:
            partners[a].append(b)
        of_responses = any(a == b for a, b in votes)
        known = _Known(choice, votes, partners, views, rules.judge, played, Counter(), of_responses)
        counts = _write_labelled(reader, rules, known.iterate_pairs)
    counts.stale_votes = sum(map(len, votes.values())) - known.held.total()
    return counts


def write_response_pairs(reader: RunReader, rules: LabelRules, votes: Votes) -> PairCounts:
    """Write pairs.jsonl in the run's folder, with pairs of responses to one turn, and replace an earlier
    one."""

    def list_pairs(index: int, names: Sequence[str]) -> Iterator[Pair]:
        for name in names:
            yield from list_response_pairs(reader, reader.candidate(index, name), votes)

    return _write_labelled(reader, rules, list_pairs)


def _write_labelled(
    reader: RunReader, rules: LabelRules, pairs: Callable[[int, list[str]], Iterable[Pair]]
) -> PairCounts:
    """Write pairs.jsonl with a label or a reason for each pair. `pairs` returns the pairs of a scenario,
    given its index and the names of its conversations."""
    counts, path = PairCounts(), reader.rundir.pairs
    path.parent.mkdir(parents=True, exist_ok=True)

    def iterate_lines() -> Iterator[bytes]:
        for index, names in reader.scenarios():
            for pair in label_scenario([*pairs(index, names)], rules):
                counts.add(pair)
                yield _encode(pair)

    reader.rundir.write_lines(path, iterate_lines())
    return counts


class _Known(NamedTuple):
    """Everything known about the pairs of a run."""

    choice: PairChoice  # the chosen pairs
    votes: Votes  # people's votes
    partners: Mapping[str, list[str]]  # for each id, later ids in votes on both
    views: Mapping[str, LedgerReader]  # the judges' ledgers, by name
    judge: str | None  # the judge that labels; None without one
    played: PlayedRollouts | None  # rollouts; None without them
    held: Counter[str]  # number of votes on unchanged texts
    of_responses: bool  # some votes are on responses to one turn

    def iterate_pairs(self, index: int, names: list[str]) -> Iterator[Pair]:
        """Yield the pairs of one scenario with all signals: pairs of conversations, then pairs of responses
        to one turn that people voted on."""
        if len(names) > 1:
            yield from self._of_conversations(index, names)
        seen: set[str] = set()  # equal responses are one pair
        for name in names if self.of_responses else ():
            for pair in list_response_pairs(
                self.choice.reader, self.choice.reader.candidate(index, name), self.votes
            ):
                if pair.signals.human is not None and pair.texts not in seen:
                    seen.add(pair.texts)
                    self.held["votes"] += len(pair.signals.human.votes)
                    yield pair

    def _of_conversations(self, index: int, names: list[str]) -> Iterator[Pair]:
        """Yield the pairs about which some source was asked, the pairs left out only for `min_turns_left`, or
        all pairs."""
        reader, least = self.choice.reader, self.choice.wanted.min_turns_left
        outcomes = {judge: view.read_outcomes(index) for judge, view in self.views.items()}
        chosen = {*self.choice.list_names(index, names)}
        candidates = {name: reader.candidate(index, name) for name in names}
        directed = {
            name: find_first_directed(turn.text for turn in one.turns) for name, one in candidates.items()
        }
        judged = {read_comparison(task) for said in outcomes.values() for task in said}
        # Scenarios can have many conversations and few judged pairs, so other pairs are not examined.
        for a, b in _order_pairs({*chosen, *judged, *self._list_voted_pairs(candidates)}, names):
            human = make_human_signal(select_votes_that_hold(self.votes, candidates[a], candidates[b]))
            self.held["votes"] += 0 if human is None else len(human.votes)
            known = human or (a, b) in judged
            if not (known or (a, b) in chosen):
                continue
            divergence = Divergence.of(candidates[a], candidates[b])
            asked = self.choice.every or self.played is not None or divergence.is_near_end(least)
            if not (known or asked):
                continue
            signals = self._collect_signals(index, (a, b), divergence, outcomes, directed)
            signals = msgspec.structs.replace(signals, human=human)
            pair = _make_pair(reader, f"{reader.name}-{index:06d}-{a}-{b}", divergence, signals)
            if pair.left_out is None and divergence.is_near_end(least):
                pair = msgspec.structs.replace(pair, left_out="turns_left")
            yield pair

    def _list_voted_pairs(self, candidates: Mapping[str, Candidate]) -> Iterator[tuple[str, str]]:
        """Yield the names of the pairs of one scenario that people voted on."""
        names = {one.id: name for name, one in candidates.items()}
        for identifier, name in names.items():
            for other in self.partners.get(identifier, ()):
                if other in names and other != identifier:
                    yield name, names[other]

    def _collect_signals(
        self,
        index: int,
        names: tuple[str, str],
        divergence: Divergence,
        outcomes: Mapping[str, Outcomes],
        directed: Mapping[str, str | None],
    ) -> Signals:
        """Return the signals of a pair except people's votes. `directed`: for each conversation, the part
        that addresses a judge."""
        a, b, prefix = divergence
        said = (outcome.get(name_comparison(*names)) for outcome in outcomes.values())
        speaks = [
            self._find_directed_part(index, DivergingTurn(name, prefix + 1), directed[name]) for name in names
        ]
        return Signals(
            probability=make_probability_signal(a.probability, b.probability),
            oracle=tuple(_list_judgements(said, digest_texts(a, b))),
            judge_directed=JudgeDirected(a=speaks[0], b=speaks[1]) if speaks != [None, None] else UNSET,
            rollouts=self._collect_rollout_signals(index, names, divergence, outcomes),
        )

    def _collect_rollout_signals(
        self, index: int, names: tuple[str, str], divergence: Divergence, outcomes: Mapping[str, Outcomes]
    ) -> tuple[RolloutSignal, ...] | UnsetType:
        """Return the signals of a pair by rollouts, if labels rest on rollouts."""
        if self.played is None:
            return UNSET
        judged = None if self.judge is None else outcomes.get(self.judge)
        return tuple(list_rollout_signals(self.played, index, names, divergence, judged))

    def _find_directed_part(self, index: int, response: DivergingTurn, own: str | None) -> str | None:
        """Return the part of a side that addresses a judge, from its own conversation (`own`) or else from a
        rollout of its response."""
        if own is not None or self.played is None:
            return own
        rollouts = filter(None, self.played.of(index, response))
        return find_first_directed(turn.text for one in rollouts for turn in one.turns[response.turns :])


def _make_pair(reader: RunReader, identifier: str, divergence: Divergence, signals: Signals) -> Pair:
    """Return a pair without a label."""
    a, b, prefix = divergence
    responses = divergence.responses
    rollouts = () if signals.rollouts is UNSET else signals.rollouts
    judged = [signal.simulated for signal in signals.oracle]
    simulated = a.simulated or b.simulated or any((*judged, *(one.simulated for one in rollouts)))
    return Pair(
        id=identifier,
        scenario=a.scenario,
        split=reader.split(reader.scenario(a.scenario)),
        origin=reader.origin,
        a=Side(id=a.id, replicate=a.replicate, arm=a.arm or None),
        b=Side(id=b.id, replicate=b.replicate, arm=b.arm or None),
        prefix_turns=prefix,
        differs_at=None if responses is None else responses[0].role,
        texts=digest_texts(a, b),
        signals=signals,
        label=None,
        left_out="identical" if a.turns == b.turns else None,
        provenance={"run": reader.name, "edgen": __version__, "simulated": simulated},
    )


def _list_judgements(outcomes: Iterable[Outcome | None], texts: str) -> Iterator[OracleSignal]:
    """Yield judges' verdicts on a pair, if the digest of their texts is `texts`."""
    for status, reason, record in filter(None, outcomes):
        if record is None or not (status == Status.ACCEPTED or reason == RejectionReason.UNREAD):
            continue
        try:
            judged = decode_judged(record)
        except ValueError as problem:
            raise RunError(
                f"a judge's ledger holds an invalid judgement ({problem}); it is damaged."
            ) from None
        if judged.texts == texts:
            yield judged.signal


def _order_pairs(pairs: Iterable[tuple[str, str]], names: Sequence[str]) -> list[tuple[str, str]]:
    """Yield the pairs that consist of these names, each once, in the order of `itertools.combinations`."""
    place = {name: number for number, name in enumerate(names)}
    found = {(place[a], place[b]) for a, b in pairs if a in place and b in place}
    return [(names[a], names[b]) for a, b in sorted({(min(one), max(one)) for one in found})]
