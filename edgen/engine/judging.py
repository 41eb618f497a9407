"""Comparisons as the driver's tasks: which pairs of a run a judge is asked about, and what is kept.

A comparison's unit is (scenario, slot); its record holds every verdict. A judge, that is a backend, a
template and a way of comparing, has a ledger of its own, so that no judge overwrites another.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen import __version__, resources
from edgen.config import Job
from edgen.engine.session import Session
from edgen.engine.task import Settled, Spent, Task
from edgen.errors import RunError, ShortError
from edgen.files import read_regular
from edgen.ledger import REPLICATES
from edgen.model import Rejection, RejectionReason, Status
from edgen.pairing.model import Candidate, Compare, OracleSignal, Verdict
from edgen.pairing.signals import oracle_signal
from edgen.pairing.tournament import matches, sides, slot
from edgen.prompting import Prompt
from edgen.protocols import Rules
from edgen.protocols.oracle import Comparison, oracle
from edgen.rundir import RunDir
from edgen.runreader import RunReader, texts_digest
from edgen.splits import group_hash

_encode = msgspec.json.Encoder().encode


MOST_CANDIDATES = 1448  # numbers below it, so that every pair's slot fits into the ledger's unit


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge's ledger keeps of a comparison. `texts` is a digest of what was compared: where the
    run was made anew since, the judgement does not hold any more."""

    signal: OracleSignal
    texts: str


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges, and how it is asked. `id` names backend, template and way of comparing: 16 hex digits."""

    id: str
    model: str
    prompt: Prompt


def judge_id(job: Job, identity: Mapping[str, Any], prompt: Prompt) -> str:
    """A name for everything that shapes a judge's answer but the conversations."""
    facts = (dict(identity), prompt.sha256, job.pairs.compare)
    return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]


_MOST_NOTED = 1_000_000  # bytes: a template, and who is asked with it
GUARDED_TEMPLATE = "oracle_guarded"  # what a judge is asked with where nothing else is said


def published_before(rundir: RunDir, compare: Compare) -> str | None:
    """The name of the published template if this run was judged with it, by this way of comparing, and never with
    the guarded one: a run that was judged while it was the usual one is not asked anew unasked."""
    name = f"oracle_{compare}"
    known = {_digest(shipped): shipped for shipped in (name, GUARDED_TEMPLATE)}
    used = {known.get(template) for template in _templates_noted(rundir, compare)}
    return name if name in used and GUARDED_TEMPLATE not in used else None


def _digest(shipped: str) -> str:
    return hashlib.sha256(resources.find("prompts", shipped).read_bytes()).hexdigest()


def _templates_noted(rundir: RunDir, compare: Compare) -> Iterator[str]:
    """The sha256 of the template of each judge of this run that compared in this way."""
    for ledger in rundir.judge_ledgers():
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            noted = msgspec.json.decode(read_regular(ledger.with_suffix(".json"), _MOST_NOTED))
            if noted["compare"] == compare:
                yield str(noted["template"]["sha256"])


class Judging:
    """The comparisons of a run by one judge. `job` is the run's, with the settings of this command."""

    shares = False

    def __init__(self, reader: RunReader, job: Job, judge: Judge) -> None:
        self.job = job
        self.judge = judge
        self._reader = reader
        self._rules = Rules(asks=job.asks, seed=job.seed)
        self._unread_in_a_row = 0
        digest = hashlib.blake2b(digest_size=8)
        self.planned = 0
        self.scenarios = 0
        for unit in self.units():
            if unit[1] >= REPLICATES:
                raise RunError(
                    f"{reader.rundir.path}: scenario {unit[0]} has more conversations than can be paired "
                    f"({MOST_CANDIDATES} at most, over all arms that the run ever had). Generate with fewer replicates."
                )
            digest.update(b"%d %d\n" % unit)
            self.planned += 1
            self.scenarios = unit[0] + 1
        self._units_digest = digest.hexdigest()

    def units(self) -> Iterator[tuple[int, int]]:
        """(scenario, slot) of every comparison, ascending."""
        for index, numbers in self._reader.scenarios():
            if len(numbers) > 1:
                chosen = matches(numbers, self.job.pairs.matches, self.job.seed, index)
                for number in sorted(slot(*pair) for pair in chosen):
                    yield index, number

    def task(self, index: int, replicate: int) -> Task:
        """The work on one comparison; `replicate` is its slot."""
        first, second = sides(replicate)
        a, b = self._reader.candidate(index, first), self._reader.candidate(index, second)
        scenario = self._reader.scenario(index)
        pairs = self.job.pairs
        protocol = oracle(
            Comparison(scenario, replicate, a, b), self.judge.prompt, pairs.compare, pairs.votes, self._rules
        )
        group = group_hash(self.job.split.by, self.job.seed, scenario)
        return Task(protocol, group, lambda result, spent: self._settled(a, b, result, spent))

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for the judge, the votes and the comparisons."""
        facts = {
            "judge": self.judge.id,
            "identities": {role: dict(identity) for role, identity in identities.items()},
            "votes": self.job.pairs.votes,
            "asks": self.job.asks,
            "seed": self.job.seed,
            "run": self._reader.fingerprints,
            "units": self._units_digest,
            "edgen": __version__,
        }
        return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]

    def _settled(
        self, a: Candidate, b: Candidate, result: list[Verdict] | Rejection, spent: Spent
    ) -> Settled:
        if isinstance(result, Rejection):
            return Settled.rejected(result)
        model = spent.by_role["judge"].model
        signal = oracle_signal(self.judge.id, model, self.job.pairs.compare, result)
        signal = msgspec.structs.replace(signal, simulated=spent.simulated)
        record = _encode(Judgement(signal=signal, texts=texts_digest(a, b)))
        if not signal.abstain:
            self._unread_in_a_row = 0
            return Settled.accepted(record)
        self._unread_in_a_row += 1
        unread = [verdict.text for verdict in result if verdict.choice is None]
        detail = f"an answer names neither side: {(unread[0] or '').strip()[:80] or '(empty)'}"
        if self._unread_in_a_row >= self.job.limits.stop_after_failures:
            raise ShortError(
                f"The judge's answers to {self._unread_in_a_row} pairs in a row name neither side, so the rest was "
                f"not asked: {detail.partition(': ')[2]!r} was the last. Its template should end in a question "
                "that 1 or 2 answers; see that max_tokens leaves room for it, or name another judge with --judge."
            )
        return Settled(Status.REJECTED, str(RejectionReason.UNREAD), detail, record)


async def work_through(judging: Judging, session: Session) -> None:
    """Judge what has no judgement yet. Raises what stopped it."""
    async with session.noted():
        session.announce(
            judging.job.name, judging.scenarios, REPLICATES, asked=judging.planned, planned=judging.planned
        )
        pending = session.pending(judging.units(), 0, judging.scenarios)
        await session.driver.run(pending)
        await session.ledger.flush()
