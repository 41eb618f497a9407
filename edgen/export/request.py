"""Options of an export besides those of its format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from edgen.core.options import On, Processes, declare_output, option
from edgen.core.registry import names


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The format, the folder, and the processes of an export."""

    to: Annotated[
        str | None,
        option(
            f"The format to write. One of: {', '.join(names('format'))}. Without it, all are listed.",
            metavar="FORMAT",
            completes="formats",
        ),
    ] = None
    output: Annotated[Path | None, declare_output("DIR", "A new or empty folder.")] = None
    workers: Processes = 1
    on: On = None
    """A cluster; None for this machine."""
