"""Options are declared once: in a struct's field, from which the command line and the Python functions follow."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from typer import Typer
from typer.testing import CliRunner

import edgen
from edgen.asking.options import AnnotateOptions, CandidateOptions, PairOptions
from edgen.cli.declared import with_declared
from edgen.core.options import option


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    most: Annotated[int | None, option("Keep the N best.", metavar="N", ge=1)] = None
    files: Annotated[tuple[Path, ...], option("Read FILE.", "--file", metavar="FILE")] = ()
    strict: Annotated[bool | None, option("Refuse doubts.")] = None
    inner: str = "not an option"


def _run(*arguments: str) -> tuple[int, list[Any], str]:
    seen: list[Any] = []

    def command(wishes: Wishes, name: Annotated[tuple[str, ...], option("A name.")] = ()) -> None:
        seen.append((wishes, name))

    command.__annotations__ |= {
        "wishes": Wishes,
        "name": Annotated[tuple[str, ...], option("A name.")],
    }
    app = Typer()
    app.command()(with_declared(command))
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, seen, result.output


@pytest.mark.unit
def test_a_struct_arrives_with_what_was_given() -> None:
    arguments = ("--most", "3", "--file", "a", "--file", "b", "--no-strict", "--name", "x")
    assert _run(*arguments)[1] == [(Wishes(most=3, files=(Path("a"), Path("b")), strict=False), ("x",))]
    assert _run()[1] == [(Wishes(), ())]


@pytest.mark.unit
def test_bounds_flags_and_help_come_from_the_field() -> None:
    code, seen, said = _run("--most", "0")
    assert (code, seen) == (2, [])
    assert "--most" in said
    help_ = _run("--help")[2]
    assert "Keep the N best." in help_
    assert "--strict" in help_
    assert "--inner" not in help_


@pytest.mark.unit
@pytest.mark.parametrize(
    ("function", "struct", "renamed"),
    [
        (edgen.Run.pairs, PairOptions, {"human": "people"}),
        (edgen.annotate, AnnotateOptions, {}),
        (edgen.candidates, CandidateOptions, {}),
    ],
)
def test_python_functions_take_the_same_options(function: Any, struct: Any, renamed: dict[str, str]) -> None:
    own = {"self", "run", "write", "by", "progress", "on_event", "trust_hosts", "overrides", "allow_outside"}
    taken = {renamed.get(name, name): one for name, one in inspect.signature(function).parameters.items()}
    fields = {one.name: one.default for one in msgspec.structs.fields(struct)}
    assert set(taken) - own == set(fields) - {"by", "write", "overrides", "allow_outside"}
    defaults = {name: one.default for name, one in taken.items() if name in fields and name not in own}
    assert {name: None if one == () else one for name, one in defaults.items()} == {
        name: None if fields[name] == () else fields[name] for name in defaults
    }
