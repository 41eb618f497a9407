"""An option is declared once: its help text, type and bounds are in one place of edgen/.

A declaration is a call with a help text: `option(…)`, typer's `Option(…)` or `Meta(description=…)`. Commands,
Python functions and keys of the job that have the same option use the same declaration. A function that makes
an option, such as `declare_output`, is one declaration. Commands take options as structs: a command's
function declares arguments alone.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Any, get_type_hints

import msgspec
import pytest
from typer.main import get_command
from typer.models import ArgumentInfo

import edgen
from edgen.cli.app import app
from edgen.cli.options import Commands, DryRunOption, JsonOption
from edgen.core.options import find_option, option
from tests import ROOT, job_page, options_table
from tests.source_imports import list_nodes

# Options whose name has another meaning elsewhere.
DECLARED_TWICE = {
    "--role": "the role that a person plays (`edgen play`), and words of texts for roles (the other commands)",
}
# Keys of the job, and of its sections, that have the name of an option and another meaning.
OTHER_KEYS = {
    "name": "of a job, a member, a label; --name: of a pair set or a space",
    "seed": "of scenarios and of a model; --seed: of draws from what is there",
    "prompts": "templates by use; --prompts: show how prompts differ",
    "prompt": "a price for each token of prompts, and the note of a run's template",
    "labels": "layers of a job, and the labels of a set; --labels: a label set",
    "arms": "the arms themselves; --arms: names of some",
    "pairs": "settings of pairs; --pairs: the name of a pair set",
    "speakers": "filled in by planning; --speakers: names in a file",
    "max_tokens": "of an answer, and of a run; --max-tokens: of a row of a data set",
    "tokenizer": "for estimates; --tokenizer: for rows of a data set",
    "slots": "of a model in this process; --slots: of the simulator's server",
    "after": "a questionnaire; --after: turns before those that texts are written for",
    "machine": "what a job plays; --machine: what `edgen machine learn` learns for",
    "pool": "settings of a pool of responses; --pool: the size of one in a file",
    "actions": "that a teacher announces; --actions: of the rows of a data set",
    "examples": "of a label; --examples: a file",
    "role": "that branches; --role: words of texts",
    "compare": "the texts that a judge compares; --compare: two pair sets",
    "test": "the share of a split, and a number of files; --test: the share of a new split",
    "space": "the note of a run's space",
}
# Parameters of Python functions that are options in another form.
OTHER_FORMS = {
    ("select", "cap"): "a mapping; --cap NAME=N",
    ("pairs", "against"): "runs as values, too; the command takes several runs",
}
MAKERS = ("option", "Option", "Meta")
# Options that a command's function takes by name. No Python function has them, and each is one declaration.
OF_EVERY_COMMAND = {
    "json": (JsonOption, "how a command prints; `print_value` of every command takes it"),
    "dry_run": (
        DryRunOption,
        "whether a command calls anything; it stands between the options and those of work",
    ),
}
# Modules that make typer's options themselves.
MAKES_OPTIONS = {
    "edgen/cli/options.py": "it makes those of all structs",
    "edgen/cli/app.py": "--version, which ends edgen before a command is read",
    "edgen/cli/export.py": "those of the formats' structs, which name the formats that have them",
}


def find_declarations(source: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the line of each option that a module declares."""
    if not any(f"{maker}(" in source for maker in MAKERS):
        return
    nodes = list_nodes(ast.parse(source))
    owners: dict[ast.AST, str] = {}
    for node in nodes:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=held):
                owners |= dict.fromkeys(ast.walk(held), name)
            case ast.arg(arg=name, annotation=ast.expr() as held):
                owners |= dict.fromkeys(ast.walk(held), name)
            case ast.Assign(targets=[ast.Name(id=name)], value=held):
                owners = dict.fromkeys(ast.walk(held), name) | owners
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=maker)) if maker in MAKERS and _has_help(node):
                flags = [one.value for one in node.args if isinstance(one, ast.Constant)]
                given = [one for one in flags if isinstance(one, str) and one.startswith("-")]
                name = given[0] if given else owners.get(node, "")
                if name:
                    yield f"--{name.strip('-').partition('/')[0].replace('_', '-')}", node.lineno


def _has_help(call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Name)
    named = {one.arg for one in call.keywords}
    return bool({"help", "description"} & named) or (call.func.id == "option" and bool(call.args))


