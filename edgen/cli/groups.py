"""Commands and groups of commands: how their help looks, and how old names of commands and options are
read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from typer import Typer
from typer.core import TyperCommand, TyperGroup

from edgen.cli import old_names

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class DomainCommand(NamedTuple):
    """A command that a domain adds to `edgen`, under an entry point of `edgen.commands`.

    `section`: the title under which `edgen --help` lists it. `before`: the command that it stands before,
    empty for the end of its section. `app`: a group of commands, or None; `command`: the function of a single
    command.
    """

    name: str
    section: str
    before: str = ""
    app: Any = None
    command: Callable[..., Any] | None = None


_F = TypeVar("_F", bound=Callable[..., Any])


def first_sentence(command: Any) -> str:
    """Return the first paragraph of a command's help, which is one sentence."""
    return " ".join((command.help or "").split("\n\n")[0].split())


class Command(TyperCommand):
    """A command that also takes the old names of its options, and says its new name where it was called by an
    old one."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        for old, new in old_names.OPTIONS.get(" ".join(_path(ctx)), {}).items():
            known = parser._short_opt if new[1] != "-" else parser._long_opt
            taking = parser._short_opt if old[1] != "-" else parser._long_opt
            taking[old] = known[new]
        return parser

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        if ctx.info_name in old_names.COMMANDS:
            new = " ".join(("edgen", *old_names.COMMANDS[ctx.info_name]))
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"`edgen {ctx.info_name}` is an old name of `{new}` and still works.")
        super().format_help_text(ctx, formatter)


def _path(ctx: Any) -> list[str]:
    """Return the names of the command and of its groups, by their new names, without `edgen`."""
    above = [] if ctx.parent is None or ctx.parent.parent is None else _path(ctx.parent)
    return [*above, ctx.command.name]


class Group(TyperGroup):
    """A group whose help shows the first sentence of each command, by section where there are sections."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            with formatter.section(title):
                formatter.write_dl([(name, first_sentence(self.commands[name])) for name in names])


class CommandGroup(Typer):
    """An app for commands that belong together, as `edgen space …`."""

    def __init__(self, help_: str) -> None:
        super().__init__(
            cls=Group, help=help_, no_args_is_help=True, rich_markup_mode=None, context_settings=SETTINGS
        )

    def command(self, name: str | None = None, **more: Any) -> Callable[[_F], _F]:
        return super().command(name, **{"cls": Command, **more})
