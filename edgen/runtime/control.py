"""The callbacks and decisions of a caller during work: listeners, deadline, consents.

Every pair of a variable and a host is reported once, before the first call. A key is never reported. A yes is
remembered in the user's own file, next to the user's own lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from edgen.config import BackendConfig
from edgen.core.errors import InputError, RunError, StoppedError, UsageError
from edgen.core.files import write_whole
from edgen.core.plugins import background
from edgen.core.plugins.cancelling import GuardedTask, refuse_cancellation
from edgen.core.plugins.unending_tasks import UnawaitedExecutor, end_other_tasks
from edgen.core.registry import list_foreign_plugins
from edgen.execution.progress import Event, Events
from edgen.providers import list_key_requests
from edgen.providers.trust import (
    Allowed,
    Consents,
    Destination,
    NoKey,
    Refused,
    find_consent_file,
    gather_consents,
    is_command,
    name_key,
    read_consents,
    render_line,
)
from edgen.runtime.deadline import Deadline

T = TypeVar("T")

# Answers a question with yes or no.
Confirm = Callable[[str], bool]
# Takes a function, and calls it with the number of each signal while the context is open.
Interrupts = Callable[[Callable[[int], None]], AbstractContextManager[None]]


class Trust:
    """Consents. `hosts` are in the form of `--trust-host`; `confirm` asks a person, None if no person can be
    asked; `tell` receives every pair of variable and host. `code`: Python files that may run."""

    def __init__(
        self,
        hosts: Iterable[str] | None = None,
        environ: Mapping[str, str] = os.environ,
        confirm: Confirm | None = None,
        code: Iterable[str | Path] = (),
    ) -> None:
        self.environ = environ
        if hosts:
            self.consents = gather_consents(environ, hosts)
        self.tell: Callable[[str], None] = lambda _text: None
        self.code = frozenset(Path(os.path.realpath(file)) for file in code)
        self.confirm = confirm
        self._told: set[str] = set()
        self.variables: set[str] = set()  # variables with keys of the judged backends

    @cached_property
    def consents(self) -> Consents:
        """The consents so far, read when a key first needs one. Raises InputError for an invalid one."""
        return gather_consents(self.environ)

    def settle(self, configs: Iterable[BackendConfig]) -> Consents:
        """Return all consents, after asking for the missing ones of these backends."""
        for config in configs:
            for variable, decision in self.judge(*config.each_server):
                self._settle(variable, decision)
        return self.consents if self.variables else Consents()

    def judge(self, *configs: BackendConfig) -> Iterator[tuple[str, Allowed | NoKey | Refused]]:
        """Yield each variable whose key a server needs, and the decision on it."""
        if requests := [request for one in configs for request in list_key_requests(one)]:
            from edgen.providers.keys import judge_key

            found = (judge_key(request, self.environ, self.consents) for request in requests)
            for pair in filter(None, found):
                self.variables.add(pair[0])
                yield pair

    def _settle(self, variable: str, decision: Allowed | NoKey | Refused) -> None:
        """Ask for consent to one pair of variable and place, and report it. Raises InputError for a key that
        may not be sent there."""
        if isinstance(decision, Refused):
            if decision.place is None or self.confirm is None:
                raise InputError(decision.sentence)
            self._ask(variable, decision.place, decision.sentence, self.confirm)
            decision = Allowed(decision.place)
        if not isinstance(decision, Allowed):
            return
        text = f"{name_key(variable)} goes to {decision.place.name}."
        if text not in self._told:
            self._told.add(text)
            self.tell(text)

    def _ask(self, variable: str, place: Destination, sentence: str, confirm: Confirm) -> None:
        """Ask a person, and remember a yes. Raises InputError for a no."""
        file = find_consent_file(self.environ)
        kept = f" (a yes is remembered in {file})" if file is not None else ""
        wanted = f"the job wants {name_key(variable)} sent to {place.name}. Send it?"
        if is_command(variable):
            wanted = f"the job wants to run a command and to send {place.name} {name_key(variable)}. Run it?"
        if not confirm(f"edgen: {wanted}{kept}"):
            raise InputError(sentence)
        if file is not None:
            remember_consent(file, f"{place.name}={variable}")
        self.consents = self.consents.add(variable, place)


def remember_consent(file: Path, pair: str) -> None:
    """Add a pair to the user's file, which only the user may read. Raises UsageError if it cannot be
    written."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = file.read_text(encoding="utf-8").rstrip() if file.exists() else _HEAD
        text = f"{before}\n- {render_line(pair)}\n"
        read_consents(text, str(file))  # no line can be added to a list in brackets
        file = file.resolve()  # the file is the user's own, also if it is a link
        write_whole(file, text)
        file.chmod(0o600)
    except OSError as problem:
        raise UsageError(
            f"{file}: it cannot be written ({problem.strerror}). Use the command line instead: --trust-host "
            f"{pair}."
        ) from None


