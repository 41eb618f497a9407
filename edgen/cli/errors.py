"""Exceptions to exit codes: the one place where a command's failure becomes a sentence."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable

from edgen.cli.output import note
from edgen.errors import EdgenError, SignalError


def guarded(run: Callable[[], object]) -> int:
    """Call `run` and return the exit code that its end stands for; SystemExit passes through."""
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        run()
    except EdgenError as error:
        note(f"edgen: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        note("edgen: interrupted.")
        return 130
    except OSError as error:
        if error.filename is None:
            traceback.print_exc()
            return 1
        note(f"edgen: {error.filename}: {error.strerror}.")
        return 2
    except MemoryError:
        note("edgen: the machine ran out of memory; try fewer calls at once (--set limits.in_flight=32).")
        return 1
    except Exception:  # noqa: BLE001 - a bug: the one case in which a person sees a traceback
        traceback.print_exc()
        note("edgen: this is a bug in edgen, not in what you did. What was answered is stored.")
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _terminated(number: int, _frame: object) -> None:
    raise SignalError(number, "terminated; what was finished before is there, and nothing is half written.")
