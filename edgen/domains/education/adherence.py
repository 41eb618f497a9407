"""Adherence sheets: a judge answers five questions about each of some conversations of a run.

A unit is a conversation; its record holds the five answers. The sample is drawn by hash: it has the same
scenarios in every arm, and a larger sample contains the smaller one. The sample's size changes no answer.
Ledgers are in the run's `adherence/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

from edgen.asking.answering import Answerer
from edgen.asking.call_estimates import NeededCalls
from edgen.asking.ledger_paths import open_for_reading
from edgen.asking.options import AskOptions
from edgen.asking.runner import RunStart
from edgen.asking.units import AskedUnit, UnitAsker
from edgen.domains.education.adherence_protocol import TEMPLATE, VARIABLES, ask_adherence
from edgen.domains.education.adherence_sheets import AdherenceSheet, count_sheets
from edgen.domains.education.keywords import AdherenceShares, Verdicts
from edgen.evaluation.measuring import find_judged_measure, find_measures_of_other_families
from edgen.plugin import Job, Rejection, Reply, Request, RunReader, Space
from edgen.plugin.errors import TemplateError, UsageError
from edgen.plugin.formats import RunFolder
from edgen.plugin.measures import JudgeAsking
from edgen.prompting import Prompt
from edgen.protocols.parts import Spent
from edgen.runtime.control import explain_os_errors


class AdherenceAsker(UnitAsker):
    """One judge's sheets on `sample` conversations of each arm of a run."""

    settable = ("backends", "limits", "asks", "forms")
    of_what = "a judge of an existing run"
    nothing = "a judge has nothing to rate"
    template, variables, expects = TEMPLATE, VARIABLES, "sheet"
    nouns = "judged"
    outcomes = ("read", "unread")
    drawn_by = "adherence"
    useless_help = (
        "A sheet has five lines: see that its max_tokens leaves room for them, or name another judge: "
        "--set 'backends.judge={…}'."
    )

    @classmethod
    def read_prompt(cls, named: str | None, space: Space) -> Prompt:
        """Read the template. Raises TemplateError for an invalid one or one that does not show the
        conversation."""
        prompt = super().read_prompt(named, space)
        if not {"conversation", "guarded"} & {*prompt.variables_used}:
            raise TemplateError(
                prompt.source,
                "it does not show the conversation: use the variable guarded or conversation.",
            )
        return prompt

    @classmethod
    def require(cls, reader: RunReader, job: Job) -> None:
        """Raise UsageError or RunError if there is nothing to rate, the questions do not fit, or there is no
        judge."""
        super().require(reader, job)
        run, family = reader.rundir.path, reader.family
        if (needed := find_measures_of_other_families(family).get(find_judged_measure()[0])) is not None:
            raise UsageError(
                f"--adherence rates conversations of the {needed} family, and {run} has those of the "
                f"{family.name} family. Leave --adherence out."
            )
        if "judge" not in job.backends:
            raise UsageError(
                f"no judge backend is in the job of {run} (known: {', '.join(job.backends)}). Add "
                "`backends.judge` to the job, or give one here: --set 'backends.judge={type: openai, model: "
                "…}'."
            )

    def __init__(self, reader: RunReader, job: Job, judge: Answerer, sample: int) -> None:
        super().__init__(reader, job, judge, "adherence", sample)
        self.count()

    def ask(self, unit: AskedUnit) -> Generator[Request, Reply, Verdicts | Rejection]:
        """Ask about one conversation."""
        scenario = self.reader.scenario(unit.address.scenario)
        return ask_adherence(scenario, unit.address.task, unit.turns, self.prompt, self.rules)

    def keep(self, answer: Verdicts, unit: AskedUnit, spent: Spent) -> AdherenceSheet:
        """Return the judge's record of a conversation."""
        return AdherenceSheet(answers=answer, simulated=spent.simulated)


def judge_adherence(run: Path, asking: JudgeAsking) -> dict[str, AdherenceShares]:
    """Return the answers of the job's `judge` about a sample of the conversations of each arm that was begun,
    by the arm's name. Without a template, the judge gets the shipped one that guards it.

    Locks the run. Raises UsageError if the job has no judge or a setting has no effect here, RunError if
    there is nothing to rate, and the errors that stop the judge.
    """
    if asking.sample < 1:
        raise UsageError("--adherence: give the number of conversations to rate, 1 or more.")
    rundir = RunFolder(run).require()
    with explain_os_errors(run), rundir.lock_for_writing(), RunReader(run) as reader:
        (asker,), (ledger,), ended = asyncio.run(_start(reader, asking).ask())
        if ended is not None:
            raise ended
        return count_sheets(reader, asker.list_units(), ledger, asker.answerer.model)


def estimate_adherence(run: Path, asking: JudgeAsking) -> NeededCalls:
    """Return the calls that `judge_adherence` would make. Raises the errors that it raises before its first
    call."""
    with open_for_reading(run) as reader:
        return _start(reader, asking).estimate_calls()


def _start(reader: RunReader, asking: JudgeAsking) -> RunStart[AdherenceAsker]:
    options = AskOptions(overrides=tuple(asking.overrides), prompt=asking.prompt)
    folder = reader.rundir.adherence
    return RunStart(AdherenceAsker, reader, options, folder, asking.control, "judge", sample=asking.sample)
