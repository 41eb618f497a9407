"""`edgen preview`: scenarios and rendered prompts; calls nothing. `--diff` puts two of them side by side."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from edgen.cli.options import common as o
from edgen.cli.output import note, print_line, print_value


def command(
    job: o.JobArgument,
    count: Annotated[int, typer.Option("-n", min=1, max=1000, help="How many scenarios to show.")] = 3,
    diff: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="Show what differs: from an arm of the job, another job file, or a template in the place of the job's "
            "([USE=]NAME or .j2 file).",
        ),
    ] = None,
    set_: o.SetOption = None,
    allow_outside: o.OutsideOption = False,
    json: o.JsonOption = False,
) -> None:
    """Show scenarios and the prompts rendered for them. Calls nothing, costs nothing.

    Example: edgen preview jobs/quickstart.yaml -n 1 --diff education_dialogue_json
    """
    from edgen.api.previewing import JobPreview
    from edgen.cli.render.preview import preview_as_json, render_difference, render_preview

    looked_at = JobPreview(job, o.read_overrides(set_), allow_outside=allow_outside)
    if diff is not None:
        difference = looked_at.compare(diff, count)
        _warn(() if json else difference.warnings)
        width = shutil.get_terminal_size().columns
        print_value(difference, render_difference(difference, width), json=json)
        return
    preview = looked_at.preview(count)
    print_value(preview_as_json(preview), render_preview(preview), json=json)
    if not json:
        cells = "uncounted" if preview.cells is None else preview.cells
        print_line(f"{preview.planned} scenarios are planned, of {cells} cells in {preview.space}.")
        _warn(preview.warnings)


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        note(f"edgen: {warning}.")
