"""`edgen batch`: the batches of a run, looked at, ended, read. One file a command."""

from __future__ import annotations

import typer

from edgen.cli.batch import cancel, list_, read

app = typer.Typer(
    help="Look at a run's provider batch jobs, end them, or read results that you fetched yourself.\n\n"
    "Example: edgen batch list outputs/nightly",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("list", short_help="Show every batch of a run and how it stands.")(list_.command)
app.command("cancel", short_help="End batches; what they have answered is read and kept.")(cancel.command)
app.command("read", short_help="Read result files into a run; sends nothing.")(read.command)
