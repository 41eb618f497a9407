"""`edgen doctor`: checks of a job's keys, endpoints and models."""

from __future__ import annotations

from typing import Annotated

import msgspec
from typer import Exit

from edgen.cli import options as o
from edgen.cli.output import note, print_value, wrap_to_terminal
from edgen.core.options import AllowOutside, Overrides, TrustHosts, option


class DoctorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a check."""

    overrides: Overrides = ()  # further keys of the job
    trust_hosts: TrustHosts = ()
    allow_outside: AllowOutside = False
    call: Annotated[bool, option("Make one tiny call to each model.", "--call/--no-call", hidden=True)] = True


def command(
    job: o.JobArgument,
    options: DoctorOptions,
    dry_run: o.DryRunOption = False,
    json: o.JsonOption = False,
) -> None:
    """Check the keys, addresses and models that a job uses.

    It makes one tiny call to each model, which it times for `edgen estimate`, and says how to fix what is
    wrong. --dry-run leaves the calls out.

    Example: edgen doctor jobs/quickstart.yaml
    """
    from edgen.api.doctor import diagnose
    from edgen.cli.control import make_control
    from edgen.runtime.options import WorkOptions

    trust = make_control(WorkOptions(trust_hosts=options.trust_hosts)).trust
    found = diagnose(
        job,
        trust,
        overrides=options.overrides,
        allow_outside=options.allow_outside,
        call=options.call and not dry_run,
        note=lambda text: note(f"edgen: {text}"),
    )
    lines = (
        wrap_to_terminal(f"{'ok  ' if check.well else 'FAIL'}  {check.check:<10} ", check.detail)
        for check in found.checks
    )
    print_value({"well": found.well, "checks": found.checks}, lines, json=json)
    if not found.well:
        raise Exit(found.exit_code)
