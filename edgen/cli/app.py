"""The commands, mounted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from edgen.cli import (
    annotate,
    baseline,
    batch,
    candidates,
    compare,
    doctor,
    estimate,
    export,
    generate,
    init,
    machine,
    merge,
    pairs,
    parse,
    plugins,
    preview,
    prompts,
    report,
    runs,
    score,
    select,
    show,
    simulator,
    space,
    stats,
    status,
    validate,
)
from edgen.core.safe_text import safe
from edgen.core.version import __version__


class _Root(TyperGroup):
    """The command line, whose complaints are safe to print: a shell's * may have put any file's name into it."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _safe_complaints():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _safe_complaints():
            return super().invoke(ctx)


@contextlib.contextmanager
def _safe_complaints() -> Iterator[None]:
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
    help="Make synthetic tutoring and task conversations with language models.\n\n"
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


for module, short_help in (
    (init, "Make a folder with a job, a template and a space."),
    (preview, "Show scenarios and rendered prompts; calls nothing."),
    (prompts, "List templates, shipped and local, and what each expects."),
    (estimate, "Say what a job will cost, before it is started; calls nothing."),
    (generate, "Make the conversations that a job asks for."),
    (status, "Show how a run stands."),
    (runs, "List the runs in a folder: state, counts, cost, age."),
    (show, "Show a conversation of a run, and what became of it."),
    (merge, "Make one run of pieces of a job, or of several runs of it."),
    (select, "Make a run of the conversations of another that are chosen."),
    (pairs, "Make preference pairs of a run, and report on their bias."),
    (annotate, "Label a run's turns or conversations, by models."),
    (candidates, "Have models write paraphrases, or wrong replies, for a run's turns."),
    (compare, "Compare a run's arms, or runs, with intervals."),
    (export, "Write a run as a data set, or in a trainer's format."),
    (stats, "Measure what a run or anybody's files are like."),
    (score, "Score a ranking, or labels, against the right ones."),
    (baseline, "Rank the candidates of a set by chance, TF-IDF or BM25."),
    (report, "Write one page about a run: counts, pictures, examples."),
    (parse, "Read raw replies to turns and a probability."),
    (validate, "Check a run, shards or ED files; --fix repairs copies."),
    (batch, ""),
    (space, ""),
    (machine, ""),
    (plugins, "List providers, protocols, families, formats, measures."),
    (doctor, "Check keys, endpoint and model; say what to do."),
    (simulator, "Serve the simulator in OpenAI's, Gemini's and Anthropic's formats."),
):
    name = module.__name__.rpartition(".")[2]
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        kind = getattr(module, "Command", TyperCommand)
        app.command(name, cls=kind, short_help=short_help)(module.command)
