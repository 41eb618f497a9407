"""`edgen generate`: the main job, from a job file to finished train and test shards."""

from __future__ import annotations

from edgen.cli.options import common as o
from edgen.cli.output import print_value


def command(
    job: o.JobArgument,
    output: o.RunOption = None,
    count: o.CountOption = None,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    allow_outside: o.OutsideOption = False,
    resume: o.ResumeOption = "auto",
    show: o.ShowOption = 0,
    via: o.ViaOption = "online",
    write_only: o.WriteOnlyOption = None,
    part: o.RangeOption = None,
    yes: o.YesOption = False,
    until: o.UntilOption = None,
    for_: o.ForOption = None,
    log_format: o.LogFormatOption = "text",
    metrics: o.MetricsOption = None,
    json: o.JsonOption = False,
) -> None:
    """Make the conversations that a job asks for, and write them as train and test shards.

    Started again, it goes on where it stopped and asks nothing twice.

    Example: edgen generate jobs/quickstart.yaml -n 50 --set limits.in_flight=8
    """
    from edgen.cli.control import make_control

    control = make_control(
        trust_host=trust_host, yes=yes, until=until, for_=for_, log_format=log_format, metrics=metrics
    )
    from edgen.api.generation import GenerateOptions, JobSource, generate
    from edgen.cli.render.generated import render_generated

    options = GenerateOptions(
        output=output,
        via=via,
        write_only=write_only,
        part=o.read_range(part),
        fresh=resume == "never",
    )
    source = JobSource.of(job, o.read_overrides(set_, count), allow_outside=allow_outside)
    made = generate(source, options, control)
    try:
        print_value(made.status, render_generated(made, show), json=json)
    finally:
        if made.ended is not None:
            raise made.ended
