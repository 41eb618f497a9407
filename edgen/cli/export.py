"""`edgen export`: a finished run as a data set that trainers, libraries and the hub take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from edgen.cli.options import JsonOption
from edgen.cli.output import note, print_json, print_line
from edgen.errors import UsageError
from edgen.extras import install_command
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.exporters import Exported, Format, Opening, Storage, Voice
    from edgen.runreader import RunReader

Train = Literal["teacher", "student"]
OpeningChoice = Literal["system", "user", "both"]
StorageChoice = Literal["parquet", "jsonl"]
# A language as the hub has it: ISO 639, with script or region where wanted.
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="As a data set: hf, ed, csv, convokit. For a trainer: trl-sft, trl-dpo, trl-kto, trl-conversation, "
            "trl-prompts, openrlhf, refuel, verl, sharegpt, mtpo. Without it, the formats are listed.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", metavar="DIR", help="The folder to make; it may not hold anything yet.", show_default=False
        ),
    ] = None,
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
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="The language that the card states, like en.")
    ] = None,
    files: Annotated[
        StorageChoice | None,
        typer.Option(help="hf only: how it is stored.  [default: parquet where pyarrow is installed]"),
    ] = None,
    csv_safe: Annotated[
        bool | None,
        typer.Option(
            "--csv-safe/--no-csv-safe",
            help="csv only: an apostrophe before cells that a spreadsheet would take for formulas.  [default: csv-safe]",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a run as a data set, with a card that says what it is and how to load it.

    What a format cannot express is left out and counted, with the reason. Nothing is uploaded.

    Example: edgen export outputs/quickstart

    Example: edgen export outputs/quickstart --to hf -o exports/hf
    """
    from edgen.exporters import check_target, export
    from edgen.runreader import RunReader

    voiced = (train, opening, opening_prompt) != (None, None, None)
    if to is None:
        if voiced or any(given is not None for given in (output, license_, language, files, csv_safe)):
            raise UsageError(f"--to is missing: name the format, such as hf; `edgen export {run}` lists all.")
        _list(RunDir(run), json=json)
        return
    format_ = find_format(to)
    if output is None:
        raise UsageError(f"-o is missing: name the folder to make, such as -o exports/{format_.name}.")
    _check(format_, license_, language, files, csv_safe, voiced=voiced)
    check_target(output)
    storage = files or _storage(format_)
    voice = make_voice(train or "teacher", opening or "user", opening_prompt)
    with RunDir(run).read(), RunReader(run) as reader:
        exported = export(
            reader, format_, voice, output, license_,
            language=language, storage=storage, csv_safe=csv_safe is not False,
        )  # fmt: skip
        _tell(reader, format_, summary(format_, output, exported), json=json)


def _list(rundir: RunDir, *, json: bool) -> None:
    """Every format in a line, with what it needs, and whether this run has it."""
    from edgen.exporters import EXPORTERS

    rundir.require()
    paired = rundir.pairs.exists()
    if json:
        formats = [
            {"format": one.name, "summary": one.summary, "of": one.of, "needs": list(_needs(one))}
            for one in EXPORTERS.values()
        ]
        print_json({"run": str(rundir.path), "pairs": paired, "formats": formats})
        return
    width = max(map(len, EXPORTERS))
    for one in EXPORTERS.values():
        needs = "".join(f" Needs {need}." for need in _needs(one))
        print_line(f"{one.name:<{width}}  {one.summary}{needs}")
    if not paired:
        print_line(f"This run has no pairs yet: edgen pairs {rundir.path} --by oracle")
    print_line(f"Next: edgen export {rundir.path} --to hf -o exports/hf")


def _needs(format_: Format) -> Iterator[str]:
    """What has to be there besides finished conversations."""
    if format_.of == "pairs":
        yield "pairs"
    if format_.files == "parquet":
        yield "pyarrow"


def _tell(reader: RunReader, format_: Format, facts: dict[str, Any], *, json: bool) -> None:
    """Print what was exported, and on stderr what of the run was not there yet."""
    from edgen.exporters import unfinished

    if json:
        print_json(facts)
    else:
        for line in lines(format_, facts):
            print_line(line)
    if facts.get("disarmed"):
        note(
            f"edgen: {facts['disarmed']:,} cells that a spreadsheet would take for formulas begin with an apostrophe "
            "now; --no-csv-safe keeps them to the letter."
        )
    for sentence in unfinished(reader.describe()):
        note(f"edgen: {sentence}")


def find_format(name: str) -> Format:
    """The format of that name. Raises UsageError with the nearest one."""
    from edgen.exporters import EXPORTERS
    from edgen.loading import nearest

    if name not in EXPORTERS:
        raise UsageError(f"there is no format '{name}'{nearest(name, list(EXPORTERS))}.")
    return EXPORTERS[name]


def _check(
    format_: Format,
    license_: str | None,
    language: str | None,
    files: Storage | None,
    csv_safe: bool | None,
    *,
    voiced: bool,
) -> None:
    """Raises UsageError for what a card cannot state, and for options where there is nothing to choose; `voiced`:
    a side to train or an opening was chosen."""
    if voiced and not format_.voiced:
        raise UsageError(
            f"{format_.name} holds both sides as they are; leave --train, --opening and --opening-prompt out."
        )
    if files is not None and format_.files != "hub":
        raise UsageError(
            f"--files is for --to hf; {format_.name} has one way to be stored. Leave --files out."
        )
    if csv_safe is not None and format_.files != "csv":
        raise UsageError(
            f"--csv-safe and --no-csv-safe are for --to csv; {format_.name} has no cells. Leave them out."
        )
    if license_ is not None and not license_.strip():
        raise UsageError("--license is empty; name the licence, or leave the option out.")
    if license_ is not None and not license_.isprintable():
        raise UsageError(
            "--license holds a line feed or another control character; name the licence on one line."
        )
    if language is not None and _LANGUAGE.fullmatch(language) is None:
        raise UsageError(f"--language {language}: this is no language code; write one like en or pt-BR.")


def _storage(format_: Format) -> Storage:
    """What is used where nobody chose."""
    from edgen.exporters import usual_storage

    if format_.files != "hub":
        return "parquet"
    storage = usual_storage()
    if storage == "jsonl":
        note(
            f"pyarrow is not installed, so the data is JSON Lines; for Parquet: `{install_command('parquet')}`"
        )
    return storage


def make_voice(train: Train, opening: Opening, template: str | None) -> Voice:
    """How turns become messages. Raises TemplateError for a template that cannot be used."""
    from edgen import resources
    from edgen.exporters import OPENING_VARIABLES, Voice
    from edgen.prompting import load_prompt

    path = resources.find("prompts", "export_opening") if template is None else Path(template)
    prompt = load_prompt(path, OPENING_VARIABLES, expects="opening")
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
    if format_.files == "csv":
        facts["disarmed"] = exported.disarmed
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
