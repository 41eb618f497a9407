"""`edgen report`: a finished run as one page to read and to send around."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgen.cli.output import note, print_line
from edgen.cli.progress import Stages


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

    with Stages() as stages:
        written = write(run, output, tell=stages)
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
