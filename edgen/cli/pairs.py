"""`edgen pairs`: preference pairs of a run, judged, labelled and split; and the bias report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from typer import Argument

from edgen.asking.options import PairOptions
from edgen.cli import complete
from edgen.cli import options as o
from edgen.cli.output import format_cost, print_value
from edgen.core.errors import UsageError
from edgen.core.options import declare_sheet, option
from edgen.core.text import describe_counts
from edgen.runtime.options import WorkOptions

if TYPE_CHECKING:
    from edgen.api.pairs import PairedRun
    from edgen.runtime.control import Control

RunsArgument = Annotated[
    list[Path],
    Argument(
        metavar="RUN…",
        help="A run; or several of the same scenarios, to compare.",
        autocompletion=complete.runs,
    ),
]


class SignalOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The option that names the evidence for labels; without it, none are made."""

    signal: Annotated[
        str | None,  # a source of labels, or a judge's name
        option(
            "The evidence for labels. oracle: a judge model. probability: the conversations' "
            "own. human: people's votes. For responses to one turn, flag: one was called nonsense; "
            "judged: by the run's judge. Plugins add others: `edgen list askers` names them.",
            metavar="<oracle|probability|human|flag|judged>",
            completes="signals",
        ),
    ] = None


class PairReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of other output, with or instead of pairs."""

    report: Annotated[
        bool, option("Report biases, agreement and calibration; also preferences between arms or runs.")
    ] = False
    sheet: Annotated[Path | None, declare_sheet("To vote in: CSV, then --people FILE.")] = None
    compare: Annotated[
        tuple[str, str] | None, option("Compare the labels of two pair sets.", metavar="SET SET")
    ] = None


def command(
    runs: RunsArgument,
    *,
    source: SignalOptions,
    options: PairOptions,
    apart: PairReportOptions,
    dry_run: o.DryRunOption = False,
    work: WorkOptions,
    json: o.JsonOption = False,
) -> None:
    """Make preference pairs: two replies, and which of them is better.

    Pairs are replies to one turn, or whole conversations of one scenario. A judge sees every pair in both
    orders; ties and abstentions never become labels. People's votes, from --people and `edgen web RUN
    --vote`, make a pair set of their own. A second start requests no verdict twice. --report without
    --signal reports on existing pairs. Pairs between several runs go to pairs/against in the first run's
    folder. The default template is the job's, else that of the space,
    such as oracle_guarded, else oracle_roles.

    Example: edgen pairs outputs/selfplay --signal oracle --min-margin 0.5 --max-per-scenario 2

    Example: edgen pairs outputs/selfplay --signal oracle --credit rollouts --dry-run

    Example: edgen pairs outputs/before outputs/after --signal oracle --report
    """
    from edgen.cli.control import make_control

    control = make_control(work)
    run, *against = runs
    signal = source.signal
    if apart.sheet is not None or apart.compare is not None:
        return _print_apart(runs, signal, apart, json=json)
    if signal is None:
        return _print_bias(runs, options, dry_run=dry_run, report=apart.report, json=json)
    options = msgspec.structs.replace(options.with_signal(signal), against=tuple(against))
    if dry_run:
        return _print_needs(run, options, control, json=json)
    return _print_pairs(run, options, control, report=apart.report, json=json)


def _print_apart(runs: Sequence[Path], signal: str | None, apart: PairReportOptions, *, json: bool) -> None:
    """Write a sheet, or compare two sets. Raises UsageError for options that do not apply."""
    run, *against = runs
    sheet, compare = apart.sheet, apart.compare
    if signal is not None or (sheet is not None and compare is not None):
        raise UsageError("--sheet and --compare stand alone; leave the other options out.")
    if compare is not None:
        from edgen.api.pairs import compare_sets
        from edgen.preferences.pair_sets import render_comparison

        found = compare_sets(run, compare, against)
        print_value(found, render_comparison(found), json=json)
    elif sheet is not None:
        from edgen.api.pairs import make_vote_sheet

        count = make_vote_sheet(run, sheet, against)
        named = " ".join(map(str, runs))
        then = f"Write 1, 2 or tie into `choice`; then edgen pairs {named} --signal human --people {sheet}"
        lines = (f"sheet      {count:,} pairs: {sheet}", f"           {then}")
        print_value({"run": str(run), "file": str(sheet), "pairs": count}, lines, json=json)


def _print_bias(
    runs: Sequence[Path], options: PairOptions, *, dry_run: bool, report: bool, json: bool
) -> None:
    """Report on existing pairs. Raises UsageError for options that only making pairs takes."""
    if dry_run or options.credit or options.rollouts:
        raise UsageError("--signal is missing: name the evidence for labels, as in --signal oracle.")
    from edgen.api.pairs import name_probability, report_bias
    from edgen.preferences.render import render

    asked = report and not (options.judge or options.prompt)
    bias = report_bias(runs[0], runs[1:], asked=asked, name=options.name)
    print_value(bias, () if json else render(bias, name_probability(runs[0])), json=json)


def _print_needs(run: Path, options: PairOptions, control: Control, *, json: bool) -> None:
    from edgen.api.pairs import estimate_pairs

    needs = estimate_pairs(run, options, control)
    print_value(needs, _render_needs(needs), json=json)


def _print_pairs(run: Path, options: PairOptions, control: Control, *, report: bool, json: bool) -> None:
    from edgen.api.pairs import make_pairs, require_pairs

    paired = make_pairs(run, options, control, report=report)
    print_value(_as_json(paired), _render(paired), json=json)
    require_pairs(paired)


# Comparisons that end without a call of the judge.
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


def _render_needs(needs: dict[str, Any]) -> Iterator[str]:
    yield f"run        {needs['run']}"
    if one := needs["rollouts"]:
        yield (
            f"rollouts   {one['to_play']:,} to play, {one['k']} for each of {one['responses']:,} responses; "
            f"{one['there']:,} stored already"
        )
        yield f"           {_render_calls(one['calls'])}"
    if judged := needs["judged"]:
        yield f"judge      {judged['to_judge']:,} comparisons, {judged['there']:,} stored already"
        yield f"           {_render_calls(judged['calls'])}"
    calls = needs["calls"]
    yield (
        f"calls      {calls['expected']:,} expected, at most {calls['at_most']:,}; none was made, and nothing was "
        "written"
    )


def _render_calls(calls: dict[str, int]) -> str:
    return f"{calls['expected']:,} calls expected, at most {calls['at_most']:,}"


def _render(paired: PairedRun) -> Iterator[str]:
    from edgen.api.pairs import name_probability
    from edgen.preferences.render import render

    made, judged = paired.made, paired.judged
    yield f"run        {paired.run}{' (simulated)' if made is not None and made.simulated else ''}"
    yield f"scenarios  {paired.scenarios:,} with conversations to compare"
    for one in paired.rollouts:
        lost = describe_counts({**one.rejected, **one.failed})
        yield f"rollouts   {one.played:,} of {one.planned:,} played, {paired.k} of each response; lost {lost}"
        yield f"           {one.calls.made:,} calls, cost {format_cost(one.cost_usd)}"
    if judged is not None:
        unasked = {key: n for key, n in judged.rejected.items() if key in _NEVER_SHOWN}
        abstained = {key: n for key, n in judged.rejected.items() if key not in _NEVER_SHOWN}
        yield f"judge      {paired.model} ({judged.judge})"
        yield f"planned    {judged.planned:,}"
        yield f"judged     {judged.judged:,}"
        yield f"not shown  {describe_counts(unasked)}"
        yield f"abstained  {describe_counts(abstained)}"
        yield f"failed     {describe_counts(judged.failed)}"
        yield f"pending    {judged.pending:,}"
        yield f"calls      {judged.calls.made:,} made, {judged.calls.replayed:,} replayed"
        yield f"cost       {format_cost(judged.cost_usd)}"
    if made is not None:
        yield f"labelled   {made.train + made.test:,} by {paired.by}"
        yield f"left out   {describe_counts(dict(sorted(made.left_out.items())))}"
        yield f"split      {made.train:,} train, {made.test:,} test"
        yield f"pairs      {paired.file}"
    if paired.bias is not None:
        yield from render(paired.bias, name_probability(paired.run))
