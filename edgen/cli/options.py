"""Commands and their groups, the flags of options that structs declare, and arguments that several share.

Commands and groups are typer's, with help on paths and old names.
"""

from __future__ import annotations

import functools
import inspect
import types
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from typer import Argument, Option, Typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from edgen.cli import complete, old_names, readers
from edgen.core import registry
from edgen.core.errors import UsageError
from edgen.core.options import DeclaredOption, find_option, option
from edgen.runtime.options import WorkOptions

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class DomainCommand(NamedTuple):
    """A command that a domain adds to `edgen`, under an entry point of `edgen.commands`, or to `edgen space`,
    under one of `edgen.space_commands`."""

    name: str  # of the command
    section: str = ""  # title under which `edgen --help` lists it; empty in `edgen space`
    before: str = ""  # the command before which it is listed; empty: at the end of its section
    app: Any = None  # a group of commands, or None
    command: Callable[..., Any] | None = None  # the function of a single command


_F = TypeVar("_F", bound=Callable[..., Any])


def read_first_sentence(help_: str | None) -> str:
    """Return the first paragraph, a sentence, of a help text."""
    return " ".join((help_ or "").split("\n\n")[0].split())


class Command(TyperCommand):
    """A command that also takes old names of its options. Under an old name of its own, its help states the
    new one."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        names = {" ".join(_list_command_names(ctx)), ctx.info_name}
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


def _list_command_names(ctx: Any) -> list[str]:
    """Return the names of a command's groups and the command, without `edgen`; new names for old ones."""
    above = [] if ctx.parent is None or ctx.parent.parent is None else _list_command_names(ctx.parent)
    return [*above, ctx.command.name]


class Commands(Mapping[str, Any]):
    """Commands by name. A command is imported and made at look-up; its first sentence needs only the
    import."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    @abstractmethod
    def list_names(self) -> Sequence[str]:
        """Return the names in the order of the help."""

    @abstractmethod
    def find(self, name: str) -> Any:
        """Return the object that holds a command, usually a module: `command`, a function, or `app`, a group;
        and optionally its own class of commands. Raises KeyError for an unknown name."""

    def describe(self, name: str) -> str:
        """Return the first sentence of a command's help."""
        held = self.find(name)
        group = getattr(held, "app", None)
        return read_first_sentence(held.command.__doc__ if group is None else group.help)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list_names())

    def __len__(self) -> int:
        return len(self.list_names())

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make_command(name, self.find(name))
        return self._made[name]


def _make_command(name: str, held: Any) -> Any:
    """Return typer's command or group from the object that holds it (`find`)."""
    if (group := getattr(held, "app", None)) is not None:
        return group.make(name)
    holder = Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    holder.command(name, cls=getattr(held, "COMMAND", Command))(with_declared(held.command))
    return get_command(holder)


class SectionedGroup(TyperGroup):
    """A group whose help shows the first sentence of each command, by section where there are sections."""

    commands: Any  # of type Commands

    @property
    def sections(self) -> Mapping[str, Sequence[str]]:
        """The names of the commands by the title of their section; empty without sections."""
        return {}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's makes every command
        return [*self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands.describe(name)) for name in names])


class CommandGroup(Commands):
    """A group of commands, as `edgen space …`, including the commands that domains add under a kind of entry
    points."""

    def __init__(self, help_: str, added: registry.Kind | None = None) -> None:
        super().__init__()
        self.help = help_
        self._own: dict[str, DomainCommand] = {}
        self._added = added

    def command(self, name: str | None = None) -> Callable[[_F], _F]:
        """Return a decorator that adds a function as a command; its name is the function's without `name`."""

        def add(function: _F) -> _F:
            called = name or function.__name__
            self._own[called] = DomainCommand(called, command=function)
            return function

        return add

    def list_names(self) -> Sequence[str]:
        return [*self._own, *(one.name for one in (registry.find_all(self._added) if self._added else ()))]

    def find(self, name: str) -> Any:
        if name in self._own or self._added is None or name not in registry.list_names(self._added):
            return self._own[name]
        return registry.find(self._added, name)

    def make(self, name: str) -> SectionedGroup:
        """Return typer's group of the commands."""
        made = SectionedGroup(
            name=name,
            help=self.help,
            no_args_is_help=True,
            rich_markup_mode=None,
            context_settings=SETTINGS,
        )
        made.commands = self
        return made


# -- flags from structs, with bounds, completion and help