def find_twice(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the places of each option that several places declare."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, source in sources.items():
        for name, line in find_declarations(source):
            found[name].append(f"{path}:{line}")
    return {name: places for name, places in found.items() if len(places) > 1}


@pytest.mark.unit
def test_an_option_is_declared_in_one_place() -> None:
    files = sorted((ROOT / "edgen").rglob("*.py"))
    twice = find_twice({str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files})
    assert {name: places for name, places in twice.items() if name not in DECLARED_TWICE} == {}
    assert {*DECLARED_TWICE} <= {*twice}, "no longer declared twice: take it off the list"


@pytest.mark.unit
def test_a_second_declaration_is_found() -> None:
    field = 'class A:\n    most_of: Annotated[int, option("Keep N.", metavar="N")] = 1\n'
    argument = 'def command(x: Annotated[int, Option("--most-of", help="Keep N.")]): ...\n'
    alias = 'MOST = Annotated[int, Meta(ge=0), option("Keep N.", "--most-of")] | None\n'
    bounds = "class B:\n    most_of: Annotated[int, Meta(ge=1)] = 1\n"
    shared = "class C:\n    most_of: MOST = None\n"
    assert find_twice({"a": field, "b": bounds, "c": shared}) == {}
    for other in (argument, alias):
        assert find_twice({"a": field, "b": other}) == {"--most-of": ["a:2", "b:1"]}


def list_functions(commands: Commands, *path: str) -> Iterator[tuple[str, Any]]:
    """Yield each command's words, and its function."""
    for name in commands.list_names():
        held = commands.find(name)
        if (group := getattr(held, "app", None)) is not None:
            yield from list_functions(group, *path, name)
        else:
            yield " ".join((*path, name)), held.command


FUNCTIONS = dict(list_functions(get_command(app).commands))  # type: ignore[attr-defined]


def find_own_options(function: Any) -> list[str]:
    """Return the options that a command's function declares itself, by the names of their parameters."""
    hints = get_type_hints(function, include_extras=True)
    named = {name: hint for name, hint in hints.items() if name not in ("return", "ctx")}
    return [name for name, hint in named.items() if not (_is_argument(hint) or _is_struct(hint))]


def _is_argument(hint: Any) -> bool:
    return any(isinstance(one, ArgumentInfo) for one in getattr(hint, "__metadata__", ()))


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


@pytest.mark.unit
@pytest.mark.parametrize("words", FUNCTIONS)
def test_a_command_takes_its_options_from_structs(words: str) -> None:
    hints = get_type_hints(FUNCTIONS[words], include_extras=True)
    own = {name: hints[name] for name in find_own_options(FUNCTIONS[words])}
    shared = {name: hint for name, (hint, _) in OF_EVERY_COMMAND.items()}
    assert own == {name: shared.get(name) for name in own}, "declare it as a field of the command's struct"
    for kind in filter(_is_struct, hints.values()):
        fields = get_type_hints(kind, include_extras=True)
        assert any(find_option(fields[name]) for name in kind.__struct_fields__), kind


@pytest.mark.unit
def test_an_option_of_a_function_is_found() -> None:
    def declares(most: Annotated[int, "any"] = 1) -> None:
        assert most

    declares.__annotations__["most"] = Annotated[int, option("Keep N.", metavar="N")]
    assert find_own_options(declares) == ["most"]
    assert find_own_options(FUNCTIONS["init"]) == ["json"]


@pytest.mark.unit
def test_options_of_typer_are_made_from_structs() -> None:
    files = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for file in sorted((ROOT / "edgen").rglob("*.py"))
    }
    made = {
        path
        for path, text in files.items()
        if "typer" in text and any(map(_makes_option, ast.walk(ast.parse(text))))
    }
    assert made == {*MAKES_OPTIONS}


def _makes_option(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(module="typer" | "typer.core" | "typer.models", names=names):
            return any(one.name.endswith("Option") for one in names)
        case ast.Attribute(value=ast.Name(id="typer"), attr="Option"):
            return True
    return False


def test_a_key_that_is_an_option_takes_its_sentence_from_it() -> None:
    flags = {use.name.strip("-").replace("-", "_") for use in options_table.uses()}
    own = {
        name: struct.__name__
        for struct in job_page.STRUCTS
        for name, hint in get_type_hints(struct, include_extras=True).items()
        if name in flags and name in struct.__struct_fields__ and find_option(hint) is None
    }
    assert {name: struct for name, struct in own.items() if name not in OTHER_KEYS} == {}


def test_a_python_function_takes_options_from_structs_unless_they_are_positional() -> None:
    flags = {use.name.strip("-").replace("-", "_") for use in options_table.uses()}
    public = [getattr(edgen, name) for name in dir(edgen) if not name.startswith("_")]
    functions = [one for one in (*public, *vars(edgen.Run).values()) if inspect.isfunction(one)]
    own = {(one.__name__, name) for one in functions for name in _list_keywords(one) if name in flags}
    assert own == {*OTHER_FORMS}


def _list_keywords(function: Any) -> list[str]:
    """Return the keyword-only parameters that a function itself declares."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return [one.arg for one in node.args.kwonlyargs]
