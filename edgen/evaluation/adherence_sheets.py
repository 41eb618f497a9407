"""Adherence sheets as the driver's tasks: which conversations a judge is asked about, and what is kept.

A sheet's unit is (scenario, number); its record holds the five answers. A judge, that is a backend and a
template, has a ledger of its own. The sample is drawn by hash: the same scenarios in every arm, and a larger
sample holds the smaller one, so that only what is new is asked.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.config import Job
from edgen.core.digest import hash64
from edgen.core.pair import Candidate, candidate_name
from edgen.core.values import Rejection
from edgen.evaluation.measures.adherence import KEYWORDS, Adherence, VerdictCount
from edgen.evaluation.sample import cut
from edgen.families.education.cues import MEASURES, Verdicts, verdicts
from edgen.preferences.judge import Judge, JudgeTasks
from edgen.protocols.adherence import adherence
from edgen.protocols.task import Settled, Spent, Task
from edgen.stats.agreement import agreement
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader

_encode = msgspec.json.Encoder().encode


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge's ledger keeps of a conversation: its answers, None for cannot tell."""

    answers: Verdicts
    simulated: bool = False


_decode = msgspec.json.Decoder(Sheet).decode


class AdherenceSheets(JudgeTasks):
    """The sheets on `sample` conversations of each arm of a run by one judge. The sample's size shapes no answer."""

    unread_means = (
        "A sheet has five lines: see that its max_tokens leaves room for them, or name another judge: "
        "--set 'backends.judge={…}'."
    )

    def __init__(self, reader: RunReader, job: Job, judge: Judge, sample: int) -> None:
        super().__init__(reader, job, judge)
        self._units = _sample_conversations(reader, job.seed, sample)
        self.planned = len(self._units)
        self.scenarios = max((index for index, _ in self._units), default=-1) + 1

    def units(self) -> Iterator[tuple[int, str]]:
        """(scenario, name) of every conversation in the sample."""
        yield from self._units

    def task(self, index: int, name: str) -> Task:
        """The work on one conversation."""
        turns = self.reader.candidate(index, name).turns
        protocol = adherence(self.reader.scenario(index), name, turns, self.judge.prompt, self.rules)
        return Task(protocol, self.group(index), self._settle)

    def _settle(self, result: Verdicts | Rejection, spent: Spent) -> Settled:
        if isinstance(result, Rejection):
            self.count_unread(result.detail)
            return Settled.rejected(result)
        self.count_read()
        return Settled.accepted(_encode(Sheet(answers=result, simulated=spent.simulated)))

    def results(self, ledger: Path) -> list[Adherence]:
        """What the judge found, arm by arm in the order of `RunReader.views`, once all is settled."""
        counts = {arm: _ArmCount() for arm in self.reader.views}
        with LedgerReader(ledger) as view:
            for index, name in self._units:
                candidate = self.reader.candidate(index, name)
                status, _, data = view.outcomes(index).get(name, ("pending", None, None))
                said = _decode(data) if status == "accepted" and data is not None else None
                counts[candidate.arm].add(self._by_keywords(candidate), status, said)
        return [count.result(self.judge.model) for count in counts.values()]

    def _by_keywords(self, candidate: Candidate) -> tuple[int, Verdicts]:
        scenario = self.reader.scenario(candidate.scenario)
        return scenario.index, verdicts(scenario, candidate.turns, cut(candidate.turns).spoken)


class _ArmCount:
    """The sheets of one arm beside what the keywords say."""

    def __init__(self) -> None:
        self._verdicts = VerdictCount()
        self._scenarios: list[int] = []
        self._ratings: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in MEASURES}
        self._unread = self._unanswered = 0
        self._simulated = False

    def add(self, keywords: tuple[int, Verdicts], status: str, said: Sheet | None) -> None:
        """Count a sheet. One that was not read tells nothing; one that got no answer does not count."""
        index, expected = keywords
        if said is None and status != "rejected":
            self._unanswered += 1
            return
        answers = said.answers if said is not None else Verdicts(None, None, None, None, None)
        self._unread += said is None
        self._simulated |= said is not None and said.simulated
        self._verdicts.add(index, answers)
        self._scenarios.append(index)
        for name, judge, keyword in zip(MEASURES, answers, expected, strict=True):
            for ratings, yes in zip(self._ratings[name], (judge, keyword), strict=True):
                ratings.append(0 if yes is None else 1 if yes else -1)

    def result(self, model: str) -> Adherence:
        """The judge's shares, and how far it agrees with the keywords."""
        notes = [f"{model} was asked about {len(self._scenarios)} conversations, drawn by hash."]
        if self._simulated:
            notes.append("The judge is the simulator: it goes by the keywords, with errors put in.")
        if self._unread:
            notes.append(f"{self._unread} of its answers could not be read, and tell nothing.")
        if self._unanswered:
            notes.append(
                f"Left out for want of an answer: {self._unanswered}. Asked again, they may get one."
            )
        return self._verdicts.shares(model, " ".join(notes), self._agreement())

    def _agreement(self) -> dict[str, float | None]:
        """Cohen's kappa by question, over what both tell of; None where it is not defined."""
        found: dict[str, float | None] = {}
        for name, (judge, keywords) in self._ratings.items():
            between = agreement({"judge": judge, KEYWORDS: keywords}, self._scenarios)["between"]
            found[name] = between[0]["kappa"]
        return found


def _sample_conversations(reader: RunReader, seed: int, sample: int) -> list[tuple[int, str]]:
    """(scenario, name) of `sample` accepted conversations of each arm, ascending: the least hashes."""
    chosen: list[tuple[int, int, str]] = []
    for arm, view in reader.views.items():
        ranked = (
            (_rank(seed, index, replicate), index, candidate_name(arm, replicate))
            for index, replicate in view.accepted()
        )
        chosen += heapq.nsmallest(sample, ranked)
    return sorted((index, name) for _, index, name in chosen)


def _rank(seed: int, index: int, replicate: int) -> int:
    return hash64(f"adherence/{seed}/{index}/{replicate}".encode())
