"""Adherence sheets as the driver's tasks: which conversations a judge is asked about, and what is kept.

A sheet's unit is (scenario, number); its record holds the five answers. A judge, that is a backend and a
template, has a ledger of its own. The sample is drawn by hash: the same scenarios in every arm, and a larger
sample holds the smaller one, so that only what is new is asked.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen import __version__
from edgen.config import ARM_STRIDE, Job
from edgen.engine.session import Session
from edgen.engine.task import Settled, Spent, Task
from edgen.errors import ShortError
from edgen.ledger import REPLICATES, View
from edgen.model import Rejection
from edgen.pairing.agreement import agreement
from edgen.pairing.model import Candidate
from edgen.prompting import Prompt
from edgen.protocols import Rules
from edgen.protocols.adherence import adherence
from edgen.quality import results
from edgen.quality.adherence import KEYWORDS, Tally
from edgen.quality.cues import MEASURES, Verdicts, verdicts
from edgen.quality.words import cut
from edgen.runreader import RunReader
from edgen.splits import group_hash

_encode = msgspec.json.Encoder().encode


class Appraisal(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge's ledger keeps of a sheet: its answers, None for cannot tell."""

    answers: Verdicts
    simulated: bool = False


_appraisal = msgspec.json.Decoder(Appraisal).decode


class Appraiser(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, and with what. `id` names backend and template: 16 hex digits."""

    id: str
    model: str
    prompt: Prompt


def appraiser_id(identity: Mapping[str, Any], prompt: Prompt) -> str:
    """A name for everything that shapes a sheet's answer but the conversation."""
    facts = (dict(identity), prompt.sha256)
    return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]


class Appraising:
    """The sheets on `sample` conversations of each arm of a run by one judge. `job` is the run's, with the
    settings of this command."""

    shares = False

    def __init__(self, reader: RunReader, job: Job, judge: Appraiser, sample: int) -> None:
        self.job = job
        self.judge = judge
        self._reader = reader
        self._rules = Rules(asks=job.asks, seed=job.seed)
        self._unread_in_a_row = 0
        self._units = _sampled(reader, job.seed, sample)
        self.planned = len(self._units)

    def units(self) -> Iterator[tuple[int, int]]:
        """(scenario, number) of every conversation in the sample, ascending."""
        yield from self._units

    def task(self, index: int, replicate: int) -> Task:
        """The work on one conversation; `replicate` is its number."""
        scenario = self._reader.scenario(index)
        turns = self._reader.candidate(index, replicate).turns
        protocol = adherence(scenario, replicate, turns, self.judge.prompt, self._rules)
        return Task(protocol, group_hash(self.job.split.by, self.job.seed, scenario), self._settled)

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for the judge and what it is asked about; the sample's size does not count."""
        facts = {
            "judge": self.judge.id,
            "identities": {role: dict(identity) for role, identity in identities.items()},
            "asks": self.job.asks,
            "seed": self.job.seed,
            "run": self._reader.fingerprints,
            "edgen": __version__,
        }
        return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]

    def _settled(self, result: Verdicts | Rejection, spent: Spent) -> Settled:
        if isinstance(result, Verdicts):
            self._unread_in_a_row = 0
            return Settled.accepted(_encode(Appraisal(answers=result, simulated=spent.simulated)))
        self._unread_in_a_row += 1
        if self._unread_in_a_row >= self.job.limits.stop_after_failures:
            raise ShortError(
                f"The judge's answers about {self._unread_in_a_row} conversations in a row are no sheets, so the "
                f"rest was not asked ({result.detail}). See that its max_tokens leaves room for five lines, or "
                "name another judge: --set 'backends.judge={…}'."
            )
        return Settled.rejected(result)

    def results(self, ledger: Path) -> list[results.Adherence]:
        """What the judge found, arm by arm in the order of `RunReader.views`, once all is settled."""
        counts = {arm: _Count() for arm in self._reader.views}
        with View(ledger) as view:
            for index, number in self._units:
                candidate = self._reader.candidate(index, number)
                status, _, data = view.outcomes(index).get(number, ("pending", None, None))
                said = _appraisal(data) if status == "accepted" and data is not None else None
                counts[candidate.arm].add(self._by_keywords(candidate), status, said)
        return [count.result(self.judge.model) for count in counts.values()]

    def _by_keywords(self, candidate: Candidate) -> tuple[int, Verdicts]:
        scenario = self._reader.scenario(candidate.scenario)
        return scenario.index, verdicts(scenario, candidate.turns, cut(candidate.turns))


class _Count:
    """The sheets of one arm beside what the keywords say."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._scenarios: list[int] = []
        self._ratings: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in MEASURES}
        self._unread = self._unanswered = 0
        self._simulated = False

    def add(self, keywords: tuple[int, Verdicts], status: str, said: Appraisal | None) -> None:
        """Count a sheet. One that was not read tells nothing; one that got no answer does not count."""
        index, expected = keywords
        if said is None and status != "rejected":
            self._unanswered += 1
            return
        answers = said.answers if said is not None else Verdicts(None, None, None, None, None)
        self._unread += said is None
        self._simulated |= said is not None and said.simulated
        self._tally.add(index, answers)
        self._scenarios.append(index)
        for name, judge, keyword in zip(MEASURES, answers, expected, strict=True):
            for ratings, yes in zip(self._ratings[name], (judge, keyword), strict=True):
                ratings.append(0 if yes is None else 1 if yes else -1)

    def result(self, model: str) -> results.Adherence:
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
        return self._tally.result(model, agreement=self._agreement(), note=" ".join(notes))

    def _agreement(self) -> dict[str, float | None]:
        """Cohen's kappa by question, over what both tell of; None where it is not defined."""
        found: dict[str, float | None] = {}
        for name, (judge, keywords) in self._ratings.items():
            between = agreement({"judge": judge, KEYWORDS: keywords}, self._scenarios)["between"]
            found[name] = between[0]["kappa"]
        return found


def _sampled(reader: RunReader, seed: int, sample: int) -> list[tuple[int, int]]:
    """(scenario, number) of `sample` accepted conversations of each arm, ascending: the least hashes."""
    least: dict[int, list[tuple[int, int, int]]] = {}
    for index, numbers in reader.scenarios():
        for number in numbers:
            arm, replicate = divmod(number, ARM_STRIDE) if reader.job.arms else (0, number)
            drawn = (-_rank(seed, index, replicate), index, number)
            chosen = least.setdefault(arm, [])
            if len(chosen) < sample:
                heapq.heappush(chosen, drawn)
            else:
                heapq.heappushpop(chosen, drawn)
    return sorted((index, number) for chosen in least.values() for _, index, number in chosen)


def _rank(seed: int, index: int, replicate: int) -> int:
    place = f"adherence/{seed}/{index}/{replicate}".encode()
    return int.from_bytes(hashlib.blake2b(place, digest_size=8).digest(), "big")


async def work_through(appraising: Appraising, session: Session) -> None:
    """Ask for what has no sheet yet. Raises what stopped it."""
    async with session.noted():
        scenarios = max((index for index, _ in appraising.units()), default=-1) + 1
        planned = appraising.planned
        session.announce(appraising.job.name, scenarios, REPLICATES, asked=planned, planned=planned)
        await session.driver.run(session.pending(appraising.units(), 0, scenarios))
        await session.ledger.flush()
