"""The commands, mounted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import typer

from edgen.cli import (
    annotate,
    batch,
    compare,
    doctor,
    estimate,
    export,
    generate,
    init,
    listing,
    local,
    merge,
    old_names,
    pairs,
    play,
    preview,
    report,
    select,
    show,
    simulator,
    space,
    stats,
    status,
    validate,
    web,
)
from edgen.cli.declared import with_declared
from edgen.cli.errors import Interruption
from edgen.cli.options import SETTINGS, Command, Group
from edgen.core import registry
from edgen.core.text import safe
from edgen.core.version import __version__

SECTIONS: dict[str, dict[str, Any]] = {
    "Make conversations": {
        "init": init,
        "preview": preview,
        "estimate": estimate,
        "doctor": doctor,
        "generate": generate,
        "play": play,
        "batch": batch,
    },
    "Look at runs": {
        "status": status,
        "web": web,
        "show": show,
        "stats": stats,
        "compare": compare,
        "report": report,
    },
    "Label and judge": {"annotate": annotate, "pairs": pairs},
    "Work with data": {
        "validate": validate,
        "select": select,
        "merge": merge,
        "export": export,
    },
    "Tools": {"list": listing, "space": space, "local": local, "simulator": simulator},
}


def _add_domains() -> None:
    """Put each domain's commands into its section."""
    for added in registry.find_all("command"):
        section = SECTIONS[added.section]
        names = [*section]
        place = names.index(added.before) if added.before in names else len(names)
        names.insert(place, added.name)
        SECTIONS[added.section] = {name: section.get(name, added) for name in names}


_add_domains()


class _Root(Group):
    """The command line. Its complaints are safe to print: a shell's * may have put any file's name into
    it."""

    sections: ClassVar = {title: tuple(commands) for title, commands in SECTIONS.items()}

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _safe_complaints():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _safe_complaints():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, *rest = args
        if name not in old_names.COMMANDS:
            return super().resolve_command(ctx, args)
        _, command, rest = super().resolve_command(ctx, [*old_names.COMMANDS[name], *rest])
        return name, command, rest


@contextlib.contextmanager
def _safe_complaints() -> Iterator[None]:
    """Make complaints safe to print, and let no interruption be taken for "Aborted!"."""
    try:
        yield
    except _Complaint as error:
        error.message = safe(error.message)
        raise
    except KeyboardInterrupt:
        raise Interruption from None


# What a command line that does not fit raises; typer has it under this name alone.
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


for _name, _module in (one for commands in SECTIONS.values() for one in commands.items()):
    if getattr(_module, "app", None) is not None:
        app.add_typer(_module.app, name=_name)
    else:
        app.command(_name, cls=getattr(_module, "Command", Command))(with_declared(_module.command))
