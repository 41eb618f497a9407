"""Starts of askers, about a run or for a file: they open the backends, then ask or estimate.

`ask` is the loop of every asker. It asks about every unit without an answer, under supervision, and stores
the answers in the asker's ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from edgen.asking.answering import (
    AskerBackends,
    ChosenBackend,
    choose_backend,
    load_asked_job,
    load_run_job,
    open_answerers,
    open_answering,
)
from edgen.asking.asker import Asker, FileAsker, PromptAsker
from edgen.asking.call_estimates import NeededCalls, count_needs
from edgen.asking.ledger_paths import AskerFolder, hold_ledger
from edgen.asking.options import AskOptions, FileAskOptions
from edgen.config import Job
from edgen.core.errors import EdgenError
from edgen.core.options import CallMode
from edgen.core.system import run_in_thread
from edgen.core.text import quantity
from edgen.execution.session import RunSession, SharedState
from edgen.planning.load import adapt_template
from edgen.prompting import Prompt
from edgen.providers import Backend
from edgen.runtime.control import Control, run_in_own_loop
from edgen.runtime.supervise import Monitor, SupervisedWork, supervise, tell_lost_replies
from edgen.store.ledger import Ledger
from edgen.store.people.mailbox import make_desk
from edgen.store.run_reader import RunReader

T = TypeVar("T")
A = TypeVar("A", bound=Asker[Any, Any], covariant=True)
PA = TypeVar("PA", bound=PromptAsker[Any, Any], covariant=True)
FA = TypeVar("FA", bound=FileAsker[Any, Any])
Opened = Mapping[str, AskerBackends]  # the backends of each asker, by the asker's name


async def ask(
    work: Sequence[tuple[Asker[Any, Any], AskerBackends]], place: AskerFolder, control: Control
) -> None:
    """Have the askers of one place ask concurrently about the units that their ledgers lack.

    They share the budget and the limits of each service. Raises the error that stopped them.
    """
    paths = [place.find_ledger(asker) for asker, _ in work]
    shared = SharedState(work[0][0].job.limits)
    async with contextlib.AsyncExitStack() as stack:
        parts: list[SupervisedWork] = []
        for (asker, answering), path in zip(work, paths, strict=True):
            place.note(asker)
            ledger = await stack.enter_async_context(Ledger(path, logprobs=asker.logprobs))
            tell_lost_replies(ledger, control)
            session = RunSession(
                asker,
                answering.backends,
                ledger,
                roles=asker.roles,
                elsewhere=() if parts else place.find_use_elsewhere(paths),
                scheduler=answering.scheduler,
                shared=shared,
            )
            session.counts.planned = asker.planned
            parts.append(SupervisedWork(session, asker.title, _make_work(asker, session)))
        await supervise(parts, control)


def _make_work(asker: Asker[Any, Any], session: RunSession) -> Callable[[Monitor], Awaitable[object]]:
    return lambda _monitor: asker.work_through(session)


class Asked(NamedTuple, Generic[A]):
    """Askers after their work."""

    askers: tuple[A, ...]
    ledgers: tuple[Path, ...]  # one for each asker
    ended: EdgenError | None  # the error that stopped them, if any


class Start(ABC, Generic[A]):
    """The base class of starts. A subclass opens the backends and makes the askers.

    job: with the settings of the calls. place: the folder of the ledgers. way: the mode of the calls.
    """

    def __init__(self, job: Job, place: AskerFolder, control: Control, mode: CallMode) -> None:
        self.job, self.place, self.control, self.mode = job, place, control, mode

    @abstractmethod
    def open(self, *, send: bool) -> AbstractAsyncContextManager[Opened]:
        """Open the backends. They send nothing unless `send` is True."""

    @abstractmethod
    def askers(self, opened: Opened) -> list[tuple[A, AskerBackends]]:
        """Return the askers. Raises UsageError if there is nothing to ask about."""

    async def prepare(self) -> EdgenError | None:
        """Do the work that must precede the askers, such as playing the rollouts that a judge compares.
        Return the error that stopped it."""
        return None

    async def ask(self) -> Asked[A]:
        """Ask for all missing answers. Raises the error that stopped the askers only if no ledger exists;
        otherwise the result has it."""
        async with self.open(send=True) as opened:
            if (ended := await self.prepare()) is not None:
                return Asked((), (), ended)
            work = self.askers(opened)
            askers = tuple(asker for asker, _ in work)
            ledgers = tuple(map(self.place.find_ledger, askers))
            try:
                await ask(work, self.place, self.control)
            except EdgenError as error:
                if not any(ledger.exists() for ledger in ledgers):
                    raise
                ended = error
            return Asked(askers, ledgers, ended)

    async def estimate(self) -> list[tuple[A, NeededCalls]]:
        """Return the calls that `ask` would make, for each asker. Nothing is sent or written."""
        async with self.open(send=False) as opened:
            return [
                (asker, count_needs(asker, self.place.find_ledger(asker))) for asker, _ in self.askers(opened)
            ]

    def estimate_calls(self) -> NeededCalls:
        """Return the calls of the only asker."""
        ((_, needs),) = asyncio.run(self.estimate())
        return needs


class RunStart(Start[PA]):
    """A start of askers about a locked run. Each asker has its own backend; all have the same template."""

    def __init__(
        self,
        kind: type[PA],
        reader: RunReader,
        options: AskOptions,
        folder: Path,
        control: Control,
        by: str = "",
        job: Job | None = None,
        **given: Any,
    ) -> None:
        """`folder`: the folder of the ledgers. `by`: `[JOB:]ROLE` of the backend; empty for the job's backend
        of that role, else `default`. `job`: the run's job with the options on top; None to load it. `given`:
        further arguments of the asker, after the reader, the job and the answerer."""
        job = job or load_run_job(reader.rundir, options.overrides, kind.settable, kind.of_what)
        super().__init__(job, AskerFolder(folder, reader.rundir), control, options.mode)
        self.kind, self.reader = kind, reader
        self._by, self._named, self._given = by, options.prompt, given

    def read_prompt(self) -> Prompt:
        """Read the template. Raises TemplateError."""
        return self.kind.read_prompt(self._named, self.reader.space)

    def choose(self) -> Mapping[str, ChosenBackend]:
        """Return the backend of each asker, by the asker's name. Raises UsageError."""
        return {self.kind.role: choose_backend(self.job, self._by, self.kind.role, self.control)}

    def make_asker(self, name: str, job: Job, backend: Backend, prompt: Prompt) -> PA:  # noqa: ARG002
        """Return the asker of that name with this backend. Raises UsageError if there is nothing to ask
        about."""
        make: Callable[..., PA] = self.kind
        return make(self.reader, job, self.kind.find_answerer(backend, prompt), **self._given)

    def note_pending(self, so: str) -> None:
        """Note that conversations are pending, with the consequence `so`."""
        if pending := self.reader.pending:
            many = quantity(pending, "conversation") + " of this run " + ("is" if pending == 1 else "are")
            self.control.note(f"{many} pending; {so}")

    def open(self, *, send: bool) -> AbstractAsyncContextManager[Opened]:
        """Open the backends. Raises errors about the run, the template and the backends."""
        self.kind.require(self.reader, self.job)
        prompt, chosen = self.read_prompt(), self.choose()
        run, role = self.reader.rundir, self.kind.role
        return open_answerers(run, self.job, role, chosen, prompt, self.control, self.mode, send=send)

    def askers(self, opened: Opened) -> list[tuple[PA, AskerBackends]]:
        """Return an asker for each backend."""
        made = []
        for name, one in opened.items():
            assert one.prompt is not None, "all of them have the template"
            made.append((self.make_asker(name, one.job, one.backends[self.kind.role], one.prompt), one))
        return made


