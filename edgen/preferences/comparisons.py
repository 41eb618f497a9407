"""Comparisons of a run by one judge: which pairs it is asked about, and what is kept of its verdicts.

A comparison's task is named by its candidates, as in "r0~r1"; its record holds every verdict.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterator, Sequence

import msgspec

from edgen.config import Job
from edgen.core import resources
from edgen.core.digest import sha256
from edgen.core.files import read_regular
from edgen.core.pair import Candidate, Compare, OracleSignal, Verdict, texts_digest
from edgen.core.values import Rejection, RejectionReason, Status
from edgen.preferences.choice import PairChoice
from edgen.preferences.judge import Judge, JudgeTasks
from edgen.preferences.signals import oracle_signal
from edgen.protocols.oracle import Comparison, oracle
from edgen.protocols.task import Settled, Spent, Task
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

log = logging.getLogger("edgen")

GUARDED_TEMPLATE = "oracle_guarded"  # what a judge is asked with where nothing else is said
_MOST_NOTED = 1_000_000  # bytes: a template, and who is asked with it
_encode = msgspec.json.Encoder().encode


_BETWEEN = "~"  # stands in no candidate's name


def name_comparison(a: str, b: str) -> str:
    """The task of comparing two candidates, by their names."""
    return f"{a}{_BETWEEN}{b}"


class JudgedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge's ledger keeps of a comparison. `texts` is a digest of what was compared: where the
    run was made anew since, the signal does not hold any more."""

    signal: OracleSignal
    texts: str


class Comparisons(JudgeTasks):
    """The comparisons of a run by one judge."""

    unread_means = (
        "Its template should end in a question that 1 or 2 answers; see that max_tokens leaves room for it, or name "
        "another judge with --judge."
    )

    def __init__(self, reader: RunReader, job: Job, judge: Judge) -> None:
        super().__init__(reader, job, judge)
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
        """(scenario, task) of every comparison."""
        for index, names in self.reader.scenarios():
            if len(names) > 1:
                yield from ((index, task) for task in sorted(self.tasks(index, names)))

    def tasks(self, index: int, names: Sequence[str]) -> Iterator[str]:
        """The comparisons of one scenario."""
        return (name_comparison(*pair) for pair in self._choice.judged(index, names))

    def side(self, index: int, name: str) -> Candidate:
        """One side of a comparison."""
        return self.reader.candidate(index, name)

    def task(self, index: int, task: str) -> Task:
        """The work on one comparison."""
        a, b = (self.side(index, name) for name in task.split(_BETWEEN))
        comparison = Comparison(self.reader.space, self.reader.scenario(index), task, a, b)
        protocol = oracle(comparison, self.judge.prompt, self.job.pairs, self.rules)
        return Task(protocol, self.group(index), lambda result, spent: self._settle(a, b, result, spent))

    def _settle(self, a: Candidate, b: Candidate, result: list[Verdict] | Rejection, spent: Spent) -> Settled:
        if isinstance(result, Rejection):
            return Settled.rejected(result)
        signal = oracle_signal(
            self.judge.id, spent.by_role["judge"].model, self.job.pairs.compare, result, spent.simulated
        )
        record = _encode(JudgedComparison(signal=signal, texts=texts_digest(a, b)))
        self._warn_if_untold(result)
        if not signal.abstain:
            self.count_read()
            return Settled.accepted(record)
        unread = next(verdict.text for verdict in result if verdict.choice is None)
        detail = f"an answer names neither side: {(unread or '').strip()[:80] or '(empty)'}"
        self.count_unread(detail)
        return Settled(Status.REJECTED, str(RejectionReason.UNREAD), detail, record)

    def _warn_if_untold(self, verdicts: list[Verdict]) -> None:
        """Say once that a service tells no log probabilities, though it is asked for them."""
        if not self._warned and any(verdict.logprob_gap == "not_told" for verdict in verdicts):
            self._warned = True
            log.warning(
                "%s was asked for log probabilities (pairs.logprobs) and tells none with some answers; their verdicts "
                "stand without a soft preference.",
                self.judge.model,
            )


def published_before(rundir: RunFolder, compare: Compare) -> str | None:
    """The name of the published template if this run was judged with it, by this way of comparing, and never with
    the guarded one: a run that was judged while it was the usual one is not asked anew unasked."""
    name = f"oracle_{compare}"
    known = {_digest(shipped): shipped for shipped in (name, GUARDED_TEMPLATE)}
    used = {known.get(template) for template in _templates_noted(rundir, compare)}
    return name if name in used and GUARDED_TEMPLATE not in used else None


def _digest(shipped: str) -> str:
    return sha256(resources.find("prompts", shipped).read_bytes())


def _templates_noted(rundir: RunFolder, compare: Compare) -> Iterator[str]:
    """The sha256 of the template of each judge of this run that compared in this way."""
    for ledger in rundir.judge_ledgers():
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            noted = msgspec.json.decode(read_regular(ledger.with_suffix(".json"), _MOST_NOTED))
            if noted["compare"] == compare:
                yield str(noted["template"]["sha256"])
