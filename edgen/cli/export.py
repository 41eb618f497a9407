"""`edgen export`: a finished run as a data set for trainers, libraries and the hub."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Context
from typer.core import TyperOption
from typer.main import get_param_completion

from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.core.errors import UsageError
from edgen.core.registry import list_names
from edgen.export.shared_options import ExportRequest

if TYPE_CHECKING:
    from edgen.export.options import Flag


class ExportCommand(o.Command):
    """`edgen export` with the options that formats declare."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = [value for option, value in pairwise(args) if option == "--to"]
        named += [one.removeprefix("--to=") for one in args if one.startswith("--to=")]
        ctx.meta[_NAMED] = tuple(name for name in named if name in list_names("format"))
        if ctx.resilient_parsing and args:  # a word is being completed: load at most the named format
            ctx.meta[_LOADED] = ctx.meta[_NAMED]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        *own, help_ = super().get_params(ctx)
        return [*own, *_make_format_options(ctx.meta.get(_LOADED), ctx.meta.get(_NAMED, ())), help_]


COMMAND = ExportCommand  # see cli/app


@functools.cache
def _make_format_options(loaded: Sequence[str] | None, named: Sequence[str] = ()) -> tuple[TyperOption, ...]:
    """Return an option for each flag that any format has, with the formats that have it; `loaded`: only these
    formats. Of different flags with one name, that of the `named` format counts, else edgen's own."""
    from edgen.core.registry import find, find_all, find_plugin
    from edgen.export.options import list_flags
    from edgen.export.shared_options import ChatOptions, ExportOptions, LayerOptions, PairSetOptions

    formats = find_all("format") if loaded is None else [find("format", name) for name in loaded]
    general = (ExportOptions, ChatOptions, PairSetOptions, LayerOptions)
    found: dict[str, tuple[Flag, list[str]]] = {
        one.field: (one, []) for kind in general for one in list_flags(kind)
    }
    for format_ in sorted(formats, key=lambda one: find_plugin("format", one.name) is not None):
        for one in (one for kind in format_.structs for one in list_flags(kind)):
            found.setdefault(one.field, (one, []))[1].append(format_.name)
            if format_.name in named:
                found[one.field] = (one, found[one.field][1])
    return tuple(_make_option(one, names) for one, names in found.values())


def _make_option(flag: Flag, formats: Sequence[str]) -> TyperOption:
    """Return the option of a flag, whose help names the formats that have it if they are few."""
    only = f"{', '.join(formats)} only: " if 0 < len(formats) <= _FEW else ""
    return TyperOption(
        param_decls=[flag.field, *flag.flags], type=bool if flag.switch else str, is_flag=flag.switch,
        default=None, multiple=flag.several, metavar=flag.metavar, help=only + flag.help, expose_value=False,
        callback=_keep, autocompletion=_make_completion(flag),
    )  # fmt: skip


def _make_completion(flag: Flag) -> Any:
    """Return the function that completes an option's value, as click calls it; None without completions."""
    if flag.completes is not None:
        return get_param_completion(getattr(complete, flag.completes))
    return get_param_completion(lambda incomplete: [one for one in flag.values if one.startswith(incomplete)])


def _keep(ctx: Context, param: Any, value: Any) -> None:
    """Record the given value of an option."""
    if value not in (None, (), []):
        ctx.meta.setdefault(_GIVEN, {})[param.name] = value


_FEW = 5  # most formats that help names
_GIVEN = "edgen.export.given"
_LOADED = "edgen.export.loaded"
_NAMED = "edgen.export.named"


def command(
    ctx: Context,
    run: o.RunArgument,
    asked: ExportRequest,
    json: o.JsonOption = False,
) -> None:
    """Write a run as a data set for a trainer or a library.

    A data card explains the data and how to load it. Rows that a format cannot express are left out and
    counted by reason. Nothing is uploaded. Without --to, the command lists all formats.

    Example: edgen export outputs/quickstart --to hf -o exports/hf
    """
    from edgen.api.finished import export_run
    from edgen.cli.control import make_control

    options = ctx.meta.get(_GIVEN, {})
    if asked.to is not None:
        exported = export_run(run, asked.to, asked, options, make_control())
        print_value(exported.as_json(), exported.list_lines(), json=json)
        return
    if asked.output is not None or options:
        raise UsageError(f"--to is missing: name the format, such as hf; `edgen export {run}` lists all.")
    _print_formats(run, json=json)


def _print_formats(run: Path, *, json: bool) -> None:
    from edgen.api.finished import has_pairs, list_formats

    paired, formats = has_pairs(run), list_formats()
    lines = _render_formats(run, formats, paired=paired)
    print_value({"run": str(run), "pairs": paired, "formats": formats}, lines, json=json)


def _render_formats(run: Path, formats: Sequence[dict[str, Any]], *, paired: bool) -> Iterator[str]:
    """Yield a line for every format, with its requirements, and whether the run meets them."""
    width = max(len(one["format"]) for one in formats)
    for one in formats:
        needs = "".join(f" Needs {need}." for need in one["needs"])
        yield f"{one['format']:<{width}}  {one['summary']}{needs}"
    if not paired:
        yield f"This run has no pairs yet: edgen pairs {run} --signal oracle"
    yield f"Next: edgen export {run} --to hf -o exports/hf"