class FileStart(Start[FA]):
    """A start of an asker for a file, whose only backend is the job's `default`."""

    def __init__(
        self,
        kind: type[FA],
        out: Path,
        control: Control,
        options: FileAskOptions,
        **given: Any,
    ) -> None:
        """`given`: further arguments of the asker, after the job, the template and the file. Raises
        UsageError, TemplateError and JobError."""
        kind.require(out)
        work, made_up = kind.work, kind.made_up
        job = load_asked_job(options.backend, options.overrides, control, work=work, made_up=made_up)
        super().__init__(job, AskerFolder(out.parent), control, options.mode)
        make: Callable[..., FA] = kind
        self.asker = make(job, adapt_template(kind.load_prompt(options.prompt), job), out, **given)

    @contextlib.asynccontextmanager
    async def open(self, *, send: bool) -> AsyncIterator[Opened]:
        """Open the backend and lock the ledger. Without `send`, do neither."""
        job, control, out = self.job, self.control, self.asker.out
        if not send:
            yield {"default": AskerBackends(job, {})}
            return
        people = None
        if any(config.BY_PEOPLE for config in job.backends.values()):
            people = make_desk(out)
            control.note(f"people are asked: invite them with `edgen web {people}`.")
        functions = {name: one for name, one in control.functions.items() if name == "default"}
        async with open_answering(
            job, dict(job.backends), control, self.mode, send=True, functions=functions, run=people
        ) as answering:
            with hold_ledger(self.place.find_ledger(self.asker)):
                self.asker.require(out)
                yield {"default": answering}

    def askers(self, opened: Opened) -> list[tuple[FA, AskerBackends]]:
        """Return the asker."""
        return [(self.asker, one) for one in opened.values()]

    def make(self, result: Callable[[FA, Path], T]) -> T:
        """Ask for all missing answers. Return `result` of the asker and its ledger, which stays locked
        meanwhile. Raises the error that stopped the asker, after a note with the path of the ledger."""
        ledger = self.place.find_ledger(self.asker)

        async def work() -> T:
            async with self.open(send=True) as opened:
                await ask(self.askers(opened), self.place, self.control)
                return await run_in_thread(result, self.asker, ledger)

        try:
            return run_in_own_loop(work())
        except EdgenError:
            if ledger.exists():
                self.control.note(f"no file was written; the answers so far are stored in {ledger}.")
            raise
