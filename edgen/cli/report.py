"""`edgen report`: a finished run as one page to read and to share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.core.options import TrustCode, declare_output


class ReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a page about a run."""

    output: Annotated[Path | None, declare_output("FILE", "The page.  [default: RUN/report.html]")] = None
    trust_code: TrustCode = ()


def command(
    run: o.RunArgument,
    options: ReportOptions,
    json: o.JsonOption = False,
) -> None:
    """Write an HTML page about a run, with charts and examples.

    The file needs no network. An earlier report is replaced. Measures of the run's own job are included if
    you agree to run their files.

    Example: edgen report outputs/quickstart
    """
    from edgen.api.finished import write_report
    from edgen.cli.control import make_control

    written = write_report(run, make_control(trust_code=options.trust_code), options.output)
    line = f"{written.path} is ready ({written.size / 1e6:.1f} MB): open it in a browser."
    print_value({"file": str(written.path), "bytes": written.size}, [line], json=json)
