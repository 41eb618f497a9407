"""`edgen` and `python -m edgen`."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    # Until Python has imported everything, and while it ends, Ctrl-C ends the process without a traceback.
    at_a_terminal = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if at_a_terminal:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_standard_files()
    # Hundreds of concurrent calls keep many objects alive. Python would search them again and again for
    # cycles, of which there are few: 7% of the CPU of a run, and 5% of a start.
    gc.set_threshold(200_000, 50, 100)
    from edgen.cli.app import app
    from edgen.cli.output import find_signal, run_guarded
    from edgen.core.registry import list_foreign_plugins

    gc.freeze()  # modules stay until the end, so Python need not search them for cycles

    code: str | int | None = 128 + signal.SIGINT
    try:
        if at_a_terminal:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run_guarded(lambda: app(prog_name="edgen"))
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:  # between two of the steps above
        code = 128 + find_signal()
    finally:
        if at_a_terminal:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    _flush_at_last()
    gc.freeze()  # the process ends, so Python need not search for cycles again
    if list_foreign_plugins():
        from edgen.core.plugins.unending_threads import end_process

        end_process(code)
    sys.exit(code)


def _flush_at_last() -> None:
    """Make the interpreter's last flush succeed, so that a reader that has gone away does not change the exit
    code."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: a plugin took it away
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_standard_files() -> None:
    """Open the null device in place of standard files that the caller closed.

    Otherwise the next opened file, such as a ledger, would get their number and their output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: PTH123, SIM115 - by number
    # Results are UTF-8 in every locale, as JSON requires. Characters outside the locale do not stop a remark.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
