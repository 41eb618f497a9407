"""The command line: one file a command. Commands compose objects and print; they hold no logic."""

from __future__ import annotations

from typing import Annotated

import typer

from edgen import __version__
from edgen.cli import doctor, generate, init, parse, preview, simulator, space, status, validate

app = typer.Typer(
    name="edgen",
    help="Generate synthetic teacher-student conversations with language models.\n\n"
    "Start with: edgen init my-project && edgen generate my-project/job.yaml",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edgen {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command("init")(init.command)
app.command("preview")(preview.command)
app.command("generate")(generate.command)
app.command("status")(status.command)
app.command("parse")(parse.command)
app.command("validate")(validate.command)
app.add_typer(space.app, name="space")
app.command("doctor")(doctor.command)
app.command("simulator")(simulator.command)
