"""Exceptions to exit codes: the one place where a command's failure becomes a sentence."""

from __future__ import annotations

import contextlib
import errno
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NamedTuple

from edgen.cli.output import note
from edgen.core.errors import EdgenError
from edgen.core.plugin_faults import find_fault
from edgen.core.system import ENDING_SIGNALS, is_hangup
from edgen.core.text import escape_hidden


class CommandEnd(NamedTuple):
    """The end of a command: its exit code, the sentence for it, the traceback of a bug, the reason in one
    word, and the SystemExit to pass on."""

    code: int
    text: str | None = None
    trace: str | None = None
    reason: str = ""
    exit: SystemExit | None = None


# Whether it has said so, in place of a line on stderr.
Ending = Callable[[CommandEnd], bool]

_endings: list[Ending] = []
_came: list[int] = []  # the signal that ends the command, where it is not Ctrl-C's


def call_at_end(tell: Ending) -> None:
    """Have `tell` called once, when the command that runs now has ended. It must not raise."""
    _endings.append(tell)


class Interruption(BaseException):
    """A signal ends the command. No library between takes it for something of its own, as click does with
    KeyboardInterrupt."""


class _EndedBySignal(KeyboardInterrupt):
    """An end like Ctrl-C.

    If a plain KeyboardInterrupt leaves an `exec`, as those of imports, Python ends itself by SIGINT later,
    regardless of handlers.
    """


def run_guarded(run: Callable[[], object]) -> int:
    """Call `run` and return the exit code that its end stands for; SystemExit passes through."""
    _came.clear()
    heard = sys.unraisablehook
    before = {number: signal.signal(number, _end_on_signal) for number in list_ending_signals()}
    try:
        try:
            with warnings.catch_warnings():
                end = _run_to_end(run)
        except (KeyboardInterrupt, Interruption):  # while something else ended it
            end = _end_interrupted()
        with _ignore_signals():
            _say_how_it_ended(end)
    finally:
        sys.unraisablehook = heard
        for number, handler in before.items():
            signal.signal(number, handler)
    if end.exit is not None:
        raise end.exit
    return end.code


def _run_to_end(run: Callable[[], object]) -> CommandEnd:
    """Call `run` and return how it ended."""
    try:
        run()
    except SystemExit as end:
        if end.code == 128 + signal.SIGINT:  # typer's, for a signal that came before the command ran
            return _end_interrupted()
        if not _is_typers(end) and (fault := find_fault(end)) is not None:  # no plugin ends edgen
            return CommandEnd(fault.exit_code, str(fault), reason=fault.reason)
        return CommandEnd(end.code if isinstance(end.code, int) else int(end.code is not None), exit=end)
    except EdgenError as error:
        return CommandEnd(error.exit_code, str(error), reason=error.reason)
    except (KeyboardInterrupt, Interruption):
        return _end_interrupted()
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            text = "this system lets a process open too few files; raise the limit (ulimit -n 256)."
            return CommandEnd(2, text, reason="error")
        if (fault := find_fault(error)) is not None:
            return CommandEnd(fault.exit_code, str(fault), reason=fault.reason)
        if error.filename is None and _is_typers(error):  # a help text
            return CommandEnd(2, f"standard output cannot be written ({error.strerror}).", reason="error")
        if error.filename is None:
            return CommandEnd(1, trace=traceback.format_exc(), reason="bug")
        return CommandEnd(2, f"{error.filename}: {error.strerror}.", reason="error")
    except MemoryError:
        text = "the machine ran out of memory; try fewer calls at once (--set limits.in_flight=32)."
        return CommandEnd(1, text, reason="memory")
    except Exception as error:  # noqa: BLE001 - a bug: the one case in which a person sees a traceback
        if (fault := find_fault(error)) is not None:
            return CommandEnd(fault.exit_code, str(fault), reason=fault.reason)
        text = "this is a bug in edgen, not a mistake of yours. All answers are stored."
        return CommandEnd(1, text, traceback.format_exc(), "bug")
    except BaseException as error:
        if (fault := find_fault(error)) is not None:
            return CommandEnd(fault.exit_code, str(fault), reason=fault.reason)
        if type(error).__name__ != "CancelledError":
            raise
        # asyncio forgets a signal that comes between its handler and its first step, and lets this through.
        return _end_interrupted()
    return CommandEnd(0)


def _is_typers(error: BaseException) -> bool:
    """Return whether typer's own code raised it, as SystemExit at the end of every command."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("typer.")


def find_signal() -> int:
    """Return the signal that ends the command: the first that came, or Ctrl-C's."""
    return _came[0] if _came else signal.SIGINT


def _end_interrupted() -> CommandEnd:
    """Return the end by the signal that came. The traceback still holds what the signal left half made, so
    this is before any of it is taken apart."""
    _silence_half_made()
    number = find_signal()
    if number == signal.SIGINT:
        return CommandEnd(130, "interrupted.", reason="interrupted")
    text = "terminated; finished results are stored, and no file is half written."
    return CommandEnd(128 + number, text, reason="interrupted")


def list_ending_signals() -> list[signal.Signals]:
    """Return the signals besides Ctrl-C that end a command, without a hangup that the caller ignores, as
    `nohup` does."""
    others = [number for number in ENDING_SIGNALS if number != signal.SIGINT]
    return [each for each in others if not (is_hangup(each) and signal.getsignal(each) is signal.SIG_IGN)]


def _say_how_it_ended(end: CommandEnd) -> None:
    """Say how it ended, where a log does not say so already."""
    endings = _endings[:]
    _endings.clear()
    said = [tell(end) for tell in endings]  # every problem is printed
    if any(said):
        return
    if end.trace is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(escape_hidden(end.trace))
    if end.text is not None:
        note(f"edgen: {end.text}")


@contextlib.contextmanager
def _ignore_signals() -> Iterator[None]:
    """Ignore signals: the command ends in a moment anyway, and the caller needs to know how."""
    before = [signal.signal(number, signal.SIG_IGN) for number in ENDING_SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(ENDING_SIGNALS, before, strict=True):
            signal.signal(number, handler)


def _silence_half_made() -> None:
    """Keep what is taken apart half made, as an event loop, from complaining about that."""
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")


def _end_on_signal(number: int, frame: FrameType | None) -> None:
    """Do as Ctrl-C does: where a loop runs, its task is cancelled and cleans up."""
    for each in list_ending_signals():  # one is enough: the next would be raised while this one is printed
        signal.signal(each, signal.SIG_IGN)
    _came.append(number)
    _silence_half_made()
    interrupt = signal.getsignal(signal.SIGINT)
    # Neither Python's own, nor ignored as in the background of a shell: that of a loop.
    if callable(interrupt) and interrupt is not signal.default_int_handler:
        interrupt(signal.SIGINT, frame)
    else:
        raise _EndedBySignal
