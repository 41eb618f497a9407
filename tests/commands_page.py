"""docs/commands.md: the summary and options of every command, with a list of shared options.

python -m tests.commands_page writes it anew (make docs).
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.main import get_command
from typer.testing import CliRunner

from edgen.cli.app import app
from edgen.core.registry import list_names
from tests import ROOT

PAGE = ROOT / "docs" / "commands.md"
INTRODUCTION = """\
# Commands

`edgen COMMAND --help` explains each command, with examples. All but `play` have `--json`, which prints one JSON object.
Results go to stdout, progress and remarks to stderr. See [exit codes](scheduling.md#exit-codes).

`{{X}}` is required, `[X]` optional: a RUN is the folder of a run, a JOB a file, a SPACE or a MACHINE a shipped name or a path.

## Common options

The last line of a command names the options of this list that it has. *Run options* are {running}.

{common}
"""
_WIDTH = 88
# The help of an option that only some export formats have begins with their names.
_FORMAT = "|".join(map(re.escape, list_names("format")))
_FORMATS = re.compile(rf"((?:{_FORMAT})(?:(?:, | and )(?:{_FORMAT}))*) only: ")
_PARTS = ("Arguments", "Options")
_EVERYWHERE = ("--help", "--json")
# Options of all commands that call models until a moment.
_RUNNING = tuple(
    f"`{name}`"
    for name in ("--dry-run", "--trust-host", "--until", "--for", "--log-format", "--metrics", "--notify")
)
_BARE_OPTION = re.compile(r"(--[a-z][\w-]*(?: [\w.]+=\w+)?)")  # in the meaning of another option
_EVIDENT = re.compile(r" ?\[x>=[01]\]|; x>=[01](\])")  # bounds that a count has anyway
_LISTED = re.compile(r"One of: [^.]*\. ")  # formats, which another page lists
_ROW = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")


class Row(NamedTuple):
    """An option or an argument in a help text: its flags, the first sentence of its meaning, and the rest."""

    flags: str
    first: str
    rest: str

    @property
    def name(self) -> str:
        """The long name of an option; an argument as it is."""
        return (re.findall(r"--[\w-]+", self.flags) or [self.flags])[0]


class Help(NamedTuple):
    """The parts of a help text."""

    usage: str
    summary: str
    parts: dict[str, list[Row]]


class Common(NamedTuple):
    """A row that several commands have, with the rest that most of them have."""

    flags: list[str]
    first: str
    rest: str


def page() -> str:
    """Return the text of the page."""
    root = get_command(app)
    helps = {path: _help(path[1:]) for path in _commands(root)}
    common = _common([row for one in helps.values() for title in _PARTS for row in one.parts.get(title, ())])
    rows = [
        f"- `{'`, `'.join(one.flags)}`: {_meaning(one)}"
        for (name, _), one in sorted(common.items(), key=lambda item: item[0][0].strip("-").lower())
        if name.startswith("-") and name not in _EVERYWHERE
    ]
    running = f"{', '.join(_RUNNING[:-1])} and {_RUNNING[-1]}"
    introduction = INTRODUCTION.format(common="\n".join(rows), running=running)
    return "\n".join([introduction, *_groups(helps, common)])


def _meaning(row: Common) -> str:
    return _BARE_OPTION.sub(r"`\1`", f"{row.first} {row.rest}".strip())


def _groups(helps: dict[tuple[str, ...], Help], common: dict[tuple[str, str], Common]) -> Iterator[str]:
    """Yield the commands as `edgen --help` groups them."""
    for title, rows in helps["edgen",].parts.items():
        panel = {row.flags for row in rows}
        if chosen := {path: text for path, text in helps.items() if {*path[1:2]} & panel}:
            yield f"## {title}\n"
            yield from (f"### {' '.join(path)}\n\n{_section(text, common)}" for path, text in chosen.items())


def _common(rows: list[Row]) -> dict[tuple[str, str], Common]:
    """Return the rows whose name and first sentence several commands have."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.name, row.first), []).append(row)
    common = {}
    for key, several in found.items():
        rest, count = Counter(row.rest for row in several).most_common(1)[0]
        if len(several) > 1:
            flags = dict.fromkeys(row.flags for row in several)
            common[key] = Common([*flags], several[0].first, rest if 2 * count > len(several) else "")
    return common


def _section(text: Help, common: dict[tuple[str, str], Common]) -> str:
    """Return a command's help, without the text of common options.

    A common option has only its name, and what only this command's help says of it.
    """
    lines, named = [text.usage], []
    of_formats: dict[str, list[str]] = {}
    further = ""
    for title in _PARTS:
        shown: list[tuple[str, str]] = []
        for row in text.parts.get(title, ()):
            known = common.get((row.name, row.first))
            if only := _FORMATS.match(row.first):
                of_formats.setdefault(only[1], []).append(f"`{row.name}`")
            elif known is None:
                shown.append((row.flags, f"{row.first} {row.rest}".strip()))
            elif known.rest != row.rest:
                shown.append((row.flags, row.rest or row.first))
            elif title == "Options" and row.name not in _EVERYWHERE:
                named.append(f"`{row.name}`")
        if shown:
            lines += ["", *_columns(shown)]
    if of_formats:
        several = (f"{formats}: {', '.join(options)}" for formats, options in of_formats.items())
        further = f"\nOptions of [single formats](exports.md): {'; '.join(several)}.\n"
    body = "\n".join(lines).strip()
    if {*_RUNNING} <= {*named}:
        named = [*(name for name in named if name not in _RUNNING), "run options"]
    line = f"\nAlso: {', '.join(named)}.\n" if named else ""
    return f"{text.summary}\n\n```text\n{body}\n```\n{line}{further}"


def _columns(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Yield flags and meanings in two columns."""
    width = min(max(len(flags) for flags, _ in rows), 28) + 2
    for flags, meaning in rows:
        first, *further = textwrap.wrap(
            meaning, _WIDTH - 2 - width, break_on_hyphens=False, break_long_words=False
        ) or [""]
        if len(flags) > width - 2:
            yield f"  {flags}"
            further, first = [first, *further], ""
        else:
            yield f"  {flags:<{width}}{first}".rstrip()
        yield from (" " * (width + 2) + line for line in further)


def _read(text: str) -> Help:
    """Return the parts of a help text."""
    usage, *lines = text.splitlines()
    parts: dict[str, list[Row]] = {}
    block: list[str] | None = None
    blocks: list[tuple[str, list[str]]] = []
    title = summary = ""
    for line in lines:
        if re.fullmatch(r"\w[\w ]*:", line):
            title, block = line[:-1], None
        elif not title:
            summary = summary or line.strip()
        elif block is not None and line.startswith("   "):
            block.append(line)
        elif _ROW.match(line):
            block = [line]
            blocks.append((title, block))
    for part, rows in blocks:
        row = _row(rows)
        if part == "Arguments":  # the usage has required ones in braces
            row = Row(row.flags, row.first, row.rest.replace("[required]", "").strip())
        parts.setdefault(part, []).append(row)
    return Help(
        re.sub(r"^Usage: | \[OPTIONS\]| COMMAND \[ARGS\]\.\.\.", "", usage),
        summary,
        parts,
    )


def _row(lines: list[str]) -> Row:
    found = _ROW.match(lines[0])
    assert found
    meaning = " ".join(" ".join([found[2] or "", *lines[1:]]).split())
    meaning = _LISTED.sub("", _EVIDENT.sub(r"\1", meaning))
    first, _, rest = meaning.partition(". ") if not meaning.startswith("[") else ("", "", meaning)
    return Row(found[1], first + "." if rest and first else first, rest)


def _commands(command: Any, path: tuple[str, ...] = ("edgen",)) -> Iterator[tuple[str, ...]]:
    """Yield edgen itself and every command with its path, in help order; commands follow their group."""
    children = getattr(command, "commands", {})
    if not children or len(path) == 1:
        yield path
    for name, child in children.items():
        yield from _commands(child, (*path, name))


def _help(arguments: tuple[str, ...]) -> Help:
    ended = CliRunner().invoke(app, [*arguments, "--help"], prog_name="edgen", terminal_width=1000)
    return _read("\n".join(line.rstrip() for line in ended.stdout.strip().splitlines()))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
