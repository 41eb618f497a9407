"""Exceptions to exit codes: the one place where a command's failure becomes a sentence."""

from __future__ import annotations

import contextlib
import errno
import signal
import sys
import traceback
from collections.abc import Callable, Iterator

from edgen.cli.output import note
from edgen.core.errors import EdgenError, SignalError
from edgen.core.safe_text import safe

# An exit code, the sentence that goes with it, and the traceback of a bug.
# Whether it has said so, in place of a line on stderr.
Ending = Callable[[int, str | None, str | None], bool]

_endings: list[Ending] = []


def at_end(tell: Ending) -> None:
    """Have `tell` called once, when the command that runs now has ended. It must not raise."""
    _endings.append(tell)


def run_guarded(run: Callable[[], object]) -> int:
    """Call `run` and return the exit code that its end stands for; SystemExit passes through."""
    before = {number: signal.signal(number, _end_on_signal) for number in ending_signals()}
    code, text, trace = 0, None, None
    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    except EdgenError as error:
        code, text = error.exit_code, str(error)
    except KeyboardInterrupt:
        code, text = 130, "interrupted."
    except OSError as error:
        code, text = 2, f"{error.filename}: {error.strerror}."
        if error.errno in (errno.EMFILE, errno.ENFILE):
            text = "this system lets a process open too few files; raise the limit (ulimit -n 256)."
        elif error.filename is None:
            code, text, trace = 1, None, traceback.format_exc()
    except MemoryError:
        code = 1
        text = "the machine ran out of memory; try fewer calls at once (--set limits.in_flight=32)."
    except Exception:  # noqa: BLE001 - a bug: the one case in which a person sees a traceback
        code, trace = 1, traceback.format_exc()
        text = "this is a bug in edgen, not in what you did. What was answered is stored."
    finally:
        with _ignore_signals():
            _say_how_it_ended(code, text, trace)
        for number, handler in before.items():
            signal.signal(number, handler)
    return code


def ending_signals() -> list[signal.Signals]:
    """The signals beside Ctrl-C that ask a command to end. A hangup that the caller ignores, as `nohup` does, is
    none."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM] if ignored else [signal.SIGTERM, signal.SIGHUP]


def _say_how_it_ended(code: int, text: str | None, trace: str | None) -> None:
    """Say how it ended, where a log does not say so already."""
    endings = _endings[:]
    _endings.clear()
    said = [tell(code, text, trace) for tell in endings]  # all of them are told
    if any(said):
        return
    if trace is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(safe(trace))
    if text is not None:
        note(f"edgen: {text}")


@contextlib.contextmanager
def _ignore_signals() -> Iterator[None]:
    """Ignore signals: it ends in a moment anyway, and who waits for it is to be told how."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _end_on_signal(number: int, _frame: object) -> None:
    for each in ending_signals():  # one is enough: the next would be raised where this one is being told
        signal.signal(each, signal.SIG_IGN)
    raise SignalError(number, "terminated; what was finished before is there, and nothing is half written.")
