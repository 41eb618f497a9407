"""CONTRIBUTING.md's table of the options that several commands have: value, meaning and commands of each.

python -m tests.options_table writes it anew (make docs).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.main import get_command

from edgen.cli import old_names
from edgen.cli.app import app
from tests import ROOT

PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- options: `make docs` writes this table -->\n", "<!-- options end -->"
_EVERYWHERE = frozenset({"--help", "--version", "--install-completion", "--show-completion"})


class Use(NamedTuple):
    """An option of one command."""

    command: str
    name: str
    spellings: tuple[str, ...]
    value: str
    meaning: str
    kind: str


def uses() -> list[Use]:
    """Return every option of every command that help shows, by name."""
    found = (_use(command, option) for command, option in _options(get_command(app), ()))
    return sorted((use for use in found if use.name not in _EVERYWHERE), key=lambda use: use.name.strip("-"))


def _options(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        yield from _options(child, (*path, name))
    context = command.context_class(command, **command.context_settings)
    for option in command.get_params(context) if path else ():
        if option.param_type_name == "option" and not option.hidden:
            yield " ".join(path), option


def _use(command: str, option: Any) -> Use:
    spellings = (*option.opts, *option.secondary_opts)
    kind = option.type.name
    value = "" if option.is_flag else option.metavar or "|".join(getattr(option.type, "choices", [kind]))
    return Use(command, max(option.opts, key=len), spellings, value, meaning(option.help or ""), kind)


def meaning(help_: str) -> str:
    """Return the first sentence of an option's help: its meaning in every command.

    The rest is about one command.
    """
    own = re.sub(r"\s*\[default:.*", "", help_)
    said = re.split(r"(?<=\.) ", re.sub(r"^[\w, -]+ only: ", "", own))[0]
    return said[:1].upper() + said[1:]


def table() -> str:
    """Return the lines of the table, by option, and of the old names."""
    rows: dict[str, list[Use]] = {}
    for use in uses():
        rows.setdefault(use.name, []).append(use)
    lines = ["| option | value | meaning | commands |", "|---|---|---|---|"]
    for own in rows.values():
        if len(own) == 1 or own[0].name == "--json":
            continue
        spelled = ", ".join(f"`{each}`" for each in own[0].spellings)
        values = ", ".join(f"`{each}`" for each in dict.fromkeys(use.value for use in own) if each)
        commands = ", ".join(use.command for use in own)
        lines.append("| " + " | ".join(map(_cell, (spelled, values, own[0].meaning, commands))) + " |")
    return "\n".join([*lines, "", *_old(), ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _old() -> Iterator[str]:
    yield "Old names still work, and no help lists them (`edgen/cli/old_names.py`):"
    yield ""
    for old, words in old_names.COMMANDS.items():
        yield f"- `edgen {old}` is `edgen {' '.join(words)}`"
    for command, options in old_names.OPTIONS.items():
        yield f"- `edgen {command}`: " + ", ".join(f"`{old}` is `{new}`" for old, new in options.items())


def page() -> str:
    """Return CONTRIBUTING.md with an updated table."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
