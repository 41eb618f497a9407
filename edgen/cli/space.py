"""`edgen space`: show, make and extend preference space files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from typer import Argument

from edgen.asking.options import GrowthOptions
from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.new_space import NewSpaceFile, SpaceName, print_new_space
from edgen.cli.options import CommandGroup
from edgen.cli.output import align_columns, format_cost, note, print_value, wrap_after_label
from edgen.core.options import Positive, Wording, Yes, declare_conversations, option
from edgen.core.registry import find_all
from edgen.core.text import quantity
from edgen.runtime.options import WorkOptions

if TYPE_CHECKING:
    from edgen.api.spaces.growth import GrownSpace

app = CommandGroup(
    "Show, make and extend spaces, from which scenarios are drawn.\n\nExample: edgen space show broad",
    added="space_command",
)
SpaceArgument = Annotated[
    str, Argument(metavar="SPACE", help="A shipped space's name, or a file.", autocompletion=complete.spaces)
]


def _word_examples() -> Wording:
    """Return the help text and flags of the option for sections whose examples can be drawn."""
    drawn = {one.name: one.drawn for one in find_all("space_section") if one.drawn}
    flags = tuple(f"--{name}" for name in drawn or ["examples"])
    return Wording(" ".join(drawn.values()), flags, hidden=not drawn)


class SpaceShowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a look at a space."""

    conversations: Annotated[Positive, msgspec.Meta(le=100_000), declare_conversations()] = 200
    per_cell: Annotated[
        int | None,
        option(
            "Show what a balanced design needs for K conversations per cell.", metavar="K", ge=1, le=10_000
        ),
    ] = None
    shown_examples: Annotated[
        int, option("Examples to show.", metavar="N", ge=0, le=20_000, worded_by=_word_examples)
    ] = 3
    pictures: Annotated[Path | None, option("Draw these examples into a new folder.", metavar="DIR")] = None


class FromTableOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a space from a table."""

    output: NewSpaceFile = None
    name: SpaceName = None
    weights: Annotated[Literal["counts", "equal"], option("Weigh values by frequency, or equally.")] = (
        "counts"
    )
    yes: Yes = False


@app.command()
def show(
    space: SpaceArgument,
    options: SpaceShowOptions,
    json: o.JsonOption = False,
) -> None:
    """Show what a space holds, and how often N conversations use it.

    It prints dimensions and weights, and for each design how often the rarest and the most frequent value of
    each dimension occur in N conversations. A cell is one value of each dimension. It also prints examples of
    what the space's sections define.

    Example: edgen space show education_dialogue -n 40
    """
    from edgen.api.spaces.facts import describe_space

    facts = describe_space(space, options.per_cell, options.shown_examples, options.conversations)
    if (pictures := options.pictures) is not None:
        from edgen.api.spaces.facts import draw_examples

        drawn, page = draw_examples(space, pictures, options.shown_examples)
        note(f"{drawn:,} pictures are in {pictures}; {page} shows them")
    print_value(facts, _render_space(facts, needs=options.per_cell is not None), json=json)


@app.command()
def expand(
    space: SpaceArgument,
    *,
    options: GrowthOptions,
    dry_run: o.DryRunOption = False,
    work: WorkOptions,
    json: o.JsonOption = False,
) -> None:
    """Ask a model for more values of one dimension of a space.

    A new space file gets the old and the new values, without near-duplicates; no file is overwritten. The
    default template is space_expand. A second start requests no answer twice (FILE.db).

    Example: edgen space expand education_dialogue --dimension topics --count 200 --backend job.yaml
    """
    from edgen.api.spaces.growth import estimate_growth, grow_space
    from edgen.cli.control import make_control

    control = make_control(work)
    if dry_run:
        needs = estimate_growth(space, options, control)
        print_value(needs, needs.lines(), json=json)
        return
    made = grow_space(space, options, control)
    print_value(made, _render_grown(made), json=json)
    made.require_all()


@app.command("from-csv")
def from_csv(
    file: Annotated[Path, Argument(metavar="FILE", help="A CSV file with a column for each dimension.")],
    options: FromTableOptions,
    json: o.JsonOption = False,
) -> None:
    """Make a space from a table, with a column for each dimension.

    Columns such as topic.grade become fields of the dimension's values.

    Example: edgen space from-csv learners.csv --weights equal -o learners.yaml
    """
    from edgen.api.spaces.from_csv import make_space_from_csv

    output = options.output
    made = make_space_from_csv(file, output, options.name, weights=options.weights, force=options.yes)
    found = ", ".join(f"{count} of {dimension}" for dimension, count in made.values.items())
    print_new_space(made, f"{quantity(made.records, 'row')}: {found}", output, json=json)


_WIDE = 40  # characters of a value that are shown
_EXAMPLES = 5  # new values that are shown


def _render_space(facts: dict[str, Any], *, needs: bool) -> Iterator[str]:
    """Yield the facts for a person, within 80 columns if values are short. `needs`: also the needs of a
    balanced design."""
    yield f"{'space':11} {facts['space']} ({facts['file']})"
    for key in ("description", "source"):
        yield from wrap_after_label(f"{key:11} ", facts[key] or "")
    yield f"{'content':11} sha256 {facts['content_sha256'][:16]}…"
    if facts["knowledge"]:
        yield f"{'knowledge':11} {facts['knowledge']}"
    yield ""
    for name, about in facts["dimensions"].items():
        yield from _render_dimension(name, about)
    yield from _render_cells(facts)
    for number, (role, sees) in enumerate(facts["roles"].items()):
        text, label = f"{role} sees {', '.join(sees) or 'nothing'}", "" if number else "roles"
        yield from wrap(text, 80, initial_indent=f"{label:20} ", subsequent_indent=" " * 23)
    from edgen.space.model import find_section, list_section_names

    for name in list_section_names():
        yield from find_section(name).render(facts[name] or {})
    yield ""
    yield from _render_gives(facts["gives"], facts["dimensions"])
    if needs:
        yield ""
        yield from _render_needs(facts)


def _render_gives(gives: dict[str, Any], dimensions: dict[str, Any]) -> Iterator[str]:
    """Yield a table by design: how often the rarest and the most frequent value of each dimension occurs."""
    many, designs = gives["conversations"], gives["designs"]
    rows = [("dimension", "values", *designs)]
    for name, about in dimensions.items():
        spans = (designs[design][name] for design in designs)
        rows.append(
            (name, f"{about['values']:,}", *(_render_span(one["least"], one["most"]) for one in spans))
        )
    lines = align_columns(rows, left=1)
    yield f"How often each value occurs in the first {many:,} conversations, by design (seed 0)"
    yield from lines
    shifted = [name for name, about in designs["even"].items() if about["off"] >= 1]
    held = [about["off"] for name, about in designs["even"].items() if name not in shifted]
    yield ""
    if held:
        yield f"With `design: even`, each count is within {max(held):.2g} of the value's weighted share."
    if shifted:
        yield from wrap(f"Conditions or exclusions shift the values of: {', '.join(shifted)}.", 80)


def _render_span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _render_dimension(name: str, about: dict[str, Any]) -> Iterator[str]:
    weights = "weighted (designs even and random):" if about["weighted"] else "all weigh the same"
    yield f"{name:20} {about['values']:>7,} values, {weights}"
    for key in ("most_probable", "least_probable"):
        for one in about.get(key, ()):
            yield f"{'':28} {one['probability']:6.2%}  {_shorten(one['value'])}"
    if about["label"]:
        yield f"{'':28} label: {_shorten(about['label'])}"
    if about["fields"]:
        said = ", ".join(f"{field} ({count:,})" for field, count in about["fields"].items())
        yield from wrap(f"with {said}", 80, initial_indent=" " * 29, subsequent_indent=" " * 29)
    if about["conditional"]:
        yield f"{'':28} {about['conditional']:,} under conditions on {', '.join(about['depends_on'])}"


def _shorten(value: str) -> str:
    return value if len(value) <= _WIDE else f"{value[: _WIDE - 1]}…"


def _render_cells(facts: dict[str, Any]) -> Iterator[str]:
    if facts["cells"] is None:
        yield f"{'cells':20} not counted: too many conditions ({facts['product']:,} without them)"
        yield f"{'':20} A balanced design draws cells at random, with equal weights."
        return
    if facts["cells_by_value"] is None:
        sizes = " x ".join(f"{about['values']:,}" for about in facts["dimensions"].values())
        product = f"{facts['cells']:>7,} = {sizes}"
        yield from wrap(product, 80, initial_indent=f"{'cells':20} ", subsequent_indent=" " * 29)
        return
    yield f"{'cells':20} {facts['cells']:>7,} allowed of {facts['product']:,}"
    if many := len(facts["exclude"]):
        yield f"{'':28} {many:,} combination{' is' if many == 1 else 's are'} excluded"
    yield f"{'':28} With `balanced`, every cell comes equally often:"
    for name, counts in facts["cells_by_value"].items():
        times = _render_span(counts["least"], counts["most"])
        yield f"{'':28} a value of {name} in {times} of {facts['cells']:,}."


def _render_needs(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the number of conversations needed to cover values, by how often."""
    if not facts["balanced"]:
        return
    each = (f"k = {need['per_cell']:,}" for need in facts["balanced"][0]["needed"])
    columns = "".join(f"{column:>13}" for column in each)
    yield f"{'conversations for k of each':30} {'of them':>10}{columns}"
    for stratum in facts["balanced"]:
        counts = "".join(f"{need['in_each']:>13,}" for need in stratum["needed"])
        title = _describe_stratum(stratum["by"], len(facts["dimensions"]))
        yield f"{title:30} {stratum['cells']:>10,}{counts}"
    yield ""
    yield "With so many conversations of `design: balanced`, every cell occurs at least k"
    yield "times. Combinations that span several cells do so for 19 of 20 seeds."


def _describe_stratum(names: list[str], dimensions: int) -> str:
    """Describe a stratum: `student x teacher preference` for the preferences of both."""
    if len(names) == dimensions:
        return "cell (all dimensions)"
    *before, last = [name.replace("_", " ") for name in names]
    return " x ".join([*(name.rpartition(" ")[0] for name in before), last])


def _render_grown(grown: GrownSpace) -> Iterator[str]:
    """Yield the new values from a model."""
    made_up = " (simulated: no model wrote them)" if grown.simulated else ""
    dropped = ", ".join(f"{reason} {number}" for reason, number in grown.dropped.items())
    calls = grown.calls
    yield f"space      {grown.space}: {grown.present} {grown.dimension}"
    yield f"asked      {grown.asked:,} more, of {grown.model or 'the model'}{made_up}"
    yield f"kept       {grown.kept:,}"
    yield from (f"           {value}" for value in grown.values[:_EXAMPLES])
    if grown.kept > _EXAMPLES:
        yield "           …"
    yield f"dropped    {dropped or 'none'}"
    yield f"calls      {calls.made:,} made, {calls.replayed:,} replayed, {calls.retried:,} retried"
    yield f"cost       {format_cost(grown.cost_usd)}"
    if grown.file:
        yield f"file       {grown.file}"
    yield f"ledger     {grown.ledger} (every raw answer)"
