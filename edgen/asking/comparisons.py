"""Comparisons by one judge: which pairs of a run it is asked about, in both orders, and what is kept of its
verdicts.

The pairs are of conversations, or of rollouts: the first rollout of one response against the first of the
other, and so on.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence

import msgspec

from edgen.asking.answering import Answerer
from edgen.asking.asker import PromptAsker
from edgen.config import Job
from edgen.core.pair import Candidate, Verdict, texts_digest
from edgen.core.values import Rejection, RejectionReason, Status
from edgen.preferences.choice import PairChoice
from edgen.preferences.comparisons import JudgedComparison, name_comparison, read_comparison
from edgen.preferences.rollouts import PlayedRollouts, list_parted_responses
from edgen.preferences.signals import oracle_signal
from edgen.protocols.oracle import CandidatePair, oracle
from edgen.protocols.task import Settled, Spent, Task
from edgen.store.run_reader import RunReader

log = logging.getLogger("edgen")


class Comparisons(PromptAsker):
    """The comparisons of a run's conversations by one judge."""

    outcomes = ("judged", "without verdict")
    useless_help = (
        "Its template should end in a question that 1 or 2 answers; see that max_tokens leaves room for it, "
        "or name another judge with --backend."
    )

    def __init__(self, reader: RunReader, job: Job, judge: Answerer) -> None:
        super().__init__(reader, job, judge, "pairs")
        self._choice = PairChoice(reader, job.pairs)
        digest = hashlib.blake2b(digest_size=8)
        for unit in self.units():
            digest.update("{} {}\n".format(*unit).encode())
            self.planned += 1
            self.scenarios = unit[0] + 1
        self._warned = False
        self.logprobs = job.pairs.logprobs is not None
        self.shaping = {"votes": job.pairs.votes, "units": digest.hexdigest()}
        if self.logprobs:
            self.shaping["logprobs"] = job.pairs.logprobs

    def units(self) -> Iterator[tuple[int, str]]:
        """Yield (scenario, task) of every comparison."""
        for index, names in self.reader.scenarios():
            if len(names) > 1:
                yield from ((index, task) for task in sorted(self.tasks(index, names)))

    def tasks(self, index: int, names: Sequence[str]) -> Iterator[str]:
        """Yield the comparisons of one scenario."""
        return (name_comparison(*pair) for pair in self._choice.list_pairs_to_judge(index, names))

    def side(self, index: int, name: str) -> Candidate:
        """Return one side of a comparison."""
        return self.reader.candidate(index, name)

    def task(self, index: int, task: str) -> Task:
        """Return the work on one comparison."""
        a, b = (self.side(index, name) for name in read_comparison(task))
        comparison = CandidatePair(self.reader.space, self.reader.scenario(index), task, a, b)
        protocol = oracle(comparison, self.prompt, self.job.pairs, self.rules)
        return Task(protocol, self.group(index), lambda result, spent: self._settle(a, b, result, spent))

    def _settle(self, a: Candidate, b: Candidate, result: list[Verdict] | Rejection, spent: Spent) -> Settled:
        if isinstance(result, Rejection):
            return Settled.rejected(result)
        compare = self.job.pairs.compared
        signal = oracle_signal(self.id, spent.by_role["judge"].model, compare, result, spent.simulated)
        record = msgspec.json.encode(JudgedComparison(signal=signal, texts=texts_digest(a, b)))
        self._warn_if_untold(result)
        if not signal.abstain:
            return Settled.accepted(record)
        unread = next(verdict.text for verdict in result if verdict.choice is None)
        detail = f"an answer names neither side: {(unread or '').strip()[:80] or '(empty)'}"
        return Settled(Status.REJECTED, str(RejectionReason.UNREAD), detail, record)

    def _warn_if_untold(self, verdicts: list[Verdict]) -> None:
        """Warn once if a service returns no log probabilities although they were requested."""
        if not self._warned and any(verdict.logprob_gap == "not_told" for verdict in verdicts):
            self._warned = True
            log.warning(
                "%s was asked for log probabilities (pairs.logprobs) and tells none with some answers; "
                "their verdicts stand without a soft preference.",
                self.answerer.model,
            )


class RolloutComparisons(Comparisons):
    """The comparisons of a run's rollouts by one judge."""

    def __init__(self, played: PlayedRollouts, job: Job, judge: Answerer) -> None:
        self._played = played
        super().__init__(played.choice.reader, job, judge)

    def tasks(self, index: int, names: Sequence[str]) -> Iterator[str]:
        """Yield the comparisons of one scenario."""
        for a, b in list_parted_responses(self._played.choice, index, names):
            both = zip(self._played.of(index, a), self._played.of(index, b), strict=True)
            for number, (one, other) in enumerate(both):
                if one is not None and other is not None:
                    yield name_comparison(a.rollout(number), b.rollout(number))

    def side(self, index: int, name: str) -> Candidate:
        """Return one side of a comparison."""
        return self._played.find_rollout(index, name)
