"""`edgen export`: a finished run as a data set that a trainer takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import print_json, print_line
from edgen.errors import UsageError
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.exporters import Exported, Format, Opening, Voice

Train = Literal["teacher", "student"]
OpeningChoice = Literal["system", "user", "both"]


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="trl-dpo, trl-conversation, trl-kto, trl-sft, trl-prompts, openrlhf, refuel, verl, sharegpt, "
            "mtpo or ed.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", metavar="DIR", help="The folder to make; it may not hold anything yet.")
    ],
    train: Annotated[
        Train | None, typer.Option(help="The side that is trained, the assistant.  [default: teacher]")
    ] = None,
    opening: Annotated[
        OpeningChoice | None,
        typer.Option(
            help="What a conversation begins with: user: a line by the other side where the trained side would "
            "speak first; system: a system message; both.  [default: user]"
        ),
    ] = None,
    opening_prompt: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A template for the opening's texts.  [default: export_opening]"),
    ] = None,
    license_: Annotated[
        str | None, typer.Option("--license", metavar="ID", help="The licence that the card states.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a run as a data set, with a card by which datasets.load_dataset(DIR) works.

    What a format cannot express is left out and counted, with the reason.

    Example: edgen export outputs/quickstart --to trl-sft -o exports/sft
    """
    from edgen.exporters import check_target, export
    from edgen.runreader import RunReader

    format_ = find_format(to)
    if not format_.voiced and (train, opening, opening_prompt) != (None, None, None):
        raise UsageError(
            f"{format_.name} holds both sides as they are; leave --train, --opening and --opening-prompt away."
        )
    check_target(output)
    voice = make_voice(train or "teacher", opening or "user", opening_prompt)
    rundir = RunDir(run)
    rundir.require()
    with rundir.read(), RunReader(run) as reader:
        exported = export(reader, format_, voice, output, license_)
    facts = summary(format_, output, exported)
    if json:
        print_json(facts)
        return
    for line in lines(format_, facts):
        print_line(line)


def find_format(name: str) -> Format:
    """The format of that name. Raises UsageError with the nearest one."""
    from edgen.exporters import EXPORTERS
    from edgen.loading import nearest

    if name not in EXPORTERS:
        raise UsageError(f"there is no format '{name}'{nearest(name, list(EXPORTERS))}.")
    return EXPORTERS[name]


def make_voice(train: Train, opening: Opening, template: str | None) -> Voice:
    """How turns become messages. Raises TemplateError for a template that cannot be used."""
    from edgen import resources
    from edgen.exporters import OPENING_VARIABLES, Voice
    from edgen.prompting import load_prompt

    path = resources.find("prompts", "export_opening") if template is None else Path(template)
    prompt = load_prompt(path, OPENING_VARIABLES)
    return Voice("Teacher" if train == "teacher" else "Student", opening, prompt)


def summary(format_: Format, output: Path, exported: Exported) -> dict[str, Any]:
    """What `--json` prints. `rows` are those of the first table; `tables` has all where there are several."""
    first = format_.configs[0].name
    facts: dict[str, Any] = {
        "format": format_.name,
        "dir": str(output),
        "rows": exported.rows[first],
        "left_out": exported.left_out,
    }
    if len(format_.configs) > 1:
        facts["tables"] = exported.rows
    return facts


def lines(format_: Format, facts: dict[str, Any]) -> list[str]:
    """The summary for a person."""
    from edgen.exporters import REASONS

    tables = facts.get("tables", {"rows": facts["rows"]})
    shown = [f"{facts['dir']} is ready: {format_.summary}"]
    shown += [f"{name:10} {rows['train']} train, {rows['test']} test" for name, rows in tables.items()]
    shown += [
        f"left out   {count} {reason}{f': {REASONS[reason]}' if reason in REASONS else ''}"
        for reason, count in facts["left_out"].items()
    ]
    return [*shown, f"How to load it and what it holds: {Path(facts['dir']) / 'README.md'}"]
