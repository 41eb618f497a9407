"""The results of a judge's adherence sheets, next to the keywords' answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from edgen.domains.education.keywords import (
    KEYWORDS,
    MEASURES,
    AdherenceShares,
    VerdictCount,
    Verdicts,
    judge_by_keywords,
)
from edgen.evaluation.sample import cut
from edgen.plugin import RunReader
from edgen.plugin.protocols import Candidate
from edgen.plugin.statistics import agreement
from edgen.store.ledger import LedgerReader


class AdherenceSheet(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's record of a conversation: its answers; None for `cannot tell`."""

    answers: Verdicts
    simulated: bool = False


_decode = msgspec.json.Decoder(AdherenceSheet).decode


def count_sheets(
    reader: RunReader, units: Iterable[tuple[int, str]], ledger: Path, model: str
) -> dict[str, AdherenceShares]:
    """Return the results of the judge `model` on the conversations `units`, by arm, once all are settled."""
    counts = {arm: _ArmCount() for arm in reader.views}
    with LedgerReader(ledger) as view:
        for index, name in units:
            candidate = reader.candidate(index, name)
            status, _, data = view.read_outcomes(index).get(name, ("pending", None, None))
            said = _decode(data) if status == "accepted" and data is not None else None
            counts[candidate.arm].add(_judge_by_keywords(reader, candidate), status, said)
    return {arm: count.result(model) for arm, count in counts.items()}


def _judge_by_keywords(reader: RunReader, candidate: Candidate) -> tuple[int, Verdicts]:
    scenario = reader.scenario(candidate.scenario)
    return scenario.index, judge_by_keywords(scenario, candidate.turns, cut(candidate.turns).spoken)


class _ArmCount:
    """The sheets of one arm, with the keywords' answers."""

    def __init__(self) -> None:
        self._verdicts = VerdictCount()
        self._scenarios: list[int] = []
        self._ratings: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in MEASURES}
        self._unread = self._unanswered = 0
        self._simulated = False

    def add(self, keywords: tuple[int, Verdicts], status: str, said: AdherenceSheet | None) -> None:
        """Count a sheet. An unreadable sheet counts without answers; one without a reply is not counted."""
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

    def result(self, model: str) -> AdherenceShares:
        """Return the judge's shares, and its agreement with the keywords."""
        notes = [f"{model} was asked about {len(self._scenarios)} conversations, drawn by hash."]
        if self._simulated:
            notes.append("The judge is the simulator: it answers by the keywords, with planted errors.")
        if self._unread:
            notes.append(f"{self._unread} of its answers were unreadable and decide no question.")
        if self._unanswered:
            notes.append(
                f"Left out, without an answer: {self._unanswered}. Run the command again to retry these."
            )
        return self._verdicts.compute_shares(model, " ".join(notes), self._compute_agreement())

    def _compute_agreement(self) -> dict[str, float | None]:
        """Return Cohen's kappa for each question, over conversations that both answered; None if it is
        undefined."""
        found: dict[str, float | None] = {}
        for name, (judge, keywords) in self._ratings.items():
            between = agreement({"judge": judge, KEYWORDS: keywords}, self._scenarios)["between"]
            found[name] = between[0]["kappa"]
        return found
