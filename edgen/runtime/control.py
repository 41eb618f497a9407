"""The callbacks and decisions of an API caller during work."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from edgen.core.errors import RunError, StoppedError, UsageError
from edgen.core.events import Event, Events
from edgen.runtime.deadline import Deadline
from edgen.runtime.key_consent import Trust

# Answers a question with yes or no.
Confirm = Callable[[str], bool]
# Calls what it is given with the number of each signal that comes while its context is open.
Interrupts = Callable[[Callable[[int], None]], AbstractContextManager[None]]


def ignore_interrupts(_on_signal: Callable[[int], None]) -> AbstractContextManager[None]:
    """Let nothing interrupt the work."""
    return contextlib.nullcontext()


@dataclass
class Control:
    """Callbacks and consents of a command's work."""

    events: Events = field(default_factory=Events)  # sent to listeners
    deadline: Deadline | None = None  # end of the work; None: none
    trusting: Callable[[], Trust] = Trust  # makes `trust` once something asks for it
    agree: Confirm | None = None
    """Asked before anything is undone or paid for again; None: no person can be asked."""
    interrupts: Interrupts = ignore_interrupts  # the signals that stop the work cleanly
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
        """Raise StoppedError where it has gone by; to be asked once something is known to be left to do."""
        if self.deadline is not None:
            self.deadline.check()

    def require_consent(self, losses: Iterable[object]) -> None:
        """Return if there is nothing to lose, or the person agrees. Raises UsageError if not, or where nobody
        can be asked. Each loss reads as a sentence."""
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
