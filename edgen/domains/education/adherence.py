"""Ask a judge model how well a run keeps to its scenarios; the answers are kept in the run's `adherence/`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from edgen.asking.answering import Answerer
from edgen.asking.call_estimates import NeededCalls
from edgen.asking.ledger_paths import open_for_reading
from edgen.asking.options import AskOptions
from edgen.asking.runner import RunStart
from edgen.domains.education.adherence_asker import AdherenceAsker
from edgen.domains.education.adherence_protocol import TEMPLATE, VARIABLES
from edgen.domains.education.adherence_sheets import count_sheets
from edgen.domains.education.keywords import AdherenceShares
from edgen.evaluation.measuring import find_judged_measure, measures_of_other_families
from edgen.plugin import Backend, Job, RunReader
from edgen.plugin.errors import RunError, TemplateError, UsageError
from edgen.plugin.formats import RunFolder
from edgen.prompting import Prompt
from edgen.runtime.control import Control, explain_os_errors


def judge_adherence(
    run: Path, control: Control, sample: int, overrides: Iterable[str], prompt: str | None = None
) -> dict[str, AdherenceShares]:
    """Return the answers of the job's `judge` about `sample` conversations of each arm that was begun, by the
    arm's name. `prompt`: the template, shipped or a file; None for the shipped one that guards the judge.

    Locks the run. Raises UsageError where the job has no judge or a setting does not count here, RunError
    where there is nothing to ask about, and what stops the judge.
    """
    if sample < 1:
        raise UsageError("--adherence: give the number of conversations to rate, 1 or more.")
    rundir = RunFolder(run)
    rundir.require()
    with explain_os_errors(run), rundir.lock_for_writing(), RunReader(run) as reader:
        (asker,), (ledger,), ended = asyncio.run(_Rating(reader, sample, overrides, control, prompt).ask())
        if ended is not None:
            raise ended
        return count_sheets(reader, asker.units(), ledger, asker.answerer.model)


def estimate_adherence(
    run: Path, control: Control, sample: int, overrides: Iterable[str], prompt: str | None = None
) -> NeededCalls:
    """Return the calls that `judge_adherence` would make. Raises what it raises before its first call."""
    with open_for_reading(run) as reader:
        return _Rating(reader, sample, overrides, control, prompt).estimate_calls()


class _Rating(RunStart[AdherenceAsker]):
    """One start of the judge, while the run is held."""

    settable = ("backends", "limits", "asks", "forms")
    of_what = "a judge of an existing run"
    template, variables, expects = TEMPLATE, VARIABLES, "sheet"

    def __init__(
        self,
        reader: RunReader,
        sample: int,
        overrides: Iterable[str],
        control: Control,
        prompt: str | None,
    ) -> None:
        _require_ratable(reader)
        options = AskOptions(overrides=tuple(overrides), prompt=prompt)
        super().__init__(reader, options, reader.rundir.adherence, control, "judge")
        self._sample = sample
        if "judge" not in self.job.backends:
            raise UsageError(
                f"no judge backend is in the job of {reader.rundir.path} (known: "
                f"{', '.join(self.job.backends)}). Add "
                "`backends.judge` to the job, or give one here: --set 'backends.judge={type: openai, model: "
                "…}'."
            )

    def prompt(self) -> Prompt:
        """Read the template."""
        prompt = super().prompt()
        if not {"conversation", "guarded"} & {*prompt.variables_used}:
            raise TemplateError(
                prompt.source,
                "it does not show what is to be judged: neither guarded nor conversation is ever used.",
            )
        return prompt

    def asker(self, name: str, job: Job, backend: Backend, prompt: Prompt) -> AdherenceAsker:
        """Return the judge."""
        return AdherenceAsker(self.reader, job, Answerer.of(backend, prompt), self._sample)


def _require_ratable(reader: RunReader) -> None:
    """Raise where there is nothing to rate, or where the questions do not fit."""
    run = reader.rundir.path
    if not reader.accepted:
        raise RunError(f"{run}: no conversation was accepted in this run, so a judge has nothing to rate.")
    if (needed := measures_of_other_families(reader.family).get(find_judged_measure()[0])) is not None:
        raise UsageError(
            f"--adherence rates conversations of the {needed} family, and {run} has those of the "
            f"{reader.family.name} family. Leave --adherence out."
        )
