"""`edgen list`: everything that a job or a command can name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument

from edgen.cli.known_names import (
    PLUGIN_KINDS,
    KnownName,
    find_known_files,
    list_file_kinds,
    list_files,
    list_plugin_names,
    list_plugins,
)
from edgen.cli.options import JsonOption
from edgen.cli.output import print_value, wrap_after_label
from edgen.core import registry
from edgen.core.errors import UsageError

if TYPE_CHECKING:
    from edgen.asking.registered import AskerEntry
    from edgen.planning.catalogue import TemplateInfo

_KINDS = ("prompts", *list_file_kinds(), *PLUGIN_KINDS, "plugins")
if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[_KINDS]


def command(
    kind: Annotated[
        Kind | None,
        Argument(
            metavar="[KIND]", help=f"What to list: {', '.join(_KINDS)}. Without it, the names of every kind."
        ),
    ] = None,
    paths: Annotated[
        list[Path] | None,
        Argument(metavar="[PATH]...", help="More templates, after `prompts`: files or folders."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the templates, spaces, jobs, formats and plugins found here.

    Shipped ones come first, then those in this folder.

    `prompts` says what each template expects and uses; `askers` names the option that takes each; `plugins`
    names the package of each object, and skipped packages.

    Example: edgen list formats

    Example: edgen list prompts my-project
    """
    if paths and kind != "prompts":
        raise UsageError(f"list {kind}: PATH goes with `edgen list prompts` only; leave {paths[0]} out.")
    if kind is None:
        names = _list_names()
        lines = (
            line for one, own in names.items() for line in wrap_after_label(f"{one:11} ", ", ".join(own))
        )
        print_value(names, lines, json=json)
    elif kind == "prompts":
        _print_templates(paths or [], json=json)
    elif kind == "plugins":
        _print_plugins(json=json)
    elif kind == "askers":
        _print_askers(json=json)
    else:
        entries = _find(kind)
        plain = [dict(zip(("name", "summary", "origin"), one, strict=True)) for one in entries]
        print_value({kind: plain}, _render(entries), json=json)


def _list_names() -> dict[str, list[str]]:
    """Return the names of each kind."""
    from edgen.core.resources import list_shipped

    names = {"prompts": list_shipped("prompts")}
    names |= {kind: [*find_known_files(kind)] for kind in list_file_kinds()}
    return names | {kind: list_plugin_names(kind) for kind in PLUGIN_KINDS}


def _find(kind: Any) -> list[KnownName]:
    return list_files(kind) if kind in list_file_kinds() else list_plugins(kind)


def _render(entries: Sequence[KnownName]) -> Iterator[str]:
    width = max((len(one.name) for one in entries), default=0)
    for one in entries:
        yield from wrap_after_label(f"{one.name:{width}}  ", one.summary or one.origin)


def _print_templates(paths: Sequence[Path], *, json: bool) -> None:
    from edgen.core.forms import list_answer_kinds
    from edgen.planning.catalogue import list_templates

    entries = list_templates(paths)
    expected = {name: kind.says for name, kind in list_answer_kinds().items()}
    print_value({"templates": entries, "expects": expected}, _render_templates(entries, expected), json=json)


def _render_templates(entries: Sequence[TemplateInfo], expected: Mapping[str, str]) -> Iterator[str]:
    for shipped, heading in ((True, "Shipped (a job names them as they stand here)"), (False, "Local")):
        if chosen := [entry for entry in entries if entry.shipped is shipped]:
            yield heading
            for entry in chosen:
                yield from _render_template(entry)
            yield ""
    yield "What a template may expect"
    width = max(13, *map(len, expected))
    for name, sentence in expected.items():
        yield from wrap_after_label(f"{name:{width}} ", sentence)


def _render_template(entry: TemplateInfo) -> Iterator[str]:
    """Yield one template: its name and version, its kind of answer, the digest; then a line per fact."""
    facts = [entry.version or "no version", f"expects {entry.expects or 'not stated'}"]
    if entry.sha256:
        facts.append(entry.sha256[:12])
    yield f"  {entry.name}" + ("" if entry.error else f"  ({', '.join(facts)})")
    if entry.error:
        yield from wrap_after_label("    ERROR    ", entry.error)
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
            yield from wrap_after_label(f"    {label:8} ", text)


def _print_askers(*, json: bool) -> None:
    from edgen.asking.registered import describe_askers

    entries = describe_askers()
    plain = [{key: getattr(one, key) for key in ("name", "option", "summary", "origin")} for one in entries]
    print_value({"askers": plain}, _render_askers(entries), json=json)


def _render_askers(entries: Sequence[AskerEntry]) -> Iterator[str]:
    """Yield each asker: its name, the option that takes it, its description, and a plugin's package."""
    name = max((len(one.name) for one in entries), default=0)
    option = max((len(one.option) for one in entries), default=0)
    for one in entries:
        said = " ".join(filter(None, (one.summary, "" if one.own else f"({one.origin})")))
        yield from wrap_after_label(f"{one.name:{name}}  {one.option:{option}}  ", said)


def _print_plugins(*, json: bool) -> None:
    listed = [one for one in registry.list_all_plugins() if one.kind in (*registry.KINDS, "asker")]
    found = [(plugin, registry.explain_problem(plugin)) for plugin in listed]
    keys = ("kind", "name", "package", "version", "object")
    notes = {plugin: note for plugin, _ in found if (note := _describe_note(plugin))}
    plain = [
        {key: getattr(plugin, key) for key in keys} | {"error": problem, "note": notes.get(plugin)}
        for plugin, problem in found
    ]
    skipped = registry.find_skipped_plugins()
    left_out = [
        {key: getattr(plugin, key) for key in keys} | {"folder": str(folder)} for plugin, folder in skipped
    ]
    lines = itertools.chain(_render_plugins(found, notes), _render_skipped(skipped))
    print_value({"plugins": plain, "skipped": left_out}, lines, json=json)


def _render_skipped(skipped: Sequence[tuple[registry.Plugin, Path]]) -> Iterator[str]:
    if skipped:
        yield ""
        yield (
            "skipped: not installed, only in a folder that Python searches (`pip install` the package to "
            "use it)"
        )
    for plugin, folder in skipped:
        yield f"  {plugin.kind} {plugin.name}  {plugin.origin}, in {folder}"


def _describe_note(plugin: registry.Plugin) -> str | None:
    """Return a note on a plugin that works, such as private imports."""
    from edgen.core.plugins.imports import find_private_imports

    if not (private := find_private_imports(plugin)):
        return None
    minor = "minor " if all(one.startswith("edgen.plugin.") for one in private) else ""
    return (
        f"imports {', '.join(private)}, which may change in any {minor}release; `edgen.plugin` has names "
        "that stay"
    )


def _render_plugins(
    found: list[tuple[registry.Plugin, str | None]], notes: Mapping[registry.Plugin, str]
) -> Iterator[str]:
    width = max((len(plugin.name) for plugin, _ in found), default=0)
    kind = ""
    for plugin, problem in found:
        if plugin.kind != kind:
            yield from ("",) if kind else ()
            kind = plugin.kind
            yield f"{kind}s" if not kind.endswith("y") else f"{kind[:-1]}ies"
        yield f"  {plugin.name:{width}}  {plugin.origin}"
        if problem:
            yield f"  {'':{width}}  ERROR: {problem}"
        if plugin in notes:
            yield from wrap_after_label(f"  {'':{width}}  note: ", notes[plugin])
