"""Commands called in this process like in a shell; each call returns the exit code and the output."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

from edgen.cli.app import app
from edgen.cli.output import run_guarded

# Typer rebuilds its tree of commands from their signatures each time, which takes longer than many commands.
get_command = functools.cache(typer.main.get_command)


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def call(*arguments: str | Path) -> int:
    """Return a command's exit code; for fixtures with a wider scope than a test."""
    try:
        return run_guarded(lambda: get_command(app)([str(a) for a in arguments], prog_name="edgen"))
    except SystemExit as end:
        return int(end.code or 0)


class Command:
    """A caller of commands, as in `command("status", folder)`; it fails the test on any traceback."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ended:
        self._capsys.readouterr()
        code = call(*arguments)
        sys.stdout.flush()
        printed = self._capsys.readouterr()
        assert "Traceback" not in printed.err, printed.err
        return Ended(code, printed.out, printed.err)
