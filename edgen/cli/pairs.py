"""`edgen pairs`: preference pairs of a run, judged, labelled and split; and the bias report."""

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
    from edgen.api.pairs import PairedRun, PairOptions
    from edgen.api.pairs_estimate import PairsEstimate
    from edgen.api.supervision.control import Control

ByOption = Annotated[
    Literal["oracle", "probability", "human", "flag", "judged"] | None,
    Option(
        help="Who labels: a judge model, the conversations' own probabilities, or votes; of several responses to one turn, "
        "flag: a student who called one nonsense; judged: the run's own judge, its best against its worst."
    ),
]
JudgeOption = Annotated[
    str | None,
    Option(
        metavar="[JOB:]ROLE",
        help="The backend that judges: a role of the run's job, or of another job file.  [default: judge, else default]",
    ),
]
PromptOption = Annotated[
    str | None,
    Option(
        metavar="FILE",
        help="The judge's template.  [default: the job's, else oracle_guarded or oracle_roles]",
    ),
]
CreditOption = Annotated[
    Literal["whole", "response", "rollouts"] | None,
    Option(
        help="What a label of one turn rests on: verdicts on whole conversations, on the two responses alone, or the mean "
        "of rollouts, in which the run's own agents play on from each response.  [default: whole, or as the job has it]"
    ),
]
RolloutsOption = Annotated[
    int | None,
    Option(metavar="K", min=1, help="Play on K times from each response; --credit rollouts.  [default: 4]"),
]
HumanOption = Annotated[
    Path | None, Option(metavar="FILE", help="People's votes, one a line; they are kept with the run.")
]
MarginOption = Annotated[
    float | None, Option(metavar="M", min=0, max=1, help="Leave out pairs less clear than this.")
]
MostOption = Annotated[
    int | None, Option(metavar="N", min=1, help="Keep the N clearest pairs of each scenario.")
]
TurnsLeftOption = Annotated[
    int | None,
    Option(
        metavar="N",
        min=0,
        help="Leave out pairs that part where fewer than N turns follow, in either of the two.",
    ),
]
ReportOption = Annotated[bool, Option("--report", help="Position and length bias, agreement, calibration.")]


def command(
    run: o.RunArgument,
    by: ByOption = None,
    credit: CreditOption = None,
    rollouts: RolloutsOption = None,
    judge: JudgeOption = None,
    prompt: PromptOption = None,
    human: HumanOption = None,
    min_margin: MarginOption = None,
    max_per_scenario: MostOption = None,
    min_turns_left: TurnsLeftOption = None,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    allow_outside: o.OutsideOption = False,
    report: ReportOption = False,
    dry_run: o.DryRunOption = False,
    via: o.ViaOption = "online",
    until: o.UntilOption = None,
    for_: o.ForOption = None,
    log_format: o.LogFormatOption = "text",
    metrics: o.MetricsOption = None,
    json: o.JsonOption = False,
) -> None:
    """Make preference pairs of a run's conversations of one scenario, each label with its evidence.

    A judge sees every pair in both orders; ties and abstentions never become labels. Nothing is asked twice.

    Example: edgen pairs outputs/selfplay --by oracle --min-margin 0.5 --max-per-scenario 2

    Example: edgen pairs outputs/selfplay --by oracle --credit rollouts --dry-run
    """
    from edgen.api.pairs import PairOptions
    from edgen.cli.control import make_control

    control = make_control(
        trust_host=trust_host, until=until, for_=for_, log_format=log_format, metrics=metrics
    )
    if by is None:
        if credit or rollouts or dry_run:
            raise UsageError("say whose verdict makes the labels, such as --by oracle or --by probability.")
        _print_bias(run, asked=report and not (judge or prompt), json=json)
        return
    options = PairOptions(
        by=by,
        credit=credit,
        rollouts=rollouts,
        judge=judge,
        prompt=prompt,
        human=human,
        min_margin=min_margin,
        max_per_scenario=max_per_scenario,
        min_turns_left=min_turns_left,
        overrides=o.read_overrides(set_),
        allow_outside=allow_outside,
        via=via,
    )
    if dry_run:
        _print_needs(run, options, control, json=json)
    else:
        _print_pairs(run, options, control, report=report, json=json)


