"""Output and exit of commands: results on stdout, notes on stderr, failures as exit codes.

It is the same for a terminal and a file, except that lines break at a narrow terminal's edge (`folding`). In
lines for people, characters that a terminal would interpret or hide are written out (`escape_for_terminal`);
in JSON they are escaped, so that a reader of the JSON gets every character unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import textwrap
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple, TextIO

import msgspec

from edgen.cli.folding import fold
from edgen.core import registry
from edgen.core.errors import EdgenError, UsageError
from edgen.core.plugins import background
from edgen.core.plugins.faults import describe_interrupted, find_fault
from edgen.core.system import ENDING_SIGNALS, is_hangup
from edgen.core.text import (
    columns,
    escape_for_terminal,
    escape_json_for_terminal,
    format_dollars,
    replace_surrogates,
)

_LEAST_COLUMNS = 20  # of a terminal in which sentences are broken between words


def render_json(value: Any) -> str:
    """Return a value as one line of JSON that is safe to print. A lone surrogate, possible in a file's name,
    becomes U+FFFD."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(replace_surrogates(msgspec.to_builtins(value)))
    return escape_json_for_terminal(encoded.decode())


def print_value(value: Any, lines: Iterable[str], *, json: bool) -> None:
    """Print a result: as JSON, or as lines with the same content for a person."""
    if json:
        print_json(value)
        return
    width = _find_terminal_width(_kept[-1] if _kept else sys.stdout)
    for line in lines:
        print_line(fold(line, width) if width and not isinstance(line, SafeText) else line)


