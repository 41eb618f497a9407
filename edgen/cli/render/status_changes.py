"""A run that is followed: a JSON object a line, a screen that changes in place, or a line a change."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from edgen.api.status import Status
from edgen.cli.output import print_json_line, print_line
from edgen.cli.render.status import Speed, render_change, render_status
from edgen.core.safe_text import safe


def show_changes(changes: Iterable[Status], *, json: bool) -> None:
    speed = Speed()
    if json or not sys.stdout.isatty():
        for status in changes:
            if json:
                print_json_line(status)
            else:
                print_line(render_change(status, speed.describe(status)))
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False) as live:
        for status in changes:
            lines = [*render_status(status)]
            if rate := speed.describe(status):
                lines.append(f"speed      {rate}")
            live.update(Text(safe("\n".join(lines)), overflow="fold"), refresh=True)
