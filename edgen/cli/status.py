"""`edgen status`: how a run stands, finished or in progress."""

from __future__ import annotations

from typing import Annotated

import typer

from edgen.cli.options.common import JsonOption, RunArgument
from edgen.cli.output import note, print_value


def command(
    run: RunArgument,
    json: JsonOption = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow the run until it ends; --json: an object a line.")
    ] = False,
) -> None:
    """Show how a run stands: what was planned, accepted, rejected, failed, and what is pending.

    With --watch it is shown again whenever something changes, until nobody works on the run any more; one that
    was not begun is waited for.

    Example: edgen status outputs/quickstart
    """
    from edgen.api.status import follow_status, last_messages, read_status
    from edgen.cli.render.status import render_status
    from edgen.cli.render.status_changes import show_changes

    if watch:
        show_changes(follow_status(run, lambda text: note(f"edgen: {text}")), json=json)
        return
    status = read_status(run)
    lasts = (f"last       {message}" for message in last_messages(status))
    print_value(status, [*render_status(status), *lasts], json=json)
