"""Askers that one class declares: a template, the units, and a reader.

    class Politeness(TurnAsker):
        name = "politeness"
        template = "./politeness.j2"
        variables = ("guarded", "fence")

        def ask(self, unit):
            return self.question(unit, fence_turns(...), read)

`ask_run`, and `edgen annotate --write politeness`, ask about a run, with the run's job. They write
asked/<name>.jsonl: a line for each unit, with the struct that `ask` returned. The ledger is
asked/<name>/<answerer>.db, which `edgen status` counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from edgen.asking.answering import Answerer
from edgen.asking.call_estimates import NeededCalls
from edgen.asking.ledger_paths import open_for_reading, open_for_work
from edgen.asking.options import AskOptions
from edgen.asking.runner import RunStart
from edgen.asking.units import AskedUnit, UnitAsker
from edgen.config import Job
from edgen.core.digest import compute_fingerprint
from edgen.core.errors import EdgenError
from edgen.core.plugins.faults import require_type, require_value
from edgen.prompting import Prompt
from edgen.protocols.labelled_units import digest_said
from edgen.protocols.parts import Spent
from edgen.providers import Backend
from edgen.runtime.control import Control, run_in_own_loop
from edgen.runtime.status import AskerStatus
from edgen.store.run_reader import RunReader

Answer = msgspec.Struct  # the stored answer: a struct that the asker defines


class UnitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A unit's record in the ledger. `said` is the digest of the unit's text; answers about another text do
    not count."""

    answer: msgspec.Raw
    said: str
    simulated: bool = False


class DeclaredAsker(UnitAsker):
    """The base class of declared askers about conversations; `TurnAsker` is about turns.

    name: also the name of its folder and its file. template: a shipped template's name, or a file;
    `variables` lists the variables that it may use. role: the backend's role in the job; without such a
    backend, `default` answers.
    """

    taken_by = "edgen annotate --write"

    def __init_subclass__(cls) -> None:
        cls.of_what = f"{getattr(cls, 'name', '')} of an existing run"

    @classmethod
    def find_answerer(cls, backend: Backend, prompt: Prompt) -> Answerer:
        """Return the answerer. Its id also depends on the asker's name."""
        facts = {**cls.name_in_facts(), **Answerer.of(backend, prompt).facts}
        own = compute_fingerprint(facts)
        return Answerer(id=own, model=backend.model, prompt=prompt, facts={**facts, "judge": own})

    def __init__(self, reader: RunReader, job: Job, answerer: Answerer) -> None:
        super().__init__(reader, job, answerer, self.name, None)
        self.count()

    def keep(self, answer: Answer, unit: AskedUnit, spent: Spent) -> UnitRecord:
        """Return the answer with a digest of the unit's text."""
        what = "a struct, or a Rejection, from its reader"
        answer = require_type("asker", self.name, answer, msgspec.Struct | dict, what)
        checked = require_value("asker", self.name, answer, type(answer), what)
        raw = msgspec.Raw(msgspec.json.encode(checked))
        return UnitRecord(answer=raw, said=digest_said(unit.turns, None), simulated=spent.simulated)

    def list_lines(self, ledger: Path) -> Iterator[bytes]:
        """Yield the line of each unit with an answer, in the run's order."""
        for candidate, place, kept in self.list_kept(ledger, UnitRecord):
            line = {"id": candidate.id, **({} if place is None else {"turn": place})}
            line |= msgspec.json.decode(kept.answer)
            yield msgspec.json.encode({**line, "answerer": self.id})


class TurnAsker(DeclaredAsker):
    """An asker about turns, each shown after the turns before it. `of`: the roles whose turns are units;
    empty for all roles."""

    of: ClassVar[tuple[str, ...]] = ()

    def list_places(self, index: int, name: str) -> list[int | None]:
        """List the places of the turns."""
        turns = self.find_candidate(index, name).turns
        return [place for place, turn in enumerate(turns) if not self.of or turn.role in self.of]


def _start(
    reader: RunReader, kind: type[DeclaredAsker], control: Control, options: AskOptions | None, by: str
) -> RunStart[DeclaredAsker]:
    return RunStart(kind, reader, options or AskOptions(), reader.rundir.asked / kind.name, control, by)


@dataclass(frozen=True, slots=True)
class AskedRun:
    """Status of an asker. `lines` is the number of lines in `file`; None if an error (`ended`) stopped the
    asker before it wrote the file."""

    status: AskerStatus
    file: Path
    lines: int | None = None
    ended: EdgenError | None = None

    def require_answers(self) -> None:
        """Raise the error that stopped the asker, or ShortError if a unit has no answer."""
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
        asked = run_in_own_loop(_start(reader, kind, control, options, by).ask())
        (asker,), (ledger,), ended = asked
        file, lines = reader.rundir.asked / f"{kind.name}.jsonl", None
        if ended is None:
            lines = reader.rundir.write_lines(file, asker.list_lines(ledger))
        return AskedRun(AskerStatus.read_from(ledger), file, lines, ended)


def estimate_asking(
    run: Path,
    kind: type[DeclaredAsker],
    control: Control,
    options: AskOptions | None = None,
    by: str = "",
) -> NeededCalls:
    """Return the calls that `ask_run` would make. Nothing is sent or written."""
    with open_for_reading(run) as reader:
        return _start(reader, kind, control, options, by).estimate_calls()
