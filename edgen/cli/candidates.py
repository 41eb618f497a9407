"""`edgen candidates`: texts that a model writes for turns of a run: paraphrases, or wrong replies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from typer import Option

from edgen.cli import options as o
from edgen.cli.output import format_cost, print_value
from edgen.core.errors import UsageError
from edgen.core.figures import describe_counts

if TYPE_CHECKING:
    from edgen.api.candidates import CandidatesEstimate, WrittenCandidates


WriteOption = Annotated[
    Literal["paraphrases", "wrong"] | None,
    Option(
        "--write",
        help="paraphrases: what an agent said in other words. wrong: replies that look right in its place and are not.",
    ),
]
CountOption = Annotated[int, Option("-n", metavar="N", min=1, help="Texts of each turn.")]
ByOption = Annotated[
    str,
    Option(
        "--by",
        metavar="[JOB:]ROLE",
        help="The backend that writes: a role of the run's job, or of another job file.  [default: writer, else default]",
        show_default=False,
    ),
]
AgentOption = Annotated[
    str | None,
    Option(
        "--agent",
        metavar="ROLE",
        help="Whose turns, where turns do not tell who is an agent.  [default: the space's first role]",
    ),
]
AfterOption = Annotated[
    int, Option("--after", metavar="N", min=0, help="Only turns with N turns before them, or more.")
]
PromptOption = Annotated[
    str | None,
    Option("--prompt", metavar="FILE", help="The writer's template.  [default: paraphrase, or wrong_reply]"),
]


def command(
    run: o.RunArgument,
    write: WriteOption = None,
    count: CountOption = 3,
    by: ByOption = "",
    agent: AgentOption = None,
    after: AfterOption = 3,
    sample: o.SampleOption = None,
    prompt: PromptOption = None,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    dry_run: o.DryRunOption = False,
    via: o.ViaOption = "online",
    until: o.UntilOption = None,
    for_: o.ForOption = None,
    log_format: o.LogFormatOption = "text",
    metrics: o.MetricsOption = None,
    json: o.JsonOption = False,
) -> None:
    """Have a model write texts for a run's turns: candidates/paraphrases.jsonl or candidates/wrong.jsonl has a line a turn.

    A writer keeps its answers in a ledger of its own; nothing is asked for twice.

    Example: edgen candidates outputs/course_advising --write paraphrases -n 3
    """
    if write is None:
        raise UsageError("say what is to be written: --write paraphrases, or --write wrong.")
    from edgen.api.candidates import (
        CandidateOptions,
        estimate_candidates,
        require_candidates,
        write_for_run,
    )
    from edgen.cli.control import make_control

    control = make_control(
        trust_host=trust_host, until=until, for_=for_, log_format=log_format, metrics=metrics
    )
    options = CandidateOptions(
        write=write,
        count=count,
        agent=agent,
        after=after,
        by=by,
        sample=sample,
        prompt=prompt,
        overrides=o.read_overrides(set_),
        via=via,
    )
    if dry_run:
        needs = estimate_candidates(Path(run), options, control)
        print_value(needs, _render_needs(needs), json=json)
        return
    made = write_for_run(Path(run), options, control)
    print_value(_as_json(made), _render(made), json=json)
    require_candidates(made)


def _as_json(made: WrittenCandidates) -> dict[str, Any]:
    return {
        "run": str(made.run),
        **msgspec.to_builtins(made.writer),
        "totals": msgspec.to_builtins(made.totals),
        "file": str(made.file),
    }


def _render(made: WrittenCandidates) -> Iterator[str]:
    one, totals = made.writer, made.totals
    yield f"run        {made.run}"
    yield f"writer     {one.writer}: {one.writes} for {one.written} of {one.planned} turns, {one.pending} pending"
    yield f"rejected   {describe_counts(one.rejected)}"
    yield f"failed     {describe_counts(one.failed)}"
    yield f"calls      {one.calls.made} made, {one.calls.replayed} replayed, cost {format_cost(one.cost_usd)}"
    if totals is not None:
        short = f"; {totals.short:,} turns have fewer than {made.options.count}" if totals.short else ""
        yield f"dropped    {describe_counts(totals.dropped)}"
        yield f"texts      {totals.texts:,} for {totals.turns:,} turns{short}"
        yield f"file       {made.file}"


def _render_needs(needs: CandidatesEstimate) -> Iterator[str]:
    yield f"run        {needs.run}"
    yield f"writer     {needs.writer}: {needs.writes} for {needs.there:,} turns there, for {needs.to_write:,} to write"
    yield f"calls      {needs.calls.expected:,}, at most {needs.calls.at_most:,}"
