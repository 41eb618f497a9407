"""The process of a run that a page started: `python -m edgen.web.job_process JOB FOLDER OVERRIDE…`.

It does what `edgen generate` does, and ends as cleanly on the same signals. It prints questions for the page,
one line of JSON each, and reads the answers from standard input; without a listening page, every answer is
no. At the end it prints the reason if it was stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from edgen.core.errors import EdgenError
from edgen.core.plugins.faults import find_fault
from edgen.core.plugins.unending_threads import end_process
from edgen.core.system import handle_signals
from edgen.core.text import escape_for_terminal
from edgen.generation.arms import generate
from edgen.generation.options import GenerateOptions
from edgen.planning.load import JobSource
from edgen.runtime.control import Control, Trust, run_in_own_loop
from edgen.runtime.processes import keep_output, report


class ProcessLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question to answer with yes or no, or the sentence at the end of a run; `ok` if the run is
    complete."""

    question: str | None = None
    ended: str | None = None
    ok: bool = False


def main(job: str, folder: str, overrides: Sequence[str]) -> None:
    """Generate the conversations of a job."""
    keep_output()
    control = Control(trusting=lambda: Trust(confirm=_ask), agree=_ask, interrupts=_forward_signals)
    options = GenerateOptions(output=Path(folder))
    try:
        source = JobSource.of(Path(job), tuple(overrides))
        made = run_in_own_loop(generate(source, options, control))
        ended: BaseException | None = made.ended
    except (EdgenError, OSError) as problem:
        ended = problem
    except BaseException as error:
        if (ended := find_fault(error)) is None:
            raise
    report(ProcessLine(ended="" if ended is None else escape_for_terminal(str(ended)), ok=ended is None))


@contextlib.contextmanager
def _forward_signals(on_signal: Callable[[int], None]) -> Iterator[None]:
    with handle_signals(asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM), on_signal):
        yield


def _ask(question: str) -> bool:
    """Return a person's yes or no."""
    report(ProcessLine(question=escape_for_terminal(question)))
    return sys.stdin.readline().strip() == "yes"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
    end_process()
