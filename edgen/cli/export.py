"""`edgen export`: a finished run as a data set that trainers, libraries and the hub take."""

from __future__ import annotations

from edgen.cli.options import export as e
from edgen.cli.options.common import JsonOption, RunArgument
from edgen.cli.output import print_value
from edgen.cli.render.formats import render_formats
from edgen.core.errors import UsageError


def command(
    run: RunArgument,
    to: e.FormatOption = None,
    output: e.FolderOption = None,
    train: e.TrainOption = None,
    opening: e.OpeningOption = None,
    opening_prompt: e.OpeningPromptOption = None,
    license_: e.LicenseOption = None,
    language: e.LanguageOption = None,
    files: e.StorageOption = None,
    csv_safe: e.CsvOption = None,
    json: JsonOption = False,
) -> None:
    """Write a run as a data set, with a card that says what it is and how to load it.

    What a format cannot express is left out and counted, with the reason. Nothing is uploaded.

    Example: edgen export outputs/quickstart

    Example: edgen export outputs/quickstart --to hf -o exports/hf
    """
    from edgen.api.exporting import export_run, has_pairs, list_formats
    from edgen.cli.control import make_control
    from edgen.export.options import ExportOptions

    options = ExportOptions(
        train=train,
        opening=opening,
        opening_prompt=opening_prompt,
        license=license_,
        language=language,
        files=files,
        csv_safe=csv_safe,
    )
    if to is not None:
        exported = export_run(run, to, output, options, make_control())
        print_value(exported.as_json(), exported.lines(), json=json)
        return
    if output is not None or options != ExportOptions():
        raise UsageError(f"--to is missing: name the format, such as hf; `edgen export {run}` lists all.")
    paired, formats = has_pairs(run), list_formats()
    lines = render_formats(run, formats, paired=paired)
    print_value({"run": str(run), "pairs": paired, "formats": formats}, lines, json=json)
