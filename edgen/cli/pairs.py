"""`edgen pairs`: preference pairs of a run, judged, labelled and split; and the bias report."""

from edgen.cli.options import common as o
from edgen.cli.options import pairs as p
from edgen.cli.output import print_value


def command(
    run: o.RunArgument,
    by: p.ByOption = None,
    judge: p.JudgeOption = None,
    prompt: p.PromptOption = None,
    human: p.HumanOption = None,
    min_margin: p.MarginOption = None,
    max_per_scenario: p.MostOption = None,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    allow_outside: o.OutsideOption = False,
    report: p.ReportOption = False,
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
    """
    from edgen.api.pairs import PairOptions, make_pairs, report_bias, require_pairs
    from edgen.cli.control import make_control
    from edgen.cli.render.pairs import paired_as_json, render_pairs
    from edgen.preferences.render import render

    control = make_control(
        trust_host=trust_host, until=until, for_=for_, log_format=log_format, metrics=metrics
    )
    if by is None:
        bias = report_bias(run, asked=report and not (judge or prompt))
        print_value(bias, render(bias), json=json)
        return
    options = PairOptions(
        by=by,
        judge=judge,
        prompt=prompt,
        human=human,
        min_margin=min_margin,
        max_per_scenario=max_per_scenario,
        overrides=o.read_overrides(set_),
        allow_outside=allow_outside,
        via=via,
    )
    paired = make_pairs(run, options, control, report=report)
    print_value(paired_as_json(paired), render_pairs(paired), json=json)
    require_pairs(paired)
