"""`edgen baseline`: rank the candidates of a response-selection set, without a model or with one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from edgen.cli import options as o
from edgen.cli.output import count_noun, format_cost, print_value
from edgen.core.figures import describe_counts

if TYPE_CHECKING:
    from edgen.api.ranking import Baseline, ModelRanking


def command(
    examples: Annotated[
        Path,
        Argument(metavar="EXAMPLES", help="A file in DSTC7's layout, with the candidates of each example."),
    ],
    output: Annotated[Path, Option("--output", "-o", metavar="FILE.json", help="The ranking to write.")],
    by: Annotated[
        Literal["chance", "tfidf", "bm25", "model"],
        Option(help="By the words shared with what was said, by chance, or by a model."),
    ] = "bm25",
    seed: Annotated[
        int, Option(metavar="N", help="What the order of equally good candidates is drawn from.")
    ] = 0,
    backend: Annotated[
        str | None,
        Option(
            metavar="JOB[:ROLE]",
            help="Of --by model: whose backend ranks.  [default: `default` of ./job.yaml if there is one, else the simulator]",
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        Option(metavar="FILE", help="Of --by model: the template that asks.  [default: rank_candidates]"),
    ] = None,
    none: Annotated[
        bool, Option("--none", help="Of --by model: that no candidate is right, NONE, is ranked among them.")
    ] = False,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    via: o.ViaOption = "online",
    until: o.UntilOption = None,
    for_: o.ForOption = None,
    json: o.JsonOption = False,
) -> None:
    """Rank the candidates of every example: what a model has to be better than, or what one does. `edgen score` takes the file.

    A model puts 20 candidates in order at a time; its answers are kept in FILE.json.db, and nothing is asked twice.

    Example: edgen baseline test.json -o bm25.json --by bm25
    """
    from edgen.api.ranking import ModelOptions, rank_examples
    from edgen.cli.control import make_control

    control = make_control(trust_host=trust_host, until=until, for_=for_)
    options = ModelOptions(
        backend=backend, prompt=prompt, none=none, overrides=o.read_overrides(set_), via=via
    )
    found = rank_examples(examples, output, by, seed, control, options)
    print_value(found, _render(found), json=json)
    if found.asked:
        found.asked.require_all()


def _render(found: Baseline) -> Iterator[str]:
    if found.asked:
        yield from _render_asked(found.asked, found.examples)
    else:
        yield f"ranked     {count_noun(found.examples, 'example')}"
    yield f"written    {found.written}"


def _render_asked(asked: ModelRanking, examples: int) -> Iterator[str]:
    yield f"ranked     {asked.ranked:,} of {count_noun(examples, 'example')}, by {asked.model}"
    if without := {**asked.rejected, **asked.failed}:
        yield f"no ranking {describe_counts(without)}"
    yield f"lists      {asked.windows:,}, of which {asked.unread:,} could not be read and stay as they were"
    yield f"numbers    {asked.unknown:,} unknown, {asked.repeated:,} repeated (dropped), {asked.missing:,} missing (put last)"
    calls = asked.calls
    yield f"calls      {calls.made:,} made, {calls.replayed:,} replayed, {calls.retried:,} retried"
    yield f"cost       {format_cost(asked.cost_usd)}"
    yield f"ledger     {asked.ledger} (every answer as it came)"
