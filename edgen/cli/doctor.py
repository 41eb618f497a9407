"""`edgen doctor`: what is wrong with a job's surroundings, and what to do about it."""

from __future__ import annotations

from typing import Annotated

from typer import Exit, Option

from edgen.cli import options as o
from edgen.cli.output import print_value


def command(
    job: o.JobArgument,
    set_: o.SetOption = None,
    trust_host: o.TrustOption = None,
    allow_outside: o.OutsideOption = False,
    call: Annotated[bool, Option("--call/--no-call", help="Make one tiny call.")] = True,
    json: o.JsonOption = False,
) -> None:
    """Check a job's keys, endpoint and model with one tiny call, and say what to do.

    Example: edgen doctor jobs/quickstart.yaml
    """
    from edgen.api.doctor import diagnose
    from edgen.cli.control import make_control

    trust = make_control(trust_host=trust_host).trust
    found = diagnose(job, trust, overrides=o.read_overrides(set_), allow_outside=allow_outside, call=call)
    lines = (
        f"{'ok  ' if check.well else 'FAIL'}  {check.check:<10} {check.detail}" for check in found.checks
    )
    print_value({"well": found.well, "checks": found.checks}, lines, json=json)
    if not found.well:
        raise Exit(found.exit_code)
