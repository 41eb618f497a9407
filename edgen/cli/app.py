"""The commands of `edgen`. A command's module is imported when the command is called or its help is
needed."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from edgen.cli import old_names
from edgen.cli.options import SETTINGS, Commands, SectionedGroup
from edgen.cli.output import Interruption, keep_stdout
from edgen.core import registry
from edgen.core.plugins.faults import find_fault
from edgen.core.text import escape_for_terminal
from edgen.core.version import __version__

_SECTIONS: Mapping[str, Sequence[str]] = {
    "Make conversations": ("init", "preview", "estimate", "doctor", "generate", "play", "batch"),
    "Look at runs": ("status", "web", "show", "stats", "compare", "report"),
    "Label and judge": ("annotate", "pairs"),
    "Work with data": ("validate", "select", "merge", "export"),
    "Tools": ("list", "space", "local", "simulator"),
}
_MODULES = {"list": "listing"}  # the modules of all other commands have the command's name


@functools.cache
def list_sections() -> dict[str, tuple[str, ...]]:
    """Return the names of the commands by section, with each domain's in its place."""
    named = {title: [*names] for title, names in _SECTIONS.items()}
    for added in registry.find_all("command"):
        names = named[added.section]
        place = names.index(added.before) if added.before in names else len(names)
        names.insert(place, added.name)
    return {title: tuple(names) for title, names in named.items()}


class _Commands(Commands):
    """edgen's own commands, and those of domains."""

    def list_names(self) -> Sequence[str]:
        return [name for names in list_sections().values() for name in names]

    def find(self, name: str) -> Any:
        if any(name in names for names in _SECTIONS.values()):
            return importlib.import_module(f"edgen.cli.{_MODULES.get(name, name)}")
        if name in registry.list_names("command"):
            return registry.find("command", name)
        raise KeyError(name)


class _Root(SectionedGroup):
    """The command line. Its error messages are escaped: they may quote any file's name, as a shell expands
    *."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = _Commands()

    @property
    def sections(self) -> Mapping[str, Sequence[str]]:
        return list_sections()

    def main(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        given = sys.argv[1:] if args is None else args
        with keep_stdout() if "--json" in given and "--help" not in given else contextlib.nullcontext():
            return super().main(args, *more, **kwargs)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _make_complaints_safe():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _make_complaints_safe():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, *rest = args
        if name not in old_names.COMMANDS:
            return super().resolve_command(ctx, args)
        _, command, rest = super().resolve_command(ctx, [*old_names.COMMANDS[name], *rest])
        return name, command, rest


@contextlib.contextmanager
def _make_complaints_safe() -> Iterator[None]:
    """Escape error messages for the terminal, and name numbers as other messages do. Raise interruptions as
    `Interruption`, which typer does not catch."""
    try:
        yield
    except _Complaint as error:
        error.message = escape_for_terminal(_reword(error.message))
        raise
    except KeyboardInterrupt as error:
        if (fault := find_fault(error)) is not None:
            raise fault from error
        raise Interruption from None


def _reword(message: str) -> str:
    """Name numbers as other messages do, and the nearest of the values that an option takes."""
    if (found := _CHOICE.fullmatch(message)) is not None:
        import difflib

        close = difflib.get_close_matches(found[1], re.findall("'([^']*)'", found[2]), n=1)
        return f"{message} Did you mean '{close[0]}'?" if close else message
    return _NUMBER_RANGE.sub(lambda found: f" is not a {_NUMBERS[found[1]]}.", message)


# How messages of typer begin and end
_CHOICE = re.compile(r"'([^']*)' is not one of (.*)\.")
_NUMBERS = {"int": "whole number", "float": "number"}
_NUMBER_RANGE = re.compile(r" is not a valid (int|float)(?: range)?\.$")
# The error for an invalid command line; typer exports it under no name of its own.
_Complaint: Any = typer.BadParameter.__base__


app = typer.Typer(
    name="edgen",
    cls=_Root,
    help="Generate teacher-student conversations with language models.\n\n"
    "A job file says what to make; `edgen init` writes one to begin with.\n\n"
    "Example: edgen init my-project && edgen generate my-project/job.yaml",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edgen {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass
