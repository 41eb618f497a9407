"""`edgen select`: a run of the conversations of another that are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import to_builtins
from typer import Option

from edgen.cli.options import JsonOption, RunArgument
from edgen.cli.output import align_columns, print_value
from edgen.cli.status import render_status
from edgen.core.errors import UsageError

if TYPE_CHECKING:
    from edgen.api.status import Status
    from edgen.store.ledger import Selection


OutputOption = Annotated[Path | None, Option("-o", metavar="RUN", help="The new run's folder.")]
WhereOption = Annotated[
    list[str] | None,
    Option(
        "--where", metavar="EXPRESSION", help="What has to hold of each that is kept; several all have to."
    ),
]
CapOption = Annotated[
    list[str] | None, Option("--cap", metavar="NAME=N", help="At most N of each value, as in --cap topic=50.")
]
BalanceOption = Annotated[
    list[str] | None,
    Option("--balance", metavar="NAME", help="As many of each value as of the one with the fewest."),
]
DrawOption = Annotated[int | None, Option("--draw", metavar="N", min=1, help="N of what is left, at random.")]
SeedOption = Annotated[int, Option("--seed", help="Decides what --cap, --balance and --draw take.")]
SplitByOption = Annotated[
    str | None,
    Option("--split-by", metavar="NAME", help="A new split: nothing of one value is on both sides."),
]
InOrderOption = Annotated[
    bool, Option("--in-order", help="Of --split-by: the latest values are the test side.")
]
TestOption = Annotated[
    float | None,
    Option("--test", metavar="SHARE", help="Of --split-by: the share of the test side; else as before."),
]


def command(
    run: RunArgument,
    output: OutputOption = None,
    where: WhereOption = None,
    cap: CapOption = None,
    balance: BalanceOption = None,
    draw: DrawOption = None,
    seed: SeedOption = 0,
    split_by: SplitByOption = None,
    in_order: InOrderOption = False,
    test: TestOption = None,
    json: JsonOption = False,
) -> None:
    """Make a run of the conversations of another that are chosen; that one stays as it is.

    Clauses take one after the other: what has to hold, near-duplicates last, then caps, balances, the draw. What they
    took counts in the new run as rejected, with the clause as its reason. What is left can be split anew by any name.
    docs/selecting.md has the language.

    Example: edgen select outputs/quickstart --where "turns < 20 and not near_duplicate" --cap topic=5 -o outputs/chosen
    """
    if output is None:
        raise UsageError("say where the new run is to be: -o RUN.")
    from edgen.api.finished import select_run
    from edgen.cli.control import make_control
    from edgen.selection.options import SelectOptions

    options = SelectOptions(
        where=tuple(where or ()),
        cap=tuple(cap or ()),
        balance=tuple(balance or ()),
        draw=draw,
        seed=seed,
        split_by=split_by,
        in_order=in_order,
        test=test,
    )
    status, selection = select_run(run, output, options, make_control())
    print_value(
        {**to_builtins(status), "selection": to_builtins(selection)}, _render(status, selection), json=json
    )


def _render(status: Status, selection: Selection) -> Iterator[str]:
    clauses = selection.clauses
    rows = [(one.name, f"{one.of:,}", f"{one.took:,}", f"{one.of - one.took:,}") for one in clauses]
    lines = align_columns([("clause", "asked", "took", "left"), *rows])
    yield next(lines)
    for line, one in zip(lines, clauses, strict=True):
        yield f"{line}  {one.says}"
    yield f"kept       {selection.kept:,} of {selection.accepted:,} conversations of {selection.run}"
    if selection.split is not None:
        yield f"split      {selection.split.words}: {selection.tested:,} of {selection.kept:,}"
    yield from render_status(status)
