"""The commands, mounted. Commands compose objects and print; they hold no logic."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import typer
import typer.core

from edgen import __version__
from edgen.cli import (
    batch,
    compare,
    doctor,
    estimate,
    export,
    generate,
    init,
    merge,
    pairs,
    parse,
    preview,
    prompts,
    report,
    runs,
    show,
    simulator,
    space,
    stats,
    status,
    validate,
)
from edgen.cli.output import safe


class _Root(typer.core.TyperGroup):
    """The command line, whose complaints are safe to print: a shell's * may have put any file's name into it."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _worded():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _worded():
            return super().invoke(ctx)


@contextlib.contextmanager
def _worded() -> Iterator[None]:
    try:
        yield
    except _Complaint as error:
        error.message = safe(error.message)
        raise


# What a command line that does not fit raises; typer has it under this name alone.
_Complaint: Any = typer.BadParameter.__base__


app = typer.Typer(
    name="edgen",
    cls=_Root,
    help="Generate synthetic teacher-student conversations with language models.\n\n"
    "Start with: edgen init my-project && edgen generate my-project/job.yaml",
    no_args_is_help=True,
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


app.command("init", short_help="Make a folder with a job, a template and a space.")(init.command)
app.command("preview", short_help="Show scenarios and rendered prompts; calls nothing.")(preview.command)
app.command("prompts", short_help="List templates, shipped and local, and what each expects.")(
    prompts.command
)
app.command("estimate", short_help="Say what a job will cost, before it is started; calls nothing.")(
    estimate.command
)
app.command("generate", short_help="Make the conversations that a job asks for.")(generate.command)
app.command("status", short_help="Show how a run stands.")(status.command)
app.command("runs", short_help="List the runs in a folder: state, counts, cost, age.")(runs.command)
app.command("show", short_help="Show a conversation of a run, and what became of it.")(show.command)
app.command("merge", short_help="Make one run of pieces of a job, or of several runs of it.")(merge.command)
app.command("pairs", short_help="Make preference pairs of a run, and report on their bias.")(pairs.command)
app.command("compare", cls=compare.SeveralArms, short_help="Compare a run's arms, or runs, with intervals.")(
    compare.command
)
app.command("export", short_help="Write a run as a data set, or in a trainer's format.")(export.command)
app.command("stats", cls=stats.SeveralMeasures, short_help="Measure what a run or anybody's files are like.")(
    stats.command
)
app.command("report", short_help="Write one page about a run: counts, pictures, examples.")(report.command)
app.command("parse", short_help="Read raw replies to turns and a probability.")(parse.command)
app.command("validate", short_help="Check a run, shards or ED files; --fix repairs copies.")(validate.command)
app.add_typer(batch.app, name="batch")
app.add_typer(space.app, name="space")
app.command("doctor", short_help="Check keys, endpoint and model; say what to do.")(doctor.command)
app.command("simulator", short_help="Serve the simulator in OpenAI's and Gemini's formats.")(
    simulator.command
)
