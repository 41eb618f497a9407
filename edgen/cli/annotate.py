"""`edgen annotate`: labels on a run's turns or conversations by several annotators, and texts written for
turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from edgen.asking.options import AnnotateOptions, WriteOptions
from edgen.cli import options as o
from edgen.cli.candidates import print_candidates, render_tasks
from edgen.cli.output import print_value, wrap_after_label
from edgen.core.errors import UsageError
from edgen.core.options import declare_sheet
from edgen.core.text import quantity
from edgen.runtime.options import WorkOptions

if TYPE_CHECKING:
    from edgen.api.annotate_estimate import AnnotateEstimate, AnnotatorNeeds
    from edgen.api.annotating import AnnotatedRun
    from edgen.api.estimating import EstimateInterval
    from edgen.runtime.control import Control


class LabelSheetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The option that writes a sheet instead of labels."""

    sheet: Annotated[Path | None, declare_sheet("To label in: .csv or .jsonl.")] = None


def command(
    run: o.RunArgument,
    *,
    options: AnnotateOptions,
    people: LabelSheetOptions,
    writing: WriteOptions,
    dry_run: o.DryRunOption = False,
    work: WorkOptions,
    json: o.JsonOption = False,
) -> None:
    """Have models or people label a run's turns or conversations.

    Labels go to layers/NAME/labels.jsonl in the run. --people reads labels by people from a CSV or JSON Lines
    file with id, turn, labels and annotator; then no model is asked unless --backend names one. --layer alone
    reports on an existing layer. --write puts texts into candidates/ of the run. A second start requests no
    label or text twice. The default template is label_turns; with --write, paraphrase or wrong_reply.

    Example: edgen annotate outputs/quickstart --labels teacher_moves --annotators 3 --sample 50

    Example: edgen annotate outputs/course_advising --write paraphrases --texts 3
    """
    from edgen.cli.control import make_control

    control = make_control(work)
    sheet = people.sheet
    if writing.write is not None:
        _refuse_labelling(options, sheet)
        print_candidates(run, writing, options, control, dry_run=dry_run, json=json)
        return
    _refuse(msgspec.structs.asdict(writing), "goes with --write; add it, or leave this out")
    if sheet is not None:
        _print_sheet(run, options, sheet, json=json)
    else:
        (_print_needs if dry_run else _print_labels)(run, options, control, json=json)


_OF_LABELS = ("labels", "layer", "people", "gold", "together", "annotators", "unit")


def _refuse_labelling(options: AnnotateOptions, sheet: Path | None) -> None:
    """Raise UsageError for the first option that labels turns."""
    usual = AnnotateOptions()
    given = {name: getattr(options, name) for name in _OF_LABELS}
    named = {name: value for name, value in given.items() if value != getattr(usual, name)}
    _refuse({"sheet": sheet, **named}, "labels turns, and --write writes texts; leave one of them out")


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Raise UsageError for the first option that is given and does not apply."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name} {why}.")


def _print_labels(run: Path, options: AnnotateOptions, control: Control, *, json: bool) -> None:
    from edgen.api.annotating import annotate_run, require_labels

    made = annotate_run(run, options, control)
    print_value(_as_json(made), _render(made), json=json)
    require_labels(made)


def _print_sheet(run: Path, options: AnnotateOptions, path: Path, *, json: bool) -> None:
    from edgen.api.annotating import make_sheet

    sheet = make_sheet(run, options, path)
    lines = (
        (
            f"sheet      {sheet.units:,} {sheet.unit}s of {quantity(sheet.conversations, 'conversation')}: "
            f"{sheet.file}"
        ),
        *wrap_after_label("labels     ", ", ".join(sheet.labels)),
        (
            f"           {'one or several' if sheet.several else 'one'} in each row; then edgen annotate … "
            f"--people {sheet.file}"
        ),
    )
    print_value(sheet, lines, json=json)


def _print_needs(run: Path, options: AnnotateOptions, control: Control, *, json: bool) -> None:
    from edgen.api.annotate_estimate import estimate_annotators

    needs = estimate_annotators(run, options, control)
    print_value(needs, _render_needs(needs), json=json)


def _render_needs(needs: AnnotateEstimate) -> Iterator[str]:
    yield f"run        {needs.run}"
    how = "a conversation in one request" if needs.together else f"a request a {needs.unit}"
    yield f"layer      {needs.layer}: {needs.labels}, {how}"
    for one in needs.annotators:
        yield (
            f"annotator  {one.annotator} ({one.model}): {one.requests:,} requests to make, {one.there:,} "
            "answered already"
        )
        yield from _render_uses(one)
    if len(needs.annotators) > 1:
        yield f"in all     {needs.requests:,} requests"
        yield from _render_uses(needs)
    for number, sentence in enumerate(needs.basis):
        yield f"{'' if number else 'rests on':<10} {sentence}"
    yield "nothing was called, and nothing was written"


def _render_uses(one: AnnotatorNeeds | AnnotateEstimate) -> Iterator[str]:
    yield f"  calls    {_format_span(one.calls)}, {one.calls.at_most:,} at most"
    yield f"  tokens   {_format_span(one.tokens.prompt)} of prompts, {_format_span(one.tokens.completion)} of answers"
    if (cost := one.cost_usd) is None:
        yield "  cost     unknown (set `price:` of the backend)"
    else:
        yield f"  cost     ${cost.expected:,.4f} (${cost.low:,.4f} to ${cost.high:,.4f})"


def _format_span(one: EstimateInterval) -> str:
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
        yield (
            f"annotator  {one.annotator}: {one.labelled:,} of {one.planned:,} labelled, {one.pending:,} "
            "pending"
        )
        yield from render_tasks(one, indent="  ")
    for person in made.people:
        said = f"{person.new:,} new, {person.changed:,} changed, {person.labelled:,} in all"
        yield f"person     {person.annotator}: {said}"
    if made.units is not None:
        yield f"labels     {made.units:,} {made.unit}s: {made.file}"
    if made.figures is not None:
        from edgen.evaluation.measures.labels import describe_layer

        yield ""
        yield from describe_layer(made.layer, made.figures)
    if made.gold is not None:
        from edgen.evaluation.gold_agreement import describe_gold

        yield ""
        yield from describe_gold(made.gold)
