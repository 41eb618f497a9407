"""`edgen baseline`: rank the candidates of a response-selection set, with or without a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from typer import Argument

from edgen.cli import options as o
from edgen.cli.options import DomainCommand
from edgen.cli.output import format_cost, print_value
from edgen.core.options import declare_output
from edgen.domains.retrieval.baseline_options import BaselineOptions
from edgen.plugin.errors import UsageError
from edgen.plugin.texts import quantity
from edgen.runtime.options import WorkOptions

if TYPE_CHECKING:
    from edgen.domains.retrieval.ranking import Baseline
    from edgen.domains.retrieval.ranking_asker import ModelRanking


class RankingFileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The option for the file of the ranking."""

    output: Annotated[Path, declare_output("FILE", "The ranking, as JSON.")]


def command(
    examples: Annotated[
        Path,
        Argument(metavar="EXAMPLES", help="A file in DSTC7's layout, with the candidates of each example."),
    ],
    *,
    file: RankingFileOptions,
    options: BaselineOptions,
    dry_run: o.DryRunOption = False,
    work: WorkOptions,
    json: o.JsonOption = False,
) -> None:
    """Rank candidate replies by chance, shared words or a model.

    EXAMPLES is a response-selection test file. `edgen score` scores the ranking. With --method model, a model
    orders 20 candidates at a time, by the template rank_candidates; only this method takes --backend,
    --prompt, --set and --via. A second start requests no answer twice (FILE.db).

    Example: edgen baseline test.json -o bm25.json --method bm25
    """
    from edgen.cli.control import make_control
    from edgen.domains.retrieval.ranking import MODEL, estimate_ranking, rank_examples

    control = make_control(work)
    if dry_run:
        if options.by != MODEL:
            raise UsageError("--dry-run goes with --method model: the other methods call no model.")
        needs = estimate_ranking(examples, file.output, options, control)
        print_value(needs, needs.lines(), json=json)
        return
    found = rank_examples(examples, file.output, options, control)
    print_value(found, _render(found), json=json)
    if found.asked:
        found.asked.require_all()


def _render(found: Baseline) -> Iterator[str]:
    if found.asked:
        yield from _render_asked(found.asked, found.examples)
    else:
        yield f"ranked     {quantity(found.examples, 'example')}"
    yield f"written    {found.written}"


def _render_asked(asked: ModelRanking, examples: int) -> Iterator[str]:
    yield f"ranked     {asked.ranked:,} of {quantity(examples, 'example')}, by {asked.model}"
    from edgen.plugin.texts import describe_counts

    if without := {**asked.rejected, **asked.failed}:
        yield f"no ranking {describe_counts(without)}"
    yield f"lists      {asked.windows:,}, of which {asked.unread:,} could not be read and stay as they were"
    yield (
        f"numbers    {asked.unknown:,} unknown, {asked.repeated:,} repeated (dropped), {asked.missing:,} "
        "missing (put last)"
    )
    calls = asked.calls
    yield f"calls      {calls.made:,} made, {calls.replayed:,} replayed, {calls.retried:,} retried"
    yield f"cost       {format_cost(asked.cost_usd)}"
    yield f"ledger     {asked.ledger} (every raw answer)"


COMMAND = DomainCommand("baseline", section="Work with data", command=command)
