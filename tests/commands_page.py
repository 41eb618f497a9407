"""docs/commands.md: the help of every command, as `edgen COMMAND --help` prints it.

python -m tests.commands_page     writes it anew (make docs)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from edgen.cli.app import app
from tests import ROOT

PAGE = ROOT / "docs" / "commands.md"
INTRODUCTION = """\
# Commands

The help of every command, as `edgen COMMAND --help` prints it. Commands print results to stdout, progress and remarks to
stderr. With `--json`, a command prints one JSON object and nothing else. [Scheduling](scheduling.md#exit-codes) lists the
exit codes.
"""


def page() -> str:
    """The text of the page."""
    sections = [
        f"## {' '.join(path)}\n\n```text\n{_help(path[1:])}\n```\n" for path in _commands(get_command(app))
    ]
    return "\n".join([INTRODUCTION, *sections])


def _commands(command: Any, path: tuple[str, ...] = ("edgen",)) -> Iterator[tuple[str, ...]]:
    """Every command and group with its path, in the order of the help."""
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, (*path, name))


def _help(arguments: tuple[str, ...]) -> str:
    ended = CliRunner().invoke(app, [*arguments, "--help"], prog_name="edgen", terminal_width=100)
    return "\n".join(line.rstrip() for line in ended.stdout.strip().splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
