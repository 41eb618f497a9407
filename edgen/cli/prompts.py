"""`edgen prompts`: the templates there are, shipped and local, and what each expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from edgen.cli.options import JsonOption
from edgen.cli.output import print_value, wrap_behind

if TYPE_CHECKING:
    from edgen.planning.catalogue import TemplateInfo


def command(
    paths: Annotated[
        list[Path] | None, Argument(metavar="[PATH]…", help="More files or folders to look at.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the shipped templates and those in this folder and its prompts/: what each expects and uses.

    Example: edgen prompts my-project
    """
    from edgen.core.answer_kinds import answer_kinds
    from edgen.planning.catalogue import list_templates

    entries = list_templates(paths or [])
    expected = {name: kind.says for name, kind in answer_kinds().items()}
    print_value({"templates": entries, "expects": expected}, _render(entries, expected), json=json)


def _render(entries: Sequence[TemplateInfo], expected: Mapping[str, str]) -> Iterator[str]:
    for shipped, heading in ((True, "Shipped (a job names them as they stand here)"), (False, "Local")):
        if chosen := [entry for entry in entries if entry.shipped is shipped]:
            yield heading
            for entry in chosen:
                yield from _render_entry(entry)
            yield ""
    yield "What a template may expect"
    for name, sentence in expected.items():
        yield from wrap_behind(f"{name:13} ", sentence)


def _render_entry(entry: TemplateInfo) -> Iterator[str]:
    """One template: its name and version, what it expects, the digest; then a line a fact."""
    facts = [entry.version or "no version", f"expects {entry.expects or 'not stated'}"]
    if entry.sha256:
        facts.append(entry.sha256[:12])
    yield f"  {entry.name}" + ("" if entry.error else f"  ({', '.join(facts)})")
    if entry.error:
        yield from wrap_behind("    ERROR    ", entry.error)
        return
    licence = entry.licence or ("not stated" if entry.source else None)
    known = {
        "title": entry.title,
        "uses": ", ".join(entry.uses) or "nothing",
        "schema": entry.schema or None,
        "source": entry.source,
        "licence": licence,
        "notes": entry.notes,
        "REMARK": entry.remark,
    }
    for label, text in known.items():
        if text:
            yield from wrap_behind(f"    {label:8} ", text)
