"""`edgen space`: look at preference space files, make them and let them grow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option, Typer

from edgen.cli.options import JsonOption, SetOption, TrustOption, read_overrides
from edgen.cli.output import format_cost, note, print_line, print_value, wrap_behind

if TYPE_CHECKING:
    from edgen.api.spaces.growth import GrownSpace

app = Typer(
    help="Work with preference space files.\n\nExample: edgen space show broad",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
SpaceArgument = Annotated[str, Argument(metavar="SPACE", help="A shipped space's name, or a file.")]
OutputOption = Annotated[
    Path | None, Option("--output", "-o", metavar="OUT", help="The file to write (else: printed).")
]
NameOption = Annotated[str | None, Option(metavar="NAME", help="The space's name (else: after OUT).")]
ForceOption = Annotated[bool, Option("--force", help="Overwrite OUT if it is there.")]


@app.command(short_help="Print sizes, cells, weights, and what a balanced design needs.")
def show(
    space: SpaceArgument,
    per_cell: Annotated[
        int | None,
        Option(metavar="K", min=1, max=10_000, help="Conversations per cell.  [default: 1, 2 and 5]"),
    ] = None,
    exercises: Annotated[
        int, Option(metavar="N", min=0, max=20_000, help="Exercises of each tier that are shown.")
    ] = 3,
    pictures: Annotated[
        Path | None,
        Option(
            metavar="FOLDER", help="A new folder for the pictures of these exercises, with a page of them."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print a space's sizes, cells and weights, and what a balanced design needs for K conversations a cell; and
    exercises with their answers, where its values make some.

    Example: edgen space show italian_shapes --exercises 30
    """
    from edgen.api.spaces.facts import describe_space

    facts = describe_space(space, per_cell, exercises)
    if pictures is not None:
        from edgen.api.spaces.pictures import PAGE, write_pictures

        drawn = write_pictures(space, pictures, exercises)
        note(f"{drawn:,} pictures are in {pictures}; {pictures / PAGE} shows them")
    print_value(facts, _render_space(facts), json=json)