_HEAD = "# Where edgen may send a key: HOST=VARIABLE, a line a pair. See docs/trust.md."


def ignore_interrupts(_on_signal: Callable[[int], None]) -> AbstractContextManager[None]:
    """Ignore interrupts during the work."""
    return contextlib.nullcontext()


@dataclass
class Control:
    """Callbacks and consents of a command's work."""

    events: Events = field(default_factory=Events)  # passes events to listeners
    deadline: Deadline | None = None  # end of the work, if any
    trusting: Callable[[], Trust] = Trust  # makes `trust` when it is first needed
    agree: Confirm | None = None
    """Asked before anything is undone or paid for again; None if no person can be asked."""
    interrupts: Interrupts = ignore_interrupts  # context of the signals that stop the work cleanly
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Backends, by their names in the job."""

    @cached_property
    def trust(self) -> Trust:
        """The consents to send keys and to run code."""
        made = self.trusting()
        made.tell = self.note
        return made

    def note(self, text: str) -> None:
        """Show a remark to the person."""
        self.events.tell("note", text)

    def begin(self, run: str, unit: str = "conversations", folder: Path | None = None) -> None:
        """Announce the run's name, the unit of its results, and its folder if it has one."""
        place = {} if folder is None else {"folder": str(folder)}
        self.events.send(Event("run", "", {"run": run, "unit": unit, **place}))

    def check_deadline(self) -> None:
        """Raise StoppedError if the deadline has passed. Call it when it is known that work is left."""
        if self.deadline is not None:
            self.deadline.check()

    def require_consent(self, losses: Iterable[object]) -> None:
        """Return if there is nothing to lose, or the person agrees. Raises UsageError if the person refuses
        or cannot be asked. Each loss reads as a sentence."""
        sentences = " ".join(str(loss) for loss in losses)
        if not sentences:
            return
        if self.agree is None:
            raise UsageError(
                f"{sentences} Nothing was changed. Add --yes to continue, or choose another run folder with "
                "-o to keep both."
            )
        if not self.agree(f"{sentences}\nGo on?"):
            raise UsageError("Nothing was changed. Choose another run folder with -o to keep both.")


@contextlib.contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors about the run's folder into sentences."""
    try:
        yield
    except OSError as problem:
        place = problem.filename or path
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoppedError(
                f"{place}: the disk is full ({problem.strerror}). "
                "Free some space and run the same command again."
            ) from None
        if problem.errno in (errno.EMFILE, errno.ENFILE):
            raise UsageError(
                "this system lets a process open too few files for so many calls at once. Halve "
                "limits.in_flight "
                "(--set limits.in_flight=N), or raise the limit (ulimit -n). All answers are stored."
            ) from None
        raise RunError(f"{place}: it cannot be written ({problem.strerror}).") from None


def _refuse_stop() -> NoReturn:
    raise RuntimeError("edgen's event loop was stopped; return or raise instead")


def run_in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own, as asyncio.run does, and guard it against plugins.

    `stop` of that loop raises RuntimeError in the calling code, since the work would end without a message
    about that code. Raises FaultyPluginError if a plugin cancels the work. Errors in tasks that a plugin
    started are reported once. At the end, tasks and threads of plugins that do not end are not awaited.
    """
    with asyncio.Runner() as runner:
        runner.get_loop().set_task_factory(_make_guarded_task)  # for the first task
        return runner.run(_keep_running(work))


def _make_guarded_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **given: Any
) -> GuardedTask:
    return GuardedTask(work, loop=loop, **given)


async def _keep_running(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    loop.set_task_factory(None)
    loop.set_exception_handler(background.on_loop)
    # Not through `vars`, which would make every access to the loop's attributes slower.
    loop.stop = _refuse_stop  # type: ignore[method-assign]
    guarded = bool(list_foreign_plugins())
    if guarded:
        loop.set_default_executor(UnawaitedExecutor())
    try:
        return await work
    except asyncio.CancelledError:
        if task is None or task.cancelling():  # by a signal
            raise
        refuse_cancellation()
    finally:
        del loop.stop
        if guarded:
            await end_other_tasks()