def _print_bias(run: Path, *, asked: bool, json: bool) -> None:
    from edgen.api.pairs import report_bias
    from edgen.preferences.render import render

    bias = report_bias(run, asked=asked)
    print_value(bias, render(bias), json=json)


def _print_needs(run: Path, options: PairOptions, control: Control, *, json: bool) -> None:
    from edgen.api.pairs_estimate import estimate_pairs

    needs = estimate_pairs(run, options, control)
    print_value(needs, _render_needs(needs), json=json)


def _print_pairs(run: Path, options: PairOptions, control: Control, *, report: bool, json: bool) -> None:
    from edgen.api.pairs import make_pairs, require_pairs

    paired = make_pairs(run, options, control, report=report)
    print_value(_as_json(paired), _render(paired), json=json)
    require_pairs(paired)


# Comparisons that end without a question to the judge.
_NEVER_SHOWN = ("identical", "no_responses")
_JUDGE_KEYS = ("planned", "rejected", "failed", "pending", "calls", "tokens", "cost_usd")


def _as_json(paired: PairedRun) -> dict[str, Any]:
    facts: dict[str, Any] = {"run": str(paired.run), "by": paired.by, "scenarios": paired.scenarios}
    if (judged := paired.judged) is not None:
        facts |= {"judge": judged.judge, "model": paired.model, "compare": paired.compare}
        facts |= {"votes": paired.votes, "judged": judged.judged}
        plain = msgspec.to_builtins(judged)
        facts |= {key: plain[key] for key in _JUDGE_KEYS}
    if paired.k is not None:
        facts |= {"credit": "rollouts", "k": paired.k, "rollouts": msgspec.to_builtins(paired.rollouts)}
    if (made := paired.made) is not None:
        facts["pairs"] = {"train": made.train, "test": made.test}
        facts["left_out"] = dict(sorted(made.left_out.items()))
        facts |= {"simulated": made.simulated, "file": str(paired.file)}
    if paired.bias is not None:
        facts["report"] = paired.bias
    return facts


def _render_needs(needs: PairsEstimate) -> Iterator[str]:
    yield f"run        {needs.run}"
    if needs.rollouts is not None:
        one = needs.rollouts
        yield f"rollouts   {one.to_play} to play, {one.k} of each of {one.responses} responses; {one.there} are there"
        yield f"           {one.calls.expected} calls as expected, {one.calls.at_most} at most"
    if needs.judged is not None:
        judged = needs.judged
        yield f"judge      {judged.to_judge} comparisons, {judged.there} are there"
        yield f"           {judged.calls.expected} calls as expected, {judged.calls.at_most} at most"
    yield f"calls      {needs.calls.expected} as expected, {needs.calls.at_most} at most; none was made"


def _render(paired: PairedRun) -> Iterator[str]:
    from edgen.preferences.render import render

    made, judged = paired.made, paired.judged
    yield f"run        {paired.run}{' (simulated)' if made is not None and made.simulated else ''}"
    yield f"scenarios  {paired.scenarios} with conversations to compare"
    for one in paired.rollouts:
        lost = describe_counts({**one.rejected, **one.failed})
        yield f"rollouts   {one.played} of {one.planned} played, {paired.k} of each response; lost {lost}"
        yield f"           {one.calls.made} calls, cost {format_cost(one.cost_usd)}"
    if judged is not None:
        unasked = {key: n for key, n in judged.rejected.items() if key in _NEVER_SHOWN}
        abstained = {key: n for key, n in judged.rejected.items() if key not in _NEVER_SHOWN}
        yield f"judge      {paired.model} ({judged.judge})"
        yield f"planned    {judged.planned}"
        yield f"judged     {judged.judged}"
        yield f"not shown  {describe_counts(unasked)}"
        yield f"abstained  {describe_counts(abstained)}"
        yield f"failed     {describe_counts(judged.failed)}"
        yield f"pending    {judged.pending}"
        yield f"calls      {judged.calls.made} made, {judged.calls.replayed} replayed"
        yield f"cost       {format_cost(judged.cost_usd)}"
    if made is not None:
        yield f"labelled   {made.train + made.test} by {paired.by}"
        yield f"left out   {describe_counts(dict(sorted(made.left_out.items())))}"
        yield f"split      {made.train} train, {made.test} test"
        yield f"pairs      {paired.file}"
    if paired.bias is not None:
        yield from render(paired.bias)