@app.command(short_help="Ask a model for more values; writes a new file.")
def expand(
    space: SpaceArgument,
    dimension: Annotated[str, Option(metavar="DIMENSION", help="Which list is to grow, as in topic.")],
    count: Annotated[int, Option(metavar="N", min=1, help="How many new values.")],
    job: Annotated[
        str | None,
        Option(
            metavar="JOB[:ROLE]",
            help="Whose backend is asked.  [default: `default` of ./job.yaml if there is one, else the simulator]",
        ),
    ] = None,
    prompt: Annotated[
        str, Option(metavar="FILE", help="The template that asks: a shipped name, or a .j2 file.")
    ] = "space_expand",
    output: Annotated[
        Path | None, Option("-o", metavar="OUT", help="The new file.  [default: <name>-expanded.yaml]")
    ] = None,
    set_: SetOption = None,
    trust_host: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Ask a model for more values of one list, and write a new space file with the old and the new ones.

    Values that are nearly the same as one that is there, or as one another, are dropped. The old file is
    never changed, and none is overwritten. Stopped and started again, it asks nothing twice: every answer is in
    OUT.db, which stays beside OUT, as does a hidden lock file that may be deleted when nothing runs.

    Example: edgen space expand education_dialogue --dimension topics --count 200 --job job.yaml
    """
    from edgen.api.spaces.growth import grow_space
    from edgen.cli.control import make_control

    control, overrides = make_control(trust_host=trust_host), read_overrides(set_)
    made = grow_space(
        space, dimension, count, control, job=job, prompt=prompt, output=output, overrides=overrides
    )
    print_value(made, _render_grown(made), json=json)
    made.require_all()


@app.command("from-csv", short_help="Make a space of a table: a column a dimension.")
def from_csv(
    file: Annotated[Path, Argument(metavar="FILE", help="A CSV file: a column a dimension.")],
    output: OutputOption = None,
    name: NameOption = None,
    weights: Annotated[
        Literal["counts", "equal"],
        Option(help="How much a value weighs: as often as it is there, or as much as any other."),
    ] = "counts",
    force: ForceOption = False,
) -> None:
    """Write a space file out of a table: a column a dimension, and columns like topic.grade for its fields.

    Example: edgen space from-csv learners.csv --weights equal -o learners.yaml
    """
    from edgen.api.spaces.from_csv import make_space_from_csv

    made = make_space_from_csv(file, output, name, weights=weights, force=force)
    found = ", ".join(f"{count} of {dimension}" for dimension, count in made.values.items())
    _say_written(made.text, f"{made.records:,} rows: {found}", output)


@app.command("from-ed", short_help="Make a space of what released ED files were drawn from.")
def from_ed(
    files: Annotated[list[Path], Argument(metavar="FILES", help="Released ED files: JSON lists of records.")],
    output: OutputOption = None,
    name: NameOption = None,
    force: ForceOption = False,
) -> None:
    """Write a space file with observed frequencies out of released ED files.

    Example: edgen space from-ed conversations_train*.json -o my_space.yaml
    """
    from edgen.api.spaces.from_ed import make_space_from_ed

    made = make_space_from_ed(files, output, name, force=force)
    found = ", ".join(f"{count} {dimension.replace('_', ' ')}" for dimension, count in made.values.items())
    _say_written(made.text, f"{made.records:,} records: {found}", output, made.notes)


def _say_written(text: str, summary: str, output: Path | None, notes: tuple[str, ...] = ()) -> None:
    """Print the new file's text where it is not written, then the remarks and what was found."""
    if output is None:
        print_line(text.rstrip("\n"))
    for remark in notes:
        note(remark)
    note(f"{summary}; written to {output}" if output else summary)


_WIDE = 40  # characters of a value that are shown
_EXAMPLES = 5  # new values that are shown


def _render_space(facts: dict[str, Any]) -> Iterator[str]:
    """The same for a person, within 80 columns where values are short."""
    yield f"{'space':11} {facts['space']} ({facts['file']})"
    for key in ("description", "source"):
        yield from wrap_behind(f"{key:11} ", facts[key] or "")
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
    for name, tier in (facts["exercises"] or {}).items():
        yield from _render_tier(name, tier)
    yield ""
    yield from _render_table(facts)


def _render_tier(name: str, tier: dict[str, Any]) -> Iterator[str]:
    """A tier of exercises, and some of them with their answers."""
    yield ""
    yield f"{'exercises':20} {tier['exercises']:>7,} {name}, of {', '.join(tier['concepts'])}"
    for one in tier["shown"]:
        yield from wrap_behind(f"{'':20} question  ", one["question"])
        for key in ("answers", "mistake", "picture"):
            said = " · ".join(one[key]) if key == "answers" else one.get(key)
            if said:
                yield from wrap_behind(f"{'':20} {key:9} ", said)


def _render_dimension(name: str, about: dict[str, Any]) -> Iterator[str]:
    weights = "weighted (in the random design only):" if about["weighted"] else "all weigh the same"
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
        yield f"{'cells':20} too many conditions to count them, of {facts['product']:,}"
        yield f"{'':20} A balanced design draws them at random, all values alike."
        return
    if facts["cells_by_value"] is None:
        sizes = " x ".join(f"{about['values']:,}" for about in facts["dimensions"].values())
        product = f"{facts['cells']:>7,} = {sizes}"
        yield from wrap(product, 80, initial_indent=f"{'cells':20} ", subsequent_indent=" " * 29)
        return
    yield f"{'cells':20} {facts['cells']:>7,} allowed of {facts['product']:,}"
    if many := len(facts["exclude"]):
        yield f"{'':28} {many:,} combination{' is' if many == 1 else 's are'} excluded"
    yield f"{'':28} Balanced, each comes equally often; a value of …"
    for name, counts in facts["cells_by_value"].items():
        least, most = counts["least"], counts["most"]
        times = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        yield f"{'':28} … {name} in {times} of {facts['cells']:,}"


def _render_table(facts: dict[str, Any]) -> Iterator[str]:
    """How many conversations, by what is to be covered and how often."""
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
    yield "So many conversations of a balanced design (`design: balanced`) have each of"
    yield "them k times or more: cells for certain, what spans many cells with 19 of 20"
    yield "seeds or more."


def _describe_stratum(names: list[str], dimensions: int) -> str:
    """`student x teacher preference` for the preferences of both."""
    if len(names) == dimensions:
        return "cell (all dimensions)"
    *before, last = [name.replace("_", " ") for name in names]
    return " x ".join([*(name.rpartition(" ")[0] for name in before), last])


def _render_grown(grown: GrownSpace) -> Iterator[str]:
    """What came of the asking for new values."""
    made_up = " (simulated: no model wrote them)" if grown.simulated else ""
    dropped = ", ".join(f"{reason} {number}" for reason, number in grown.dropped.items())
    calls = grown.calls
    yield f"space      {grown.space}: {grown.present} {grown.dimension}"
    yield f"asked      {grown.asked} more, of {grown.model or 'the model'}{made_up}"
    yield f"kept       {grown.kept}"
    yield from (f"           {value}" for value in grown.values[:_EXAMPLES])
    if grown.kept > _EXAMPLES:
        yield "           …"
    yield f"dropped    {dropped or 'none'}"
    yield f"calls      {calls.made} made, {calls.replayed} replayed, {calls.retried} retried"
    yield f"cost       {format_cost(grown.cost_usd)}"
    if grown.file:
        yield f"file       {grown.file}"
    yield f"ledger     {grown.ledger} (every answer as it came)"
