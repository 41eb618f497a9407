"""`edgen space`: look at preference space files, make them and let them grow. One file a command."""

from __future__ import annotations

import typer

from edgen.cli.space import expand, from_csv, from_ed, show

app = typer.Typer(
    help="Work with preference space files.\n\nExample: edgen space show broad",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command("show", short_help="Print sizes, cells, weights, and what a balanced design needs.")(show.command)
app.command("expand", short_help="Ask a model for more values; writes a new file.")(expand.command)
app.command("from-csv", short_help="Make a space of a table: a column a dimension.")(from_csv.command)
app.command("from-ed", short_help="Make a space of what released ED files were drawn from.")(from_ed.command)
