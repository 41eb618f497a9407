"""`edgen export`: a finished run as a data set that trainers, libraries and the hub take."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
from typer import Context, Option
from typer.core import TyperOption

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.core.errors import UsageError
from edgen.core.options import On, Processes
from edgen.core.registry import names
from edgen.export.options import ExportOptions

FormatOption = Annotated[
    str | None,
    Option(
        "--to",
        metavar="FORMAT",
        help=f"The format to write. One of: {', '.join(names('format'))}. Without it, all are listed.",
        autocompletion=complete.formats,
    ),
]
FolderOption = Annotated[Path | None, o.output("DIR", "A new or empty folder.")]


class ExportCommand(o.Command):
    """`edgen export` with the options that formats declare."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if (
            ctx.resilient_parsing and args
        ):  # a word is being completed: load the format that is named, at most
            named = [value for option, value in pairwise(args) if option == "--to"]
            ctx.meta[_LOADED] = tuple(name for name in named if name in names("format"))
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        *own, help_ = super().get_params(ctx)
        return [*own, *_make_format_options(ctx.meta.get(_LOADED)), help_]


COMMAND = ExportCommand  # see cli/app


@functools.cache
def _make_format_options(loaded: Sequence[str] | None) -> tuple[TyperOption, ...]:
    """Return an option for each flag that any format has, with the formats that have it; `loaded`: of these
    formats alone."""
    from edgen.core.registry import find, find_all
    from edgen.export.options import Flag, flags_of

    found: dict[str, tuple[Flag, list[str]]] = {}
    for format_ in find_all("format") if loaded is None else [find("format", name) for name in loaded]:
        for one in () if format_.Options is None else flags_of(format_.Options):
            found.setdefault(one.field, (one, []))[1].append(format_.name)
    return tuple(
        TyperOption(
            param_decls=[one.field, one.flag], type=str, multiple=one.several, metavar=one.metavar,
            help=f"{', '.join(names)} only: {one.help}", expose_value=False, callback=_keep,
        )
        for one, names in found.values()
    )  # fmt: skip


def _keep(ctx: Context, param: Any, value: Any) -> None:
    """Note what was given for a format's own option."""
    if value not in (None, (), []):
        ctx.meta.setdefault(_OWN, {})[param.name] = value


_OWN = "edgen.export.own"
_LOADED = "edgen.export.loaded"


def command(
    ctx: Context,
    run: o.RunArgument,
    options: ExportOptions,
    to: FormatOption = None,
    output: FolderOption = None,
    workers: Processes = 1,
    on: On = None,
    json: o.JsonOption = False,
) -> None:
    """Write a run as a data set for a trainer or a library.

    A data card explains the data and how to load it. Rows that a format cannot express are left out and
    counted by reason. Nothing is uploaded. Without --to, the command lists all formats.

    Example: edgen export outputs/quickstart --to hf -o exports/hf
    """
    from edgen.api.finished import export_run
    from edgen.cli.control import make_control

    options = msgspec.structs.replace(options, own=ctx.meta.get(_OWN, {}))
    if to is not None:
        exported = export_run(run, to, output, options, make_control(), workers, on)
        print_value(exported.as_json(), exported.lines(), json=json)
        return
    if output is not None or options != ExportOptions():
        raise UsageError(f"--to is missing: name the format, such as hf; `edgen export {run}` lists all.")
    _print_formats(run, json=json)


def _print_formats(run: Path, *, json: bool) -> None:
    from edgen.api.finished import has_pairs, list_formats

    paired, formats = has_pairs(run), list_formats()
    lines = _render_formats(run, formats, paired=paired)
    print_value({"run": str(run), "pairs": paired, "formats": formats}, lines, json=json)


def _render_formats(run: Path, formats: Sequence[dict[str, Any]], *, paired: bool) -> Iterator[str]:
    """Yield a line for every format, with its needs, and whether the run meets them."""
    width = max(len(one["format"]) for one in formats)
    for one in formats:
        needs = "".join(f" Needs {need}." for need in one["needs"])
        yield f"{one['format']:<{width}}  {one['summary']}{needs}"
    if not paired:
        yield f"This run has no pairs yet: edgen pairs {run} --signal oracle"
    yield f"Next: edgen export {run} --to hf -o exports/hf"
