"""Arguments and options that several commands share, each said once.

Commands and groups are typer's, with help on paths and old names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from typer import Argument, Option, Typer
from typer.core import TyperCommand, TyperGroup

from edgen.cli import complete, old_names
from edgen.cli.declared import with_declared

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class DomainCommand(NamedTuple):
    """A command that a domain adds to `edgen`, under an entry point of `edgen.commands`, or to `edgen space`,
    under one of `edgen.space_commands`."""

    name: str  # of the command
    section: str = ""  # title under which `edgen --help` lists it; empty in `edgen space`
    before: str = ""  # the command that it stands before; empty: the end of its section
    app: Any = None  # a group of commands, or None
    command: Callable[..., Any] | None = None  # the function of a single command


_F = TypeVar("_F", bound=Callable[..., Any])


def read_first_sentence(command: Any) -> str:
    """Return the first paragraph of a command's help, which is one sentence."""
    return " ".join((command.help or "").split("\n\n")[0].split())


class Command(TyperCommand):
    """A command that also takes the old names of its options, and says its new name where it was called by an
    old one."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        names = {" ".join(_path(ctx)), ctx.info_name}
        for old, new in [pair for name in names for pair in old_names.OPTIONS.get(name, {}).items()]:
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


class SectionedGroup(TyperGroup):
    """A group whose help shows the first sentence of each command, by section where there are sections."""

    @property
    def sections(self) -> Mapping[str, Sequence[str]]:
        """The names of the commands by the title of their section; empty without sections."""
        return {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            with formatter.section(title):
                formatter.write_dl([(name, read_first_sentence(self.commands[name])) for name in names])


class CommandGroup(Typer):
    """An app for commands that belong together, as `edgen space …`."""

    def __init__(self, help_: str) -> None:
        super().__init__(
            cls=SectionedGroup,
            help=help_,
            no_args_is_help=True,
            rich_markup_mode=None,
            context_settings=SETTINGS,
        )

    def command(self, name: str | None = None, **more: Any) -> Callable[[_F], _F]:
        declare = super().command(name, **{"cls": Command, **more})

        def add(function: _F) -> _F:
            declare(with_declared(function))
            return function

        return add


# -- what a command is about

JobArgument = Annotated[
    Path, Argument(metavar="JOB", help="The job file (YAML).", autocompletion=complete.jobs)
]
RunArgument = Annotated[
    Path, Argument(metavar="RUN", help="The folder of a run.", autocompletion=complete.runs)
]

# -- what it makes, and how it prints

JsonOption = Annotated[bool, Option("--json", help="Print JSON on stdout.")]
# -- how the work is done

DryRunOption = Annotated[
    bool, Option("--dry-run", help="Print what would be called; call and write nothing.")
]


class SeveralWords(Command):
    """A command with an option that takes several words: `--arms A B`, `--arms A,B` and `--arms A --arms B`
    are the same. Click takes the first as `--arms A` and an argument more."""

    option: ClassVar[str]

    def takes(self, word: str) -> bool:  # noqa: ARG002 - a subclass may know the words
        """Return whether a word after the option's first is one more of its values, and no argument."""
        return True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, args: list[str]) -> Iterator[str]:
        """Yield the option before each of its values, and nowhere else."""
        inside, bare = False, False  # bare: the option stands there, and no value yet
        for number, word in enumerate(args):
            name, equals, value = word.partition("=")
            if word.startswith("-") and len(word) > 1:
                if bare:
                    yield self.option
                inside = name == self.option
                bare = inside and not equals
                if word == "--":
                    yield from args[number:]
                    return
                if not inside:
                    yield word
                elif equals:
                    yield from self._repeat_option(value)
            elif inside and (bare or self.takes(word)):
                bare = False
                yield from self._repeat_option(word)
            else:
                inside = False
                yield word
        if bare:
            yield self.option

    def _repeat_option(self, text: str) -> Iterator[str]:
        for value in text.split(","):
            if value.strip():
                yield from (self.option, value.strip())
