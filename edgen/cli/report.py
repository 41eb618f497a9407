"""`edgen report`: a finished run as one page to read and to send around."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from edgen.cli.options import RunArgument
from edgen.cli.output import print_line


def command(
    run: RunArgument,
    output: Annotated[
        Path | None, Option("-o", metavar="FILE", help="Where to write it.  [default: RUN/report.html]")
    ] = None,
) -> None:
    """Write one self-contained HTML file about a run: counts, cost, pictures, arms, conversations, rejections.

    It opens from disk and loads nothing. An earlier report is replaced.

    Example: edgen report outputs/quickstart
    """
    from edgen.api.finished import write_report
    from edgen.cli.control import make_control

    written = write_report(run, make_control(), output)
    print_line(f"{written.path} is ready ({written.size / 1e6:.1f} MB): open it in a browser.")
