"""`edgen preview`: scenarios and rendered prompts, without calls. `--diff` shows two versions side by
side."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.json import encode

from edgen.cli import options as o
from edgen.cli.output import SafeText, note, print_value
from edgen.core.options import AllowOutside, Overrides, Positive, declare_conversations, option
from edgen.core.text import describe_value, escape_for_terminal, quantity

if TYPE_CHECKING:
    from rich.text import Text

    from edgen.api.previewing import Preview, PreviewDifference, ScenarioDifference
    from edgen.prompting.diff import Pieces


class PreviewOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a preview."""

    count: Annotated[Positive, msgspec.Meta(le=1000), declare_conversations()] = 3
    diff: Annotated[
        str | None,
        option(
            "Show differences to an arm, another job file, or a template ([USE=]NAME or a .j2 file).",
            metavar="OTHER",
        ),
    ] = None
    overrides: Overrides = ()  # further keys of the job
    allow_outside: AllowOutside = False


def command(
    job: o.JobArgument,
    options: PreviewOptions,
    json: o.JsonOption = False,
) -> None:
    """Show the prompts that a job would send; calls nothing.

    Each prompt comes with its scenario. --diff shows what another template, arm or job changes.

    Example: edgen preview jobs/quickstart.yaml -n 1 --diff education_dialogue_json
    """
    from edgen.api.previewing import JobPreview

    looked_at = JobPreview(job, options.overrides, allow_outside=options.allow_outside)
    if options.diff is not None:
        difference = looked_at.compare(options.diff, options.count)
        _warn(() if json else difference.warnings)
        width = shutil.get_terminal_size().columns
        print_value(difference, _render_difference(difference, width), json=json)
        return
    preview = looked_at.make_preview(options.count)
    facts = {key: getattr(preview, key) for key in ("job", "cells", "previews", "warnings")}
    cells = "uncounted" if preview.cells is None else f"{preview.cells:,}"
    rounds = f", in {preview.rounds} rounds" if preview.rounds > 1 else ""
    many = quantity(preview.planned, "scenario") + (" is" if preview.planned == 1 else " are")
    planned = f"{many} planned{rounds}, of {cells} cells in {preview.space}."
    print_value(facts, [*_render_preview(preview), planned], json=json)
    _warn(() if json else preview.warnings)


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        note(f"edgen: {warning}.")


_TWO_COLUMNS = 80  # columns of a terminal from which on two texts are side by side


def _render_preview(preview: Preview) -> Iterator[str]:
    for one in preview.previews:
        yield from _render_scenario(one.scenario, f", arm {one.arm}" if one.arm else "")
        for use, messages in (one.prompts or {"": one.messages or ()}).items():
            for message in messages:
                yield f"--- {use + ': ' if use else ''}{message.role}"
                yield message.content
            if schema := (one.schemas or {}).get(use or "default"):
                yield f"--- {use + ': ' if use else ''}schema"
                yield encode(schema).decode()
        yield ""


def _render_difference(difference: PreviewDifference, width: int) -> Iterator[str]:
    for key, (mine, other) in difference.job.items():
        yield f"{key} is {mine} in the first, {other} in the second"
    if difference.job:
        yield ""
    for one in difference.differences:
        yield from _render_one(one, difference, width)


def _render_scenario(scenario: dict[str, Any], suffix: str = "") -> Iterator[str]:
    """Yield a scenario's number and values."""
    yield f"scenario {scenario['index']}{suffix}"
    for key, value in scenario.items():
        if value is not None and key != "index":
            yield f"  {key}: {describe_value(value)}"


def _render_one(one: ScenarioDifference, difference: PreviewDifference, width: int) -> Iterator[str]:
    left, right = difference.left, difference.right
    yield from _render_scenario(one.scenario, f" ({left})" if one.other_scenario else "")
    if one.other_scenario:
        yield from _render_scenario(one.other_scenario, f" ({right})")
    for use, texts in one.prompts.items():
        name = "prompt" if use == "default" else use
        if texts.same:
            yield f"--- {name}: the same in both"
        elif width < _TWO_COLUMNS:
            yield texts.diff
        else:
            yield f"--- {name}"
            yield _join_columns(texts.left, texts.right, (left, right), width)
    yield ""


def _join_columns(left: str, right: str, names: tuple[str, str], width: int) -> SafeText:
    """Return both texts side by side, with changed words in colour, or in brackets without colour."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from edgen.prompting.diff import compare_rows

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, no_color=not colour, highlight=False)
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), pad_edge=False)
    for name in names:
        table.add_column(Text(escape_for_terminal(name)), ratio=1, overflow="fold")
    for row in compare_rows(left, right):
        table.add_row(
            _render_pieces(row.left, "red", "[-", "-]", colour),
            _render_pieces(row.right, "green", "{+", "+}", colour),
        )
    console.print(table)
    return SafeText("\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").split("\n")))


def _render_pieces(pieces: Pieces | None, style: str, opens: str, closes: str, colour: bool) -> Text:
    from rich.text import Text

    text = Text()
    for piece, changed in pieces or ():
        shown = escape_for_terminal(piece)
        if changed and not colour:
            text.append(f"{opens}{shown}{closes}")
        else:
            text.append(shown, f"bold {style}" if changed else "")
    return text
