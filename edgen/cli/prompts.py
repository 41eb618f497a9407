"""`edgen prompts`: the templates there are, shipped and local, and what each expects."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import print_json, print_line

if TYPE_CHECKING:
    from edgen.engine.catalogue import Entry

_WIDTH = 80


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]…", help="More files or folders to look at.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the shipped templates and those in this folder and its prompts/: what each expects and uses.

    Example: edgen prompts my-project
    """
    from edgen.engine.catalogue import listed
    from edgen.prompting import EXPECTED

    entries = listed(paths or [])
    if json:
        print_json({"templates": entries, "expects": EXPECTED})
        return
    for shipped, heading in ((True, "Shipped (a job names them as they stand here)"), (False, "Local")):
        chosen = [entry for entry in entries if entry.shipped is shipped]
        if not chosen:
            continue
        print_line(heading)
        for entry in chosen:
            for line in _lines(entry):
                print_line(line)
        print_line()
    print_line("What a template may expect")
    for name, sentence in EXPECTED.items():
        for line in _wrapped(f"{name:13} ", sentence):
            print_line(line)


def _lines(entry: Entry) -> Iterator[str]:
    """One template: its name and version, what it expects, the digest; then a line a fact."""
    facts = [entry.version or "no version", f"expects {entry.expects or 'not stated'}"]
    if entry.sha256:
        facts.append(entry.sha256[:12])
    yield f"  {entry.name}" + ("" if entry.error else f"  ({', '.join(facts)})")
    if entry.error:
        yield from _wrapped("    ERROR    ", entry.error)
        return
    if entry.title:
        yield from _wrapped("    title    ", entry.title)
    yield from _wrapped("    uses     ", ", ".join(entry.uses) or "nothing")
    licence = entry.licence or ("not stated" if entry.source else None)
    for label, text in (
        ("source", entry.source),
        ("licence", licence),
        ("notes", entry.notes),
        ("REMARK", entry.remark),
    ):
        if text:
            yield from _wrapped(f"    {label:8} ", text)


def _wrapped(label: str, text: str) -> list[str]:
    """The text behind its label, within 80 columns."""
    return textwrap.wrap(
        text, _WIDTH, initial_indent=label, subsequent_indent=" " * len(label), break_on_hyphens=False
    ) or [label.rstrip()]
