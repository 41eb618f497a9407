"""Arguments and options that several commands share, each said once.

Commands and groups are typer's, with help on paths and old names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from typer import Argument, Option, Typer
from typer.core import TyperCommand, TyperGroup

from edgen.cli import complete, old_names
from edgen.core.errors import UsageError

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


# -- what a command is about

JobArgument = Annotated[
    Path, Argument(metavar="JOB", help="The job file (YAML).", autocompletion=complete.jobs)
]
RunArgument = Annotated[
    Path, Argument(metavar="RUN", help="The folder of a run.", autocompletion=complete.runs)
]

SampleOption = Annotated[
    int | None,
    Option(
        "--sample", metavar="N", min=1, help="Use N conversations of the run (of each arm), drawn by hash."
    ),
]

# -- what it makes, and how it prints

JsonOption = Annotated[bool, Option("--json", help="Print JSON on stdout.")]
YesOption = Annotated[
    bool, Option("--yes", help="Answer yes: replace what is finished, or pay again for answers.")
]


def output(metavar: str, more: str) -> Any:
    """Make the option -o; `more` says what the command writes there."""
    return Option("--output", "-o", metavar=metavar, help=f"Where to write. {more}")


# -- the job, and what it may use

SetOption = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Override a job key, as in --set limits.in_flight=8."),
]
CountOption = Annotated[
    int | None, Option("-n", metavar="N", min=1, help="Number of conversations.  [default: the job's]")
]
RangeOption = Annotated[
    str | None,
    Option(
        "--range", metavar="A:B", help="Only scenarios A to B - 1. `edgen merge` puts such pieces together."
    ),
]
TrustOption = Annotated[
    list[str] | None,
    Option(
        "--trust-host",
        metavar="HOST[=VAR]",
        help="Let the key in VAR (without VAR: any key of the job) go to HOST; see docs/trust.md.",
    ),
]
TrustCodeOption = Annotated[
    list[Path] | None,
    Option("--trust-code", metavar="FILE", help="Run this Python file if the job names it under `measures`."),
]
MeasureOption = Annotated[
    list[str] | None,
    Option(
        "--measure",
        metavar="FILE:FUNCTION",
        help="A Python function as a measure, as in ./mine.py:words; runs the file.",
    ),
]
OutsideOption = Annotated[
    bool, Option("--allow-outside", help="Also read files that the job names outside its project.")
]


def backend(more: str, *, metavar: str = "[JOB:]ROLE") -> Any:
    """Make the option --backend; `more` says what the backend does, and its default."""
    return Option(
        "--backend",
        metavar=metavar,
        help=f"The backend to ask: a role, or a job's role. {more}",
        autocompletion=complete.backends,
    )


def prompt(default: str) -> Any:
    """Make the option --prompt."""
    return Option(
        "--prompt",
        metavar="NAME|FILE",
        help=f"The template: a shipped name, or a .j2 file.  [default: {default}]",
        autocompletion=complete.templates,
    )


# -- how the work is done

DryRunOption = Annotated[
    bool, Option("--dry-run", help="Print what would be called. Nothing is called or written.")
]
ViaOption = Annotated[
    Literal["online", "batch"],
    Option(
        "--via",
        help="How to call models. online: call by call. batch: by the provider's batch service, which is cheaper.",
    ),
]
UntilOption = Annotated[
    str | None,
    Option("--until", metavar="HH:MM", help="Stop at this local time; exit code 4, resumable."),
]
ForOption = Annotated[
    str | None,
    Option("--for", metavar="SPAN", help="Stop after this span, as in 3h or 45m; exit code 4, resumable."),
]
LogFormatOption = Annotated[
    Literal["text", "json"],
    Option("--log-format", help="What goes to stderr: text lines, or one JSON event a line."),
]
MetricsOption = Annotated[
    Path | None,
    Option("--metrics", metavar="FILE", help="Keep figures in FILE in Prometheus' text format (*.prom)."),
]
NotifyOption = Annotated[
    str | None,
    Option(
        "--notify",
        metavar="CMD|URL",
        help="At the end, give the status as JSON to a command, or POST it to an https address.",
    ),
]

# -- options of several commands

AgentOption = Annotated[
    str | None,
    Option(
        "--agent",
        metavar="ROLE",
        help="The role that answers users, where turns do not say who does.  [default: the space's first role]",
    ),
]
TurnsLeftOption = Annotated[
    int | None,
    Option(
        "--min-turns-left",
        metavar="N",
        min=0,
        help="Leave out pairs that part where fewer than N turns follow, in either of the two.",
    ),
]
PeopleOption = Annotated[
    list[Path] | None,
    Option("--people", metavar="FILE", help="What people said; it is kept with the run."),
]


def only_one(values: list[Path] | None, option: str) -> Path | None:
    """Return the only value of an option that other commands take several times. Raises UsageError for
    more."""
    if values and len(values) > 1:
        raise UsageError(f"{option} {values[1]}: this command takes one file; join the files.")
    return values[0] if values else None


def read_overrides(set_: list[str] | None, count: int | None = None) -> tuple[str, ...]:
    """Return the overrides by `--set` and `-n`."""
    return (*(set_ or ()), *(() if count is None else (f"conversations={count}",)))


def read_range(text: str | None) -> range | None:
    """`A:B` as a range of scenarios."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,13}):([0-9]{1,13})", text.strip())
    if found is None or int(found[1]) >= int(found[2]):
        raise UsageError(f"--range {text}: expected A:B with A below B, as in --range 0:10000.")
    return range(int(found[1]), int(found[2]))


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
                    yield from self._each(value)
            elif inside and (bare or self.takes(word)):
                bare = False
                yield from self._each(word)
            else:
                inside = False
                yield word
        if bare:
            yield self.option

    def _each(self, text: str) -> Iterator[str]:
        for value in text.split(","):
            if value.strip():
                yield from (self.option, value.strip())