def print_json(value: Any) -> None:
    """Print one JSON value, and nothing else, on stdout."""
    print_raw(msgspec.json.format(render_json(value), indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """Print one JSON value on one line, on stdout."""
    print_raw(render_json(value) + "\n")


class SafeText(str):
    """Text that is safe already: its terminal codes are edgen's own."""

    __slots__ = ()


def print_line(text: str = "") -> None:
    """Print one line of a result, on stdout."""
    print_raw((text if isinstance(text, SafeText) else escape_for_terminal(text)) + "\n")


@contextlib.contextmanager
def keep_stdout() -> Iterator[None]:
    """Keep stdout for what this module prints. Other code that prints, such as a plugin, prints on stderr."""
    _kept.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _kept.pop()


_kept: list[TextIO] = []  # stdout at the command's start; a plugin may replace sys.stdout
_kept_errors: list[TextIO] = []  # the same of stderr


def print_raw(text: str) -> None:
    """Print text unchanged on stdout, and flush. A reader that has gone away is no error."""
    out = _kept[-1] if _kept else sys.stdout
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    except OSError as problem:
        raise UsageError(f"standard output cannot be written ({problem.strerror}).") from None
    except ValueError:
        if not out.closed:
            raise
        raise UsageError("standard output cannot be written: a plugin closed it.") from None


def note(text: str) -> None:
    """Print a remark to the person, on stderr. Without a reader, the work continues."""
    err = _find_stderr()
    with contextlib.suppress(OSError, ValueError):
        text, width = escape_for_terminal(text), _find_terminal_width(err)
        err.write((fold(text, width) if width else text) + "\n")
        err.flush()


def _find_stderr() -> TextIO:
    return _kept_errors[-1] if _kept_errors else sys.stderr


def wrap_to_terminal(label: str, text: str) -> str:
    """Return a label followed by a text. On a narrower terminal, the text is wrapped and its lines start in
    one column."""
    width = _find_terminal_width(sys.stdout)
    line = label + text
    return "\n".join(wrap_after_label(label, text, width)) if 0 < width < columns(line) else line


def _find_terminal_width(stream: TextIO) -> int:
    """Return the number of columns of a stream's terminal; 0 if there is none, or too few to read in."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0
    return width if width >= _LEAST_COLUMNS else 0


def format_cost(usd: float | None, *, calls: int = 1) -> str:
    """Format the cost of calls."""
    if usd is None:
        return "unknown (no price in the job)" if calls else "none yet"
    return format_dollars(usd)


def align_columns(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Yield the lines of a table: the first `left` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(cells)
        )


def wrap_after_label(label: str, text: str, width: int = 80) -> list[str]:
    """Return the lines of a label followed by a text, within `width` columns."""
    indent = " " * len(label)
    return textwrap.wrap(text, width, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False)


# -- exceptions to exit codes: the one place where a command's failure becomes a sentence


class CommandEnd(NamedTuple):
    """The end of a command: its exit code, the sentence for it, the traceback of a bug, the reason in one
    word, and the SystemExit to pass on."""

    code: int
    text: str | None = None
    trace: str | None = None
    reason: str = ""
    exit: SystemExit | None = None


# Returns True if it has reported the end, so that stderr needs no line.
Ending = Callable[[CommandEnd], bool]

_endings: list[Ending] = []
_came: list[int] = []  # signals that end the command, besides Ctrl-C


def call_at_end(callback: Ending) -> None:
    """Have `callback` called once, at the end of the command that runs now. It must not raise."""
    _endings.append(callback)


class Interruption(BaseException):
    """The end of a command by a signal. Libraries in between do not catch it, as click does
    KeyboardInterrupt."""


class _EndedBySignal(KeyboardInterrupt):
    """An end like Ctrl-C.

    If a plain KeyboardInterrupt leaves an `exec`, for example of an import, Python later ends itself by
    SIGINT, regardless of handlers.
    """


def run_guarded(run: Callable[[], object]) -> int:
    """Call `run` and return the exit code of its end; SystemExit passes through."""
    _came.clear()
    registry.warned.clear()
    hooks = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = background.on_thread, background.on_cleanup
    background.reported.clear()
    _kept.append(sys.stdout)
    _kept_errors.append(sys.stderr)
    before = {number: signal.signal(number, _end_on_signal) for number in list_ending_signals()}
    interrupt = signal.getsignal(signal.SIGINT)  # a loop that a task's KeyboardInterrupt ends leaves its own
    try:
        try:
            with warnings.catch_warnings():
                end = _run_to_end(run)
        except (KeyboardInterrupt, Interruption):  # a signal during the handling of another end
            end = _end_interrupted()
        with _ignore_signals():
            _report_end(end)
    finally:
        threading.excepthook, sys.unraisablehook = hooks
        del _kept[-1], _kept_errors[-1]
        for number, handler in before.items():
            signal.signal(number, handler)
        if interrupt is not None:
            signal.signal(signal.SIGINT, interrupt)
    if end.exit is not None:
        raise end.exit
    return end.code


def _run_to_end(run: Callable[[], object]) -> CommandEnd:
    """Call `run` and return how it ended. A plugin whose code ended it, even by an exit, is at fault."""
    try:
        run()
    except BaseException as error:  # noqa: BLE001 - each end has its exit code
        own_exit = isinstance(error, SystemExit) and (_is_signals(error) or _is_typers(error))
        return _find_end(error if own_exit or _is_too_many_files(error) else find_fault(error) or error)
    return CommandEnd(0)


def _find_end(error: BaseException) -> CommandEnd:
    """Return the end by the error that is handled, or by a plugin's fault in its place."""
    match error:
        case SystemExit():
            if _is_signals(error):
                return _end_interrupted(describe_interrupted(error))
            return CommandEnd(
                error.code if isinstance(error.code, int) else int(error.code is not None), exit=error
            )
        case EdgenError():
            return CommandEnd(error.exit_code, str(error), reason=error.reason)
        case KeyboardInterrupt() | Interruption():
            return _end_interrupted(describe_interrupted(error))
        case OSError():
            if _is_too_many_files(error):
                text = "this system lets a process open too few files; raise the limit (ulimit -n 256)."
                return CommandEnd(2, text, reason="error")
            if error.filename is None and _is_typers(error):  # raised while a help text was printed
                return CommandEnd(2, f"standard output cannot be written ({error.strerror}).", reason="error")
            if error.filename is None:
                return CommandEnd(1, trace=traceback.format_exc(), reason="bug")
            return CommandEnd(2, f"{error.filename}: {error.strerror}.", reason="error")
        case MemoryError():
            text = "the machine ran out of memory; try fewer calls at once (--set limits.in_flight=32)."
            return CommandEnd(1, text, reason="memory")
        case Exception():  # a bug: the one case in which a person sees a traceback
            text = "this is a bug in edgen, not a mistake of yours. All answers are stored."
            return CommandEnd(1, text, traceback.format_exc(), "bug")
    if type(error).__name__ != "CancelledError":
        raise error
    # asyncio lets a CancelledError through if the signal comes between its handler and its first step.
    return _end_interrupted()


def _is_signals(end: SystemExit) -> bool:
    """Return whether this is typer's exit for a signal before the command ran."""
    return end.code == 128 + signal.SIGINT


def _is_too_many_files(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def _is_typers(error: BaseException) -> bool:
    """Return whether typer's own code raised an error, such as SystemExit at the end of every command."""
    names = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(names) and names[-1].startswith("typer.")


def find_signal() -> int:
    """Return the signal that ends the command: the first one received, else Ctrl-C's."""
    return _came[0] if _came else signal.SIGINT


def _end_interrupted(running: str | None = None) -> CommandEnd:
    """Return the end by a signal. `running`: the plugin whose code ran, if known. Call it before Python
    destroys half-made objects in the traceback, which would print warnings."""
    _silence_cleanup_warnings()
    number = find_signal()
    if number == signal.SIGINT:
        text = "interrupted."
    else:
        text = "terminated; finished results are stored, and no file is half written."
    if running is not None:
        text += f" {running} was running."
    return CommandEnd(128 + number, text, reason="interrupted")


def list_ending_signals() -> list[signal.Signals]:
    """Return the signals besides Ctrl-C that end a command, without a hangup that the caller ignores, as
    `nohup` does."""
    others = [number for number in ENDING_SIGNALS if number != signal.SIGINT]
    return [each for each in others if not (is_hangup(each) and signal.getsignal(each) is signal.SIG_IGN)]


def _report_end(end: CommandEnd) -> None:
    """Print how the command ended, unless a log reports it."""
    endings = _endings[:]
    _endings.clear()
    said = [tell(end) for tell in endings]  # call all of them, so that every problem is printed
    if any(said):
        return
    if end.trace is not None:
        with contextlib.suppress(OSError, ValueError):
            _find_stderr().write(escape_for_terminal(end.trace))
    if end.text is not None and end.text not in registry.warned:
        note(f"edgen: {end.text}")


@contextlib.contextmanager
def _ignore_signals() -> Iterator[None]:
    """Ignore signals: the command is about to end, and its caller needs its own exit code."""
    before = [signal.signal(number, signal.SIG_IGN) for number in ENDING_SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(ENDING_SIGNALS, before, strict=True):
            signal.signal(number, handler)


def _silence_cleanup_warnings() -> None:
    """Suppress warnings of half-made objects, such as an event loop, that are destroyed."""
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")


def _end_on_signal(number: int, frame: FrameType | None) -> None:
    """Act as Ctrl-C does: if a loop runs, its task is cancelled and cleans up."""
    for each in list_ending_signals():  # a second signal would raise while this one is printed
        signal.signal(each, signal.SIG_IGN)
    _came.append(number)
    _silence_cleanup_warnings()
    interrupt = signal.getsignal(signal.SIGINT)
    # A handler of an event loop: neither Python's own, nor SIG_IGN as in the background of a shell.
    if callable(interrupt) and interrupt is not signal.default_int_handler:
        interrupt(signal.SIGINT, frame)
    else:
        raise _EndedBySignal
