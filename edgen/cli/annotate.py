"""`edgen annotate`: labels on a run's turns or conversations, by several annotators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from typer import Option

from edgen.cli import options as o
from edgen.cli.output import count_noun, format_cost, print_value, wrap_behind
from edgen.core.figures import describe_counts

if TYPE_CHECKING:
    from edgen.api.annotate_estimate import AnnotateEstimate, AnnotatorNeeds
    from edgen.api.annotating import AnnotatedRun, AnnotateOptions
    from edgen.api.estimating import Interval
    from edgen.api.supervision.control import Control


LabelsOption = Annotated[
    str | None,
    Option("--labels", metavar="NAME|FILE", help="The label set: a shipped one's name, or a file."),
]
ByOption = Annotated[
    list[str] | None,
    Option(
        "--by",
        metavar="[NAME=][JOB:]ROLE",
        help="A backend that labels: a role of the run's job, or of another job file; several with --by A --by B.  "
        "[default: annotator, else default]",
    ),
]
AnnotatorsOption = Annotated[
    int,
    Option(
        "--annotators",
        metavar="N",
        min=1,
        help="How many annotators each backend is, each with a seed of its own.",
    ),
]
UnitOption = Annotated[Literal["turn", "conversation"], Option("--unit", help="What carries labels.")]
TogetherOption = Annotated[
    bool, Option("--together", help="All turns of a conversation in one request: cheaper.")
]
LayerOption = Annotated[
    str | None,
    Option("--layer", metavar="NAME", help="What the layer is called.  [default: as the label set]"),
]
PeopleOption = Annotated[
    list[Path] | None,
    Option(
        "--people",
        metavar="FILE",
        help="Labels that people give, CSV or JSON Lines with id, turn, labels (and annotator); kept with the layer. Without "
        "--by, no model is asked.",
    ),
]
GoldOption = Annotated[
    str | None,
    Option(
        "--gold", metavar="FILE|LAYER", help="What is right: a file of labels, or another layer of the run."
    ),
]
SheetOption = Annotated[
    Path | None,
    Option("--sheet", metavar="FILE", help="Write an empty sheet for people to label in (CSV, or .jsonl)."),
]
PromptOption = Annotated[
    str | None,
    Option("--prompt", metavar="FILE", help="The annotators' template.  [default: label_turns]"),
]
DryRunOption = Annotated[
    bool,
    Option("--dry-run", help="Say how many requests, tokens and dollars it would take. Nothing is written."),
]


def command(
    run: o.RunArgument,
    labels: LabelsOption = None,
    by: ByOption = None,
    annotators: AnnotatorsOption = 1,
    unit: UnitOption = "turn",
    together: TogetherOption = False,
    sample: o.SampleOption = None,
    layer: LayerOption = None,
    people: PeopleOption = None,
    gold: GoldOption = None,
    sheet: SheetOption = None,
    prompt: PromptOption = None,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    dry_run: DryRunOption = False,
    via: o.ViaOption = "online",
    until: o.UntilOption = None,
    for_: o.ForOption = None,
    log_format: o.LogFormatOption = "text",
    metrics: o.MetricsOption = None,
    json: o.JsonOption = False,
) -> None:
    """Label a run's turns, or whole conversations: layers/NAME/labels.jsonl has what each annotator says, and most of them.

    Each annotator keeps its answers in a ledger of its own; nothing is asked twice, and none takes another's place. With --layer
    alone, nobody is asked, and what the layer says is told again.

    Example: edgen annotate outputs/quickstart --labels teacher_moves --annotators 3 --sample 50
    """
    from edgen.api.annotating import AnnotateOptions
    from edgen.cli.control import make_control

    control = make_control(
        trust_host=trust_host, until=until, for_=for_, log_format=log_format, metrics=metrics
    )
    options = AnnotateOptions(
        labels=labels,
        layer=layer,
        by=tuple(by or ()),
        annotators=annotators,
        unit=unit,
        together=together,
        sample=sample,
        prompt=prompt,
        people=tuple(people or ()),
        gold=gold,
        overrides=o.read_overrides(set_),
        via=via,
    )
    if sheet is not None:
        _print_sheet(run, options, sheet, json=json)
    else:
        (_print_needs if dry_run else _print_labels)(run, options, control, json=json)


def _print_labels(run: Path, options: AnnotateOptions, control: Control, *, json: bool) -> None:
    from edgen.api.annotating import annotate_run, require_labels

    made = annotate_run(Path(run), options, control)
    print_value(_as_json(made), _render(made), json=json)
    require_labels(made)


def _print_sheet(run: Path, options: AnnotateOptions, path: Path, *, json: bool) -> None:
    from edgen.api.layer_sheet import make_sheet

    sheet = make_sheet(Path(run), options, path)
    lines = (
        f"sheet      {sheet.units:,} {sheet.unit}s of {count_noun(sheet.conversations, 'conversation')}: {sheet.file}",
        *wrap_behind("labels     ", ", ".join(sheet.labels)),
        f"           {'one or several' if sheet.several else 'one'} in each row; then edgen annotate … --people {sheet.file}",
    )
    print_value(sheet, lines, json=json)


def _print_needs(run: Path, options: AnnotateOptions, control: Control, *, json: bool) -> None:
    from edgen.api.annotate_estimate import estimate_annotators

    needs = estimate_annotators(Path(run), options, control)
    print_value(needs, _render_needs(needs), json=json)


def _render_needs(needs: AnnotateEstimate) -> Iterator[str]:
    yield f"run        {needs.run}"
    how = "a conversation in one request" if needs.together else f"a request a {needs.unit}"
    yield f"layer      {needs.layer}: {needs.labels}, {how}"
    for one in needs.annotators:
        yield f"annotator  {one.annotator} ({one.model}): {one.requests:,} requests to make, {one.there:,} are there"
        yield from _render_uses(one)
    if len(needs.annotators) > 1:
        yield f"in all     {needs.requests:,} requests"
        yield from _render_uses(needs)
    for number, sentence in enumerate(needs.basis):
        yield f"{'' if number else 'rests on':<10} {sentence}"
    yield "nothing was asked, and nothing was written"


def _render_uses(one: AnnotatorNeeds | AnnotateEstimate) -> Iterator[str]:
    yield f"  calls    {_span(one.calls)}, {one.calls.at_most:,} at most"
    yield f"  tokens   {_span(one.tokens.prompt)} of prompts, {_span(one.tokens.completion)} of answers"
    if (cost := one.cost_usd) is None:
        yield "  cost     unknown: no price (`price:` of the backend gives it one)"
    else:
        yield f"  cost     ${cost.expected:,.4f} (${cost.low:,.4f} to ${cost.high:,.4f})"


def _span(one: Interval) -> str:
    return f"{one.expected:,} ({one.low:,} to {one.high:,})"


def _as_json(made: AnnotatedRun) -> dict[str, Any]:
    return {
        "run": str(made.run),
        "layer": made.layer,
        "labels": made.labels.name,
        "unit": made.unit,
        "annotators": msgspec.to_builtins(made.annotators),
        "units": made.units,
        "figures": msgspec.to_builtins(made.figures),
        "people": msgspec.to_builtins(made.people),
        "gold": msgspec.to_builtins(made.gold),
        "file": str(made.file),
    }


def _render(made: AnnotatedRun) -> Iterator[str]:
    yield f"run        {made.run}"
    yield f"layer      {made.layer}: {made.labels.name}, by {made.unit}"
    for one in made.annotators:
        yield f"annotator  {one.annotator}: {one.labelled} of {one.planned} labelled, {one.pending} pending"
        yield f"  rejected {describe_counts(one.rejected)}"
        yield f"  failed   {describe_counts(one.failed)}"
        yield f"  calls    {one.calls.made} made, {one.calls.replayed} replayed, cost {format_cost(one.cost_usd)}"
    for person in made.people:
        said = f"{person.new:,} new, {person.changed:,} changed, {person.labelled:,} in all"
        yield f"person     {person.annotator}: {said}"
    if made.units is not None:
        yield f"labels     {made.units:,} {made.unit}s: {made.file}"
    if made.figures is not None:
        from edgen.evaluation.measures.labels import layer_lines

        yield ""
        yield from layer_lines(made.layer, made.figures)
    if made.gold is not None:
        from edgen.evaluation.gold import gold_lines

        yield ""
        yield from gold_lines(made.gold)
