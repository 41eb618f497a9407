"""Each option is declared once, in a struct's field; the command line and the Python
functions follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from typer import Typer
from typer.testing import CliRunner

from edgen.cli.options import with_declared
from edgen.core.options import option


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    most: Annotated[int | None, option("Keep the N best.", metavar="N", ge=1)] = None
    files: Annotated[tuple[Path, ...], option("Read FILE.", "--file", metavar="FILE")] = ()
    strict: Annotated[bool | None, option("Refuse doubts.")] = None
    part: Annotated[range, option("Only A to B.", reads="read_scenarios")] | None = None
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
    assert _run("--part", "2:5")[1] == [(Wishes(part=range(2, 5)), ())]


@pytest.mark.unit
def test_bounds_flags_and_help_come_from_the_field() -> None:
    code, seen, said = _run("--most", "0")
    assert (code, seen) == (2, [])
    assert "--most" in said
    help_ = _run("--help")[2]
    assert "Keep the N best." in help_
    assert "--strict" in help_
    assert "--inner" not in help_
