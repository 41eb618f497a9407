"""`edgen select`: a run of chosen conversations of another run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import to_builtins

from edgen.cli import options as o
from edgen.cli.output import align_columns, print_value
from edgen.cli.status import render_status
from edgen.core.errors import UsageError
from edgen.core.options import OwnMeasures, TrustCode, declare_output
from edgen.selection.options import SelectOptions

if TYPE_CHECKING:
    from edgen.runtime.status import StatusReport
    from edgen.store.ledger import Selection


class ChosenRunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the new run, and of measures that conditions name."""

    output: Annotated[Path | None, declare_output("RUN", "The new run's folder.  [required]")] = None
    own: OwnMeasures = ()
    trust_code: TrustCode = ()


def command(
    run: o.RunArgument,
    options: SelectOptions,
    chosen: ChosenRunOptions,
    json: o.JsonOption = False,
) -> None:
    """Choose conversations of a run, and write them as a new run.

    The run stays unchanged. Clauses apply in this order: conditions (near-duplicates last), caps, balances,
    the draw. Removed conversations count as rejected in the new run, with the clause as the reason.
    docs/selecting.md explains the expressions.

    Example: edgen select outputs/quickstart --where "turns < 20 and not near_duplicate" -o outputs/chosen
    """
    if chosen.output is None:
        raise UsageError("-o is missing: name the folder of the new run, as in -o outputs/chosen.")
    from edgen.api.finished import select_run
    from edgen.cli.control import make_control
    from edgen.evaluation.measure_files import load_measures, load_run_measures

    load_measures(chosen.own)
    control = make_control(trust_code=chosen.trust_code)
    load_run_measures([run], control, re.findall(r"\w+", " ".join(options.where)))
    status, selection = select_run(run, chosen.output, options, control)
    print_value(
        {**to_builtins(status), "selection": to_builtins(selection)}, _render(status, selection), json=json
    )


def _render(status: StatusReport, selection: Selection) -> Iterator[str]:
    clauses = selection.clauses
    rows = [(one.name, f"{one.of:,}", f"{one.took:,}", f"{one.of - one.took:,}") for one in clauses]
    if rows:
        heading, *lines = align_columns([("clause", "asked", "took", "left"), *rows])
        yield heading
        for line, one in zip(lines, clauses, strict=True):
            yield f"{line}  {one.says}"
    yield f"kept       {selection.kept:,} of {selection.accepted:,} conversations of {selection.run}"
    if selection.split is not None:
        yield f"split      {selection.split.words}: {selection.tested:,} of {selection.kept:,}"
    yield from render_status(status)
