"""Askers that one class declares (`edgen.asking.declared`), at work on a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgen.asking.declared import DeclaredAsker, DeclaredStart
from edgen.asking.needs import NeededCalls
from edgen.asking.options import AskOptions
from edgen.asking.places import open_for_reading, open_for_work
from edgen.core.errors import EdgenError
from edgen.runtime.control import Control
from edgen.runtime.status import AskerStatus


@dataclass(frozen=True, slots=True)
class AskedRun:
    """Status of an asker: `lines` are in `file`; None if it was not written, since `ended` stopped the
    asker."""

    status: AskerStatus
    file: Path
    lines: int | None = None
    ended: EdgenError | None = None

    def require_answers(self) -> None:
        """Raise what ended it, and ShortError where a unit got no answer."""
        if self.ended is not None:
            raise self.ended
        self.status.require_answers("units")


def ask_run(
    run: Path,
    kind: type[DeclaredAsker],
    control: Control,
    options: AskOptions | None = None,
    by: str = "",
) -> AskedRun:
    """Ask about the units of a run that have no answer yet, and write asked/<name>.jsonl.

    `by`: `[JOB:]ROLE` of the backend. Raises UsageError, TemplateError, RunError and LockedError.
    """
    with open_for_work(run, control, "answers") as reader:
        asker, ledger, ended = DeclaredStart(reader, kind, options or AskOptions(), control, by).ask()
        file, lines = reader.rundir.asked / f"{kind.name}.jsonl", None
        if ended is None:
            lines = reader.rundir.write_lines(file, asker.lines(ledger))
        return AskedRun(AskerStatus.read_from(ledger), file, lines, ended)


def estimate_asking(
    run: Path,
    kind: type[DeclaredAsker],
    control: Control,
    options: AskOptions | None = None,
    by: str = "",
) -> NeededCalls:
    """Return the calls that `ask_run` would make; nothing is sent and nothing is written."""
    with open_for_reading(run) as reader:
        asker, needs = DeclaredStart(reader, kind, options or AskOptions(), control, by).estimate()
        return NeededCalls.of(needs, "units", asker.job.backends[kind.role].provider)
