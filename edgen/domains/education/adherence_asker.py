"""Adherence sheets: which conversations of a run a judge is asked about, and what is kept of its answers.

A unit is a conversation; its record holds the five answers. The sample is drawn by hash: the same scenarios
in every arm, and a larger sample holds the smaller one. Its size shapes no answer.
`domains.education.adherence_sheets` counts the answers.
"""

from __future__ import annotations

from collections.abc import Generator

import msgspec

from edgen.asking.answering import Answerer
from edgen.asking.units import AskedUnit, UnitAsker
from edgen.domains.education.adherence_protocol import adherence
from edgen.domains.education.keywords import Verdicts
from edgen.plugin import Job, Rejection, Reply, Request, RunReader
from edgen.protocols.task import Spent


class AdherenceSheet(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's record of a conversation: its answers, None for `cannot tell`."""

    answers: Verdicts
    simulated: bool = False


class AdherenceAsker(UnitAsker):
    """The sheets on `sample` conversations of each arm of a run by one judge."""

    nouns = "judged"
    outcomes = ("read", "unread")
    drawn_by = "adherence"
    useless_help = (
        "A sheet has five lines: see that its max_tokens leaves room for them, or name another judge: "
        "--set 'backends.judge={…}'."
    )

    def __init__(self, reader: RunReader, job: Job, judge: Answerer, sample: int) -> None:
        super().__init__(reader, job, judge, "adherence", sample)
        self.count()

    def ask(self, unit: AskedUnit) -> Generator[Request, Reply, Verdicts | Rejection]:
        """Ask about one conversation."""
        scenario = self.reader.scenario(unit.address.scenario)
        return adherence(scenario, unit.address.task, unit.turns, self.prompt, self.rules)

    def keep(self, answer: Verdicts, unit: AskedUnit, spent: Spent) -> AdherenceSheet:
        """Return the judge's record."""
        return AdherenceSheet(answers=answer, simulated=spent.simulated)
