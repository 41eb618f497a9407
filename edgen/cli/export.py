"""`edgen export`: a finished run as a data set that trainers, libraries and the hub take."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Context, Option
from typer.core import TyperCommand, TyperOption

from edgen.cli.options import JsonOption, RunArgument
from edgen.cli.output import print_value
from edgen.core.errors import UsageError
from edgen.core.registry import names

FormatOption = Annotated[
    str | None,
    Option(
        "--to",
        metavar="FORMAT",
        help=f"One of these: {', '.join(names('format'))}. Without it, each is listed with what it is for.",
    ),
]
FolderOption = Annotated[
    Path | None, Option("-o", metavar="DIR", help="The folder to make; it may not hold anything yet.")
]
TrainOption = Annotated[
    str | None,
    Option(
        "--train",
        "--assistant",
        metavar="ROLE",
        help="The role that is trained, the assistant; all others are the user.  [default: the space's first]",
    ),
]
OpeningOption = Annotated[
    Literal["system", "user", "both"] | None,
    Option(
        help="What a conversation begins with: user: a line by the other side where the trained side would "
        "speak first; system: a system message; both.  [default: user]"
    ),
]
OpeningPromptOption = Annotated[
    str | None,
    Option(
        metavar="FILE|NAME",
        help="A template for the opening's texts, or the one that the environment shows (selfplay_teacher).  [default: export_opening, or export_opening_roles for other spaces than Education Dialogue's]",
    ),
]
EndMarkerOption = Annotated[
    Literal["keep", "drop"] | None,
    Option(
        help="Whether the trained side's last words keep the end marker.  [default: keep with an opening prompt that "
        "asks for turns, as the environment's do; else drop]"
    ),
]
LicenseOption = Annotated[
    str | None, Option("--license", metavar="ID", help="The licence that the card states.")
]
LanguageOption = Annotated[
    str | None, Option(metavar="CODE", help="The language that the card states, like en.")
]
StorageOption = Annotated[
    Literal["parquet", "jsonl"] | None,
    Option(help="hf only: how it is stored.  [default: parquet where pyarrow is installed]"),
]
CsvOption = Annotated[
    bool | None,
    Option(
        "--csv-safe/--no-csv-safe",
        help="csv only: an apostrophe before cells that a spreadsheet would take for formulas.  [default: csv-safe]",
    ),
]
MasksOption = Annotated[
    bool | None,
    Option(
        "--masks/--no-masks",
        help="trl-sft, sharegpt and verl only: each message says in `train` whether it is trained; unsloth refuses that.  [default: masks]",
    ),
]
TurnsLeftOption = Annotated[
    int | None,
    Option(
        metavar="N",
        min=0,
        help="Formats of pairs only: leave out pairs that part where fewer than N turns follow, in either of the two.",
    ),
]
TokenizerOption = Annotated[
    Path | None,
    Option(
        metavar="DIR",
        help="refuel only: the folder of a model's tokenizer, by which rows get tokens and masks (needs transformers).",
    ),
]
TokensOption = Annotated[
    int | None,
    Option(
        "--max-tokens",
        metavar="N",
        min=1,
        help="With --tokenizer: rows are padded to N tokens, longer ones left out.  [default: 2048]",
    ),
]
ActionsOption = Annotated[
    Literal["labels", "wanted"] | None,
    Option(
        help="Formats of single responses only: prompts tell what the response is to do: labels: what it does; wanted: "
        "what it was asked for.  [default: nothing is told]"
    ),
]
AlternativesOption = Annotated[
    bool | None,
    Option(
        "--alternatives/--no-alternatives",
        help="sft and trl-prompts only: responses that did not go on have rows, too.  [default: no-alternatives]",
    ),
]

AgentOption = Annotated[
    str | None,
    Option(
        "--agent",
        metavar="ROLE",
        help="MSDialog's formats and dstc7 only: the role that answers users, where turns do not say who is who.  [default: the space's first]",
    ),
]


LayerOption = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        help="Formats of what turns are labelled with only: the labels of this layer (`edgen annotate`) in place of the turns' own. May be given several times.",
    ),
]


class Command(TyperCommand):
    """`edgen export` with the options that formats have for themselves, which they declare."""

    def get_params(self, ctx: Any) -> list[Any]:
        *own, help_ = super().get_params(ctx)
        return [*own, *_own_options(), help_]


@functools.cache
def _own_options() -> tuple[TyperOption, ...]:
    """An option for each flag that any format has, with the formats that have it."""
    from edgen.core.registry import find_all
    from edgen.export.own_options import Flag, flags_of

    found: dict[str, tuple[Flag, list[str]]] = {}
    for format_ in find_all("format"):
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


def command(
    ctx: Context,
    run: RunArgument,
    to: FormatOption = None,
    output: FolderOption = None,
    train: TrainOption = None,
    opening: OpeningOption = None,
    opening_prompt: OpeningPromptOption = None,
    end_marker: EndMarkerOption = None,
    license_: LicenseOption = None,
    language: LanguageOption = None,
    files: StorageOption = None,
    csv_safe: CsvOption = None,
    masks: MasksOption = None,
    min_turns_left: TurnsLeftOption = None,
    tokenizer: TokenizerOption = None,
    max_tokens: TokensOption = None,
    actions: ActionsOption = None,
    alternatives: AlternativesOption = None,
    agent: AgentOption = None,
    layer: LayerOption = None,
    json: JsonOption = False,
) -> None:
    """Write a run as a data set, with a card that says what it is and how to load it.

    What a format cannot express is left out and counted, with the reason. Nothing is uploaded.

    Example: edgen export outputs/quickstart --to hf -o exports/hf
    """
    from edgen.api.finished import export_run
    from edgen.cli.control import make_control
    from edgen.export.options import ExportOptions

    options = ExportOptions(
        train=train,
        opening=opening,
        opening_prompt=opening_prompt,
        end_marker=end_marker,
        license=license_,
        language=language,
        files=files,
        csv_safe=csv_safe,
        masks=masks,
        min_turns_left=min_turns_left,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        actions=actions,
        alternatives=alternatives,
        agent=agent,
        layer=layer or None,
        own=ctx.meta.get(_OWN, {}),
    )
    if to is not None:
        exported = export_run(run, to, output, options, make_control())
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
    """Every format in a line, with what it needs, and whether the run has it."""
    width = max(len(one["format"]) for one in formats)
    for one in formats:
        needs = "".join(f" Needs {need}." for need in one["needs"])
        yield f"{one['format']:<{width}}  {one['summary']}{needs}"
    if not paired:
        yield f"This run has no pairs yet: edgen pairs {run} --by oracle"
    yield f"Next: edgen export {run} --to hf -o exports/hf"