_LISTS = (tuple, Sequence)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_declared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command's function with a parameter for each declared option, its own and those of the structs
    among its parameters.

    The function gets tuples for repeated options, and structs made from the given values.
    """
    hints = get_type_hints(function, include_extras=True)
    structs = {name: kind for name, kind in hints.items() if _is_struct(kind)}
    declared: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in structs:
            declared |= {one.name: one for one in _list_parameters(structs[name])}
        else:
            declared[name] = parameter.replace(kind=_KEYWORD, annotation=hints[name])
    read = {name: _find_reader(one) for name, one in declared.items()}
    parameters = {name: _convert_parameter(one) for name, one in declared.items()}

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        try:
            values = {name: read[name](one) for name, one in given.items()}
        except UsageError:
            _hear_error(given)
            raise
        for name, kind in structs.items():
            values[name] = kind(**{one.name: values.pop(one.name) for one in _list_parameters(kind)})
        return function(**values)

    command.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    command.__annotations__ = {name: one.annotation for name, one in parameters.items()}
    return command


def _hear_error(given: Mapping[str, Any]) -> None:
    """Make the control of a command whose options cannot be read, so that its log has the end of the
    command."""
    names = [name for name in WorkOptions.__struct_fields__ if name in given]
    if len(names) == len(WorkOptions.__struct_fields__):
        from edgen.cli.control import make_control

        make_control(WorkOptions(**{name: given[name] for name in names if given[name] is not None}))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@functools.cache
def _list_parameters(kind: type[msgspec.Struct]) -> tuple[inspect.Parameter, ...]:
    """Return a parameter for each field of a struct that is declared as an option, the struct's own before
    those of its base."""
    hints = get_type_hints(kind, include_extras=True)
    fields = {one.name: one for one in msgspec.structs.fields(kind)}
    own = [name for name in inspect.get_annotations(kind) if name in fields]
    return tuple(
        inspect.Parameter(name, _KEYWORD, default=_find_default(fields[name]), annotation=hints[name])
        for name in dict.fromkeys((*own, *fields))
        if find_option(hints[name]) is not None
    )


def _find_default(field: msgspec.structs.FieldInfo) -> Any:
    """Return a field's default; `Parameter.empty` for a required field."""
    return inspect.Parameter.empty if field.default is msgspec.NODEFAULT else field.default


def _find_reader(parameter: inspect.Parameter) -> Callable[[Any], Any]:
    """Return the function that converts an option's words from typer to its value: the declared reader,
    `tuple`, or the identity."""
    option, default = find_option(parameter.annotation), parameter.default
    if option is not None and option.reads is not None:
        read = getattr(readers, option.reads)
        return lambda given: read(given) if given else default
    if default == () or (option is not None and _unwrap(parameter.annotation)[1]):
        return lambda given: tuple(given) if given else default
    return lambda given: given


def _convert_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter as typer takes it, with the option that its annotation declares."""
    default = None if parameter.default == () else parameter.default
    option = find_option(parameter.annotation)
    if option is None:
        return parameter.replace(default=default)
    kind, several = _unwrap(parameter.annotation)
    if option.reads is not None:
        kind = str
    taken = list[kind] if several else kind  # type: ignore[valid-type]
    if several or default is None:
        taken = taken | None
    made = _make_option(parameter.name, taken, option)
    return parameter.replace(default=default, annotation=Annotated[taken, made])


def _make_option(name: str, taken: Any, option: DeclaredOption) -> Any:
    """Return the option as typer takes it. It `completes` values by a function of `complete`, or by the names
    of files of a kind that a domain declares."""
    named = option.completes
    completes = None if named is None else vars(complete).get(named) or complete.offer_files(named)
    flags = option.flags or (f"--{name.replace('_', '-')}",)
    if taken == bool | None and len(flags) == 1:
        flags = (f"{flags[0]}/--no-{flags[0][2:]}",)
    return Option(
        *flags,
        help=option.help,
        metavar=option.metavar,
        min=option.low,
        max=option.high,
        hidden=option.hidden,
        autocompletion=completes,
    )


def _unwrap(hint: Any) -> tuple[Any, bool]:
    """Return a type without annotations and None, and whether its option may be repeated. A tuple of a fixed
    length, as tuple[str, str], is one value."""
    while hasattr(hint, "__metadata__"):
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        several = [_unwrap(one) for one in get_args(hint) if one is not type(None)]
        return next((one for one in several if one[1]), several[-1])
    if get_origin(hint) is tuple and get_args(hint)[-1] is not Ellipsis:
        return hint, False
    if get_origin(hint) in _LISTS:
        return _unwrap(get_args(hint)[0])[0], True
    return hint, get_origin(hint) is Mapping


# -- the subject of a command

JobArgument = Annotated[
    Path, Argument(metavar="JOB", help="The job file (YAML).", autocompletion=complete.jobs)
]
RunArgument = Annotated[
    Path, Argument(metavar="RUN", help="The folder of a run.", autocompletion=complete.runs)
]

# -- results and their format

JsonOption = Annotated[bool, option("Print JSON on stdout.", "--json")]

# -- how the work is done

DryRunOption = Annotated[
    bool, option("Print the calls that would be made; call and write nothing.", "--dry-run")
]


class SeveralWords(Command):
    """A command with an option that takes several words: `--arms A B`, `--arms A,B` and `--arms A --arms B`
    are the same. Click reads the first as `--arms A` and a further argument."""

    option: ClassVar[str]

    def takes(self, word: str) -> bool:  # noqa: ARG002 - a subclass may know the words
        """Return whether a word after the option's first value is a further value, not an argument."""
        return True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._iterate_words(args)))

    def _iterate_words(self, args: list[str]) -> Iterator[str]:
        """Yield the words, with the option before each of its values."""
        inside, bare = False, False  # bare: the option was just read, without a value yet
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
