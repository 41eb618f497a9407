"""docs/commands.md: the help of every command, with the options that many share in one table.

python -m tests.commands_page     writes it anew (make docs)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from edgen.cli.app import app
from tests import ROOT

PAGE = ROOT / "docs" / "commands.md"
INTRODUCTION = """\
# Commands

`edgen COMMAND --help` prints these texts. Commands print results to stdout, progress and remarks to stderr. With `--json`, a
command prints one JSON object and nothing else. [Scheduling](scheduling.md#exit-codes) lists the exit codes.

## Common options

Every command has `--help`, and all but `play` have `--json`. The last line of each command names its other ones.

| option | meaning |
|---|---|
"""
# An option is listed once, above all commands, if it has the same help text in so many commands.
_SHARED = 3
_OPTION = re.compile(r"^  (-\S.*?)(?:  +(\S.*))?$")


def page() -> str:
    """The text of the page."""
    helps = {path: _help(path[1:]) for path in _commands(get_command(app))}
    counts = Counter(option for text in helps.values() for option in {*_options(text)})
    shared = {option: None for option, count in counts.items() if count >= _SHARED}
    listed = sorted(((flags.replace("|", "\\|"), meaning) for flags, meaning in shared), key=_name)
    rows = [f"| `{flags}` | {meaning} |" for flags, meaning in listed]
    sections = [f"## {' '.join(path)}\n\n{_section(text, shared)}" for path, text in helps.items()]
    return INTRODUCTION + "\n".join([*rows, "", *sections])


def _name(option: tuple[str, str]) -> str:
    """The long name of an option, to sort by."""
    return re.findall(r"--[\w-]+", option[0])[0]


def _section(text: str, shared: dict[tuple[str, str], None]) -> str:
    """A command's help, in which the shared options are named below instead of described."""
    lines, before = [], []
    for line, option in _marked(text):
        if option is None or option not in shared:
            lines.append(line)
        elif option not in before:
            before.append(option)
    kept = "\n".join(lines).removesuffix("\n\nOptions:").strip()
    kept = kept.replace("Options:\n\nCommands:", "Commands:")
    named = ", ".join(f"`{name}`" for name in map(_name, before) if name not in ("--help", "--json"))
    return f"```text\n{kept}\n```\n" + (f"\nCommon options: {named}.\n" if named else "")


def _options(text: str) -> Iterator[tuple[str, str]]:
    """The options of a help text: flags and meaning."""
    yield from dict.fromkeys(option for _, option in _marked(text) if option is not None)


def _marked(text: str) -> list[tuple[str, tuple[str, str] | None]]:
    """The lines of a help text, each with the option that it belongs to."""
    marked: list[tuple[str, tuple[str, str] | None]] = []
    block: list[str] = []

    def end() -> None:
        flags, *_ = _OPTION.match(block[0]).groups() if block else ("",)  # type: ignore[union-attr]
        first = (_OPTION.match(block[0])[2] or "") if block else ""  # type: ignore[index]
        meaning = " ".join([first, *(line.strip() for line in block[1:])]).strip()
        marked.extend((line, (flags, " ".join(meaning.split()))) for line in block)
        block.clear()

    inside = False
    for line in text.splitlines():
        if inside and line.startswith("   ") and block:
            block.append(line)
            continue
        end()
        inside = line == "Options:" or (inside and line.startswith("  "))
        if inside and _OPTION.match(line):
            block.append(line)
        else:
            marked.append((line, None))
    end()
    return marked


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
