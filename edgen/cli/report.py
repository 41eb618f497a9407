"""`edgen report`: a finished run as one page to read and to send around."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.output import note, print_line, safe


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE", help="Where to write it.  [default: RUN/report.html]")
    ] = None,
) -> None:
    """Write one self-contained HTML file about a run: counts, cost, pictures, arms, conversations, rejections.

    It opens from disk and loads nothing. An earlier report is replaced.

    Example: edgen report outputs/quickstart
    """
    from edgen.report import write

    stages = _Stages()
    try:
        written = write(run, output, tell=stages)
    finally:
        stages.clear()
    print_line(f"{written.path} is ready ({written.size / 1e6:.1f} MB): open it in a browser.")
    if not written.accepted:
        note(
            f"no conversation was accepted ({written.refused:,} were rejected or failed), so there is nothing to "
            "measure; the report says why they were."
        )
    if written.pending:
        pending = "1 conversation is" if written.pending == 1 else f"{written.pending:,} conversations are"
        note(f"{pending} pending; the report is about what is there.")
    if written.missing:
        note(f"nothing is settled in {', '.join(written.missing)}; the report is about the other arms.")
    if written.uncompared:
        note(f"the arms are not compared: {written.uncompared}")


class _Stages:
    """What is being done, on stderr: one line that changes where a person looks, else a line now and then."""

    _EVERY = (0.1, 10.0)  # seconds, on a terminal and in a log

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._next = time.monotonic() + self._EVERY[not self._live]

    def __call__(self, stage: str) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._EVERY[not self._live]
        if self._live:
            self._show(f"\r\x1b[K{safe(stage)}")
        else:
            note(stage)

    def clear(self) -> None:
        if self._live:
            self._show("\r\x1b[K")

    def _show(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()
