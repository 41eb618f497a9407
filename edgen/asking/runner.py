"""One start of an asker that one backend answers: about a run, opened, asked or estimated; or for a file."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Generic, TypeVar

from edgen.asking.answering import load_run_job, open_answerer, open_answering
from edgen.asking.asker import FileAsker
from edgen.asking.call_estimates import Needs, needs_of
from edgen.asking.ledger_paths import AskerFolder, hold_ledger
from edgen.asking.options import AskOptions
from edgen.asking.task_loop import A, AtWork, ask, ask_until_ended
from edgen.config import Job
from edgen.core.errors import EdgenError
from edgen.core.options import CallMode
from edgen.core.threads import run_in_thread
from edgen.planning.allowed_files import make_unlimited_reach
from edgen.prompting import Prompt, load_prompt
from edgen.providers import Backend
from edgen.runtime.control import Control
from edgen.store.mailbox import make_desk
from edgen.store.run_reader import RunReader

T = TypeVar("T")
FA = TypeVar("FA", bound=FileAsker)


class Start(ABC, Generic[A]):
    """The base class of such starts, while the run is held. A subclass makes the asker."""

    role: str = "judge"  # under which the backend answers
    settable: tuple[str, ...] = ("backends", "limits", "batch", "asks", "forms")
    """The keys of the job that `--set` may change."""
    of_what: str  # the work that these keys are for, in the error about another one
    template: str  # the name of the usual one, or a file
    variables: Collection[str]  # of the template
    expects: str | None = None  # kind of its answer

    def __init__(
        self, reader: RunReader, options: AskOptions, folder: Path, control: Control, by: str = ""
    ) -> None:
        """`folder`: where the ledger is. `by`: `[JOB:]ROLE` of the backend; empty for the job's of the role,
        else `default`."""
        self.reader, self.control = reader, control
        self.job = load_run_job(reader.rundir, options.overrides, self.settable, self.of_what)
        self.place = AskerFolder(folder, reader.rundir)
        self._way, self._by, self._named = options.way, by, options.prompt

    def prompt(self) -> Prompt:
        """Read the template. Raises TemplateError."""
        path = make_unlimited_reach().require("prompts", self._named or self.template, "--prompt")
        return load_prompt(path, self.variables, expects=self.expects)

    @abstractmethod
    def asker(self, job: Job, backend: Backend, prompt: Prompt) -> A:
        """Return the asker that the backend answers. Raises UsageError where there is nothing to ask
        about."""

    @contextlib.asynccontextmanager
    async def open(self, *, send: bool) -> AsyncIterator[AtWork[A]]:
        """Open the backend, which sends nothing unless it is to `send`."""
        prompt = self.prompt()
        async with open_answerer(
            self.reader.rundir, self.job, self.role, self._by, prompt, self.control, self._way, send=send
        ) as (job, answering):
            asked = answering.prompt or prompt
            yield AtWork(self.asker(job, answering.backends[self.role], asked), answering)

    def ask(self) -> tuple[A, Path, EdgenError | None]:
        """Ask what has no answer yet: the asker, its ledger, and what stopped it once that was begun."""

        async def work() -> tuple[A, Path, EdgenError | None]:
            async with self.open(send=True) as one:
                ended = await ask_until_ended([one], self.place, self.control)
                return one.asker, self.place.ledger(one.asker), ended

        return asyncio.run(work())

    def estimate(self) -> tuple[A, Needs]:
        """Return what `ask` would take; nothing is sent and nothing is written."""

        async def count() -> tuple[A, Needs]:
            async with self.open(send=False) as one:
                return one.asker, needs_of(one.asker, self.place)

        return asyncio.run(count())


def ask_for_file(
    asker: FA,
    control: Control,
    result: Callable[[FA, Path], T],
    way: CallMode = CallMode(),  # noqa: B008 - a value
    require: Callable[[Path], None] = lambda _out: None,
) -> T:
    """Ask for all missing answers, and return the `result` of the asker and its ledger, which is locked
    meanwhile.

    `require` checks the asker's file once the ledger is locked, since the previous holder may have written
    that file. Raises the error that stopped the asker, with a note on where its answers are.
    """
    place, job = AskerFolder(asker.out.parent), asker.job
    people = None
    if any(config.BY_PEOPLE for config in job.backends.values()):
        people = make_desk(asker.out)
        control.note(f"people are asked: invite them with `edgen web {people}`.")
    ledger = place.ledger(asker)
    functions = {name: one for name, one in control.functions.items() if name == "default"}

    async def work() -> T:
        async with open_answering(
            job, dict(job.backends), control, way, send=True, functions=functions, run=people
        ) as answering:
            with hold_ledger(ledger):
                require(asker.out)
                await ask([AtWork(asker, answering)], place, control)
                return await run_in_thread(result, asker, ledger)

    try:
        return asyncio.run(work())
    except EdgenError:
        if ledger.exists():
            control.note(f"no file was written; the answers so far are stored in {ledger}.")
        raise
